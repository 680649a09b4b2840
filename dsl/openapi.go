package dsl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/internal/openapi"
	"github.com/signalbox-dev/signalbox/dsl/internal/suggest"
	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
	data "github.com/signalbox-dev/signalbox/dsl/internal/value" // value is a type here
)

// OpenAPICall calls an operation of a service that a description in the format OpenAPI or Swagger describes. The
// description is a resource of the document. Members that are not given are nil.
type OpenAPICall struct {
	Operation string // its identifier in the description
	// Arguments are values for the parameters of the operation, and its body or the members of it, by name.
	Arguments      map[string]*Template
	Output         HTTPOutput
	Authentication *Authentication // nil where there is none
	Redirect       bool            // treat a status of 300 to 399 as a success instead of an error

	described *openapi.Operation // nil where the description was postponed
}

// Kind implements Body.
func (*OpenAPICall) Kind() Kind { return KindCall }

// OpenAPIRequest is the request of a call of an operation. Texts are strings, or Opaque if secrets are part of them.
type OpenAPIRequest struct {
	Method  string // upper case
	URL     any
	Headers map[string]any
	// Query has the parameters of the query that are not in the URL, because secrets are part of them.
	Query map[string]any
	// Body is a plain JSON value, in which texts may be Opaque; HasBody distinguishes a null body from no body.
	Body    any
	HasBody bool
}

// ArgumentsError lists the differences between the arguments of a call and the description of its operation.
type ArgumentsError struct{ text string }

// Error implements error.
func (e *ArgumentsError) Error() string { return e.text }

// Request returns the request of a call with the values of its arguments, which is the same at any time, and the units
// of the budget that their check has used, in those of [jq.Fuel]. The error is an *ArgumentsError if the arguments do
// not match the description, or a *CheckCostError.
func (c *OpenAPICall) Request(arguments map[string]any, budget int64) (*OpenAPIRequest, int64, error) {
	if c.described == nil {
		return nil, 0, fmt.Errorf("the description of the operation %.200q was not read", c.Operation)
	}
	given := make(map[string]any, len(arguments))
	for name, v := range arguments {
		given[name] = concealed(v)
	}
	r, used, err := c.described.Request(given, budget)
	if problems, ok := errors.AsType[*openapi.ProblemsError](err); ok {
		return nil, used, &ArgumentsError{fmt.Sprintf(
			"the arguments of the operation %.200q do not match its description: %v", c.Operation, problems)}
	}
	if err != nil {
		return nil, used, err
	}
	return &OpenAPIRequest{
		Method: r.Method, URL: opaqueText(r.URL), Headers: opaqueTexts(r.Headers), Query: opaqueTexts(r.Query),
		Body: revealed(r.Body), HasBody: r.HasBody,
	}, used, nil
}

// concealed returns a value with a mark in place of each Opaque.
func concealed(v any) any {
	return data.Replace(v, func(leaf any) any {
		if opaque, is := leaf.(Opaque); is {
			return openapi.Secret{Value: opaque}
		}
		return leaf
	})
}

// revealed is the inverse of concealed.
func revealed(v any) any {
	return data.Replace(v, func(leaf any) any {
		if secret, is := leaf.(openapi.Secret); is {
			return secret.Value
		}
		return leaf
	})
}

// opaqueText joins the parts of a text to a string, or to an Opaque if there are secrets.
func opaqueText(parts openapi.Text) any {
	var (
		out    Opaque
		secret bool
		text   strings.Builder
	)
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			text.WriteString(part)
			out = append(out, OpaquePart{Text: part})
		case openapi.Secret:
			inner, _ := part.Value.(Opaque)
			secret, out = true, append(out, inner...)
		}
	}
	if secret {
		return out
	}
	return text.String()
}

func opaqueTexts(texts map[string]openapi.Text) map[string]any {
	out := make(map[string]any, len(texts))
	for name, text := range texts {
		out[name] = opaqueText(text)
	}
	return out
}

