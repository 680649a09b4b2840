package guard

import (
	"errors"
	"fmt"

	"github.com/itchyny/gojq"

	"github.com/signalbox-dev/signalbox/dsl/jq/internal/pattern"
)

// match finds the matches of a pattern: the arguments are the pattern and the flags, or a list of both and null. If
// true follows the first argument, it only reports whether there is one.
func match(v any, args []any, f *Fuel) (any, error) {
	mode, _ := args[1].(map[string]any)
	flags, testing := mode["flags"], mode["test"] == true
	re := args[0]
	if list, ok := re.([]any); ok && mode["flags"] == nil {
		re, flags = nil, nil
		if len(list) > 0 {
			re = list[0]
		}
		if len(list) > 1 {
			flags = list[1]
		}
	}
	if mode["global"] == true {
		given, _ := flags.(string)
		if _, ok := flags.(string); ok || flags == nil {
			flags = given + "g"
		}
	}
	text, ok := v.(string)
	source, also := re.(string)
	given, third := flags.(string)
	if !ok || !also || !third && flags != nil {
		if _, err := pay(v, []any{re, flags}, f); err != nil {
			return nil, err
		}
		name := "match"
		if testing {
			name = "test"
		}
		return nil, fmt.Errorf("%s(%s; %s) cannot be applied to: %s", name, gojq.Preview(re), gojq.Preview(flags), named(v))
	}
	p, err := f.pattern(source, given)
	if err != nil {
		return nil, err
	}
	switch {
	case testing:
		return p.Test(text, f)
	case !p.All:
		return p.First(text, f)
	}
	found, err := p.Every(text, f)
	if errors.Is(err, pattern.TooMany{}) {
		return nil, sizeError("%v", err)
	}
	return found, err
}

// pattern compiles a pattern, or returns it if this evaluation has compiled it already.
func (f *Fuel) pattern(source, flags string) (*pattern.Pattern, error) {
	const (
		kept        = 8  // patterns that one evaluation keeps compiled
		compilation = 40 // it is compiled twice, and the parsed form takes more than the matched one
	)
	if len(source) > pattern.MaxBytes {
		return nil, sizeError("a pattern of %d bytes, the limit is %d", len(source), pattern.MaxBytes)
	}
	if err := f.charge(int64(len(flags)) / 16); err != nil {
		return nil, err
	}
	key := flags + "/" + source
	if p := f.patterns[key]; p != nil {
		return p, f.charge(1)
	}
	weight := pattern.Weigh(source)
	if weight > pattern.MaxWeight {
		return nil, sizeError("a pattern whose repetitions make it longer than %d parts, which is the limit",
			pattern.MaxWeight)
	}
	if err := f.charge(compilation * (weight + 20)); err != nil {
		return nil, err
	}
	p, err := pattern.Compile(source, flags)
	if err != nil {
		return nil, err
	}
	if f.patterns == nil || len(f.patterns) >= kept {
		f.patterns = make(map[string]*pattern.Pattern)
	}
	f.patterns[key] = p
	return p, nil
}

// Charge implements [pattern.Budget].
func (f *Fuel) Charge(units int64) error { return f.charge(units) }

// named is the type and the beginning of a value, as gojq's errors show them.
func named(v any) string {
	if v == nil {
		return "null"
	}
	return gojq.TypeOf(v) + " (" + gojq.Preview(v) + ")"
}
