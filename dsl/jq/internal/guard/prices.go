package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	mathbits "math/bits"
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"github.com/signalbox-dev/signalbox/dsl/internal/value"
	"github.com/signalbox-dev/signalbox/dsl/jq/internal/render"
)

// pricedGuards lists the functions that charge for the work of native functions, or replace them, by the number of
// their arguments. One unit stands for about 50 ns or 64 bytes, whichever is more.
func pricedGuards() []map[string]guardFunc {
	m := &machine{codes: make(map[string]*gojq.Code)}
	return []map[string]guardFunc{
		{
			"__subject": subject, "__key": key, "__quoted": quoted, "__pay0": pay, "__caught": caught, "__each": iterated,
			"__explodable": explodable,
			"__total":      m.total, "__entries": entries, "__leaves": leaves, "__rotated": rotated, "__copied": copied,
			"__json": parsed,
		},
		{
			"__order": m.order, "__pay1": pay, "__call": called, "__affix": affix, "__having": having, "__parts": split,
			"__concat": m.concat, "__shape": m.shape,
			"__overlap": overlap, "__find": find, "__seek": seek, "__reach": reach, "__along": walked, "__erased": erased,
		},
		{"__pay2": pay, "__bessel": bessel, "__by": m.by, "__match": match},
		{"__pay3": pay},
	}
}

// logarithm is the base-2 logarithm of n, rounded up, at least 1.
func logarithm(n int) int64 { return int64(max(mathbits.Len(uint(n)), 1)) }

// keyed is the cost of sorting the keys of an object, which iteration and error messages do.
func keyed(m map[string]any) int64 {
	var text int64
	for k := range m {
		text += int64(len(k))
	}
	n := int64(len(m))
	return n + n*logarithm(len(m))/2 + text*logarithm(len(m))/512
}

// hashed is the cost of looking a key up in an object. Only long keys take time.
func hashed(key any) int64 {
	const perUnit = 1024
	s, _ := key.(string)
	return int64(len(s)) / perUnit
}

// hashedKeys is the cost of all keys of an object, in addition to the cost of each key itself.
func hashedKeys(m map[string]any) (cost int64) {
	for k := range m {
		cost += hashed(k)
	}
	return cost
}

// key charges for a key that is added to an object.
func key(v any, _ []any, f *Fuel) (any, error) { return v, f.charge(hashed(v)) }

// numeric is the cost of converting a number. Only numbers of many digits take time.
func numeric(v any) int64 {
	switch v := v.(type) {
	case *big.Int:
		return int64(v.BitLen() / 8)
	case json.Number:
		return int64(len(v))
	}
	return 0
}

// subject charges for reading a text or a long number once. Containers are free: a member or element is found at once.
func subject(v any, _ []any, f *Fuel) (any, error) {
	if s, ok := v.(string); ok {
		return v, f.charge(int64(len(s)) / 32)
	}
	return v, f.charge(numeric(v))
}

// quoted charges for a native function that quotes a whole text in its error: the quoted text is copied several times.
func quoted(v any, _ []any, f *Fuel) (any, error) {
	if s, ok := v.(string); ok {
		return v, f.charge(int64(len(s)))
	}
	return v, f.charge(numeric(v))
}

// pay charges for a native function that reads texts and numbers. Of objects it only shows the type in its error.
func pay(v any, args []any, f *Fuel) (any, error) {
	cost := priceOf(v)
	for _, a := range args {
		cost += priceOf(a)
	}
	return v, f.charge(cost)
}

func priceOf(v any) int64 {
	switch v := v.(type) {
	case string:
		return int64(len(v)) / 16
	case map[string]any:
		return keyed(v)
	}
	return numeric(v)
}

// called charges for the frame of a function that may call itself: gojq allocates a few hundred bytes for each. The
// argument is the depth of nested calls through which variables are looked up. As gojq searches all of these frames for
// each variable, an evaluation that reached a depth is charged for it at each instruction from then on.
func called(v any, args []any, f *Fuel) (any, error) {
	const frame, perInstruction = 6, 128
	if depth, ok := args[0].(int); ok {
		f.deepest = max(f.deepest, int64(depth)/perInstruction)
	}
	return v, f.charge(frame)
}

