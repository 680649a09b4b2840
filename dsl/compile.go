package dsl

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/dsl/internal/duration"
	"github.com/signalbox-dev/signalbox/dsl/internal/lint"
	"github.com/signalbox-dev/signalbox/dsl/internal/suggest"
	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// expr reads a string that is an expression with or without ${ }.
func (p *parser) expr(v value, what string, vars []string) *Expr {
	if !p.is(v, tree.String, what) {
		return nil
	}
	return p.compile(v, vars)
}

// wrappedExpr reads a string that must be an expression in ${ }.
func (p *parser) wrappedExpr(v value, what string, vars []string) *Expr {
	if !p.isExpression(v, vars) {
		p.report(CodeExpression, v, "write it as "+p.wrapped(v, vars), "%s must be an expression in ${ }", what)
		return nil
	}
	return p.compile(v, vars)
}

// wrapped returns a text as the expression in ${ } that is meant: a text with ${ } in it, an expression without ${ },
// or a plain text.
func (p *parser) wrapped(v value, vars []string) string {
	compiles := p.compiles(vars)
	whole, ok := lint.Interpolated(v.node.Text, compiles)
	inner, _ := unwrap(v.node.Text)
	inner = strings.TrimSpace(inner)
	switch {
	case ok && strings.Contains(v.node.Text, "${"):
		return whole
	case compiles(inner):
		return "${ " + inner + " }"
	case ok:
		return whole
	}
	return `an expression, for example ${ .order.id } or ${ "a text" }`
}

// isExpression reports whether a string is an expression in the document's mode.
func (p *parser) isExpression(v value, vars []string) bool {
	if v.node.Kind != tree.String {
		return false
	}
	if _, ok := unwrap(v.node.Text); ok {
		return true
	}
	if text := strings.TrimSpace(v.node.Text); p.loose && (strings.HasPrefix(text, ".") || strings.HasPrefix(text, "$")) {
		_, err := p.jq.Compile(text, vars)
		return err == nil || refersToSecrets(err)
	}
	return false
}

func (p *parser) compile(v value, vars []string) *Expr {
	source, whole := unwrap(v.node.Text)
	if !whole && strings.HasPrefix(strings.TrimSpace(v.node.Text), "${") {
		p.warn(CodeLiteral, v, Pos{}, "add the }",
			"${ is not closed: the expression is read as if it were, and other engines may refuse it")
	}
	if lint.NamesCredentials(source) {
		p.report(CodeSecret, v, "send the credentials by the authentication of the endpoint",
			"the parameter of $authorization is a secret, no expression sees it; $authorization.scheme can be used")
	}
	if p.done(v) {
		return &Expr{Source: source, Pos: v.pos()}
	}
	program, err := p.jq.Compile(source, vars)
	switch {
	case err != nil && p.secretsAllowed && refersToSecrets(err):
		return p.assemble(v, source, vars)
	case err != nil:
		p.expressionViolation(v, source, vars, err)
		return &Expr{Source: source, Pos: v.pos()}
	}
	p.checkPatterns(v, source)
	if inner, ok := lint.DoubleBraces(v.node.Text); ok {
		p.warn(CodeLiteral, v, Pos{}, "write ${ "+inner+" }", "${{ }} gives an object with one member")
	}
	if program.ReadsClock() && !slices.Contains(vars, "workflow") {
		p.noClock(v)
	}
	return &Expr{Source: strings.TrimSpace(source), Pos: v.pos(), program: program}
}

func (p *parser) noClock(v value) {
	p.report(CodeExpression, v, "compare in a task, or in the condition of an until",
		"now cannot be used here: there is no run whose time it could be")
}

// refersToSecrets reports whether an expression failed to compile because it refers to $secrets.
func refersToSecrets(err error) bool {
	se, ok := errors.AsType[*jq.SyntaxError](err)
	return ok && se.Variable == secretsVariable
}

