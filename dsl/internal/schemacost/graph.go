// Package schemacost bounds the cost of a check against a JSON Schema before the check runs. A small schema whose parts
// refer to each other can take exponential time on a small value, and the library that checks has no limit.
//
// The bound depends on the schema and the value alone: it is the same on every machine and in every run of a program.
// It counts each part of the schema for each part of the value that the library may check against it, as if no check
// ended early.
package schemacost

import (
	"math/big"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// kind is the type of a value, as one bit.
type kind int

const (
	null kind = 1 << iota
	boolean
	number
	text
	list
	object
)

// node is one schema: its own cost, and the schemas that it applies to a value or its parts.
type node struct {
	types  kind // 0: all
	own    int64
	steps  price // cost per step of a text or number
	chain  int   // number of schemas that are applied to the same value before this one
	unique bool
	closed bool // members that no keyword names are errors

	same       []*node
	dynamic    []*node // one of these applies
	dependent  map[string][]*node
	properties map[string]*node
	patterns   []patterned
	additional *node
	names      *node
	prefix     []*node
	items      *node
	contains   *node
	rest       []*node // for the parts that no other keyword evaluated
}

type patterned struct {
	name   jsonschema.Regexp
	weight int64
	node   *node
}

// price is the cost per step of a text, or per part of a long number.
type price struct{ texts, numbers int64 }

// Graph is the part of a compiled schema that determines its cost. It is immutable.
type Graph struct {
	root *node
	// open reports whether the schema has keywords for unevaluated parts, for which the library records the evaluated
	// members of each value.
	open bool
}

// New prepares a compiled schema. weigh estimates how many instructions a regular expression compiles to.
func New(s *jsonschema.Schema, weigh func(pattern string) int64) *Graph {
	b := &builder{weigh: weigh, nodes: make(map[*jsonschema.Schema]*node)}
	g := &Graph{root: b.node(s)}
	for n, ref := range b.dynamic {
		n.dynamic = b.candidates(ref)
	}
	for n, anchored := range b.recursive {
		if anchored {
			n.dynamic = append(n.dynamic, b.anchored()...)
		}
	}
	g.open = b.open
	b.measureChains()
	return g
}

type builder struct {
	weigh     func(pattern string) int64
	nodes     map[*jsonschema.Schema]*node
	order     []*jsonschema.Schema
	dynamic   map[*node]*jsonschema.DynamicRef
	recursive map[*node]bool
	open      bool
}

func (b *builder) node(s *jsonschema.Schema) *node {
	if s == nil {
		return nil
	}
	if n, ok := b.nodes[s]; ok {
		return n
	}
	n := &node{}
	b.nodes[s] = n
	b.order = append(b.order, s)
	if s.Bool != nil {
		return n
	}
	b.values(n, s)
	b.applicators(n, s)
	b.objects(n, s)
	b.lists(n, s)
	return n
}

func (b *builder) all(schemas ...*jsonschema.Schema) []*node {
	var out []*node
	for _, s := range schemas {
		if s != nil {
			out = append(out, b.node(s))
		}
	}
	return out
}

// The costs of keywords that compare values and numbers.
const (
	comparedNumber = 12
	longNumber     = 2
	formatted      = 2
	// compiledText is the cost of compiling a step of text as a regular expression with its repetitions expanded.
	compiledText = 500
	// step is the number of bytes of a text that are counted together.
	step = 16
	// patternParts is the number of parts of a pattern, each tried at one byte, that cost one unit.
	patternParts = 4
)

// values adds the costs of the keywords that check one value.
func (b *builder) values(n *node, s *jsonschema.Schema) {
	if s.Types != nil {
		for _, t := range s.Types.ToStrings() {
			n.types |= map[string]kind{
				"null": null, "boolean": boolean, "number": number, "integer": number, "string": text, "array": list,
				"object": object,
			}[t]
		}
	}
	if s.Enum != nil {
		n.own += compared(s.Enum.Values)
		n.steps.numbers += int64(len(s.Enum.Values)) * longNumber
	}
	if s.Const != nil {
		n.own += compared(*s.Const)
		n.steps.numbers += longNumber
	}
	if s.Format != nil {
		n.own += formatted
		n.steps.texts += formatted
		if s.Format.Name == "regex" {
			n.steps.texts += compiledText
		}
	}
	if s.MinLength != nil || s.MaxLength != nil {
		n.steps.texts++
	}
	if s.Pattern != nil {
		n.own += 4
		n.steps.texts += 1 + b.weigh(s.Pattern.String())*step/patternParts
	}
	for _, bound := range []*big.Rat{s.Minimum, s.Maximum, s.ExclusiveMinimum, s.ExclusiveMaximum, s.MultipleOf} {
		if bound != nil {
			size := int64(bound.Num().BitLen()+bound.Denom().BitLen()) / 64
			n.own += comparedNumber/2 + size
			n.steps.numbers += longNumber + size
		}
	}
}

// compared is the cost of comparing a value with one of a schema.
func compared(v any) int64 {
	var n int64 = 1
	switch v := v.(type) {
	case string:
		n += int64(len(v)) / 64
	case []any:
		for _, e := range v {
			n += compared(e)
		}
	case map[string]any:
		for _, e := range v {
			n += 2 + compared(e)
		}
	case nil, bool:
	default:
		n += comparedNumber
	}
	return n
}

func (b *builder) applicators(n *node, s *jsonschema.Schema) {
	n.same = b.all(s.Ref, s.Not, s.If, s.Then, s.Else)
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		n.same = append(n.same, b.all(list...)...)
	}
	if s.DynamicRef != nil {
		if b.dynamic == nil {
			b.dynamic = make(map[*node]*jsonschema.DynamicRef)
		}
		b.node(s.DynamicRef.Ref)
		b.dynamic[n] = s.DynamicRef
	}
	if s.RecursiveRef != nil {
		if b.recursive == nil {
			b.recursive = make(map[*node]bool)
		}
		n.dynamic = b.all(s.RecursiveRef)
		b.recursive[n] = s.RecursiveRef.RecursiveAnchor
	}
}

