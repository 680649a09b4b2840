package guard

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/signalbox-dev/signalbox/dsl/internal/value"
)

// sortedObject is an object with sorted keys. gojq's comparison sorts the keys of both sides each time.
type sortedObject struct {
	keys   []string
	values []any
}

// ordered returns a value in which objects have sorted keys. A value without objects is returned as it is.
func ordered(v any) any {
	switch v := v.(type) {
	case map[string]any:
		o := &sortedObject{keys: value.SortedKeys(v), values: make([]any, len(v))}
		for i, k := range o.keys {
			o.values[i] = ordered(v[k])
		}
		return o
	case []any:
		if !slices.ContainsFunc(v, container) {
			return v
		}
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = ordered(e)
		}
		return out
	}
	return v
}

// compareOrdered compares as gojq does: null, false, true, numbers, texts, lists, objects.
func compareOrdered(l, r any) int {
	switch l := l.(type) {
	case []any:
		if r, ok := r.([]any); ok {
			for i := range min(len(l), len(r)) {
				if c := compareOrdered(l[i], r[i]); c != 0 {
					return c
				}
			}
			return cmp.Compare(len(l), len(r))
		}
	case *sortedObject:
		if r, ok := r.(*sortedObject); ok {
			if c := slices.Compare(l.keys, r.keys); c != 0 {
				return c
			}
			for i := range l.values {
				if c := compareOrdered(l.values[i], r.values[i]); c != 0 {
					return c
				}
			}
			return 0
		}
	case string:
		if r, ok := r.(string); ok {
			return strings.Compare(l, r)
		}
	case int:
		if r, ok := r.(int); ok {
			return cmp.Compare(l, r)
		}
	}
	if a, b := rank(l), rank(r); a != b {
		return cmp.Compare(a, b)
	}
	return gojq.Compare(l, r)
}

// rank is the position of a value's type in the order.
func rank(v any) int {
	switch v := v.(type) {
	case nil:
		return 0
	case bool:
		if v {
			return 2
		}
		return 1
	case string:
		return 4
	case []any:
		return 5
	case *sortedObject:
		return 6
	}
	return 3
}

// order computes sort, unique, min or max; the argument is its name.
func (m *machine) order(v any, args []any, f *Fuel) (any, error) {
	name, _ := args[0].(string)
	list, ok := v.([]any)
	if !ok {
		return m.refuse(name, v, nil, f)
	}
	return f.arrange(name, list, list)
}

// by computes sort_by, group_by, unique_by, min_by or max_by; the first argument is its name, the second the list of
// keys.
func (m *machine) by(v any, args []any, f *Fuel) (any, error) {
	name, _ := args[0].(string)
	list, ok := v.([]any)
	keys, also := args[1].([]any)
	if !ok || !also || len(list) != len(keys) {
		return m.refuse(name+"(.)", v, nil, f)
	}
	return f.arrange(strings.TrimSuffix(name, "_by"), list, keys)
}

// arranged is an element with its key and its original index.
type arranged struct {
	key any
	at  int
}

// arrange sorts, groups or selects the elements of a list by their keys.
func (f *Fuel) arrange(name string, list, keys []any) (any, error) {
	if err := f.within(len(list)); err != nil {
		return nil, err
	}
	g := &gauge{limits: f.Limits}
	if err := f.measure(g, keys); err != nil {
		return nil, err
	}
	n := int64(len(list))
	if name == "min" || name == "max" {
		if err := f.charge(g.nodes + n); err != nil {
			return nil, err
		}
		return extreme(list, keys, name == "min"), nil
	}
	// each element is compared once for every level of the sort
	if err := f.charge(2*g.nodes + g.nodes*logarithm(len(list)) + g.bytes*logarithm(len(list))/512 + n*2); err != nil {
		return nil, err
	}
	items := make([]arranged, len(keys))
	for i, k := range keys {
		items[i] = arranged{ordered(k), i}
	}
	slices.SortFunc(items, func(a, b arranged) int {
		return cmp.Or(compareOrdered(a.key, b.key), cmp.Compare(a.at, b.at))
	})
	return collect(name, list, items), nil
}

