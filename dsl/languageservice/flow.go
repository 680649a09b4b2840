package languageservice

import "strings"

// flow reads a value in brackets. Brackets that are not closed end before a line whose column is not larger than that of
// the block around them.
func (o *outliner) flow(parent *node, around int) *node {
	n := &node{shape: sequence, parent: parent, start: o.pos, flow: true}
	closing := byte(']')
	if o.source[o.pos] == '{' {
		n.shape, closing = mapping, '}'
	}
	o.pos++
	if o.depth >= maxDepth {
		o.line()
		n.end = o.pos
		return n
	}
	o.depth++
	defer func() { o.depth-- }()
	for {
		n.end = o.pos
		if o.flowEnds(around) {
			return n
		}
		switch c := o.source[o.pos]; {
		case c == closing:
			o.pos++
			n.end = o.pos
			return n
		case c == '}' || c == ']': // of brackets around these
			return n
		case c == ',' || c == ':':
			o.pos++
		case n.shape == mapping:
			n.children = append(n.children, o.flowMember(n, around))
		default:
			n.children = append(n.children, o.flowItem(n, around))
		}
	}
}

// flowEnds skips blanks, and reports whether the brackets end without being closed.
func (o *outliner) flowEnds(around int) bool {
	before := o.pos
	if o.blank() {
		return true
	}
	return !o.sameLine(before, o.pos) && o.column(o.pos) <= around && strings.IndexByte("}]", o.source[o.pos]) < 0
}

// flowMember reads a key and its value.
func (o *outliner) flowMember(parent *node, around int) *node {
	start := o.pos
	text, end := o.flowText(":,{}[]")
	m := &node{parent: parent, bare: true, start: end, end: end}
	if !o.flowEnds(around) && o.source[o.pos] == ':' {
		o.pos++
		at := o.pos
		m = &node{parent: parent, start: at, end: at}
		if !o.flowEnds(around) && strings.IndexByte(",}]", o.source[o.pos]) < 0 {
			m = o.flowValue(parent, around)
		}
	}
	m.name, m.keyStart, m.keyEnd = text, start, end
	return m
}

// flowItem reads an item of a list, which may be a member without braces.
func (o *outliner) flowItem(parent *node, around int) *node {
	item := o.flowValue(parent, around)
	if item.shape != scalar || o.flowEnds(around) || o.source[o.pos] != ':' {
		return item
	}
	o.pos++
	single := &node{shape: mapping, parent: parent, start: item.start, end: o.pos, flow: true}
	value := &node{start: o.pos, end: o.pos}
	if !o.flowEnds(around) && strings.IndexByte(",}]", o.source[o.pos]) < 0 {
		value = o.flowValue(single, around)
	}
	value.parent, value.name, value.keyStart, value.keyEnd = single, item.text, item.start, item.end
	single.children, single.end = []*node{value}, max(single.end, value.end)
	return single
}

func (o *outliner) flowValue(parent *node, around int) *node {
	o.properties()
	if o.pos < len(o.source) && (o.source[o.pos] == '{' || o.source[o.pos] == '[') {
		return o.flow(parent, around)
	}
	start := o.pos
	text, end := o.flowText(",{}[]")
	return &node{parent: parent, start: start, end: end, text: text, flow: true}
}

// flowText reads a text in brackets up to one of the characters that end it. It moves by at least one character, unless
// the text ends.
func (o *outliner) flowText(ends string) (text string, end int) {
	start := o.pos
	if start >= len(o.source) {
		return "", start
	}
	if q := o.source[start]; q == '"' || q == '\'' {
		o.pos = o.quoteEnd(start, false)
		return unquote(o.source[start:o.pos]), o.pos
	}
	for o.pos < len(o.source) && !o.endsFlowText(ends) {
		o.pos++
	}
	if o.pos == start {
		o.pos++
	}
	raw := strings.TrimRight(o.source[start:o.pos], " \t\r")
	return raw, start + len(raw)
}

func (o *outliner) endsFlowText(ends string) bool {
	c := o.source[o.pos]
	if c == '\n' {
		return true
	}
	colon := c == ':' && (o.pos+1 == len(o.source) || strings.IndexByte(" \t\r\n,{}[]\"'", o.source[o.pos+1]) >= 0)
	return colon || c != ':' && strings.IndexByte(ends, c) >= 0
}