func (b *builder) objects(n *node, s *jsonschema.Schema) {
	n.own += int64(len(s.Required)) / 4
	depend := func(name string, on *jsonschema.Schema) {
		if n.dependent == nil {
			n.dependent = make(map[string][]*node)
		}
		n.dependent[name] = append(n.dependent[name], b.all(on)...)
	}
	for name, on := range s.Dependencies {
		switch on := on.(type) {
		case *jsonschema.Schema:
			depend(name, on)
		case []string:
			n.own += int64(len(on))/4 + 1
		}
	}
	for name, on := range s.DependentSchemas {
		depend(name, on)
	}
	for _, names := range s.DependentRequired {
		n.own += int64(len(names))/4 + 1
	}
	if len(s.Properties) > 0 {
		n.properties = make(map[string]*node, len(s.Properties))
	}
	for name, p := range s.Properties {
		n.properties[name] = b.node(p)
	}
	for name, p := range s.PatternProperties {
		n.patterns = append(n.patterns, patterned{name, b.weigh(name.String()), b.node(p)})
	}
	switch additional := s.AdditionalProperties.(type) {
	case *jsonschema.Schema:
		n.additional = b.node(additional)
	case bool:
		n.closed = !additional
	}
	n.names = b.node(s.PropertyNames)
	b.others(n, s.UnevaluatedProperties)
}

func (b *builder) lists(n *node, s *jsonschema.Schema) {
	n.unique = s.UniqueItems
	n.prefix, n.items = b.all(s.PrefixItems...), b.node(s.Items2020)
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		n.items = b.node(items)
	case []*jsonschema.Schema:
		n.prefix = b.all(items...)
		if additional, ok := s.AdditionalItems.(*jsonschema.Schema); ok {
			n.items = b.node(additional)
		}
	}
	n.contains = b.node(s.Contains)
	b.others(n, s.UnevaluatedItems)
}

func (b *builder) others(n *node, s *jsonschema.Schema) {
	if s != nil {
		b.open = true
		n.rest = append(n.rest, b.node(s))
	}
}

// candidates returns the schemas that a dynamic reference may resolve to.
func (b *builder) candidates(ref *jsonschema.DynamicRef) []*node {
	out := b.all(ref.Ref)
	if ref.Anchor == "" || ref.Ref.DynamicAnchor != ref.Anchor {
		return out
	}
	for _, s := range b.order {
		if s.DynamicAnchor == ref.Anchor && s != ref.Ref {
			out = append(out, b.nodes[s])
		}
	}
	return out
}

func (b *builder) anchored() []*node {
	var out []*node
	for _, s := range b.order {
		if s.RecursiveAnchor {
			out = append(out, b.nodes[s])
		}
	}
	return out
}

// measureChains computes for each schema how many others are applied to a value before it: the library visits them at
// each.
func (b *builder) measureChains() {
	before := make(map[*node][]*node)
	for _, s := range b.order {
		n := b.nodes[s]
		for _, next := range slices.Concat(n.same, n.dynamic) {
			before[next] = append(before[next], n)
		}
		for _, dependent := range n.dependent {
			for _, next := range dependent {
				before[next] = append(before[next], n)
			}
		}
	}
	done := make(map[*node]bool)
	var measure func(n *node) int
	measure = func(n *node) int {
		if done[n] {
			return n.chain
		}
		done[n], n.chain = true, len(b.order) // the length of the chain within a cycle
		longest := 0
		for _, earlier := range before[n] {
			longest = max(longest, measure(earlier)+1)
		}
		n.chain = min(longest, len(b.order))
		return n.chain
	}
	for _, s := range b.order {
		measure(b.nodes[s])
	}
}
