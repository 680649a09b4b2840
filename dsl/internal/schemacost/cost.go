package schemacost

import (
	"math/big"
	"reflect"
)

const (
	// visitCost is the cost of one schema for one part of a value. Most of it is for the error that it may return.
	visitCost = 6
	// unknown is a cost that is being computed.
	unknown = -1
)

// Cost returns an upper bound of the units of fuel for a check of a value. It stops at the limit: a cost over it is
// limit + 1. A schema that refers to itself for the same value has no useful bound and also costs limit + 1.
func (g *Graph) Cost(v any, limit int64) int64 {
	c := &computation{
		graph: g, limit: limit, parts: make(map[part]int64), scalars: make(map[scalar]scalarCost),
	}
	c.location = location(v) / 64
	cost := c.cost(g.root, v)
	if c.over || cost > limit {
		return limit + 1
	}
	return cost
}

// part is a list or an object that is checked against a schema. Parts that occur several times have one cost.
type part struct {
	node   *node
	at     uintptr
	length int
}

type scalar struct {
	node *node
	kind kind
}

type scalarCost struct {
	base int64
	price
}

type computation struct {
	graph *Graph
	limit int64
	// location is the cost of the pointer to the part of a value that is farthest from its root.
	location int64
	over     bool
	parts    map[part]int64
	scalars  map[scalar]scalarCost
}

// add adds a cost to a total. Once the total exceeds the limit, nothing more is computed.
func (c *computation) add(total *int64, n int64) {
	*total += n
	if *total > c.limit {
		c.over = true
	}
}

func (c *computation) cost(n *node, v any) int64 {
	if n == nil || c.over {
		return 0
	}
	switch v := v.(type) {
	case nil:
		return c.scalar(n, null).base
	case bool:
		return c.scalar(n, boolean).base
	case string:
		cost := c.scalar(n, text)
		return cost.base + cost.texts*(int64(len(v))/step+1)
	case []any:
		return c.container(n, part{n, reflect.ValueOf(v).Pointer(), len(v)}, func() int64 { return c.list(n, v) })
	case map[string]any:
		return c.container(n, part{n, reflect.ValueOf(v).Pointer(), len(v)}, func() int64 { return c.object(n, v) })
	}
	cost := c.scalar(n, number)
	return cost.base + cost.numbers*numberParts(v)
}

// numberParts is the length of a number: numbers other than small integers are compared as fractions of many digits.
func numberParts(v any) int64 {
	const fraction = 20
	switch v := v.(type) {
	case int:
		return 1
	case *big.Int:
		return 1 + int64(v.BitLen())/32
	}
	return fraction
}

// scalar is the cost of a value without parts, which for one schema and one type depends on the length alone.
func (c *computation) scalar(n *node, k kind) scalarCost {
	key := scalar{n, k}
	if known, ok := c.scalars[key]; ok {
		if known.base == unknown {
			c.over = true
		}
		return known
	}
	c.scalars[key] = scalarCost{base: unknown}
	cost := scalarCost{base: c.visit(n)}
	if n.types == 0 || n.types&k != 0 {
		cost.base += n.own
		switch k {
		case text:
			cost.texts = n.steps.texts
		case number:
			cost.numbers = n.steps.numbers
		}
		for _, next := range n.same {
			c.more(&cost, next, k)
		}
		var dearest scalarCost
		for _, next := range n.dynamic {
			var one scalarCost
			c.more(&one, next, k)
			dearest.base = max(dearest.base, one.base)
			dearest.texts, dearest.numbers = max(dearest.texts, one.texts), max(dearest.numbers, one.numbers)
		}
		c.add(&cost.base, dearest.base)
		c.add(&cost.texts, dearest.texts)
		c.add(&cost.numbers, dearest.numbers)
	}
	c.scalars[key] = cost
	return cost
}

func (c *computation) more(cost *scalarCost, n *node, k kind) {
	if c.over {
		return
	}
	one := c.scalar(n, k)
	c.add(&cost.base, one.base)
	c.add(&cost.texts, one.texts)
	c.add(&cost.numbers, one.numbers)
}

