// Package uritemplate expands URI templates (RFC 6570) with the top-level members of a value, and checks them.
package uritemplate

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/internal/value"
)

// Expand expands a URI template with the top-level members of input. Names without a value expand to nothing.
// Strings, numbers and booleans expand to their text, arrays to their items; objects are refused.
func Expand(template string, input any) (string, error) {
	values, _ := input.(map[string]any)
	var b strings.Builder
	for {
		literal, rest, found := strings.Cut(template, "{")
		b.WriteString(literal)
		if !found {
			return b.String(), nil
		}
		expression, after, found := strings.Cut(rest, "}")
		if !found {
			return "", fmt.Errorf("expand the URI template: %q is not closed", "{"+rest)
		}
		if err := expandOne(&b, expression, values); err != nil {
			return "", err
		}
		template = after
	}
}

// uriOperator is how one operator of RFC 6570 joins and escapes values.
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

func expandOne(b *strings.Builder, expression string, values map[string]any) error {
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
		items, err := uriItems(name, values[name])
		if err != nil {
			return err
		}
		for i, item := range items {
			if i > 0 && !explode {
				b.WriteString("," + op.escape(item))
				continue
			}
			b.WriteString(lead)
			lead = op.separator
			if op.named {
				b.WriteString(name + "=")
			}
			b.WriteString(op.escape(item))
		}
	}
	return nil
}

func uriItems(name string, v any) ([]string, error) {
	list, ok := v.([]any)
	if !ok && v != nil {
		list = []any{v}
	}
	out := make([]string, 0, len(list))
	for _, e := range list {
		switch e := e.(type) {
		case nil:
		case string:
			out = append(out, e)
		case []any, map[string]any:
			return nil, fmt.Errorf("expand the URI template: %q is %s, which has no text", name, value.TypeName(e))
		default:
			text, err := value.Encode(e)
			if err != nil {
				return nil, fmt.Errorf("expand the URI template: %q: %w", name, err)
			}
			out = append(out, string(text))
		}
	}
	return out, nil
}

func (op uriOperator) escape(s string) string {
	const unreserved = "-._~"
	const reserved = ":/?#[]@!$&'()*+,;="
	var b strings.Builder
	for _, c := range []byte(s) {
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(unreserved, c) >= 0
		if plain || op.reserved && strings.IndexByte(reserved, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// Check checks a template: no space, closed braces around names. It gives the scheme, empty where there is none or where a
// variable gives it.
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
