// Package guard keeps expressions within their budget. It has the functions that the rewritten expressions of package
// jq call before an operation of gojq with work or a result that could grow without limit: they measure values, charge
// fuel and refuse values that are too large. Package jq decides which construct needs which guard.
package guard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/signalbox-dev/signalbox/dsl/internal/value"
)

// guardFunc is a function of this package as gojq calls it: with its input, its arguments and the budget.
type guardFunc func(v any, args []any, f *Fuel) (any, error)

// arities is the number of argument counts that guards and pricedGuards list: zero to three.
const arities = 4

// guards lists the functions by the number of their arguments, the budget not counted.
func guards() []map[string]guardFunc {
	return []map[string]guardFunc{
		{
			"__touch": touch, "__deep": deepGuard, "__index": index, "__path": path,
			"__digits": digits, "__timeformat": timeFormat, "__clock": clock, "__instant": instant,
			"__fraction": fractionOf,
		},
		{"__peek": peek},
		{
			"__add": arithmetic("+"), "__sub": arithmetic("-"), "__mul": arithmetic("*"), "__div": arithmetic("/"),
			"__mod": arithmetic("%"),
			"__eq":  comparison(func(c int) bool { return c == 0 }), "__ne": comparison(func(c int) bool { return c != 0 }),
			"__lt": comparison(func(c int) bool { return c < 0 }), "__le": comparison(func(c int) bool { return c <= 0 }),
			"__gt": comparison(func(c int) bool { return c > 0 }), "__ge": comparison(func(c int) bool { return c >= 0 }),
			"__weave": weave, "__put": put,
		},
		{},
	}
}

// Options returns the compiler options that register the functions with gojq.
func Options() []gojq.CompilerOption {
	var out []gojq.CompilerOption
	for arity, byName := range slices.Concat(guards(), pricedGuards()) {
		arity %= arities
		for name, g := range byName {
			out = append(out, gojq.WithFunction(name, arity+1, arity+1, func(v any, args []any) any {
				f, ok := args[len(args)-1].(*Fuel)
				if !ok {
					return fmt.Errorf("%s runs without a budget", name)
				}
				result, err := g(v, args[:len(args)-1], f)
				if err != nil {
					return err
				}
				return result
			}))
		}
	}
	for name, get := range map[string]func(any) any{"__draft": newDraft, "__dropped": dropped, "__value": finished} {
		out = append(out, gojq.WithFunction(name, 0, 0, func(v any, _ []any) any { return get(v) }))
	}
	return out
}

// touch charges for one pass over the top level of a value.
func touch(v any, _ []any, f *Fuel) (any, error) {
	if s, ok := v.(string); ok {
		return v, f.charge(int64(len(s)) / 16) // text is read character by character
	}
	if err := f.charge(int64(length(v))); err != nil { // iteration allocates an entry for every item at once
		return nil, err
	}
	return v, f.fits(v, length(v))
}

// deepGuard charges for one pass over a whole value.
func deepGuard(v any, _ []any, f *Fuel) (any, error) {
	switch v.(type) {
	case []any, map[string]any, string:
		_, err := f.deep(v)
		return v, err
	}
	return v, nil
}

// index refuses indices that would make an array huge if a value were stored there.
func index(v any, _ []any, f *Fuel) (any, error) {
	switch n := v.(type) {
	case int:
		if n > f.Limits.Index {
			return nil, sizeError("index %d, the limit is %d", n, f.Limits.Index)
		}
	case []any:
		return nil, fmt.Errorf("an array is not an index; use indices to search for a part of an array")
	case string:
		return v, f.charge(hashed(v))
	case map[string]any, nil, bool:
	default:
		if x, ok := gojq.ToFloat64(v); ok && x > float64(f.Limits.Index) {
			return nil, sizeError("index %v, the limit is %d", v, f.Limits.Index)
		}
	}
	return v, nil
}

// path checks a path: its length and the indices in it.
func path(v any, _ []any, f *Fuel) (any, error) {
	parts, ok := v.([]any)
	if !ok {
		return v, nil
	}
	if len(parts) > f.Limits.Depth {
		return nil, sizeError("a path of %d parts, the limit is %d", len(parts), f.Limits.Depth)
	}
	for _, p := range parts {
		if _, err := index(p, nil, f); err != nil {
			return nil, err
		}
		if slice, ok := p.(map[string]any); ok {
			for _, bound := range slice {
				if _, err := index(bound, nil, f); err != nil {
					return nil, err
				}
			}
		}
	}
	return v, f.charge(int64(len(parts)) / 4)
}

