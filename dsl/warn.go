package dsl

import (
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/internal/lint"
	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// reportViolation reports a violation about a value.
func (p *parser) reportViolation(v value, at Pos, f lint.Violation) {
	p.warn(Code(f.Code), v, at, f.Suggestion, "%s", f.Message)
}

// compiles returns a function that reports whether a text is an expression with these variables.
func (p *parser) compiles(vars []string) func(string) bool {
	return func(text string) bool {
		_, err := p.jq.Compile(text, vars)
		return err == nil
	}
}

// checkText warns of a text with ${ } in it.
func (p *parser) checkText(v value, vars []string) {
	if v.node.Kind != tree.String {
		return
	}
	if f, ok := lint.EmbeddedExpression(v.node.Text, p.compiles(vars)); ok {
		p.reportViolation(v, p.positionInside(v, f.Offset), f)
	}
}

// checkBarePath warns of a text in a template that looks like an expression of this language or another.
func (p *parser) checkBarePath(v value, vars []string) {
	if v.node.Kind != tree.String || p.loose {
		return
	}
	text := strings.TrimSpace(v.node.Text)
	if lint.LooksLikePath(text, p.compiles(vars)) {
		p.warn(CodeLiteral, v, Pos{}, "write ${ "+text+" } for an expression", "%q is used as a text, as it is not in ${ }",
			text)
		return
	}
	if f, ok := lint.ForeignExpression(text, p.compiles(vars)); ok {
		p.reportViolation(v, Pos{}, f)
	}
}

// checkPatterns warns of constant regular expressions that cannot be used.
func (p *parser) checkPatterns(v value, source string) {
	for _, what := range jq.PatternViolations(source) {
		p.warn(CodeAlwaysFails, v, Pos{}, "use the syntax of RE2", "the expression fails whenever it gets there: %s", what)
	}
}

// checkAttribute warns of an attribute of an event filter that no event can have.
func (p *parser) checkAttribute(name string, v value) {
	if !p.isExpression(v, nil) {
		return
	}
	source, _ := unwrap(v.node.Text)
	source = strings.TrimSpace(source)
	f, ok := lint.UnmatchableAttribute(name, source, func() bool {
		program, err := p.jq.Compile(source, nil)
		if err != nil {
			return false
		}
		_, err = program.Run("text", nil, jq.NewFuel(eventfilter.Fuel))
		return err != nil && strings.Contains(err.Error(), "expected an object")
	})
	if ok {
		p.reportViolation(v, Pos{}, f)
	}
}

// checkKeys warns of correlation keys of an event filter that are read outside of the event's data. The filter's with
// may name the attribute: then its producer sets it.
func (p *parser) checkKeys(filter value, with map[string]eventfilter.Value) {
	correlate, _ := filter.member("correlate")
	if correlate.node == nil {
		return
	}
	for _, m := range correlate.node.Members {
		from, ok := correlate.child(m).member("from")
		if !ok || from.node.Kind != tree.String {
			continue
		}
		source, _ := unwrap(from.node.Text)
		if source = strings.TrimSpace(source); !p.compiles(nil)(source) {
			continue
		}
		f, ok := lint.DoubtfulKey(source, func(name string) bool {
			_, given := with[name]
			return given || name == "specversion" || name == "data_base64" || slices.Contains(eventAttributeNames(), name)
		})
		if ok {
			p.reportViolation(from, Pos{}, f)
		}
	}
}

// checkFlow warns of unreachable and endless tasks in a list that has no errors.
func (p *parser) checkFlow(list value) {
	for _, f := range lint.Tasks(list.node) {
		task := list.item(f.Task)
		body := task.child(task.node.Members[0])
		at := body.key
		if f.Then {
			body, _ = body.member("then")
			at = body.pos()
		}
		p.reportViolation(body, at, f)
	}
}

// errorTypes collects the error types in a document: those that it raises, and its filters.
type errorTypes struct {
	raised  []*Template
	filters []value
}

// finishErrorFilters warns of filters for the short or misspelt type of a standard error. It does not warn of a type
// that the document itself may raise.
func (p *parser) finishErrorFilters() {
	for _, v := range p.errors.filters {
		f, ok := lint.MisspeltErrorType(v.node.Text, canonicalErrorType(v.node.Text), ErrorTypeBase, standardErrors())
		if ok && !slices.ContainsFunc(p.errors.raised, func(t *Template) bool {
			if t == nil {
				return false
			}
			literal, static := t.Static()
			return !static || literal == v.node.Text
		}) {
			p.reportViolation(v, Pos{}, f)
		}
	}
}
