package dsl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/internal/lint"
	"github.com/signalbox-dev/signalbox/dsl/internal/suggest"
	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
	"github.com/signalbox-dev/signalbox/dsl/internal/uritemplate"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

func (p *parser) listenTask(task value, c taskContext) Body {
	body := &Listen{Read: eventfilter.Data}
	v, _ := task.member("listen")
	p.object(v, "listen", fields{
		{"to", true, func(v value) { body.To = p.consumption(v, c.scope.at(slotTask), "listen.to", "until") }},
		{"read", false, func(v value) { body.Read = p.form(v) }},
	})
	if each, ok := task.member("foreach"); ok {
		body.Each = p.iterator(each, c)
	}
	return body
}

func (p *parser) form(v value) eventfilter.Form {
	return eventfilter.Form(p.oneOf(v, "read", string(eventfilter.Data), string(eventfilter.Envelope),
		string(eventfilter.Raw)))
}

// consumption reads a consumption strategy. vars are the variables that its own expressions may use, nil where there is
// no run; extra are the keys that it may have besides one of all, any and one.
func (p *parser) consumption(v value, vars []string, what string, extra ...string) Consumption {
	var out Consumption
	var given []string
	mode := func(m eventfilter.Mode, read func(value)) field {
		return field{string(m), false, func(v value) {
			given = append(given, string(m))
			out.Mode = m
			read(v)
		}}
	}
	list := func(v value) { out.Filters = p.eventFilters(v, vars, what+"."+string(out.Mode)) }
	fs := fields{
		mode(eventfilter.All, func(v value) {
			if list(v); v.node.Kind == tree.Array && len(v.node.Items) == 0 {
				p.report(CodeValue, v, "give it at least one filter; any: [] takes every event", "%s.all must not be empty", what)
			}
		}),
		mode(eventfilter.Any, list),
		mode(eventfilter.One, func(v value) { out.Filters = []*EventFilter{p.eventFilter(v, vars)} }),
	}
	if slices.Contains(extra, "until") {
		fs = append(fs, field{"until", false, func(v value) { p.until(v, &out, vars, what) }})
	}
	if !p.object(v, what, fs) {
		return out
	}
	if len(given) != 1 {
		p.report(CodeValue, v, "keep one of all, any, one", "%s must have exactly one of all, any and one, got %s", what,
			describeKeys(given))
	} else if until, ok := v.member("until"); ok && out.Mode != eventfilter.Any && slices.Contains(extra, "until") {
		p.report(CodeValue, until, "remove it, or listen to any", "until goes with any only, not with %s", out.Mode)
	}
	return out
}

func describeKeys(keys []string) string {
	if len(keys) == 0 {
		return "none"
	}
	return strings.Join(keys, ", ")
}

// until reads the condition, or the strategy, that ends a consumption of any.
func (p *parser) until(v value, out *Consumption, vars []string, what string) {
	if v.node.Kind == tree.Object {
		strategy := p.consumption(v, vars, what+".until")
		out.UntilEvents = &strategy
		return
	}
	if v.node.Kind != tree.String {
		p.report(CodeType, v, "", "%s.until must be an expression or an object of all, any or one, got %s", what, v.node.Kind)
		return
	}
	out.Until = p.compile(v, vars)
}

func (p *parser) eventFilters(v value, vars []string, what string) []*EventFilter {
	if !p.is(v, tree.Array, what) {
		return nil
	}
	out := make([]*EventFilter, 0, len(v.node.Items))
	for i := range v.node.Items {
		out = append(out, p.eventFilter(v.item(i), vars))
	}
	return out
}

// eventFilter reads one filter. vars are the variables that its expressions may use, nil where there is no run:
// correlate.*.expect must be constant there.
func (p *parser) eventFilter(v value, vars []string) *EventFilter {
	f := &EventFilter{Pos: v.pos()}
	p.object(v, "an event filter", fields{
		{"with", true, func(v value) { f.With = p.eventPattern(v, vars) }},
		{"correlate", false, func(v value) { f.Correlate = p.correlations(v, vars) }},
	})
	p.checkKeys(v, f.With)
	f.uses = usesOf(expressionsOf(f.With, f.Correlate), vars)
	stored := eventfilter.Filter{With: f.With, Correlate: map[string]eventfilter.Key{},
		Vars: make(map[string]json.RawMessage, len(f.uses))}
	for name := range f.uses {
		stored.Vars[name] = json.RawMessage("null") // the value is that of a run
	}
	for _, c := range f.Correlate {
		stored.Correlate[c.Name] = eventfilter.Key{From: c.From}
	}
	// Expressions that do not compile have been reported above.
	f.matcher, _ = eventfilter.Compile(stored, p.jq)
	return f
}