// walked charges for copying the containers along a path.
func walked(v any, args []any, f *Fuel) (any, error) {
	parts, _ := args[0].([]any)
	for cur, i := v, 0; i < len(parts); i++ {
		if err := f.fits(cur, length(cur)); err != nil {
			return nil, err
		}
		switch c := cur.(type) {
		case map[string]any:
			key, _ := parts[i].(string)
			if err := f.charge(hashed(key)); err != nil {
				return nil, err
			}
			cur = c[key]
		case []any:
			n, ok := gojq.ToInt(parts[i])
			if n < 0 {
				n += len(c)
			}
			if !ok || n < 0 || n >= len(c) {
				return v, nil
			}
			cur = c[n]
		default:
			return v, nil
		}
	}
	return v, nil
}

// elements returns the parts of a list or of an object, in the order of its keys, and charges for sorting them.
func (f *Fuel) elements(v any) ([]any, error) {
	if m, ok := v.(map[string]any); ok {
		if err := f.charge(keyed(m)); err != nil {
			return nil, err
		}
	}
	return elements(v)
}

func elements(v any) ([]any, error) {
	switch v := v.(type) {
	case []any:
		return v, nil
	case map[string]any:
		out := make([]any, 0, len(v))
		for _, k := range value.SortedKeys(v) {
			out = append(out, v[k])
		}
		return out, nil
	}
	return nil, fmt.Errorf("not iterable")
}

// product charges for comparing every part of one value with every part of another.
func product(v any, args []any, f *Fuel) (any, error) {
	if s, ok := v.(string); ok {
		return v, f.fits(s, len(s)+length(args[0]))
	}
	a, err := f.deep(v)
	if err != nil {
		return nil, err
	}
	b, err := f.deep(args[0])
	if err != nil {
		return nil, err
	}
	return v, f.charge(a * b / 16)
}

// digits refuses text that would make a huge integer.
func digits(v any, _ []any, f *Fuel) (any, error) {
	if s, ok := v.(string); ok && len(s) > value.MaxDigits {
		return nil, sizeError("a number of %d characters, the limit is %d", len(s), value.MaxDigits)
	}
	return v, f.charge(1)
}

// timeFormat refuses formats with long paddings.
func timeFormat(v any, _ []any, f *Fuel) (any, error) {
	const longest, longestPadding = 256, 2
	s, ok := v.(string)
	if !ok {
		return v, nil
	}
	run := 0
	for _, c := range s {
		if run++; c < '0' || c > '9' {
			run = 0
		}
		if run > longestPadding && strings.Contains(s, "%") || len(s) > longest {
			return nil, sizeError("the time format %.40q", s)
		}
	}
	return v, f.charge(int64(len(s)))
}

// clock returns the time of the evaluation in seconds since 1970.
func clock(_ any, _ []any, f *Fuel) (any, error) {
	if f.Now.IsZero() {
		return nil, fmt.Errorf("now cannot be used here: there is no run with a time")
	}
	return float64(f.Now.Unix()) + float64(f.Now.Nanosecond())/1e9, f.charge(1)
}

// instant charges like quoted, and removes the fraction of a second from a date and time, which the native function
// does not read.
func instant(v any, args []any, f *Fuel) (any, error) {
	s, ok := v.(string)
	if !ok || f.Version1 {
		return quoted(v, args, f)
	}
	if begin, end := fraction(s); end > begin {
		v = s[:begin] + s[end:]
	}
	return v, f.charge(int64(len(s)))
}

// fractionOf is the fraction of a second of a date and time as a number; 0 if it has none.
func fractionOf(v any, _ []any, f *Fuel) (any, error) {
	s, ok := v.(string)
	if !ok || f.Version1 {
		return 0, nil
	}
	begin, end := fraction(s)
	if end == begin {
		return 0, nil
	}
	return strconv.ParseFloat("0"+s[begin:end], 64)
}

// fraction returns the position of the fraction in a date and time, with its point; an empty one if there is none.
func fraction(s string) (begin, end int) {
	const longest = 128
	begin = len("2006-01-02T15:04:05")
	if len(s) <= begin+1 || len(s) > longest || s[begin] != '.' {
		return 0, 0
	}
	end = len(s) - len(strings.TrimLeft(s[begin+1:], "0123456789"))
	if end == begin+1 {
		return 0, 0
	}
	return begin, end
}
