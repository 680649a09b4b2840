package dsl

import (
	"regexp"

	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
)

// CallGo is the call of a Go function: of a program that registers functions and executes them in its own process.
const CallGo = "go"

// GoCall calls a function of a program in Go.
type GoCall struct {
	// Program is the program that has the function, by the name under which it serves its functions.
	Program string
	// Function and Version identify the function in its program.
	Function, Version string
	// Signature identifies the schemas of the function's input and output: the program refuses a call with another one.
	// Empty: any.
	Signature string
	// Idempotent reports that the function has the effects of one execution when it is executed again with the same key.
	Idempotent bool
	// Input is the input of the function; nil: the input of the task.
	Input *Template
}

// Kind implements Body.
func (*GoCall) Kind() Kind { return KindCall }

// goCall reads the call of a Go function.
func (p *parser) goCall(task value, c taskContext) Body {
	body := &GoCall{}
	with, ok := task.member("with")
	if !ok {
		p.report(CodeMissingKey, task, "", "a call of kind %s needs the key %q", CallGo, "with")
		return body
	}
	name := func(into *string, what string) func(value) {
		return func(v value) {
			if *into = p.text(v, what); v.node.Kind == tree.String && !IsFunctionName(*into) {
				p.report(CodeValue, v, "use up to 63 lower-case letters, digits and inner hyphens", "%s %.80q is not a name", what,
					*into)
			}
		}
	}
	p.object(with, "with", fields{
		{"program", true, name(&body.Program, "the program of a Go function")},
		{"function", true, name(&body.Function, "the Go function")},
		{"version", true, func(v value) {
			if body.Version = p.text(v, "the version of a Go function"); v.node.Kind == tree.String &&
				!IsVersion(body.Version) {
				p.report(CodeValue, v, "write it as 1.0.0", "the version %.80q of a Go function is not a semantic version",
					body.Version)
			}
		}},
		{"signature", false, func(v value) {
			if body.Signature = p.text(v, "the signature of a Go function"); v.node.Kind == tree.String &&
				!regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(body.Signature) {
				p.report(CodeValue, v, "take it from the definition that the program writes, or leave it out",
					"the signature %.80q of a Go function is not a SHA-256", body.Signature)
			}
		}},
		{"idempotent", false, func(v value) { body.Idempotent = p.boolean(v, "idempotent") }},
		{"input", false, func(v value) { body.Input = p.template(v, c.scope.at(slotTask)) }},
	})
	return body
}

// IsFunctionName reports whether a text can be the name of a function: the names are those of the official catalog.
func IsFunctionName(text string) bool {
	return regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`).MatchString(text)
}