// collect returns the elements of a list in order: all, the first of those with equal keys, or lists of those.
func collect(name string, list []any, items []arranged) []any {
	out := make([]any, 0, len(items))
	for i := 0; i < len(items); {
		end := i + 1
		for name != "sort" && end < len(items) && compareOrdered(items[i].key, items[end].key) == 0 {
			end++
		}
		if name != "group" {
			out = append(out, list[items[i].at])
			i = end
			continue
		}
		group := make([]any, 0, end-i)
		for ; i < end; i++ {
			group = append(group, list[items[i].at])
		}
		out = append(out, group)
	}
	return out
}

func extreme(list, keys []any, smallest bool) any {
	if len(list) == 0 {
		return nil
	}
	best, key := 0, ordered(keys[0])
	for i := 1; i < len(keys); i++ {
		k := ordered(keys[i])
		if compareOrdered(key, k) > 0 == smallest {
			best, key = i, k
		}
	}
	return list[best]
}

// overlap charges for comparing every part of one value with every part of another, as contains does.
func overlap(v any, args []any, f *Fuel) (any, error) {
	a, b := &gauge{limits: f.Limits}, &gauge{limits: f.Limits}
	if err := f.measure(a, v); err != nil {
		return nil, err
	}
	if err := f.measure(b, args[0]); err != nil {
		return nil, err
	}
	if err := f.charge(product64(a.nodes, b.nodes)); err != nil {
		return nil, err
	}
	return v, f.charge(product64(a.text(), b.nodes)/16 + product64(b.text(), a.nodes)/16)
}

// product64 multiplies without overflow.
func product64(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/8/a {
		return math.MaxInt64 / 8
	}
	return a * b
}

// seek charges for a binary search.
func seek(v any, args []any, f *Fuel) (any, error) {
	g := &gauge{limits: f.Limits}
	if err := f.measure(g, args[0]); err != nil {
		return nil, err
	}
	if _, err := f.deep(v); err != nil {
		return nil, err
	}
	return v, f.charge(g.nodes * logarithm(length(v)))
}

// find charges for the search of a part in a list or a text, and returns its positions; null in null.
func find(v any, args []any, f *Fuel) (any, error) {
	s, ok := v.(string)
	part, also := args[0].(string)
	if ok && also {
		return f.positions(s, part)
	}
	if _, ok := v.([]any); !ok {
		return pay(v, args, f)
	}
	g := &gauge{limits: f.Limits}
	if err := f.measure(g, args[0]); err != nil {
		return nil, err
	}
	if _, err := f.deep(v); err != nil {
		return nil, err
	}
	n := int64(length(v))
	return v, f.charge(n + product64(n, g.nodes)*2 + product64(n, g.text())/512)
}

// positions returns the positions of a part in a text, in characters. Parts may overlap.
func (f *Fuel) positions(s, part string) (any, error) {
	if err := f.charge(int64(len(s)+len(part)) / 16); err != nil {
		return nil, err
	}
	s, part = strings.ToValidUTF8(s, "\ufffd"), strings.ToValidUTF8(part, "\ufffd")
	out := []any{}
	if part == "" {
		return out, nil
	}
	characters, from := 0, 0
	for {
		i := strings.Index(s[from:], part)
		if i < 0 {
			return out, nil
		}
		for range s[from : from+i] {
			characters++
		}
		if err := f.charge(2 + int64(len(part))/256); err != nil {
			return nil, err
		}
		if err := f.within(len(out) + 1); err != nil {
			return nil, err
		}
		out = append(out, characters)
		characters++
		from += i + 1
		for from < len(s) && s[from]&0xc0 == 0x80 {
			from++
		}
	}
}
