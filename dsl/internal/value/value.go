// Package value defines the data of documents and expressions: nil, bool, int, float64, *big.Int, string, []any and
// map[string]any. It reads and writes them as JSON without losing a digit, and equal values encode to equal bytes.
//
// Values are immutable by convention: no package in this module changes a value that it did not create.
package value

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxDigits bounds the length of a number in text: parsing an integer of n digits costs n² steps.
const MaxDigits = 1024

// MaxDepth bounds the nesting of decoded values, as deep recursion would exhaust the stack.
const MaxDepth = 1000

// Normalize converts a Go value into the types of this package: nil, bool, int, float64, *big.Int, string, []any and
// map[string]any. Integers that fit become int, others *big.Int; NaN becomes nil and the infinities the largest floats,
// as in jq's output. Any other type is converted through its JSON form; if it has none, it becomes nil.
func Normalize(v any) any {
	switch v := v.(type) {
	case nil, bool, int, string:
		return v
	case float64:
		return finite(v)
	case *big.Int:
		return shrink(v)
	case json.Number:
		n, err := parseNumber(string(v))
		if err != nil {
			return nil
		}
		return n
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = Normalize(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = Normalize(e)
		}
		return out
	}
	return normalizeOther(v)
}

// Replace returns a copy of a value in which leaf has replaced each part that is neither an array nor an object.
func Replace(v any, leaf func(any) any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = Replace(item, leaf)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, member := range v {
			out[key] = Replace(member, leaf)
		}
		return out
	}
	return leaf(v)
}

func normalizeOther(v any) any {
	rv := reflect.ValueOf(v)
	switch {
	case rv.CanInt():
		return int(rv.Int())
	case rv.CanUint():
		return shrink(new(big.Int).SetUint64(rv.Uint()))
	case rv.CanFloat():
		return finite(rv.Float())
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	out, err := Decode(data)
	if err != nil {
		return nil
	}
	return out
}

func finite(f float64) any {
	switch {
	case math.IsNaN(f):
		return nil
	case math.IsInf(f, 1):
		return math.MaxFloat64
	case math.IsInf(f, -1):
		return -math.MaxFloat64
	}
	return f
}

func shrink(n *big.Int) any {
	if n.IsInt64() {
		return int(n.Int64())
	}
	return n
}

// Decode reads exactly one JSON value. Integers keep all their digits. Text after the value is an error, and so is a
// nesting over 1,000 levels or a number over 1,024 digits. Of duplicate keys the last value is kept.
func Decode(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := checkDepth(data); err != nil {
		return nil, err
	}
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("decode JSON: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("decode JSON: unexpected text after the value at byte %d", dec.InputOffset())
	}
	return fromNumbers(v)
}

func checkDepth(data []byte) error {
	depth, inString, escaped := 0, false, false
	for _, c := range data {
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case inString:
		case c == '[' || c == '{':
			if depth++; depth > MaxDepth {
				return fmt.Errorf("decode JSON: nested deeper than %d levels", MaxDepth)
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return nil
}

func fromNumbers(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		return parseNumber(string(v))
	case []any:
		for i, e := range v {
			if v[i], err = fromNumbers(e); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k, e := range v {
			if v[k], err = fromNumbers(e); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func parseNumber(s string) (any, error) {
	if len(s) > MaxDigits {
		return nil, fmt.Errorf("decode JSON: a number of %d characters is over the limit of %d", len(s), MaxDigits)
	}
	if !strings.ContainsAny(s, ".eE") {
		if n, ok := new(big.Int).SetString(s, 10); ok {
			return shrink(n), nil
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		// The error does not quote the number: it may be part of a secret, and the error may be shown to any reader.
		return nil, fmt.Errorf("decode JSON: a number of %d characters is out of range", len(s))
	}
	return f, nil
}

// Encode writes a value as compact JSON with sorted keys and without escaping <, > and &: equal values encode to equal
// bytes. It refuses values that JSON cannot represent. Invalid UTF-8 becomes the replacement character.
func Encode(v any) ([]byte, error) {
	return appendJSON(make([]byte, 0, 256), v, 0)
}

func appendJSON(b []byte, v any, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("encode JSON: nested deeper than %d levels", MaxDepth)
	}
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case int:
		return strconv.AppendInt(b, int64(v), 10), nil
	case *big.Int:
		return v.Append(b, 10), nil
	case float64:
		return appendFloat(b, v)
	case string:
		return appendString(b, v), nil
	case []any:
		return appendArray(b, v, depth)
	case map[string]any:
		return appendObject(b, v, depth)
	}
	return appendJSON(b, Normalize(v), depth)
}

func appendArray(b []byte, v []any, depth int) ([]byte, error) {
	var err error
	b = append(b, '[')
	for i, e := range v {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendJSON(b, e, depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func appendObject(b []byte, v map[string]any, depth int) ([]byte, error) {
	var err error
	b = append(b, '{')
	for i, k := range SortedKeys(v) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, k), ':')
		if b, err = appendJSON(b, v[k], depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// appendFloat writes whole floats without exponent up to 1e17 and the shortest exact form otherwise, so that a value
// that is decoded and encoded again keeps its bytes.
func appendFloat(b []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("encode JSON: %v is not a JSON number", f)
	}
	if f == 0 {
		return append(b, '0'), nil
	}
	if a := math.Abs(f); a >= 1e-6 && a < 1e17 {
		return strconv.AppendFloat(b, f, 'f', -1, 64), nil
	}
	return strconv.AppendFloat(b, f, 'e', -1, 64), nil
}

// appendString copies text without escapes in pieces as long as possible: texts of megabytes are common.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(slices.Grow(b, len(s)+2), '"') //nolint:mnd // the quotes
	plain := 0                                // start of the text that is not copied yet
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			i++
			if c >= 0x20 && c != '"' && c != '\\' && c != 0x7f {
				continue
			}
			b = append(b, s[plain:i-1]...)
			plain = i
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\r':
				b = append(b, '\\', 'r')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		if r != utf8.RuneError || n > 1 {
			continue
		}
		b = append(b, s[plain:i-n]...)
		b = utf8.AppendRune(b, r)
		plain = i
	}
	return append(append(b, s[plain:]...), '"')
}

// SortedKeys returns the keys of an object in order.
func SortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// TypeName returns a value's type as messages show it, such as "a boolean".
func TypeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	}
	return "a number"
}