// caught charges for the message of an error that was caught. The message shows the beginning of a value, for which
// gojq reads a text up to the first character that it escapes, and sorts the keys of an object. This function does not
// receive the value, so the charge is for the longest text and the largest object that the expression can have.
func caught(v any, _ []any, f *Fuel) (any, error) {
	const (
		message  = 150
		longText = 400 // a long number is formatted in full to show its beginning
	)
	s, ok := v.(string)
	if ok && manyDigits(s) {
		if err := f.charge(longText); err != nil {
			return nil, err
		}
	}
	if !ok || !strings.ContainsAny(s, `{"`) {
		return v, f.charge(message)
	}
	if err := f.measureRoots(); err != nil {
		return nil, err
	}
	cost := message + f.longest/32
	if strings.Contains(s, "{") {
		cost += int64(f.widest) + int64(f.widest)*logarithm(f.widest)/2
	}
	return v, f.charge(cost)
}

// manyDigits reports whether a message shows a number that does not fit a machine word.
func manyDigits(s string) bool {
	const digits = 16
	run := 0
	for i := range min(len(s), 4096) {
		if run++; s[i] < '0' || s[i] > '9' {
			run = 0
		}
		if run >= digits {
			return true
		}
	}
	return false
}

// measureRoots finds the largest object and the longest text among the values that the evaluation began with or
// created.
func (f *Fuel) measureRoots() error {
	for len(f.roots) > 0 {
		g := &gauge{limits: f.Limits}
		if err := f.measure(g, f.roots[0]); err != nil {
			return err
		}
		f.widest, f.longest = max(f.widest, g.widest), max(f.longest, g.longest)
		f.roots = f.roots[1:]
	}
	return nil
}

// iterated charges for iterating over a value.
func iterated(v any, _ []any, f *Fuel) (any, error) {
	switch v := v.(type) {
	case string:
		return v, f.charge(int64(len(v)) / 16)
	case []any:
		if err := f.charge(int64(len(v))); err != nil {
			return nil, err
		}
		return v, f.within(len(v))
	case map[string]any:
		if err := f.charge(keyed(v)); err != nil {
			return nil, err
		}
		return v, f.within(len(v))
	}
	return v, f.charge(numeric(v)) // the error, which may be caught without a handler, shows its digits
}

// within refuses lengths over the limit of items.
func (f *Fuel) within(n int) error {
	if n > f.Limits.Items {
		return sizeError("%d items, the limit is %d", n, f.Limits.Items)
	}
	return nil
}

// room refuses texts over the limit of bytes, and charges for creating one.
func (f *Fuel) room(n int64) error {
	if n > f.Limits.Bytes {
		return sizeError("a string of %d bytes, the limit is %d", n, f.Limits.Bytes)
	}
	f.longest = max(f.longest, n)
	return f.charge(n / 32)
}

// explodable charges for creating a list of the characters of a text.
func explodable(v any, _ []any, f *Fuel) (any, error) {
	s, ok := v.(string)
	if !ok {
		return pay(v, nil, f)
	}
	n := utf8.RuneCountInString(s)
	if err := f.charge(int64(len(s))/32 + int64(min(n, f.Limits.Items))/2); err != nil {
		return nil, err
	}
	return v, f.within(n)
}

// total adds up the elements of a value: texts here, everything else with gojq.
func (m *machine) total(v any, _ []any, f *Fuel) (any, error) {
	items, err := f.elements(v)
	if errors.Is(err, ErrFuel) {
		return nil, err
	}
	if err != nil {
		return m.refuse("add", v, nil, f)
	}
	texts, lists, bytes, members := true, true, int64(0), 0
	cost := int64(len(items))
	for _, e := range items {
		switch e := e.(type) {
		case nil:
			continue
		case string:
			bytes += int64(len(e))
			lists = false
			continue
		case []any:
			members += len(e)
			texts = false
			continue
		case map[string]any:
			members += len(e)
			if err := f.charge(2 * int64(len(e))); err != nil { // before the keys are read
				return nil, err
			}
			cost += hashedKeys(e)
		}
		texts, lists = false, false
		cost += numeric(e)
	}
	if err := f.charge(cost + int64(min(members, f.Limits.Items))/2); err != nil {
		return nil, err
	}
	if err := f.within(members); err != nil {
		return nil, err
	}
	if err := f.room(bytes); err != nil {
		return nil, err
	}
	f.widest = max(f.widest, members)
	if lists && members > 0 {
		return joined(items, members), nil
	}
	if !texts || bytes == 0 {
		return m.call("add", v)
	}
	var b strings.Builder
	b.Grow(int(bytes))
	for _, e := range items {
		s, _ := e.(string)
		b.WriteString(s)
	}
	return b.String(), nil
}

