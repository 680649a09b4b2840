package dsl

import (
	"context"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// bounds counts what a document costs to compile, and ends the compilation once it is over a limit or its caller has
// gone.
type bounds struct {
	ctx           context.Context //nolint:containedctx // of the one call of Parse
	taskCount     int
	referred      int // values of the reusable parts, once for each reference
	schemaValues  int
	schemaPattern int64
	stopped       bool // what follows is not compiled, and its violations are not reported
}

// WithContext ends the compilation with the context. [Parse] then returns no document, and a violation with
// [CodeLimit].
func WithContext(ctx context.Context) Option { return func(p *parser) { p.ctx = ctx } }

// done reports whether the compilation has ended early.
func (p *parser) done(v value) bool {
	if !p.stopped && p.ctx != nil && p.ctx.Err() != nil {
		p.stop(v, "", "the document was not checked to its end: %v", p.ctx.Err())
	}
	return p.stopped
}

// stop reports the violation that ends the compilation.
func (p *parser) stop(v value, suggestion, format string, args ...any) {
	if p.stopped {
		return
	}
	p.report(CodeLimit, v, suggestion, format, args...)
	p.stopped = true
}

// canonicalFactor is how much longer the canonical form of a document may be than its source: aliases are expanded and
// texts escaped.
const canonicalFactor = 4

func (l Limits) maxCanonical() int { return canonicalFactor * l.MaxBytes }

// Stored returns the limits for the canonical form of documents that were accepted within l.
func (l Limits) Stored() Limits {
	l.MaxBytes = l.maxCanonical()
	return l
}

// admit reports whether a document is small enough once its aliases are expanded. A short text may have a canonical
// form that is too large to be built.
func (p *parser) admit(root value) bool {
	if n := textSize(root.node); n > p.limits.maxCanonical() {
		p.stop(root, "use fewer aliases of large parts",
			"the document has %d bytes or more once aliases are expanded, the limit is %d", n, p.limits.maxCanonical())
	}
	return !p.stopped
}

func textSize(n *tree.Node) int {
	total := len(n.Text)
	for _, item := range n.Items {
		total += textSize(item)
	}
	for _, m := range n.Members {
		total += len(m.Key) + textSize(m.Value)
	}
	return total
}

// The memory that the parts of a compiled document use, in bytes, as measured.
const (
	valueMemory       = 300
	termMemory        = 500
	schemaValueMemory = 1000
	patternMemory     = 100
)

// memory estimates the memory of the compiled document.
func (p *parser) memory(root value) int64 {
	return 2*int64(textSize(root.node)) + valueMemory*int64(size(root.node)+p.referred) + termMemory*p.jq.Spent() +
		schemaValueMemory*int64(p.schemaValues) + patternMemory*p.schemaPattern
}

// countTask counts a task.
func (p *parser) countTask(v value) {
	if p.taskCount++; p.taskCount > p.limits.MaxTasks {
		p.stop(v, "move some of them to a workflow that this one runs", "the document has more than %d tasks",
			p.limits.MaxTasks)
	}
}

// countReference counts the values of a part under use, which is compiled at each reference.
func (p *parser) countReference(at value, of *reusable) {
	if of.size == 0 {
		of.size = size(of.node)
	}
	if p.referred += of.size; p.referred > p.limits.MaxNodes {
		p.stop(at, "refer to large parts less often",
			"the document has more than %d values once references to use are resolved", p.limits.MaxNodes)
	}
}

// admitSchema counts the values of a schema, and reports whether it may be compiled.
func (p *parser) admitSchema(v value) bool {
	if p.schemaValues += size(v.node); p.schemaValues > p.limits.MaxSchemaValues {
		p.stop(v, "make the schemas smaller, or check less",
			"the schemas of the document have %d values or more, the limit is %d",
			p.schemaValues, p.limits.MaxSchemaValues)
		return false
	}
	if p.schemaPattern += patternWeight(v.node); p.schemaPattern > maxSchemaPattern {
		p.stop(v, "repeat less in them, or check less",
			"the patterns of the schemas have %d parts or more once repetitions are written out, the limit is %d",
			p.schemaPattern, maxSchemaPattern)
		return false
	}
	return true
}

// maxSchemaPattern is the number of parts that all patterns in schemas may have.
const maxSchemaPattern = 200_000

// size returns the number of values in a part of a document.
func size(n *tree.Node) int {
	total := 1
	for _, item := range n.Items {
		total += size(item)
	}
	for _, m := range n.Members {
		total += size(m.Value)
	}
	return total
}

// weight returns an upper bound of the parts of a regular expression. A class of Unicode characters has hundreds of
// ranges.
func weight(pattern string) int64 {
	const unicodeClass = 300
	return jq.PatternWeight(pattern) + unicodeClass*int64(strings.Count(strings.ToLower(pattern), `\p`))
}

// patternWeight returns an upper bound of the number of parts of the regular expressions in a schema.
func patternWeight(n *tree.Node) int64 {
	var total int64
	for _, item := range n.Items {
		total += patternWeight(item)
	}
	for _, m := range n.Members {
		switch {
		case m.Key == "pattern" && m.Value.Kind == tree.String:
			total += weight(m.Value.Text)
		case m.Key == "patternProperties":
			for _, named := range m.Value.Members {
				total += weight(named.Key)
			}
		}
		total += patternWeight(m.Value)
	}
	return total
}
