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

// secretsVariable is the variable under which expressions name secrets.
const secretsVariable = "secrets"

// SecretPattern is what the name of a secret is like: it is a file's name and part of a variable's wherever secrets are kept.
const SecretPattern = `^[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$` //nolint:gosec // a name's

// DeclaredSecret is a secret that a document says it uses.
type DeclaredSecret struct {
	Name string
	Path string // JSON pointer of the declaration
	Pos  Pos
}

// Secret refers to a secret, or with Members to a value within one that is a JSON object. A document never holds the value,
// and no expression ever sees it: whoever makes the call asks for it right before.
type Secret struct {
	Name    string
	Members []string
}

// String is the reference as a document writes it, without the $.
func (s Secret) String() string {
	return strings.Join(append([]string{secretsVariable, s.Name}, s.Members...), ".")
}

// Opaque is what a template gives where it names secrets: a text of which parts are not known here.
type Opaque []OpaquePart

// OpaquePart is a part of such a text: Text, or a Secret that stands for it.
type OpaquePart struct {
	Text   string
	Secret *Secret
}

// takingSecrets reads a part of a call in which expressions may name secrets.
func (p *parser) takingSecrets(read func()) {
	before := p.taking
	p.taking = true
	read()
	p.taking = before
}

// assemble compiles an expression that names secrets, at a place that takes them.
func (p *parser) assemble(v value, source string, vars []string) *Expr {
	e := &Expr{Source: strings.TrimSpace(source), Pos: v.pos()}
	assembly, err := p.jq.Assemble(source, vars, secretsVariable)
	if err != nil {
		p.expressionProblem(v, source, vars, err)
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

// useSecret reports a secret that is not declared.
func (p *parser) useSecret(v value, source, name string) {
	if _, declared := p.secrets[name]; declared {
		p.secrets[name] = true
		return
	}
	suggestion := suggest.Name(name, slices.Sorted(maps.Keys(p.secrets)))
	if suggestion == "" {
		suggestion = fmt.Sprintf("declare it: use: {secrets: [%s]}", name)
	}
	problem := Problem{
		Code: CodeUnknownReference, Path: v.path, Pos: v.pos(), Suggestion: suggestion,
		Message: fmt.Sprintf("the secret %q is not declared under use.secrets", name),
	}
	if at := strings.Index(v.node.Text, "."+name); source != "" && at >= 0 {
		problem.Pos = p.inside(v, at+1)
	}
	p.add(problem)
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
			p.report(CodeValue, item, "use up to 128 letters, digits and inner hyphens, dots and underscores", "the name %.80q of a secret is not allowed", name)
			p.secrets[name] = true
		default:
			p.secrets[name] = false
			p.declared = append(p.declared, DeclaredSecret{Name: name, Path: item.path, Pos: item.pos()})
		}
	}
}

// finishSecrets reports the secrets that nothing uses.
func (p *parser) finishSecrets() []DeclaredSecret {
	for _, s := range p.declared {
		if !p.secrets[s.Name] {
			p.add(Problem{
				Severity: SeverityWarning, Code: CodeUnused, Path: s.Path, Pos: s.Pos,
				Message: fmt.Sprintf("the secret %q is never used", s.Name), Suggestion: "refer to it or remove it",
			})
		}
	}
	return slices.Clone(p.declared)
}

// join puts a text together of which secrets are part.
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
