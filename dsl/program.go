package dsl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/internal/suggest"
	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
)

// ProgramKind is the kind of a program that a run task executes, by its keyword.
type ProgramKind string

// The kinds of programs.
const (
	ProgramScript    ProgramKind = "script"
	ProgramShell     ProgramKind = "shell"
	ProgramContainer ProgramKind = "container"
)

// ProgramKinds returns all kinds of programs.
func ProgramKinds() []ProgramKind {
	return []ProgramKind{ProgramScript, ProgramShell, ProgramContainer}
}

// ScriptLanguage is the language of a script.
type ScriptLanguage string

// The languages of scripts. A document may also write "javascript" and "python3".
const (
	JavaScript ScriptLanguage = "js"
	Python     ScriptLanguage = "python"
)

// PullPolicy is when the image of a container is pulled.
type PullPolicy string

// The policies. PullIfNotPresent is the default.
const (
	PullIfNotPresent PullPolicy = "ifNotPresent"
	PullAlways       PullPolicy = "always"
	PullNever        PullPolicy = "never"
)

// Cleanup is when a container is removed after its end.
type Cleanup string

// The values of cleanup. CleanupAlways removes it at once, and is the default; CleanupEventually after a duration.
const (
	CleanupAlways     Cleanup = "always"
	CleanupNever      Cleanup = "never"
	CleanupEventually Cleanup = "eventually"
)

// RunProgram executes a program outside of the interpreter. Members that are not given are nil.
type RunProgram struct {
	Program  ProgramKind
	Language ScriptLanguage // of a script
	// Code is the code of a script, or the command of a shell or a container.
	Code *Template
	// Source is the request that reads the code when the task begins, where only the run knows its URI; Code is nil then.
	Source *HTTPCall
	Stdin  *Template // evaluates to a text; another value is passed as JSON
	// Arguments evaluates to an array of texts, or to an object in the form of older releases of the language.
	Arguments   *Template
	Environment *Template // evaluates to an object of texts
	Container   *Container

	// Await defines whether the task waits for the end of the program. If not, its output is its input.
	Await bool
	// Return selects the output of a task that waits.
	Return Return
}

// UsedProgram is a program that a task of a document executes.
type UsedProgram struct {
	Program  ProgramKind
	Language ScriptLanguage // of a script
	Path     string         // JSON pointer of the program
	Pos      Pos
}

// Name returns what the program is for readers, in the plural: "shell commands", "scripts in python".
func (u UsedProgram) Name() string {
	switch u.Program {
	case ProgramScript:
		return "scripts in " + string(u.Language)
	case ProgramShell:
		return "shell commands"
	default:
		return "containers"
	}
}

// Key returns the name under which runners report the isolation of such programs: the kind, or the language of a script.
func (u UsedProgram) Key() string {
	if u.Program == ProgramScript {
		return string(u.Language)
	}
	return string(u.Program)
}

// Container is what only a container has. Members that are not given are nil.
type Container struct {
	Image *Template
	Name  *Template
	// Ports evaluates to an object: ports of the host, and the port of the container of each.
	Ports *Template
	// Volumes evaluates to an object: paths of the host, and the path in the container of each.
	Volumes    *Template
	PullPolicy PullPolicy
	Cleanup    Cleanup
	After      *Duration // of CleanupEventually
}

// Kind implements Body.
func (*RunProgram) Kind() Kind { return KindRun }

// Repeatable reports whether the program has no effects by itself, so that executing it again changes nothing.
func (b *RunProgram) Repeatable() bool { return b.Program == ProgramScript && b.Language == JavaScript }

// script reads a script.
func (p *parser) script(v value, body *RunProgram, vars []string) {
	p.object(v, "run.script", append(fields{
		{"language", true, func(v value) { body.Language = p.scriptLanguage(v) }},
		{"code", false, func(v value) { body.Code = p.code(v, "run.script.code", vars) }},
		{"source", false, func(v value) {
			if body.Source = p.runtimeResource(v, "the source of a script", vars); body.Source != nil {
				return
			}
			if r := p.externalResource(v, "the source of a script"); r != nil {
				body.Code = &Template{Pos: v.pos(), literal: string(r.Content)}
			}
		}},
	}, p.processFields("run.script", body, vars)...))
	_, inline := v.member("code")
	_, external := v.member("source")
	switch {
	case v.node.Kind != tree.Object:
	case inline && external:
		p.report(CodeValue, v, "remove one of them", "run.script has both code and source")
	case !inline && !external:
		p.report(CodeMissingKey, v, "", "run.script needs one of the keys %q and %q", "code", "source")
	}
}

// scriptLanguage reads the language of a script.
func (p *parser) scriptLanguage(v value) ScriptLanguage {
	name := p.text(v, "run.script.language")
	switch strings.ToLower(name) {
	case string(JavaScript), "javascript":
		return JavaScript
	case string(Python), "python3":
		return Python
	}
	if v.node.Kind == tree.String {
		p.report(CodeValue, v, suggest.Closest(name, []string{"js", "javascript", "python"}),
			"run.script.language must be js or python, got %.80q", name)
	}
	return ""
}

// shell reads a shell command.
func (p *parser) shell(v value, body *RunProgram, vars []string) {
	p.object(v, "run.shell", append(fields{
		{"command", true, func(v value) { body.Code = p.code(v, "run.shell.command", vars) }},
	}, p.processFields("run.shell", body, vars)...))
}