// openAPICall reads the arguments of a call of an operation.
func (p *parser) openAPICall(v value, body *OpenAPICall, vars []string) {
	var (
		document, operation, parameters value
		description                     *Resource
	)
	if !p.object(v, "with", fields{
		{"document", true, func(v value) { document, description = v, p.externalResource(v, "the document of a call") }},
		{"operationId", true, func(v value) {
			if !p.is(v, tree.String, "the operation of a call") {
				return
			}
			if _, expression := unwrap(v.node.Text); expression || v.node.Text == "" {
				p.report(CodeValue, v, "write its identifier: it is looked up when the workflow is published",
					"the operation of a call must be a literal")
				return
			}
			operation, body.Operation = v, v.node.Text
		}},
		{"parameters", false, func(v value) { parameters, body.Arguments = v, p.callArguments(v, vars) }},
		{"authentication", false, func(v value) { body.Authentication = p.authentication(v, vars) }},
		{"output", false, func(v value) { body.Output = p.httpOutput(v) }},
		{"redirect", false, func(v value) { body.Redirect = p.boolean(v, "redirect") }},
	}) || description == nil || operation.node == nil {
		return
	}
	if body.described = p.operation(document, operation, description); body.described != nil {
		p.checkArguments(v, operation, parameters, body)
	}
}

func (p *parser) callArguments(v value, vars []string) map[string]*Template {
	if !p.is(v, tree.Object, "the parameters of a call") {
		return nil
	}
	out := make(map[string]*Template, len(v.node.Members))
	for _, m := range v.node.Members {
		p.allowSecrets(func() { out[m.Key] = p.template(v.child(m), vars) })
	}
	return out
}

// operation returns an operation of a description; nil if there is none, which is reported.
func (p *parser) operation(document, at value, r *Resource) *openapi.Operation {
	key := r.URI + "\x00" + at.node.Text
	if known := p.operations[key]; known != nil {
		return known
	}
	description := p.description(document, r)
	if description == nil {
		return nil
	}
	found, err := description.Operation(at.node.Text)
	unknown, ok := errors.AsType[*openapi.UnknownError](err)
	switch {
	case ok && len(unknown.Known) == 0:
		p.report(CodeUnknownReference, at, "give its operations identifiers", "%s: %v", r.URI, err)
	case ok:
		p.report(CodeUnknownReference, at, suggest.Name(at.node.Text, unknown.Known), "%s: %v", r.URI, err)
	case err != nil && !description.incomplete:
		p.report(CodeResource, document, "", "%s: %s", r.URI, oneLine(err.Error()))
	case err == nil:
		if p.countValues(document, found.Values); p.stopped {
			return nil
		}
		p.compileOperation(at, found)
		if p.operations == nil {
			p.operations = map[string]*openapi.Operation{}
		}
		p.operations[key] = found
		return found
	}
	return nil
}

// description is a description of a service. It is incomplete if another text, to which it refers, is not available:
// that is reported, and is the cause of other problems.
type description struct {
	*openapi.Description
	incomplete bool
}

// description reads a description once; nil if it cannot be read, which is reported.
func (p *parser) description(document value, r *Resource) *description {
	if known, read := p.descriptions[r.URI]; read {
		return known
	}
	root := p.readResource(document, r)
	if root == nil {
		return nil
	}
	out := &description{}
	var err error
	out.Description, err = openapi.Read(root.Value(), r.URI, func(uri string) ([]byte, error) {
		text, err := p.part(document, uri)
		out.incomplete = out.incomplete || err != nil
		return text, err
	})
	if err != nil {
		p.report(CodeResource, document, "refer to a description in the format OpenAPI or Swagger", "%s: %v", r.URI, err)
		out = nil
	}
	if p.descriptions == nil {
		p.descriptions = map[string]*description{}
	}
	p.descriptions[r.URI] = out
	return out
}

// part returns a text that a description refers to, as JSON.
func (p *parser) part(document value, uri string) ([]byte, error) {
	reference, err := resolveFrom(Reference{}, uri)
	if err != nil {
		p.report(CodeResource, document, "", "%v", err)
		return nil, err
	}
	reference.Path, reference.Pos = document.path, document.pos()
	r := p.load(document, reference)
	if r == nil {
		return nil, fmt.Errorf("the resource %q is not available", reference.URI)
	}
	root := p.readResource(document, r)
	if root == nil {
		return nil, fmt.Errorf("the resource %q cannot be read", reference.URI)
	}
	if p.countValues(document, size(root)); p.stopped {
		return nil, fmt.Errorf("the resource %q is over a limit", reference.URI)
	}
	return appendJSON(nil, root)
}