func (p *parser) correlations(v value, vars []string) []Correlation {
	if !p.is(v, tree.Object, "correlate") {
		return nil
	}
	var out []Correlation
	for _, m := range v.node.Members {
		c := Correlation{Name: m.Key}
		p.object(v.child(m), fmt.Sprintf("the correlation key %q", m.Key), fields{
			{"from", true, func(v value) {
				if e := p.eventExpr(v, "from", vars); e != nil {
					c.From = e.Source
				}
			}},
			{"expect", false, func(v value) { c.Expect = p.expectation(v, vars) }},
		})
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Correlation) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (p *parser) expectation(v value, vars []string) *Template {
	if !p.is(v, tree.String, "expect") {
		return nil
	}
	if vars == nil && p.isExpression(v, nil) {
		p.report(CodeValue, v, "write a constant, or leave it out: then the first event says what the others must have",
			"there is no run yet whose data expect could be evaluated on")
		return nil
	}
	return p.template(v, vars)
}

// eventPattern reads the with of a filter.
func (p *parser) eventPattern(v value, vars []string) map[string]eventfilter.Value {
	out := map[string]eventfilter.Value{}
	p.eventAttributes(v, "with", vars, func(name string, v value) {
		if literal := p.isLiteral(v, vars); literal && isURIAttribute(name) && strings.ContainsAny(v.node.Text, "{}") {
			p.report(CodeValue, v, "write an expression, for example ${ startswith(\"https://example.com/\") }",
				"a filter compares the %s as it is, it cannot be a URI template", name)
		}
		p.checkAttribute(name, v)
		out[name] = p.eventValue(v, vars)
		if pattern, ok := p.pattern(name, v, vars); ok {
			out[name] = eventfilter.Value{Expr: pattern}
		}
	})
	if v.node.Kind == tree.Object && len(v.node.Members) == 0 {
		p.report(CodeValue, v, "any: [] takes every event", "the with of an event filter must not be empty")
	}
	return out
}

// eventExpr reads an expression on an event or an attribute. It may use variables, but no clock: it is evaluated apart
// from the run.
func (p *parser) eventExpr(v value, what string, vars []string) *Expr {
	e := p.expr(v, what, vars)
	if e != nil && e.program != nil && e.program.ReadsClock() && vars != nil {
		p.noClock(v)
	}
	return e
}

// ParseEventPattern reads the `with` of an event filter that is not part of a document, in YAML or JSON, as a listen
// task has it.
func ParseEventPattern(source []byte) (map[string]eventfilter.Value, Violations) {
	p := &parser{limits: DefaultLimits(), jq: jq.NewCompiler(), secrets: map[string]bool{}}
	root, found := tree.Parse(source, tree.Limits{
		Bytes: p.limits.MaxBytes, Depth: p.limits.MaxDepth, Aliases: p.limits.MaxAliases, Nodes: p.limits.MaxNodes,
	})
	for _, f := range found {
		p.addTreeViolation(f)
	}
	var with map[string]eventfilter.Value
	if root != nil {
		p.lines = bytes.Split(source, []byte("\n"))
		with = p.eventPattern(value{node: root}, nil)
	}
	return with, limitViolations(p.violations.sorted(), p.limits.MaxViolations)
}

// pattern returns the expression for an attribute that is a regular expression. A text that does not compile as
// one, or that exceeds a limit, is compared literally.
func (p *parser) pattern(name string, v value, vars []string) (string, bool) {
	if !p.isLiteral(v, vars) || name == "data" || name == "time" {
		return "", false
	}
	source, ok := lint.PatternExpression(v.node.Text)
	if !ok {
		return "", false
	}
	program, err := p.jq.Compile(source, nil)
	if err == nil {
		_, err = program.Run("", nil, jq.NewFuel(eventfilter.Fuel))
	}
	if err != nil {
		p.warn(CodeLiteral, v, Pos{}, "correct the expression, or write ${ . == \"…\" }",
			"%q is no regular expression that can be used: it is compared as it is", v.node.Text)
	}
	return source, err == nil
}

func (p *parser) isLiteral(v value, vars []string) bool {
	return v.node.Kind == tree.String && !p.isExpression(v, vars)
}

func (p *parser) eventValue(v value, vars []string) eventfilter.Value {
	switch {
	case p.isExpression(v, vars):
		return eventfilter.Value{Expr: p.eventExpr(v, "an attribute", vars).Source}
	case v.node.Kind == tree.Object && len(v.node.Members) == 0:
		return eventfilter.Value{Expr: `type == "object"`}
	case v.node.Kind == tree.Object:
		members := make(map[string]eventfilter.Value, len(v.node.Members))
		for _, m := range v.node.Members {
			members[m.Key] = p.eventValue(v.child(m), vars)
		}
		return eventfilter.Value{Members: members}
	}
	if _, static := p.template(v, vars).Static(); !static {
		p.report(CodeValue, v, "write the whole array as one expression",
			"an array in a filter is compared as it is, it cannot hold expressions")
	}
	text, err := jq.EncodeJSON(v.node.Value())
	if err != nil {
		return eventfilter.Value{} // reported for the document as a whole
	}
	return eventfilter.Value{Literal: text}
}

// eventAttributeNames returns the attributes that a document may name without being an extension, and data.
func eventAttributeNames() []string {
	return []string{"id", "source", "type", "time", "subject", "datacontenttype", "dataschema", "data"}
}

// eventAttributes checks the attributes of an event or of a filter, and calls read for each.
func (p *parser) eventAttributes(v value, what string, vars []string, read func(name string, v value)) {
	if !p.is(v, tree.Object, what) {
		return
	}
	known := eventAttributeNames()
	for _, m := range v.node.Members {
		a, described := v.child(m), fmt.Sprintf("the %s of an event", m.Key)
		switch {
		case !lint.IsAttributeName(m.Key):
			p.add(Violation{
				Code: CodeValue, Path: a.path, Pos: Pos(m.Pos), Suggestion: suggest.Closest(m.Key, known),
				Message: fmt.Sprintf("%.80q cannot be an attribute of an event: CloudEvents names have lower-case letters and "+
					"digits", m.Key),
			})
			continue
		case !slices.Contains(known, m.Key):
			if a.node.Kind == tree.Object || a.node.Kind == tree.Array {
				p.report(CodeType, a, "put it into data", "%s must be a string, a number or a boolean, got %s", described,
					a.node.Kind)
				continue
			}
		case m.Key != "data":
			if !p.is(a, tree.String, described) {
				continue
			}
			p.literalAttribute(m.Key, a, described, vars)
		}
		read(m.Key, a)
	}
}

// literalAttribute checks the form of an attribute that is written as a literal.
func (p *parser) literalAttribute(name string, v value, described string, vars []string) {
	text := v.node.Text
	switch {
	case !p.isLiteral(v, vars):
	case text == "" && name != "subject":
		p.report(CodeValue, v, "", "%s must not be empty", described)
	case isURIAttribute(name):
		if _, err := uritemplate.Check(text); err != nil {
			p.report(CodeValue, v, "write it as https://host/path or as /path", "%s is not a URI: %v", described, err)
		}
	case name == "time":
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			p.report(CodeValue, v, "write it as 2026-01-31T08:00:00Z", "%s must be a date and time, got %.80q", described, text)
		}
	}
}

