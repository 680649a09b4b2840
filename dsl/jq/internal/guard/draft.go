package guard

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/itchyny/gojq"
)

// draft is a value that is being modified. Updating n paths of a value by setpath copies its top level n times; a draft
// copies each container once, when it is first modified, and modifies its own copy from then on.
//
// owned holds the containers that it copied, by address and as values, so that no address is used again while the draft
// exists. A container that is owned has only owned containers above it. The expression may keep a value that peek
// returned, so peek ends its ownership.
type draft struct {
	root    any
	owned   map[uintptr]any
	dropped []any // paths for which there was no new value
}

func newDraft(v any) any { return &draft{root: v, owned: make(map[uintptr]any)} }

func dropped(v any) any {
	if d, ok := v.(*draft); ok {
		return append([]any{}, d.dropped...)
	}
	return []any{}
}

// finished ends the draft: its containers become ordinary values.
func finished(v any) any {
	d, ok := v.(*draft)
	if !ok {
		return v
	}
	clear(d.owned)
	return d.root
}

// peek returns the value at a path, null if there is none.
func peek(v any, args []any, f *Fuel) (any, error) {
	d, ok := v.(*draft)
	parts, isPath := args[0].([]any)
	if !ok || !isPath {
		return nil, fmt.Errorf("a path must be an array")
	}
	cur := d.root
	for _, p := range parts {
		if err := f.searched(p); err != nil {
			return nil, err
		}
		next, err := step(cur, p)
		if err != nil {
			return nil, err
		}
		if _, slice := p.(map[string]any); slice {
			if err := f.charge(int64(length(next)) / 4); err != nil {
				return nil, err
			}
		}
		cur = next
	}
	d.release(cur)
	return cur, f.charge(int64(len(parts)) / 4)
}

// searched charges for looking up a part of a path that is a key.
func (f *Fuel) searched(part any) error {
	return f.charge(hashed(part))
}

// step reads one part of a path by gojq's rules.
func step(v, part any) (any, error) {
	switch p := part.(type) {
	case string:
		switch c := v.(type) {
		case nil:
			return nil, nil
		case map[string]any:
			return c[p], nil
		}
		return nil, fmt.Errorf("expected an object but got: %s", gojq.Preview(v))
	case map[string]any:
		lo, hi, list, err := bounds(v, p)
		if err != nil || list == nil {
			return nil, err
		}
		return slices.Clone(list[lo:hi]), nil
	}
	n, ok := gojq.ToInt(part)
	if !ok {
		return nil, fmt.Errorf("invalid path part: %s", gojq.Preview(part))
	}
	switch c := v.(type) {
	case nil:
		return nil, nil
	case []any:
		if n < 0 {
			n += len(c)
		}
		if n < 0 || n >= len(c) {
			return nil, nil
		}
		return c[n], nil
	}
	return nil, fmt.Errorf("expected an array but got: %s", gojq.Preview(v))
}

// bounds resolves a slice {start, end} on an array.
func bounds(v any, slice map[string]any) (lo, hi int, list []any, err error) {
	if v != nil {
		var ok bool
		if list, ok = v.([]any); !ok {
			return 0, 0, nil, fmt.Errorf("expected an array but got: %s", gojq.Preview(v))
		}
	}
	at := func(bound any, otherwise int, round func(float64) float64) int {
		x, ok := gojq.ToFloat64(bound)
		if !ok {
			return otherwise
		}
		if x < 0 {
			x += float64(len(list))
		}
		return int(min(max(round(x), 0), float64(len(list))))
	}
	lo = at(slice["start"], 0, math.Floor)
	hi = at(slice["end"], len(list), math.Ceil)
	return lo, max(lo, hi), list, nil
}

