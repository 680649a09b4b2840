package dsl

import (
	"bytes"

	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// ParseExpr compiles an expression outside a document, with or without ${ }. vars are the variables that it may use,
// without "$". The expression is nil if one of the violations is an error.
func ParseExpr(source string, vars []string) (*Expr, Violations) {
	p := newFragment([]byte(source))
	e := p.compile(value{node: &tree.Node{Kind: tree.String, Scalar: source, Text: source, Pos: tree.Pos{Line: 1, Column: 1}}},
		vars)
	violations := p.violations.sorted()
	if violations.HasErrors() {
		return nil, violations
	}
	return e, violations
}

// ParseTemplate reads a value in YAML or JSON outside a document, in which strings in ${ } are expressions. It is nil if
// one of the violations is an error.
func ParseTemplate(source []byte, vars []string) (*Template, Violations) {
	p := newFragment(source)
	root, found := tree.Parse(source, tree.Limits{
		Bytes: p.limits.MaxBytes, Depth: p.limits.MaxDepth, Aliases: p.limits.MaxAliases, Nodes: p.limits.MaxNodes,
	})
	for _, f := range found {
		p.addTreeViolation(f)
	}
	var t *Template
	if root != nil {
		t = p.template(value{node: root}, vars)
	}
	violations := p.violations.sorted()
	if violations.HasErrors() {
		return nil, violations
	}
	return t, violations
}

// newFragment returns the parser of a part of a document.
func newFragment(source []byte) *parser {
	p := &parser{limits: DefaultLimits(), secrets: map[string]bool{}, lines: bytes.Split(source, []byte("\n"))}
	p.jq = jq.NewLimitedCompiler(p.limits.MaxTerms)
	return p
}
