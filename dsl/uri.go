package dsl

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// URI evaluates the endpoint of a call: a literal is a URI template (RFC 6570) whose names stand for the members of
// input; what an expression gives is taken as it is, as data must not be read as a template.
func (c *HTTPCall) URI(input any, vars map[string]any, fuel *jq.Fuel) (string, error) {
	if s, ok := c.Endpoint.Static(); ok {
		return ExpandURI(fmt.Sprint(s), input)
	}
	v, err := c.Endpoint.Eval(input, vars, fuel)
	if err != nil {
		return "", err
	}
	if m, ok := v.(map[string]any); ok {
		v = m["uri"]
	}
	s, ok := v.(string)
	if !ok || s == "" {
		return "", fmt.Errorf("evaluate %q as an endpoint: want a URI, got %s", c.Endpoint.source(), jq.TypeName(v))
	}
	return s, nil
}

// ExpandURI expands a URI template with the top-level members of input. Names without a value expand to nothing.
// Strings, numbers and booleans expand to their text, arrays to their items; objects are refused.
func ExpandURI(template string, input any) (string, error) {
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
			return nil, fmt.Errorf("expand the URI template: %q is %s, which has no text", name, jq.TypeName(e))
		default:
			text, err := jq.EncodeJSON(e)
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

// checkURITemplate checks a literal endpoint: no space, closed braces around names, and http or https if it has a scheme.
func checkURITemplate(s string) error {
	if s == "" || strings.ContainsAny(s, " \t\r\n") {
		return fmt.Errorf("%.80q is empty or has spaces", s)
	}
	var plain strings.Builder
	for rest := s; ; {
		literal, after, found := strings.Cut(rest, "{")
		plain.WriteString(literal)
		if strings.Contains(literal, "}") {
			return fmt.Errorf("%.80q has a } without a {", s)
		}
		if !found {
			break
		}
		name, tail, closed := strings.Cut(after, "}")
		if _, has := operatorOf(append([]byte(name), 0)[0]); has {
			name = name[1:]
		}
		if !closed || name == "" || strings.ContainsAny(name, "{\"'") {
			return fmt.Errorf("%.80q has a { without a name and a }", s)
		}
		plain.WriteString("x")
		rest = tail
	}
	u, err := url.Parse(plain.String())
	if err != nil {
		return fmt.Errorf("%.80q cannot be parsed", s)
	}
	if u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "x" {
		return fmt.Errorf("the scheme %q is neither http nor https", u.Scheme)
	}
	return nil
}