// joined concatenates lists, and nulls, which add nothing. gojq's own addition would grow its result step by step.
func joined(items []any, members int) []any {
	out := make([]any, 0, members)
	for _, e := range items {
		list, _ := e.([]any)
		out = append(out, list...)
	}
	return out
}

// entries charges for converting a list to an object.
func entries(v any, _ []any, f *Fuel) (any, error) {
	f.widest = max(f.widest, length(v))
	cost := 4 * int64(length(v))
	if list, ok := v.([]any); ok {
		for _, e := range list {
			entry, _ := e.(map[string]any)
			for _, name := range []string{"key", "k", "name", "Name", "Key", "K"} {
				cost += hashed(entry[name])
			}
		}
	}
	if err := f.charge(cost); err != nil {
		return nil, err
	}
	return iterated(v, nil, f)
}

// leaves charges for flattening a value and refuses a list that would be too long.
func leaves(v any, _ []any, f *Fuel) (any, error) {
	if _, err := f.deep(v); err != nil {
		return nil, err
	}
	var count func(v any) int
	count = func(v any) int {
		list, ok := v.([]any)
		if !ok {
			return 1
		}
		n := 0
		for _, e := range list {
			n += count(e)
		}
		return n
	}
	if m, ok := v.(map[string]any); ok {
		if err := f.charge(keyed(m)); err != nil {
			return nil, err
		}
	}
	items, err := elements(v)
	if err != nil {
		return pay(v, nil, f)
	}
	n := 0
	for _, e := range items {
		n += count(e)
	}
	if err := f.charge(int64(n)); err != nil {
		return nil, err
	}
	return v, f.within(n)
}

// rotated charges for transposing: every row becomes as long as the longest.
func rotated(v any, _ []any, f *Fuel) (any, error) {
	rows, ok := v.([]any)
	if !ok {
		return pay(v, nil, f)
	}
	widest := 0
	for _, r := range rows {
		list, _ := r.([]any)
		widest = max(widest, len(list))
	}
	if err := f.within(widest * max(len(rows), 1)); err != nil {
		return nil, err
	}
	return v, f.charge(int64(len(rows)) + int64(widest) + int64(widest*len(rows))/2)
}

// copied charges for copying the top level of a list or reading the keys of an object.
func copied(v any, _ []any, f *Fuel) (any, error) {
	switch v := v.(type) {
	case []any:
		return v, f.charge(int64(len(v)) / 2)
	case map[string]any:
		return v, f.charge(keyed(v))
	}
	return pay(v, nil, f)
}

// parsed decodes JSON.
func parsed(v any, _ []any, f *Fuel) (any, error) {
	s, ok := v.(string)
	if !ok {
		if _, err := pay(v, nil, f); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("fromjson cannot be applied to: %s", gojq.Preview(v))
	}
	const perNode = 8
	nodes := strings.Count(s, ",") + strings.Count(s, "[") + strings.Count(s, "{") + strings.Count(s, ":")
	if err := f.charge(int64(len(s))/8 + int64(nodes)*perNode); err != nil {
		return nil, err
	}
	out, err := value.Decode([]byte(s))
	if err != nil {
		return nil, fmt.Errorf("fromjson cannot be applied to %s: %w", gojq.Preview(v), err)
	}
	f.roots = append(f.roots, out)
	return out, nil
}

// affix charges for comparing the beginning or the end of a text.
func affix(v any, args []any, f *Fuel) (any, error) {
	if _, ok := v.(string); !ok {
		return pay(v, args, f)
	}
	if s, ok := args[0].(string); ok {
		return v, f.charge(int64(len(s)) / 512)
	}
	_, err := pay(nil, args, f)
	return v, err
}

