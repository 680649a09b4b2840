package guard

import (
	"fmt"
	"math/big"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/itchyny/gojq"
)

// arithmetic returns the guard of an operator: it computes small numbers itself, and checks everything else before it
// calls gojq's own operator, so that results and messages are jq's.
func arithmetic(op string) guardFunc {
	native := sync.OnceValues(func() (*gojq.Code, error) {
		query, err := gojq.Parse("$l " + op + " $r")
		if err != nil {
			return nil, err
		}
		return gojq.Compile(query, gojq.WithVariables([]string{"$l", "$r"}))
	})
	return func(_ any, args []any, f *Fuel) (any, error) {
		l, r := args[0], args[1]
		if v, ok := small(op, l, r); ok {
			return v, nil
		}
		code, err := native()
		if err != nil {
			return nil, err
		}
		if err := priceOperands(op, l, r, f); err != nil {
			return nil, err
		}
		if err := checkOperands(op, l, r, f); err != nil {
			return nil, err
		}
		v, _ := code.Run(nil, l, r).Next()
		if err, failed := v.(error); failed {
			return nil, err
		}
		return v, nil
	}
}

// small computes with integers far from overflow.
func small(op string, l, r any) (any, bool) {
	const limit = 1 << 31
	a, ok := l.(int)
	b, also := r.(int)
	if !ok || !also || a >= limit || a <= -limit || b >= limit || b <= -limit {
		return nil, false
	}
	switch op {
	case "+":
		return a + b, true
	case "-":
		return a - b, true
	case "*":
		return a * b, true
	}
	return nil, false
}

// priceOperands charges for the work of an operator in addition to copying.
func priceOperands(op string, l, r any, f *Fuel) error {
	if err := f.charge(numeric(l) + numeric(r)); err != nil {
		return err
	}
	_, texts := l.(string)
	separator, also := r.(string)
	switch list, ok := l.([]any); {
	case op == "-" && ok:
		_, err := overlap(list, []any{r}, f)
		return err
	case op == "/" && texts && also:
		s, _ := l.(string)
		return f.parts(s, separator)
	case op == "*" && container(l) && container(r):
		if _, err := f.deep(l); err != nil {
			return err
		}
		_, err := f.deep(r)
		return err
	}
	return nil
}

func checkOperands(op string, l, r any, f *Fuel) error {
	switch op {
	case "+":
		if l == nil || r == nil {
			return nil
		}
		if m, ok := r.(map[string]any); ok {
			if err := f.charge(hashedKeys(m)); err != nil {
				return err
			}
		}
		return f.fits(l, length(l)+length(r))
	case "-":
		if a, ok := l.([]any); ok {
			_, err := product(a, []any{r}, f)
			return err
		}
	case "*":
		return checkProduct(l, r, f)
	case "/":
		if s, ok := l.(string); ok {
			return f.fits(s, len(s)+length(r))
		}
	}
	return nil
}

func checkProduct(l, r any, f *Fuel) error {
	if _, ok := l.(string); !ok {
		if _, swapped := r.(string); swapped {
			l, r = r, l
		}
	}
	switch v := l.(type) {
	case string:
		n, ok := gojq.ToFloat64(r)
		if ok && n > 0 && float64(len(v))*n > float64(f.Limits.Bytes) {
			return sizeError("a string repeated %v times, the limit is %d bytes", r, f.Limits.Bytes)
		}
		if ok && n > 0 {
			return f.fits("", int(float64(len(v))*n))
		}
	case map[string]any:
		// merging visits the right side and copies the matching members of the left
		if _, err := f.deep(r); err != nil {
			return err
		}
		_, err := f.deep(l)
		return err
	}
	if bits(l)+bits(r) > f.Limits.Bits {
		return sizeError("an integer of %d bits, the limit is %d", bits(l)+bits(r), f.Limits.Bits)
	}
	return nil
}

func bits(v any) int {
	if n, ok := v.(*big.Int); ok {
		return n.BitLen()
	}
	return 0
}

// comparison returns the guard of a comparing operator. Only two containers take time to compare.
func comparison(holds func(int) bool) guardFunc {
	return func(_ any, args []any, f *Fuel) (any, error) {
		l, r := args[0], args[1]
		if !container(l) && !container(r) {
			if err := f.charge(int64(min(length(l), length(r)))/512 + numeric(l) + numeric(r)); err != nil {
				return nil, err
			}
		}
		if container(l) && container(r) {
			for _, v := range args[:2] {
				g := &gauge{limits: f.Limits} // gojq sorts the keys of both sides
				g.walk(v, 0)
				if err := f.charge(g.nodes + g.sorting); err != nil {
					return nil, err
				}
			}
			for _, v := range args[:2] {
				if _, err := f.deep(v); err != nil {
					return nil, err
				}
			}
		}
		return holds(gojq.Compare(l, r)), nil
	}
}

func container(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}

// weave splits a text at matches. Without replacements it returns the pieces between the matches, with replacements the
// text in which they replace the matches.
func weave(v any, args []any, f *Fuel) (any, error) {
	text, ok := v.(string)
	matches, _ := args[0].([]any)
	if !ok {
		return nil, fmt.Errorf("cannot search in %s: not a string", gojq.Preview(v))
	}
	replacements, replace := args[1].([]any)
	if err := f.charge(int64(len(text))/16 + int64(len(matches))); err != nil {
		return nil, err
	}
	pieces, err := slice(text, matches)
	if err != nil {
		return nil, err
	}
	if err := f.fits(pieces, len(pieces)); err != nil || !replace {
		return pieces, err
	}
	if len(replacements) != len(matches) {
		return nil, fmt.Errorf("a replacement must give one string for each match")
	}
	total := len(text)
	for _, r := range replacements {
		if _, ok := r.(string); !ok {
			return nil, fmt.Errorf("a replacement must be a string, got %s", gojq.Preview(r))
		}
		total += length(r)
	}
	if err := f.fits("", total); err != nil {
		return nil, err
	}
	var out strings.Builder
	out.Grow(total)
	for i, p := range pieces {
		s, _ := p.(string)
		out.WriteString(s)
		if i < len(replacements) {
			s, _ = replacements[i].(string)
			out.WriteString(s)
		}
	}
	return out.String(), nil
}

// slice cuts a text without copying it.
func slice(text string, matches []any) ([]any, error) {
	pieces := make([]any, 0, len(matches)+1)
	at, last := 0, 0 // bytes and characters up to the end of the last match
	forward := func(characters int) (string, bool) {
		from := at
		for ; characters > 0 && at < len(text); characters-- {
			_, size := utf8.DecodeRuneInString(text[at:])
			at += size
		}
		return text[from:at], characters == 0
	}
	for _, m := range matches {
		match, _ := m.(map[string]any)
		offset, ok := gojq.ToInt(match["offset"])
		n, also := gojq.ToInt(match["length"])
		if !ok || !also || offset < last {
			return nil, fmt.Errorf("matches overlap")
		}
		piece, whole := forward(offset - last)
		_, inside := forward(n)
		if !whole || !inside {
			return nil, fmt.Errorf("matches overlap")
		}
		pieces = append(pieces, piece)
		last = offset + n
	}
	return append(pieces, text[at:]), nil
}
