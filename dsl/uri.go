package dsl

import (
	"fmt"

	"github.com/signalbox-dev/signalbox/dsl/internal/uritemplate"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// URI evaluates the endpoint of a call. A literal is a URI template (RFC 6570) over the members of input;
// the result of an expression is used as it is, as data must not be read as a template. The result is a string, or an
// Opaque if secrets are part of it.
func (c *HTTPCall) URI(input any, vars map[string]any, fuel *jq.Fuel) (any, error) {
	if s, ok := c.Endpoint.Static(); ok {
		return ExpandURI(fmt.Sprint(s), input)
	}
	v, err := c.Endpoint.Eval(input, vars, fuel)
	if err != nil {
		return nil, err
	}
	if m, ok := v.(map[string]any); ok {
		v = m["uri"]
	}
	if text, ok := v.(Opaque); ok {
		return text, nil
	}
	s, ok := v.(string)
	if !ok || s == "" {
		return nil, fmt.Errorf("evaluate %q as an endpoint: want a URI, got %s", c.Endpoint.source(), jq.TypeName(v))
	}
	return s, nil
}

// ExpandURI expands a URI template with the top-level members of input. Names without a value expand to nothing.
// Strings, numbers and booleans expand to their text, arrays to their items; objects are refused.
func ExpandURI(template string, input any) (string, error) {
	return uritemplate.Expand(template, input)
}

// checkEndpoint checks a literal endpoint: a template, of http or https if it has a scheme.
func checkEndpoint(s string) error {
	scheme, err := uritemplate.Check(s)
	if err == nil && scheme != "" && scheme != "http" && scheme != "https" {
		err = fmt.Errorf("the scheme %q is neither http nor https", scheme)
	}
	return err
}
