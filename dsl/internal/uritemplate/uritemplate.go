// Package uritemplate expands URI templates (RFC 6570) with the top-level members of a value, and checks them.
package uritemplate

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/internal/value"
)

// MaxBytes is the maximum length of a result. No server accepts a URI of that length.
const MaxBytes = 1 << 20

// errTooLong is the error of a result over MaxBytes.
var errTooLong = fmt.Errorf("expand the URI template: the result is longer than %d bytes", MaxBytes)

// Expand expands a URI template with the top-level members of input. Names without a value expand to nothing. Strings,
// numbers and booleans expand to their text, arrays to their items; objects are refused, and so is a result over
// [MaxBytes].
//
// Each item of an array and each expression counts as a byte, even if it expands to nothing, so that the limit bounds
// the work, too.
func Expand(template string, input any) (string, error) {
	values, _ := input.(map[string]any)
	e := &expansion{left: MaxBytes}
	for {
		literal, rest, found := strings.Cut(template, "{")
		if err := e.write(literal); err != nil {
			return "", err
		}
		if !found {
			return e.b.String(), nil
		}
		expression, after, found := strings.Cut(rest, "}")
		if !found {
			return "", fmt.Errorf("expand the URI template: %q is not closed", "{"+rest)
		}
		if err := e.expand(expression, values); err != nil {
			return "", err
		}
		template = after
	}
}

// expansion is a partial result.
type expansion struct {
	b    strings.Builder
	left int // bytes that may follow
}

// spend counts n bytes.
func (e *expansion) spend(n int) error {
	if e.left -= n; e.left < 0 {
		return errTooLong
	}
	return nil
}

func (e *expansion) write(s string) error {
	if err := e.spend(len(s)); err != nil {
		return err
	}
	e.b.WriteString(s)
	return nil
}

// uriOperator defines how one operator of RFC 6570 joins and escapes values.
type uriOperator struct {
	first, separator string
	named, reserved  bool
}

func operatorOf(c byte) (uriOperator, bool) {
	switch c {
	case '+':
		return uriOperator{separator: ",", reserved: true}, true
	case '#':
		return uriOperator{first: "#", separator: ",", reserved: true}, true
	case '.':
		return uriOperator{first: ".", separator: "."}, true
	case '/':
		return uriOperator{first: "/", separator: "/"}, true
	case ';':
		return uriOperator{first: ";", separator: ";", named: true}, true
	case '?':
		return uriOperator{first: "?", separator: "&", named: true}, true
	case '&':
		return uriOperator{first: "&", separator: "&", named: true}, true
	}
	return uriOperator{separator: ","}, false
}

func (e *expansion) expand(expression string, values map[string]any) error {
	if expression == "" {
		return nil
	}
	op, has := operatorOf(expression[0])
	if has {
		expression = expression[1:]
	}
	lead := op.first
	for name := range strings.SplitSeq(expression, ",") {
		name, explode := strings.CutSuffix(name, "*")
		items, err := e.items(name, values[name])
		if err != nil {
			return err
		}
		for i, item := range items {
			before := lead
			switch {
			case i > 0 && !explode:
				before = ","
			default:
				lead = op.separator
				if op.named {
					before += name + "="
				}
			}
			if err := e.write(before); err != nil {
				return err
			}
			if err := e.escape(item, op.reserved); err != nil {
				return err
			}
		}
	}
	return nil
}

// items returns the texts of a value.
func (e *expansion) items(name string, v any) ([]string, error) {
	list, ok := v.([]any)
	if !ok && v != nil {
		list = []any{v}
	}
	if err := e.spend(1 + len(list)); err != nil {
		return nil, err
	}
	out := make([]string, 0, len(list))
	for _, item := range list {
		switch item := item.(type) {
		case nil:
		case string:
			out = append(out, item)
		case []any, map[string]any:
			return nil, fmt.Errorf("expand the URI template: %q is %s, which has no text", name, value.TypeName(item))
		default:
			text, err := value.Encode(item)
			if err != nil {
				return nil, fmt.Errorf("expand the URI template: %q: %w", name, err)
			}
			out = append(out, string(text))
		}
	}
	return out, nil
}

// escape writes a text with its bytes escaped, except unreserved characters and, with keepReserved, reserved ones.
func (e *expansion) escape(s string, keepReserved bool) error {
	const unreserved, reserved, digits = "-._~", ":/?#[]@!$&'()*+,;=", "0123456789ABCDEF"
	if err := e.spend(len(s)); err != nil {
		return err
	}
	for _, c := range []byte(s) {
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(unreserved, c) >= 0
		if plain || keepReserved && strings.IndexByte(reserved, c) >= 0 {
			e.b.WriteByte(c)
			continue
		}
		if err := e.spend(2); err != nil {
			return err
		}
		e.b.Write([]byte{'%', digits[c>>4], digits[c&15]})
	}
	return nil
}

// Check checks a template: no space, closed braces around names. It returns the scheme, empty if there is none or a
// variable supplies it.
func Check(s string) (scheme string, err error) {
	if s == "" || strings.ContainsAny(s, " \t\r\n") {
		return "", fmt.Errorf("%.80q is empty or has spaces", s)
	}
	var plain strings.Builder
	for rest := s; ; {
		literal, after, found := strings.Cut(rest, "{")
		plain.WriteString(literal)
		if strings.Contains(literal, "}") {
			return "", fmt.Errorf("%.80q has a } without a {", s)
		}
		if !found {
			break
		}
		name, tail, closed := strings.Cut(after, "}")
		if _, has := operatorOf(append([]byte(name), 0)[0]); has {
			name = name[1:]
		}
		if !closed || name == "" || strings.ContainsAny(name, "{\"'") {
			return "", fmt.Errorf("%.80q has a { without a name and a }", s)
		}
		plain.WriteString("x")
		rest = tail
	}
	u, err := url.Parse(plain.String())
	if err != nil {
		return "", fmt.Errorf("%.80q cannot be parsed", s)
	}
	if u.Scheme == "x" {
		return "", nil
	}
	return u.Scheme, nil
}
