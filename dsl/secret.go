package dsl

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/internal/suggest"
	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// secretsVariable is the variable through which expressions refer to secrets.
const secretsVariable = "secrets"

// SecretPattern is the pattern of secret names. Where secrets are stored, their names become file names and parts of
// variable names.
const SecretPattern = `^[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$` //nolint:gosec // a name's

// DeclaredSecret is a secret that a document lists under use.secrets.
type DeclaredSecret struct {
	Name string
	Path string // JSON pointer of the declaration
	Pos  Pos
}

// Secret refers to a secret, or with Members to a value within one that is a JSON object. A document never holds the
// value, and no expression ever reads it: the sender of a call resolves it immediately before the call.
type Secret struct {
	Name    string
	Members []string
}

// String returns the reference as a document writes it, without the $.
func (s Secret) String() string {
	return strings.Join(append([]string{secretsVariable, s.Name}, s.Members...), ".")
}

// Opaque is the result of a template that refers to secrets: a text with secret parts that are not resolved yet.
type Opaque []OpaquePart

// OpaquePart is a part of such a text: Text, or a reference to a Secret.
type OpaquePart struct {
	Text   string
	Secret *Secret
}

// allowSecrets reads a part of a call in which expressions may refer to secrets.
func (p *parser) allowSecrets(read func()) {
	before := p.secretsAllowed
	p.secretsAllowed = true
	read()
	p.secretsAllowed = before
}

// assemble compiles an expression that refers to secrets, in a part of a call that allows them.
func (p *parser) assemble(v value, source string, vars []string) *Expr {
	e := &Expr{Source: strings.TrimSpace(source), Pos: v.pos()}
	assembly, err := p.jq.Assemble(source, vars, secretsVariable)
	if err != nil {
		p.expressionViolation(v, source, vars, err)
		return e
	}
	e.inline = p.assembled(v, source, *assembly)
	return e
}

func (p *parser) assembled(v value, source string, a jq.Assembly) *Template {
	t := &Template{Pos: v.pos()}
	switch {
	case a.Program != nil:
		t.expr = &Expr{Source: a.Program.Source(), Pos: v.pos(), program: a.Program}
	case a.Path != nil:
		t.secret = &Secret{Name: a.Path[0], Members: a.Path[1:]}
		p.useSecret(v, source, t.secret.Name)
	case a.Join != nil:
		for _, part := range a.Join {
			t.parts = append(t.parts, p.assembled(v, source, part))
		}
	default:
		t.object = make(map[string]*Template, len(a.Members))
		for name, member := range a.Members {
			t.object[name] = p.assembled(v, source, member)
		}
	}
	return t
}

// useSecret marks a secret as used, and reports one that is not declared.
func (p *parser) useSecret(v value, source, name string) {
	if _, declared := p.secrets[name]; declared || p.anySecret {
		p.secrets[name] = true
		return
	}
	suggestion := suggest.Name(name, slices.Sorted(maps.Keys(p.secrets)))
	if suggestion == "" {
		suggestion = fmt.Sprintf("declare it: use: {secrets: [%s]}", name)
	}
	violation := Violation{
		Code: CodeUnknownReference, Path: v.path, Pos: v.pos(), Suggestion: suggestion,
		Message: fmt.Sprintf("the secret %q is not declared under use.secrets", name),
	}
	if at := strings.Index(v.node.Text, "."+name); source != "" && at >= 0 {
		violation.Pos = p.positionInside(v, at+1)
	}
	p.add(violation)
}

// collectSecrets reads use.secrets.
func (p *parser) collectSecrets(v value) {
	if !p.is(v, tree.Array, "use.secrets") {
		return
	}
	for i := range v.node.Items {
		item := v.item(i)
		if !p.is(item, tree.String, "the name of a secret") {
			continue
		}
		name := item.node.Text
		_, twice := p.secrets[name]
		switch {
		case twice:
			p.report(CodeDuplicateName, item, "remove one of them", "the secret %q is declared twice", name)
		case !regexp.MustCompile(SecretPattern).MatchString(name):
			p.report(CodeValue, item, "use up to 128 letters, digits and inner hyphens, dots and underscores",
				"the name %.80q of a secret is not allowed", name)
			p.secrets[name] = true
		default:
			p.secrets[name] = false
			p.declared = append(p.declared, DeclaredSecret{Name: name, Path: item.path, Pos: item.pos()})
		}
	}
}

// finishSecrets returns the declared secrets and reports the unused ones.
func (p *parser) finishSecrets() []DeclaredSecret {
	for _, s := range p.declared {
		if !p.secrets[s.Name] {
			p.add(Violation{
				Severity: SeverityWarning, Code: CodeUnused, Path: s.Path, Pos: s.Pos,
				Message: fmt.Sprintf("the secret %q is never used", s.Name), Suggestion: "refer to it or remove it",
			})
		}
	}
	return slices.Clone(p.declared)
}

// join evaluates a text that contains secrets.
func (t *Template) join(input any, vars map[string]any, fuel *jq.Fuel) (any, error) {
	var out Opaque
	for _, part := range t.parts {
		v, err := part.Eval(input, vars, fuel)
		if err != nil {
			return nil, err
		}
		switch v := v.(type) {
		case nil:
		case string:
			out = append(out, OpaquePart{Text: v})
		case Opaque:
			out = append(out, v...)
		default:
			return nil, fmt.Errorf("evaluate %q: want a string beside a secret, got %s", part.source(), jq.TypeName(v))
		}
	}
	return out, nil
}
