package dsl

import (
	"regexp"
	"slices"

	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
)

func (p *parser) doTask(task value, c taskContext) Body {
	v, _ := task.member("do")
	return &Do{Tasks: p.taskList(v, c.scope)}
}

func (p *parser) setTask(task value, c taskContext) Body {
	v, _ := task.member("set")
	vars := c.scope.at(slotTask)
	switch v.node.Kind {
	case tree.Object:
		if len(v.node.Members) == 0 {
			p.report(CodeValue, v, "give it at least one key", "set must not be empty")
		}
		return &Set{Value: p.template(v, vars)}
	case tree.String:
		return &Set{Value: &Template{Pos: v.pos(), expr: p.wrappedExpr(v, "set", vars)}}
	}
	p.report(CodeType, v, "", "set must be an object or an expression, got %s", v.node.Kind)
	return &Set{}
}

func (p *parser) waitTask(task value, c taskContext) Body {
	v, _ := task.member("wait")
	return &Wait{Duration: p.duration(v, c.scope.at(slotTask))}
}

func (p *parser) switchTask(task value, c taskContext) Body {
	v, _ := task.member("switch")
	body := &Switch{}
	if !p.is(v, tree.Array, "switch") {
		return body
	}
	if len(v.node.Items) == 0 {
		p.report(CodeValue, v, "give it at least one case", "switch must not be empty")
	}
	seen := make(map[string]Pos)
	fallback := ""
	for i := range v.node.Items {
		name, def, ok := p.named(v.item(i), "a case", seen)
		if !ok {
			continue
		}
		one := Case{Name: name, Pos: def.pos()}
		p.object(def, "a case", fields{
			{"when", false, func(v value) { one.When = p.expr(v, "when", c.scope.at(slotTask)) }},
			{"then", true, func(v value) { one.Then = p.flow(v, c) }},
		})
		if _, conditional := def.member("when"); !conditional {
			if fallback != "" {
				p.report(CodeValue, def, "give all cases but one a when", "the case %q is a second default beside %q", name,
					fallback)
			}
			fallback = name
		}
		body.Cases = append(body.Cases, one)
	}
	return body
}

func (p *parser) forTask(task value, c taskContext) Body {
	body := &For{Each: "item", At: "index"}
	v, _ := task.member("for")
	p.object(v, "for", fields{
		{"each", false, func(v value) { body.Each = p.variable(v, "for.each", body.Each) }},
		{"at", false, func(v value) { body.At = p.variable(v, "for.at", body.At) }},
		{"in", true, func(v value) { body.In = p.collection(v, c.scope.at(slotTask)) }},
	})
	if body.Each == body.At {
		p.report(CodeValue, v, "rename one of them", "for.each and for.at must differ, both are %q", body.Each)
	}
	inner := c.scope.with(body.Each, body.At)
	if w, ok := task.member("while"); ok {
		body.While = p.expr(w, "while", inner.at(slotTask))
	}
	if do, ok := task.member("do"); ok {
		body.Tasks = p.taskList(do, inner)
	} else {
		p.report(CodeMissingKey, task, "", "a for task needs the key %q", "do")
	}
	return body
}

// collection reads for.in: an expression or an array of objects, in which expressions are allowed.
func (p *parser) collection(v value, vars []string) *Expr {
	if v.node.Kind != tree.Array {
		return p.expr(v, "for.in", vars)
	}
	for i := range v.node.Items {
		if item := v.item(i); item.node.Kind != tree.Object {
			p.report(CodeType, item, "write other items in an expression: ${ [1, 2, 3] }",
				"an item of an inline array must be an object, got %s", item.node.Kind)
		}
	}
	return &Expr{Pos: v.pos(), inline: p.template(v, vars)}
}

// variable reads the name of a variable a task defines.
func (p *parser) variable(v value, what, otherwise string) string {
	name := p.text(v, what)
	switch {
	case v.node.Kind != tree.String:
		return otherwise
	case !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(name) || jqKeyword(name):
		p.report(CodeValue, v, "use letters, digits and underscores, without $", "%s %.80q is not a name for a variable",
			what, name)
		return otherwise
	case slices.Contains(reservedNames(), name):
		p.report(CodeValue, v, "choose another name", "%s %q would hide the variable $%s of the runtime", what, name, name)
	}
	return name
}

// jqKeyword reports whether a name begins with two underscores: the expression compiler reserves those.
func jqKeyword(name string) bool { return len(name) > 1 && name[:2] == "__" }

func (p *parser) forkTask(task value, c taskContext) Body {
	body := &Fork{}
	v, _ := task.member("fork")
	p.object(v, "fork", fields{
		{"branches", true, func(v value) {
			if v.node.Kind == tree.Array && len(v.node.Items) == 0 {
				p.report(CodeValue, v, "give it at least one branch", "a fork must have branches")
			}
			body.Branches = p.tasks(v, c.scope, true)
		}},
		{"compete", false, func(v value) { body.Compete = p.boolean(v, "fork.compete") }},
	})
	return body
}

func (p *parser) raiseTask(task value, c taskContext) Body {
	body := &Raise{}
	v, _ := task.member("raise")
	p.object(v, "raise", fields{{"error", true, func(v value) {
		if v.node.Kind == tree.String {
			def, ok := p.lookup(v, "errors", "error")
			if !ok {
				return
			}
			v = def
		}
		body.Error = p.errorDef(v, c.scope.at(slotTask))
	}}})
	return body
}

func (p *parser) errorDef(v value, vars []string) *ErrorDef {
	def := &ErrorDef{}
	str := func(into **Template, what string) func(value) {
		return func(v value) {
			if p.is(v, tree.String, what) {
				*into = p.template(v, vars)
			}
		}
	}
	p.object(v, "an error", fields{
		{"type", true, func(v value) {
			str(&def.Type, "the type of an error")(v)
			p.errors.raised = append(p.errors.raised, def.Type)
			p.literalURI(v, def.Type, "the type of an error")
		}},
		{"status", true, func(v value) { def.Status = p.integer(v, "the status of an error") }},
		{"title", false, str(&def.Title, "the title of an error")},
		{"detail", false, str(&def.Detail, "the detail of an error")},
		{"instance", false, func(v value) {
			str(&def.Instance, "the instance of an error")(v)
			p.literalPointer(v, def.Instance)
		}},
	})
	return def
}

func (p *parser) literalURI(v value, t *Template, what string) {
	if t == nil {
		return
	}
	if literal, ok := t.Static(); ok {
		if s, _ := literal.(string); !regexp.MustCompile(`^[^\s#?{}]*(\?[^\s#{}]*)?(#\S*)?$`).MatchString(s) || s == "" {
			p.report(CodeValue, v, "", "%s must be a URI, got %.80q", what, s)
		}
	}
}

func (p *parser) literalPointer(v value, t *Template) {
	if t == nil {
		return
	}
	if literal, ok := t.Static(); ok {
		if s, _ := literal.(string); !regexp.MustCompile(`^(/([^~/]|~0|~1)*)*$`).MatchString(s) {
			p.report(CodeValue, v, "write it as /do/0/name", "the instance of an error must be a JSON pointer, got %.80q", s)
		}
	}
}