func (p *parser) expressionViolation(v value, source string, vars []string, err error) {
	violation := Violation{Code: CodeExpression, Path: v.path, Pos: v.pos(),
		Message: "the expression does not compile: " + lint.Explain(err)}
	if se, ok := errors.AsType[*jq.SyntaxError](err); ok {
		violation.Suggestion = se.Suggestion
		if se.Function != "" {
			violation.Suggestion = functionSuggestion(se.Function)
		}
		if se.Limit {
			violation.Code, violation.Message = CodeLimit, se.Message
		}
		if se.Offset >= 0 {
			violation.Pos = p.positionInside(v, strings.Index(v.node.Text, source)+se.Offset)
		}
		switch {
		case se.Variable == secretsVariable && p.secretsAllowed:
			violation.Code = CodeSecret
		case se.Variable == secretsVariable:
			violation.Code, violation.Message = CodeSecret, "a secret cannot be used here: what this gives is kept with the "+
				"run, or decides its path"
			violation.Suggestion = "use it where a call takes it: in with.headers, with.query, with.body, with.endpoint or " +
				"its authentication"
		case se.Variable != "":
			violation.Code, violation.Message = CodeUnknownVariable, fmt.Sprintf("there is no variable $%s here", se.Variable)
			violation.Suggestion = variableSuggestion(se.Variable, vars)
			if len(vars) == 0 {
				violation.Suggestion = "only the event can be seen here; data of the run belongs into correlate, as expect"
			}
		}
	}
	if suggestion := lint.SyntaxSuggestion(v.node.Text, err.Error(), p.compiles(vars)); suggestion != "" {
		violation.Suggestion = suggestion
	}
	if strings.Contains(source, "${") {
		if expression, ok := lint.Interpolated(v.node.Text, p.compiles(vars)); ok {
			violation.Pos, violation.Message = v.pos(), "${ } must be around a whole text, which has one expression"
			violation.Suggestion = "write " + expression
		}
	}
	p.add(violation)
}

// variableSuggestion returns the variable that an unknown one was meant to be.
func variableSuggestion(name string, vars []string) string {
	switch name {
	case "secret":
		return "did you mean $secrets? It can be named in what a call sends"
	case "data", "env":
		return fmt.Sprintf("$%s is of Zigflow's dialect: data of earlier tasks is in $context, where an export puts it, and "+
			"there are no variables of the environment", name)
	}
	return suggest.Name(name, vars)
}

// functionSuggestion returns the function that an unknown one was meant to be.
func functionSuggestion(name string) string {
	var names []string
	for _, builtin := range jq.Builtins() {
		names = append(names, builtin[:strings.LastIndexByte(builtin, '/')])
	}
	return suggest.Closest(name, slices.Compact(names))
}

// positionInside returns the position of a byte within a string, if the source shows the string as it is. Where escapes
// or folded lines make the two differ, it returns the position of the string itself.
func (p *parser) positionInside(v value, offset int) Pos {
	pos, text := v.pos(), v.node.Text
	if pos.Line < 1 || pos.Line > len(p.lines) || offset < 0 || offset > len(text) {
		return pos
	}
	line, start := p.lines[pos.Line-1], pos.Column-1
	for range start {
		_, length := utf8.DecodeRune(line)
		line = line[length:]
	}
	if len(line) == 0 {
		return pos
	}
	if line[0] == '"' || line[0] == '\'' {
		line, start = line[1:], start+1
	}
	before := text[:offset]
	if !utf8.ValidString(before) || !bytes.HasPrefix(line, []byte(before)) {
		return pos
	}
	return Pos{pos.Line, start + 1 + utf8.RuneCountInString(before)}
}

// template reads any value in which strings may be expressions.
func (p *parser) template(v value, vars []string) *Template {
	t := &Template{Pos: v.pos()}
	switch {
	case p.done(v):
	case p.isExpression(v, vars):
		t.expr = p.compile(v, vars)
		if _, wrapped := unwrap(v.node.Text); !wrapped {
			t.loose = &looseText{text: v.node.Text, always: true}
		}
	case p.loose && v.node.Kind == tree.String && p.compiles(vars)(v.node.Text):
		t.expr, t.loose = p.compile(v, vars), &looseText{text: v.node.Text}
	case v.node.Kind == tree.Object:
		t.object = make(map[string]*Template, len(v.node.Members))
		for _, m := range v.node.Members {
			t.object[m.Key] = p.template(v.child(m), vars)
		}
	case v.node.Kind == tree.Array:
		t.array = make([]*Template, len(v.node.Items))
		for i := range v.node.Items {
			t.array[i] = p.template(v.item(i), vars)
		}
	default:
		p.checkText(v, vars)
		p.checkBarePath(v, vars)
		t.literal = v.node.Scalar
	}
	return t.folded()
}

// folded replaces a template without expressions by its value, so that it costs nothing to evaluate.
func (t *Template) folded() *Template {
	switch {
	case t.object != nil:
		out := make(map[string]any, len(t.object))
		for k, e := range t.object {
			v, ok := e.Static()
			if !ok {
				return t
			}
			out[k] = v
		}
		return &Template{Pos: t.Pos, literal: out}
	case t.array != nil:
		out := make([]any, len(t.array))
		for i, e := range t.array {
			v, ok := e.Static()
			if !ok {
				return t
			}
			out[i] = v
		}
		return &Template{Pos: t.Pos, literal: out}
	}
	return t
}

