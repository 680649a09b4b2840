package patch

import (
	"encoding/json"
	"fmt"

	"github.com/signalbox-dev/signalbox/internal/redact"
)

// missing returns the error for a path that does not exist.
func missing(path []string) error {
	return fmt.Errorf("there is no value at %q", pointer(path))
} //nolint:err113 // for display

// find returns the value at a path.
func find(doc any, path []string) (any, error) {
	for i, part := range path {
		switch v := doc.(type) {
		case *object:
			next, there := v.get(part)
			if !there {
				return nil, missing(path[:i+1])
			}
			doc = next
		case []any:
			at, ok := redact.PartIndex(part, len(v))
			if !ok {
				return nil, missing(path[:i+1])
			}
			doc = v[at]
		default:
			return nil, missing(path[:i+1])
		}
	}
	return doc, nil
}

// put returns the document with a value at a path. With add, it creates the location, and in a list inserts the value;
// without, the location must exist.
func put(doc any, path []string, value any, add bool) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	last := path[len(path)-1]
	return within(doc, path, func(parent any) (any, error) {
		switch v := parent.(type) {
		case *object:
			if _, there := v.get(last); !there && !add {
				return nil, missing(path)
			}
			v.set(last, value)
			return v, nil
		case []any:
			if add && last == "-" {
				return append(v, value), nil
			}
			room := len(v)
			if add {
				room++
			}
			at, ok := redact.PartIndex(last, room)
			if !ok {
				return nil, missing(path)
			}
			if !add {
				v[at] = value
				return v, nil
			}
			v = append(v, nil)
			copy(v[at+1:], v[at:])
			v[at] = value
			return v, nil
		default:
			return nil, missing(path)
		}
	})
}

// take returns the document without the value at a path, and the value.
func take(doc any, path []string) (rest, value any, err error) {
	if value, err = find(doc, path); err != nil {
		return nil, nil, err
	}
	if len(path) == 0 {
		return nil, value, nil
	}
	last := path[len(path)-1]
	rest, err = within(doc, path, func(parent any) (any, error) {
		switch v := parent.(type) {
		case *object:
			v.remove(last)
			return v, nil
		case []any:
			at, ok := redact.PartIndex(last, len(v))
			if !ok {
				return nil, missing(path)
			}
			return append(v[:at], v[at+1:]...), nil
		default:
			return nil, missing(path)
		}
	})
	return rest, value, err
}

// within changes the parent of the last element of a path. Lists change their length, so each is written back to its
// location.
func within(doc any, path []string, change func(parent any) (any, error)) (any, error) {
	if len(path) == 1 {
		return change(doc)
	}
	parent, err := find(doc, path[:len(path)-1])
	if err != nil {
		return nil, err
	}
	changed, err := change(parent)
	if err != nil {
		return nil, err
	}
	holder, err := find(doc, path[:len(path)-2])
	if err != nil {
		return nil, err
	}
	switch v := holder.(type) {
	case *object:
		v.set(path[len(path)-2], changed)
	case []any:
		at, _ := redact.PartIndex(path[len(path)-2], len(v))
		v[at] = changed
	}
	return doc, nil
}

func clone(value any) any {
	switch v := value.(type) {
	case *object:
		c := &object{at: make(map[string]int, len(v.at))}
		for name, item := range v.all() {
			c.set(name, clone(item))
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, item := range v {
			c[i] = clone(item)
		}
		return c
	default:
		return value
	}
}

// weight returns about how many bytes a value takes as JSON.
func weight(value any) int {
	const around = 2
	total := around
	switch v := value.(type) {
	case *object:
		for name, item := range v.all() {
			total += len(name) + around + weight(item)
		}
	case []any:
		for _, item := range v {
			total += weight(item)
		}
	case string:
		total += len(v)
	case json.Number:
		total += len(v)
	}
	return total
}

// equal compares values as JSON does: the order of members is irrelevant, and 1 equals 1.0.
func equal(a, b any) bool {
	switch x := a.(type) {
	case *object:
		y, ok := b.(*object)
		if !ok || len(x.at) != len(y.at) {
			return false
		}
		for name, item := range x.all() {
			other, there := y.get(name)
			if !there || !equal(item, other) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !equal(x[i], y[i]) {
				return false
			}
		}
		return true
	case json.Number:
		y, ok := b.(json.Number)
		return ok && (x == y || sameNumber(x, y))
	default:
		return a == b
	}
}

// sameNumber compares numbers with different texts, as far as a float represents them exactly.
func sameNumber(a, b json.Number) bool {
	const exact = 1 << 53
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y && x < exact && x > -exact
}