// having charges for the error of a key of the wrong type.
func having(v any, args []any, f *Fuel) (any, error) {
	if m, ok := v.(map[string]any); ok {
		if _, named := args[0].(string); !named {
			return v, f.charge(keyed(m) + priceOf(args[0]))
		}
		return v, f.charge(hashed(args[0]))
	}
	_, err := pay(nil, args, f)
	return v, err
}

// split charges for splitting a text, and refuses too many parts.
func split(v any, args []any, f *Fuel) (any, error) {
	text, ok := v.(string)
	separator, also := args[0].(string)
	if !ok || !also {
		return pay(v, args, f)
	}
	return v, f.parts(text, separator)
}

func (f *Fuel) parts(text, separator string) error {
	if err := f.charge(int64(len(text)+len(separator)) / 16); err != nil {
		return err
	}
	n := strings.Count(text, separator) + 1
	if err := f.charge(int64(min(n, f.Limits.Items))); err != nil {
		return err
	}
	return f.within(n)
}

// concat joins the elements of a value.
func (m *machine) concat(v any, args []any, f *Fuel) (any, error) {
	items, err := f.elements(v)
	if errors.Is(err, ErrFuel) {
		return nil, err
	}
	separator, ok := args[0].(string)
	if err != nil || !ok && args[0] != nil { // null separates by nothing
		return m.refuse("join($a)", v, args, f)
	}
	bytes := int64(max(len(items)-1, 0)) * int64(len(separator))
	cost := 2 * int64(len(items))
	for _, e := range items {
		switch e := e.(type) {
		case nil:
		case string:
			bytes += int64(len(e))
		case []any, map[string]any:
			if err := f.charge(cost + priceOf(e) + bytes/32); err != nil {
				return nil, err
			}
			return m.call("join($a)", []any{e}, args...)
		default:
			cost += 2*numeric(e) + 2
			bytes += render.ScalarLength(e)
		}
	}
	if err := f.charge(cost); err != nil {
		return nil, err
	}
	if err := f.room(bytes); err != nil {
		return nil, err
	}
	var b strings.Builder
	b.Grow(int(bytes))
	for i, e := range items {
		if i > 0 {
			b.WriteString(separator)
		}
		if s, ok := e.(string); ok {
			b.WriteString(s)
		} else if e != nil {
			render.Scalar(&b, e)
		}
	}
	return b.String(), nil
}

// reach charges for reading a path: only texts at its end take time.
func reach(v any, args []any, f *Fuel) (any, error) {
	parts, ok := args[0].([]any)
	if !ok {
		return pay(v, args, f)
	}
	cur := v
	for _, p := range parts {
		switch c := cur.(type) {
		case map[string]any:
			key, named := p.(string)
			if !named {
				return v, f.charge(keyed(c))
			}
			if err := f.charge(hashed(key)); err != nil {
				return nil, err
			}
			cur = c[key]
		case []any:
			n, _ := gojq.ToInt(p)
			if n < 0 {
				n += len(c)
			}
			if _, slice := p.(map[string]any); slice {
				continue // a part of a list is a list, and may contain the value of the next part
			}
			if n < 0 || n >= len(c) {
				return v, f.charge(int64(len(parts)))
			}
			cur = c[n]
		case string:
			return v, f.charge(int64(len(c))/16*int64(len(parts)) + int64(len(parts)))
		default:
			return v, f.charge(int64(len(parts)))
		}
	}
	return v, f.charge(int64(len(parts)))
}

// erased charges for deleting paths, which sorts them and visits the whole value.
func erased(v any, args []any, f *Fuel) (any, error) {
	nodes, err := f.deep(v)
	if err != nil {
		return nil, err
	}
	paths, _ := args[0].([]any)
	parts, err := f.deep(args[0])
	if err != nil {
		return nil, err
	}
	return v, f.charge(nodes + parts*logarithm(len(paths))*2)
}

// bessel charges for the recurrence of the Bessel functions: the number of steps is their order.
func bessel(v any, args []any, f *Fuel) (any, error) {
	if _, err := pay(v, args, f); err != nil {
		return nil, err
	}
	n, _ := gojq.ToInt(args[0])
	if n < 0 {
		n = -(n + 1)
	}
	return v, f.charge(int64(n))
}