// put stores the only element of a list at a path, or marks the path for deletion if the list is empty.
func put(v any, args []any, f *Fuel) (any, error) {
	d, ok := v.(*draft)
	parts, isPath := args[0].([]any)
	values, isList := args[1].([]any)
	if !ok || !isPath || !isList {
		return nil, fmt.Errorf("a path must be an array")
	}
	if len(values) == 0 {
		d.dropped = append(d.dropped, args[0])
		return d, f.charge(1)
	}
	root, err := d.set(d.root, parts, values[0], f)
	if err != nil {
		return nil, err
	}
	d.root = root
	return d, nil
}

func (d *draft) set(v any, parts []any, value any, f *Fuel) (any, error) {
	if len(parts) == 0 {
		return value, nil
	}
	switch p := parts[0].(type) {
	case string:
		return d.setKey(v, p, parts[1:], value, f)
	case map[string]any:
		return d.setSlice(v, p, parts[1:], value, f)
	}
	n, ok := gojq.ToInt(parts[0])
	if !ok {
		return nil, fmt.Errorf("invalid path part: %s", gojq.Preview(parts[0]))
	}
	return d.setIndex(v, n, parts[1:], value, f)
}

func (d *draft) setKey(v any, key string, rest []any, value any, f *Fuel) (any, error) {
	m, ok := v.(map[string]any)
	if !ok && v != nil {
		return nil, fmt.Errorf("expected an object but got: %s", gojq.Preview(v))
	}
	if err := f.searched(key); err != nil {
		return nil, err
	}
	child, err := d.set(m[key], rest, value, f)
	if err != nil {
		return nil, err
	}
	if m == nil || !d.owns(m) {
		if err := f.fits(m, len(m)+1); err != nil {
			return nil, err
		}
		c := make(map[string]any, len(m)+1)
		maps.Copy(c, m)
		m = c
		d.owned[address(m)] = m
	}
	m[key] = child
	return m, nil
}

func (d *draft) setIndex(v any, n int, rest []any, value any, f *Fuel) (any, error) {
	list, ok := v.([]any)
	if !ok && v != nil {
		return nil, fmt.Errorf("expected an array but got: %s", gojq.Preview(v))
	}
	if n < 0 {
		if n += len(list); n < 0 {
			return nil, fmt.Errorf("array index should not be negative: %d", n-len(list))
		}
	}
	var old any
	if n < len(list) {
		old = list[n]
	}
	child, err := d.set(old, rest, value, f)
	if err != nil {
		return nil, err
	}
	if n >= len(list) || !d.owns(list) {
		size := max(n+1, len(list))
		if err := f.fits([]any(nil), size); err != nil {
			return nil, err
		}
		// no spare capacity: an append elsewhere must never write into it
		grown := make([]any, size)
		copy(grown, list)
		list = grown
		d.owned[address(list)] = list
	}
	list[n] = child
	return list, nil
}

func (d *draft) setSlice(v any, slice map[string]any, rest []any, value any, f *Fuel) (any, error) {
	lo, hi, list, err := bounds(v, slice)
	if err != nil {
		return nil, err
	}
	child, err := d.set(slices.Clone(list[lo:hi]), rest, value, f)
	if err != nil {
		return nil, err
	}
	middle, ok := child.([]any)
	if !ok {
		return nil, fmt.Errorf("a slice can only become an array, got: %s", gojq.Preview(child))
	}
	if err := f.fits(middle, len(list)+len(middle)); err != nil {
		return nil, err
	}
	return slices.Concat(list[:lo], middle, list[hi:]), nil
}

// release ends the ownership of a container and of the owned ones in it.
func (d *draft) release(v any) {
	if !container(v) || length(v) == 0 || !d.owns(v) {
		return
	}
	delete(d.owned, address(v))
	switch c := v.(type) {
	case []any:
		for _, e := range c {
			d.release(e)
		}
	case map[string]any:
		for _, e := range c {
			d.release(e)
		}
	}
}

func (d *draft) owns(v any) bool {
	_, ok := d.owned[address(v)]
	return ok
}

// address identifies a container.
func address(v any) uintptr { return reflect.ValueOf(v).Pointer() }