// countValues counts the values that are read for an operation.
func (p *parser) countValues(document value, values int) {
	if p.referred += values; p.referred > p.limits.MaxNodes {
		p.stop(document, "call fewer operations, or make their descriptions smaller",
			"the document has more than %d values with those of the operations that it calls", p.limits.MaxNodes)
	}
}

// compileOperation compiles the schemas of an operation. A part that cannot be checked is a warning.
func (p *parser) compileOperation(at value, o *openapi.Operation) {
	for _, note := range o.Notes {
		p.warn(CodeSchema, at, Pos{}, "", "%s", note)
	}
	for what, s := range o.Schemas {
		node, _ := tree.Parse(s.Definition, tree.Limits{
			Bytes: len(s.Definition), Depth: p.limits.MaxDepth, Nodes: p.limits.MaxSchemaValues - p.schemaValues,
		})
		if node == nil {
			p.warn(CodeSchema, at, Pos{}, "", "the schema of %s is not checked: the schemas of the document have more than %d "+
				"values with it, or it is too deep", what, p.limits.MaxSchemaValues)
			continue
		}
		if p.done(at) || !p.admitSchema(value{node: node, path: at.path, key: at.pos()}) {
			return
		}
		compiled, err := compileSchema(node)
		if err != nil {
			p.warn(CodeSchema, at, Pos{}, "", "the schema of %s does not compile, so that it is not checked: %s", what,
				oneLine(schemaText(err)))
			continue
		}
		s.Check = func(v any, budget int64) (int64, error) {
			units, err := compiled.Check(v, budget)
			if violations, ok := errors.AsType[*SchemaError](err); ok {
				return units, errors.New(violations.Text())
			}
			if err != nil {
				return units, &openapi.BudgetError{Err: err}
			}
			return units, nil
		}
	}
}

// checkArguments reports what of the arguments does not match the description, as far as it is known before there is a
// run.
func (p *parser) checkArguments(with, operation, parameters value, body *OpenAPICall) {
	at := parameters
	if at.node == nil {
		at = with
	}
	given := make(map[string]any, len(body.Arguments))
	for name, argument := range body.Arguments {
		given[name] = argument.known()
	}
	for _, problem := range body.described.Check(given) {
		where := at
		if problem.Argument != "" {
			if member, ok := parameters.member(problem.Argument); ok {
				where = member
			}
		}
		switch {
		case problem.Known != nil:
			p.report(CodeUnknownReference, where, suggest.Name(problem.Argument, problem.Known), "%s", problem.Message)
		case problem.Argument == "":
			p.report(CodeMissingKey, where, "", "%s", problem.Message)
		default:
			p.report(CodeValue, where, "", "%s", oneLine(problem.Message))
		}
	}
	scheme := ""
	if body.Authentication != nil {
		scheme = body.Authentication.Scheme.HTTP()
	}
	if !body.described.Authenticated(scheme, func(name string) bool { return body.Arguments[name] != nil }) {
		p.warn(CodeValue, operation, Pos{}, "give the call an authentication, or the argument",
			"the operation %.200q requires %s, which the call does not have", body.Operation, body.described.SecurityText())
	}
}

// known returns the value of a template before there is a run, with marks in place of what is not known.
func (t *Template) known() any {
	if v, literal := t.Static(); literal {
		return v
	}
	switch {
	case t.object != nil:
		out := make(map[string]any, len(t.object))
		for _, name := range slices.Sorted(maps.Keys(t.object)) {
			out[name] = t.object[name].known()
		}
		return out
	case t.array != nil:
		out := make([]any, len(t.array))
		for i, item := range t.array {
			out[i] = item.known()
		}
		return out
	}
	return openapi.Unknown{}
}
