package dsl

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
)

func (p *parser) callTask(task value, c taskContext) Body {
	v, _ := task.member("call")
	name := p.text(v, "call")
	unsupported := []string{"asyncapi", "grpc", "a2a", "mcp"}
	kind := strings.ToLower(strings.TrimSpace(name))
	switch {
	case v.node.Kind != tree.String:
		return nil
	case slices.Contains(unsupported, name):
		p.unsupported(v, fmt.Sprintf("the call of kind %q", name))
		return nil
	case name != kind && slices.Contains(append(unsupported, "http", "openapi"), kind) && p.use["functions"][name] == nil:
		p.report(CodeValue, v, "write "+kind, "there is no call of kind %q", name)
		return nil
	case name == CallGo && p.use["functions"][name] == nil:
		return p.goCall(task, c)
	case name != "http" && name != "openapi":
		return p.functionCall(task, v, name, c)
	}
	with, ok := task.member("with")
	if !ok {
		p.report(CodeMissingKey, task, "", "a call of kind %s needs the key %q", name, "with")
		return nil
	}
	if name == "openapi" {
		body := &OpenAPICall{Output: OutputContent}
		p.openAPICall(with, body, c.scope.at(slotTask))
		return body
	}
	body := &HTTPCall{Output: OutputContent}
	p.httpCall(with, body, c.scope.at(slotTask))
	return body
}

func (p *parser) httpCall(v value, body *HTTPCall, vars []string) {
	p.object(v, "with", fields{
		{"method", true, func(v value) {
			if !p.is(v, tree.String, "the method") {
				return
			}
			body.Method = p.template(v, vars)
			if _, literal := body.Method.Static(); literal && !regexp.MustCompile(`^[A-Za-z]+$`).MatchString(v.node.Text) {
				p.report(CodeValue, v, "", "the method must be a word such as get or post, got %.80q", v.node.Text)
			}
		}},
		{"endpoint", true, func(v value) {
			p.allowSecrets(func() { body.Endpoint, body.Authentication = p.endpoint(v, vars) })
		}},
		{"headers", false, func(v value) { p.allowSecrets(func() { body.Headers = p.stringMap(v, "headers", vars) }) }},
		{"query", false, func(v value) { p.allowSecrets(func() { body.Query = p.stringMap(v, "query", vars) }) }},
		{"body", false, func(v value) { p.allowSecrets(func() { body.Body = p.template(v, vars) }) }},
		{"output", false, func(v value) { body.Output = p.httpOutput(v) }},
		{"redirect", false, func(v value) { body.Redirect = p.boolean(v, "redirect") }},
	})
	p.checkMultipart(v)
}

func (p *parser) httpOutput(v value) HTTPOutput {
	return HTTPOutput(
		p.oneOf(v, "the output of a call", string(OutputRaw), string(OutputContent), string(OutputResponse)))
}

// checkMultipart reports a body that is written as an object or a list although its literal content type is one of
// several parts, which are sent as a text only.
func (p *parser) checkMultipart(with value) {
	headers, _ := with.member("headers")
	body, ok := with.member("body")
	if headers.node == nil || !ok || body.node.Kind != tree.Object && body.node.Kind != tree.Array {
		return
	}
	for _, m := range headers.node.Members {
		if strings.EqualFold(m.Key, "content-type") && m.Value.Kind == tree.String &&
			strings.HasPrefix(strings.ToLower(strings.TrimSpace(m.Value.Text)), "multipart/") {
			p.report(CodeValue, body, "send it as application/x-www-form-urlencoded or as JSON, or write the parts as a text",
				"a body of the type %.80q must be a text, got %s", m.Value.Text, body.node.Kind)
		}
	}
}

func (p *parser) endpoint(v value, vars []string) (*Template, *Authentication) {
	if v.node.Kind != tree.Object {
		return p.uri(v, vars), nil
	}
	var (
		uri  *Template
		auth *Authentication
	)
	p.object(v, "an endpoint", fields{
		{"uri", true, func(v value) { uri = p.uri(v, vars) }},
		{"authentication", false, func(v value) { auth = p.authentication(v, vars) }},
	})
	return uri, auth
}

func (p *parser) uri(v value, vars []string) *Template {
	if !p.is(v, tree.String, "the URI of an endpoint") {
		return nil
	}
	t := p.template(v, vars)
	if _, literal := t.Static(); literal {
		if err := checkEndpoint(v.node.Text); err != nil {
			p.report(CodeValue, v, "write it as https://host/path/{name}", "the URI of an endpoint is not valid: %v", err)
		}
	}
	return t
}

// stringMap reads headers and queries: an expression, or an object of strings that may be expressions.
func (p *parser) stringMap(v value, what string, vars []string) *Template {
	if v.node.Kind == tree.String {
		return &Template{Pos: v.pos(), expr: p.wrappedExpr(v, what, vars)}
	}
	if !p.is(v, tree.Object, what) {
		return nil
	}
	for _, m := range v.node.Members {
		p.is(v.child(m), tree.String, fmt.Sprintf("%s: %q", what, m.Key))
	}
	return p.template(v, vars)
}