func (p *parser) iterator(v value, c taskContext) *Iterator {
	out := &Iterator{Item: "item", At: "index"}
	if item, ok := v.member("item"); ok {
		out.Item = p.variable(item, "foreach.item", out.Item)
	}
	if at, ok := v.member("at"); ok {
		out.At = p.variable(at, "foreach.at", out.At)
	}
	if out.Item == out.At {
		p.report(CodeValue, v, "rename one of them", "foreach.item and foreach.at must differ, both are %q", out.Item)
	}
	inner := c.scope.with(out.Item, out.At)
	p.object(v, "foreach", fields{
		{"item", false, func(value) {}},
		{"at", false, func(value) {}},
		{"do", false, func(v value) { out.Tasks = p.taskList(v, inner) }},
		{"output", false, func(v value) { out.Output = p.output(v, inner.at(slotTaskOutput), false) }},
		{"export", false, func(v value) { out.Export = p.export(v, inner.at(slotTaskExport), false) }},
	})
	return out
}

func (p *parser) emitTask(task value, c taskContext) Body {
	body := &Emit{with: map[string]*Template{}}
	v, _ := task.member("emit")
	p.object(v, "emit", fields{{"event", true, func(v value) {
		p.object(v, "emit.event", fields{{"with", true, func(v value) {
			p.eventAttributes(v, "emit.event.with", c.scope.at(slotTask), func(name string, v value) {
				if name == "specversion" {
					p.report(CodeValue, v, "remove it", "the specversion of an event is set when it is emitted")
				}
				body.with[name] = p.template(v, c.scope.at(slotTask))
			})
			if _, typed := v.member("type"); !typed && v.node.Kind == tree.Object {
				p.report(CodeMissingKey, v, "", "an event needs the key %q", "type")
			}
		}}})
	}}})
	return body
}