// mapping reads input.from, output.as and export.as: a bare expression or an object with expressions in it.
func (p *parser) mapping(v value, what string, vars []string) *Template {
	switch v.node.Kind {
	case tree.String:
		return &Template{Pos: v.pos(), expr: p.compile(v, vars)}
	case tree.Object:
		return p.template(v, vars)
	}
	p.report(CodeType, v, "", "%s must be an expression or an object, got %s", what, v.node.Kind)
	return nil
}

// input reads the input of a workflow or a task. late: its schema may have an endpoint that only a run knows.
func (p *parser) input(v value, vars []string, late bool) *Input {
	in := &Input{}
	p.object(v, "input", fields{
		{"schema", false, func(v value) { in.Schema = p.schema(v, vars, late) }},
		{"from", false, func(v value) { in.From = p.mapping(v, "input.from", vars) }},
	})
	return in
}

// output is as input.
func (p *parser) output(v value, vars []string, late bool) *Output {
	out := &Output{}
	p.object(v, "output", fields{
		{"schema", false, func(v value) { out.Schema = p.schema(v, vars, late) }},
		{"as", false, func(v value) { out.As = p.mapping(v, "output.as", vars) }},
	})
	return out
}

// export is as input.
func (p *parser) export(v value, vars []string, late bool) *Export {
	out := &Export{}
	p.object(v, "export", fields{
		{"schema", false, func(v value) { out.Schema = p.schema(v, vars, late) }},
		{"as", false, func(v value) { out.As = p.mapping(v, "export.as", vars) }},
	})
	return out
}

// schema reads a schema. late: it may have an endpoint that only a run knows, whose expressions have the variables.
func (p *parser) schema(v value, vars []string, late bool) *Schema {
	var out *Schema
	p.object(v, "a schema", fields{
		{"format", false, func(v value) {
			if s := p.text(v, "the format of a schema"); v.node.Kind == tree.String && s != "json" {
				p.unsupported(v, fmt.Sprintf("the schema format %q", s))
			}
		}},
		{"document", false, func(v value) {
			out = p.compileSchema(v, v)
		}},
		{"resource", false, func(v value) {
			if late {
				if source := p.runtimeResource(v, "a resource", vars); source != nil {
					out = &Schema{Source: source}
					return
				}
			}
			if r := p.externalResource(v, "a resource"); r != nil {
				if root := p.readResource(v, r); root != nil {
					out = p.compileSchema(v, value{node: root, path: v.path})
				}
			}
		}},
	})
	_, inline := v.member("document")
	_, external := v.member("resource")
	switch {
	case v.node.Kind != tree.Object:
	case !inline && !external:
		p.report(CodeMissingKey, v, "", "a schema needs the key %q", "document")
	case inline && external:
		p.report(CodeValue, v, "keep one of them", "a schema must have either document or resource")
	}
	return out
}

// compileSchema compiles a schema and reports its violations at a value.
func (p *parser) compileSchema(at, schema value) *Schema {
	if p.done(at) || !p.admitSchema(schema) {
		return nil
	}
	compiled, err := compileSchema(schema.node)
	if err != nil {
		p.report(CodeSchema, at, "", "the schema does not compile: %s", oneLine(schemaText(err)))
	}
	return compiled
}

// schemaText returns the text of an error of a schema.
func schemaText(err error) string {
	if violations, ok := errors.AsType[*SchemaError](err); ok {
		return violations.Text()
	}
	return err.Error()
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func (p *parser) timeout(v value, vars []string) *Timeout {
	if v.node.Kind == tree.String {
		def, ok := p.lookup(v, "timeouts", "timeout")
		if !ok {
			return nil
		}
		return p.timeoutDef(def, vars)
	}
	return p.timeoutDef(v, vars)
}

func (p *parser) timeoutDef(v value, vars []string) *Timeout {
	t := &Timeout{}
	p.object(v, "a timeout", fields{{"after", true, func(v value) { t.After = p.duration(v, vars) }}})
	return t
}

func (p *parser) duration(v value, vars []string) *Duration {
	d := &Duration{Pos: v.pos()}
	if p.isExpression(v, vars) {
		d.expr = p.compile(v, vars)
		return d
	}
	var err error
	switch v.node.Kind {
	case tree.String, tree.Object:
		if d.fixed, err = duration.Of(v.node.Value()); err != nil {
			p.report(CodeValue, v, durationSuggestion(v), "%v", err)
		}
	default:
		p.report(CodeType, v, `write it as "PT30S" or as {seconds: 30}`, "a duration must be a string or an object, got %s",
			v.node.Kind)
	}
	return d
}

// durationSuggestion returns how to correct a duration that cannot be read.
func durationSuggestion(v value) string {
	for _, m := range v.node.Members {
		switch {
		case !slices.Contains(duration.Units(), m.Key):
			return suggest.Name(m.Key, duration.Units())
		case m.Value.Kind == tree.String:
			return "write the number without quotes"
		}
	}
	return ""
}