// visit is the cost of a schema before any of its keywords.
func (c *computation) visit(n *node) int64 {
	price := visitCost + int64(n.chain)/8 + c.location
	if len(n.dynamic) > 0 {
		price += 4 * c.location // visits all schemas on the path from the root
	}
	return price
}

// container is the cost of a list or an object. compute returns the cost of its parts.
func (c *computation) container(n *node, key part, compute func() int64) int64 {
	if known, ok := c.parts[key]; ok {
		if known == unknown { // the schema refers to itself for the same value
			c.over = true
		}
		return known
	}
	total := c.visit(n)
	if len(c.parts) > int(c.limit/visitCost) {
		c.over = true
		return total
	}
	c.parts[key] = unknown
	total += compute()
	c.parts[key] = total
	return total
}

// wholeCost is the cost of the keywords that check a whole list or object against other schemas.
func (c *computation) wholeCost(n *node, v any, length int) int64 {
	total := n.own
	if c.graph.open {
		c.add(&total, int64(length)*int64(6+len(n.same)))
	}
	for _, next := range n.same {
		c.add(&total, c.cost(next, v))
	}
	var dearest int64
	for _, next := range n.dynamic {
		dearest = max(dearest, c.cost(next, v))
	}
	c.add(&total, dearest)
	return total
}

func (c *computation) list(n *node, v []any) int64 {
	if n.types != 0 && n.types&list == 0 {
		return 0
	}
	total := c.wholeCost(n, v, len(v))
	if n.unique {
		c.add(&total, c.compared(v)*int64(min(len(v), 20)))
	}
	for i, e := range v {
		if c.over {
			break
		}
		if i < len(n.prefix) {
			c.add(&total, c.cost(n.prefix[i], e))
		} else {
			c.add(&total, c.cost(n.items, e))
		}
		c.add(&total, c.cost(n.contains, e))
		for _, next := range n.rest {
			c.add(&total, c.cost(next, e))
		}
	}
	return total
}

// compared is the cost of comparing or hashing all parts of a value.
func (c *computation) compared(v any) int64 {
	var total int64 = 2
	switch v := v.(type) {
	case string:
		total += int64(len(v)) / 64
	case []any:
		for _, e := range v {
			if !c.over {
				c.add(&total, c.compared(e))
			}
		}
	case map[string]any:
		for name, e := range v {
			if !c.over {
				c.add(&total, 4+int64(len(name))/64+c.compared(e))
			}
		}
	case nil, bool:
	default:
		total += comparedNumber * numberParts(v)
	}
	return total
}

func (c *computation) object(n *node, v map[string]any) int64 {
	if n.types != 0 && n.types&object == 0 {
		return 0
	}
	total := c.wholeCost(n, v, len(v))
	if n.closed {
		c.add(&total, 6*int64(len(v))) // members that may be missing are sorted for the error
	}
	c.add(&total, 3*int64(len(v)))
	for name, e := range v {
		if c.over {
			break
		}
		c.member(&total, n, name, e)
		for _, next := range n.dependent[name] {
			c.add(&total, c.cost(next, v))
		}
		if n.names != nil {
			c.add(&total, visitCost+c.cost(n.names, name))
		}
		for _, next := range n.rest {
			c.add(&total, c.cost(next, e))
		}
	}
	return total
}

func (c *computation) member(total *int64, n *node, name string, v any) {
	property, evaluated := n.properties[name]
	c.add(total, c.cost(property, v))
	for _, p := range n.patterns {
		c.add(total, 2+int64(len(name)+4)*p.weight/patternParts)
		if !c.over && p.name.MatchString(name) {
			evaluated = true
			c.add(total, c.cost(p.node, v))
		}
	}
	if !evaluated {
		c.add(total, c.cost(n.additional, v))
	}
}

// location returns the maximum length in bytes of the pointer to one part of a value.
func location(v any) int64 {
	const name = 16
	var longest int64
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			longest = max(longest, name+location(e))
		}
	case map[string]any:
		for key, e := range v {
			longest = max(longest, name+int64(len(key))+location(e))
		}
	}
	return longest
}
