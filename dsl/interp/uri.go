package interp

import (
	"fmt"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
)

// url evaluates an endpoint. A literal is a URI template (RFC 6570, levels 1 to 3) over the members of the task's
// input; the result of an expression is a URI as it stands, since data is never a template.
func (m *Machine) url(f *frame, t *dsl.Template, vars map[string]any) (string, *dsl.Error) {
	s, problem := m.text(t, f.input, vars, f.task.Pointer)
	if problem != nil {
		return "", problem
	}
	if _, literal := t.Static(); !literal {
		return s, nil
	}
	members, _ := f.input.(map[string]any)
	out, err := expandURI(s, members)
	if err != nil {
		return "", expressionError(fmt.Errorf("expand the endpoint %q: %w", s, err), f.task.Pointer)
	}
	return out, nil
}

// operator is how an expression of a URI template writes its variables.
type operator struct {
	first, separator string
	named            bool   // name=value
	ifEmpty          string // after the name of an empty value
	reserved         bool   // reserved characters stay as they are
}

func operatorOf(c byte) (operator, bool) {
	switch c {
	case '+':
		return operator{separator: ",", reserved: true}, true
	case '#':
		return operator{first: "#", separator: ",", reserved: true}, true
	case '.':
		return operator{first: ".", separator: "."}, true
	case '/':
		return operator{first: "/", separator: "/"}, true
	case ';':
		return operator{first: ";", separator: ";", named: true}, true
	case '?':
		return operator{first: "?", separator: "&", named: true, ifEmpty: "="}, true
	case '&':
		return operator{first: "&", separator: "&", named: true, ifEmpty: "="}, true
	}
	return operator{separator: ","}, false
}

// expandURI expands a URI template. Variables that are absent or null are left out; objects have no form in a URI.
func expandURI(template string, members map[string]any) (string, error) {
	var b strings.Builder
	for {
		literal, rest, found := strings.Cut(template, "{")
		b.WriteString(literal)
		if !found {
			return b.String(), nil
		}
		expression, after, closed := strings.Cut(rest, "}")
		if !closed || expression == "" {
			return "", fmt.Errorf("a { without its } or with nothing between")
		}
		template = after
		op, given := operatorOf(expression[0])
		if given {
			expression = expression[1:]
		}
		separator := op.first
		for name := range strings.SplitSeq(expression, ",") {
			value, ok := members[name]
			if !ok || value == nil {
				continue
			}
			text, err := uriText(name, value, op.reserved)
			if err != nil {
				return "", err
			}
			b.WriteString(separator)
			separator = op.separator
			if op.named {
				b.WriteString(name)
				if text == "" {
					b.WriteString(op.ifEmpty)
					continue
				}
				b.WriteByte('=')
			}
			b.WriteString(text)
		}
	}
}

func uriText(name string, value any, reserved bool) (string, error) {
	switch v := value.(type) {
	case string:
		return escapeURI(v, reserved), nil
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			part, err := uriText(name, e, reserved)
			if err != nil {
				return "", err
			}
			parts[i] = part
		}
		return strings.Join(parts, ","), nil
	case map[string]any:
		return "", fmt.Errorf("%q is an object", name)
	}
	return escapeURI(string(encode(value)), reserved), nil
}

// escapeURI percent-encodes everything but unreserved characters and, if wanted, reserved ones.
func escapeURI(s string, reserved bool) string {
	const hex = "0123456789ABCDEF"
	const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	keep := alphanumeric + "-._~"
	if reserved {
		keep += ":/?#[]@!$&'()*+,;="
	}
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if strings.IndexByte(keep, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}