// container reads a container.
func (p *parser) container(v value, body *RunProgram, vars []string) {
	c := &Container{PullPolicy: PullIfNotPresent, Cleanup: CleanupAlways}
	body.Container = c
	p.object(v, "run.container", append(fields{
		{"image", true, func(v value) { c.Image = p.textTemplate(v, "run.container.image", vars) }},
		{"name", false, func(v value) { c.Name = p.textTemplate(v, "run.container.name", vars) }},
		{"command", false, func(v value) { body.Code = p.code(v, "run.container.command", vars) }},
		{"ports", false, func(v value) { c.Ports = p.ports(v, vars) }},
		{"volumes", false, func(v value) { c.Volumes = p.stringMap(v, "run.container.volumes", vars) }},
		{"lifetime", false, func(v value) { p.lifetime(v, c, vars) }},
		{"pullPolicy", false, func(v value) {
			c.PullPolicy = PullPolicy(p.oneOf(v, "run.container.pullPolicy",
				string(PullIfNotPresent), string(PullAlways), string(PullNever)))
		}},
	}, p.processFields("run.container", body, vars)...))
}

// processFields returns the fields that programs of all kinds have.
func (p *parser) processFields(what string, body *RunProgram, vars []string) fields {
	return fields{
		{"stdin", false, func(v value) { body.Stdin = p.textTemplate(v, what+".stdin", vars) }},
		{"arguments", false, func(v value) { body.Arguments = p.arguments(v, what+".arguments", vars) }},
		{"environment", false, func(v value) { body.Environment = p.environment(v, what+".environment", vars) }},
	}
}

// textTemplate reads a text that may be an expression.
func (p *parser) textTemplate(v value, what string, vars []string) *Template {
	if !p.is(v, tree.String, what) {
		return nil
	}
	return p.template(v, vars)
}

// code reads the code of a program, or an expression in ${ } that gives it. Also in loose mode other texts are code, and
// the ${ } that shells and JavaScript have for variables is part of it.
func (p *parser) code(v value, what string, vars []string) *Template {
	if !p.is(v, tree.String, what) {
		return nil
	}
	if _, wrapped := unwrap(v.node.Text); wrapped {
		return p.template(v, vars)
	}
	return &Template{Pos: v.pos(), literal: v.node.Text}
}

// arguments reads the arguments of a program: an array of texts, an expression, or an object as in older releases.
func (p *parser) arguments(v value, what string, vars []string) *Template {
	switch v.node.Kind {
	case tree.String:
		return &Template{Pos: v.pos(), expr: p.wrappedExpr(v, what, vars)}
	case tree.Object:
		p.warn(CodeOldKey, v, v.key, "write an array of texts",
			"%s is an object, which is its form in releases of the language before 1.0.3", what)
		return p.template(v, vars)
	case tree.Array:
		for i := range v.node.Items {
			p.is(v.item(i), tree.String, fmt.Sprintf("%s: an argument", what))
		}
		return p.template(v, vars)
	}
	p.report(CodeType, v, "write an array of texts", "%s must be an array, got %s", what, v.node.Kind)
	return nil
}

// environment reads variables: an expression, or an object of texts, numbers and booleans, which may be expressions.
func (p *parser) environment(v value, what string, vars []string) *Template {
	if v.node.Kind == tree.String {
		return &Template{Pos: v.pos(), expr: p.wrappedExpr(v, what, vars)}
	}
	if !p.is(v, tree.Object, what) {
		return nil
	}
	for _, m := range v.node.Members {
		if m.Key == "" || strings.ContainsAny(m.Key, "=\x00") {
			p.report(CodeValue, v.child(m), "use letters, digits and underscores", "%s: %.80q is no name of a variable", what,
				m.Key)
		}
		if !slices.Contains([]tree.Kind{tree.String, tree.Number, tree.Bool}, m.Value.Kind) {
			p.is(v.child(m), tree.String, fmt.Sprintf("%s: %q", what, m.Key))
		}
	}
	return p.template(v, vars)
}

// ports reads the ports of a container: an expression, or an object whose keys and values are ports.
func (p *parser) ports(v value, vars []string) *Template {
	const what = "run.container.ports"
	if v.node.Kind == tree.String {
		return &Template{Pos: v.pos(), expr: p.wrappedExpr(v, what, vars)}
	}
	if !p.is(v, tree.Object, what) {
		return nil
	}
	for _, m := range v.node.Members {
		of := v.child(m)
		if !isPort(m.Key) {
			p.report(CodeValue, of, "use a number from 1 to 65535", "%s: %.80q is no port of the host", what, m.Key)
		}
		if m.Value.Kind != tree.Number && !p.isExpression(of, vars) || m.Value.Kind == tree.Number && !isPort(m.Value.Text) {
			p.report(CodeValue, of, "use a number from 1 to 65535", "%s: the value of %q is no port of the container", what,
				m.Key)
		}
	}
	return p.template(v, vars)
}

func isPort(text string) bool {
	const bits = 16
	n, err := strconv.ParseUint(text, 10, bits)
	return err == nil && n > 0
}

// lifetime reads when a container is removed.
func (p *parser) lifetime(v value, c *Container, vars []string) {
	const what = "run.container.lifetime"
	p.object(v, what, fields{
		{"cleanup", true, func(v value) {
			c.Cleanup = Cleanup(p.oneOf(v, what+".cleanup", string(CleanupAlways), string(CleanupNever),
				string(CleanupEventually)))
		}},
		{"after", false, func(v value) { c.After = p.duration(v, vars) }},
	})
	after, given := v.member("after")
	switch {
	case v.node.Kind != tree.Object:
	case c.Cleanup == CleanupEventually && !given:
		p.report(CodeMissingKey, v, "", "%s needs the key %q, as cleanup is %s", what, "after", CleanupEventually)
	case c.Cleanup != CleanupEventually && given:
		p.report(CodeValue, after, "remove it, or write cleanup: "+string(CleanupEventually),
			"%s.after concerns only the cleanup %s", what, CleanupEventually)
	}
}
