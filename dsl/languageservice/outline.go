package languageservice

import (
	"strconv"
	"strings"
)

// shape is the shape of a node.
type shape int

const (
	scalar   shape = iota // also a value that is missing
	mapping               // of members
	sequence              // of items
)

// node is a value in the outline of a text. The outline exists for every text, also while it is typed and is not YAML.
type node struct {
	shape      shape
	start, end int // of the value, as offsets; equal for a value that is missing

	// name is the key of a member, and keyStart and keyEnd its position. They are zero for items and the root.
	name             string
	keyStart, keyEnd int
	// bare reports that the member has a key without a colon.
	bare bool

	text     string // of a scalar, without quotes
	block    bool   // a scalar in the style | or >
	flow     bool   // in brackets
	parent   *node
	children []*node
}

// member returns the value of a key; nil if there is none.
func (n *node) member(name string) *node {
	if n == nil || n.shape != mapping {
		return nil
	}
	for _, c := range n.children {
		if c.name == name {
			return c
		}
	}
	return nil
}

// Has implements vocabulary.Object.
func (n *node) Has(key string) bool { return n.member(key) != nil }

// Text implements vocabulary.Object. A text that is being completed is unknown.
func (n *node) Text(key string) string {
	if m := n.member(key); m != nil && m.shape == scalar && !strings.Contains(m.text, marker) {
		return m.text
	}
	return ""
}

// maxDepth limits the nesting of an outline. What is nested deeper is one scalar.
const maxDepth = 200

// outliner reads the outline of a text. It accepts every text: a line that is no YAML becomes a key without a value, or
// a scalar, and the lines after it are read as if it were not there.
type outliner struct {
	source string
	pos    int
	depth  int
}

func outline(source string) *node {
	o := &outliner{source: source}
	root := &node{shape: mapping}
	for {
		o.skipMarkers()
		before := o.pos
		if o.blank() {
			break
		}
		part := o.value(root, 0, -1)
		if part == nil || o.pos == before {
			o.line() // a line that fits nowhere
			continue
		}
		if part.shape == scalar {
			part = &node{shape: mapping, start: part.start, end: part.end, children: []*node{{
				bare: true, name: part.text, keyStart: part.start, keyEnd: part.end, start: part.end, end: part.end}}}
		}
		switch {
		case len(root.children) == 0:
			*root = *part
		case root.shape == part.shape:
			root.children = append(root.children, part.children...)
			root.end = part.end
		}
		root.parent = nil
		for _, c := range part.children {
			c.parent = root
		}
	}
	return root
}

func adopt(n *node) {
	for _, c := range n.children {
		c.parent = n
	}
}

// skipMarkers skips directives and the marks of documents.
func (o *outliner) skipMarkers() {
	for !o.blank() && o.column(o.pos) == 0 {
		rest := o.source[o.pos:]
		if !strings.HasPrefix(rest, "---") && !strings.HasPrefix(rest, "...") && rest[0] != '%' {
			return
		}
		o.line()
	}
}

// blank skips space, line breaks and comments, and reports whether the text ends there.
func (o *outliner) blank() bool {
	for o.pos < len(o.source) {
		switch c := o.source[o.pos]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			o.pos++
		case c == '#' && (o.pos == 0 || strings.IndexByte(" \t\r\n", o.source[o.pos-1]) >= 0):
			o.line()
		default:
			return false
		}
	}
	return true
}

// line skips the rest of the line.
func (o *outliner) line() {
	end := strings.IndexByte(o.source[o.pos:], '\n')
	if end < 0 {
		o.pos = len(o.source)
		return
	}
	o.pos += end + 1
}

// column returns the number of bytes before an offset in its line.
func (o *outliner) column(offset int) int {
	return offset - (strings.LastIndexByte(o.source[:offset], '\n') + 1)
}

func (o *outliner) sameLine(from, to int) bool { return !strings.Contains(o.source[from:to], "\n") }

// value reads the next value if its column is at least the given one; otherwise it returns nil. around is the column of
// the block around it, which ends brackets that are not closed.
func (o *outliner) value(parent *node, column, around int) *node {
	if o.blank() || o.column(o.pos) < column {
		return nil
	}
	if o.depth++; o.depth > maxDepth {
		o.depth--
		n := &node{parent: parent, start: o.pos, text: o.source[o.pos:min(len(o.source), o.pos+1)]}
		o.line()
		n.end = o.pos
		return n
	}
	defer func() { o.depth-- }()
	at := o.column(o.pos)
	switch {
	case o.isItem():
		return o.items(parent, at)
	case o.source[o.pos] == '{' || o.source[o.pos] == '[':
		return o.flow(parent, around)
	}
	if _, _, ok := o.key(); ok {
		return o.members(parent, at)
	}
	start := o.pos
	n := o.scalar(parent, at)
	if !o.blank() && o.column(o.pos) == at && !o.isItem() {
		if _, _, ok := o.key(); ok { // a key without a colon, before others
			o.pos = start
			return o.members(parent, at)
		}
	}
	return n
}

// isItem reports whether an item of a sequence begins here.
func (o *outliner) isItem() bool {
	return o.source[o.pos] == '-' && (o.pos+1 == len(o.source) || strings.IndexByte(" \t\r\n", o.source[o.pos+1]) >= 0)
}

// items reads the items of a block sequence.
func (o *outliner) items(parent *node, column int) *node {
	n := &node{shape: sequence, parent: parent, start: o.pos}
	for !o.blank() && o.column(o.pos) == column && o.isItem() {
		o.pos++
		at := o.pos
		item := o.value(n, column+1, column)
		if item == nil {
			item = &node{parent: n, start: at, end: at}
		}
		n.children = append(n.children, item)
		n.end = item.end
	}
	n.end = max(n.end, n.start)
	return n
}

// key returns the end of the key that begins here, and the offset after its colon.
func (o *outliner) key() (end, after int, ok bool) {
	i := o.pos
	if q := o.source[i]; q == '"' || q == '\'' {
		i = o.quoteEnd(i, true)
	} else {
		for i < len(o.source) && o.source[i] != '\n' {
			if o.source[i] == ':' && (i+1 == len(o.source) || strings.IndexByte(" \t\r\n", o.source[i+1]) >= 0) {
				break
			}
			if o.source[i] == '#' && o.source[i-1] == ' ' {
				return 0, 0, false
			}
			i++
		}
	}
	end = i
	for i < len(o.source) && o.source[i] == ' ' {
		i++
	}
	if i >= len(o.source) || o.source[i] != ':' || i+1 < len(o.source) && strings.IndexByte(" \t\r\n", o.source[i+1]) < 0 {
		return 0, 0, false
	}
	return end, i + 1, true
}

// quoteEnd returns the offset after a quoted text; at the end of its line if it is not closed, or may not go on.
func (o *outliner) quoteEnd(start int, oneLine bool) int {
	quote, firstLine := o.source[start], -1
	for i := start + 1; i < len(o.source); i++ {
		switch c := o.source[i]; {
		case c == '\n' && firstLine < 0:
			if firstLine = i; oneLine {
				return i
			}
		case c == '\\' && quote == '"':
			i++
		case c == quote && quote == '\'' && i+1 < len(o.source) && o.source[i+1] == '\'':
			i++
		case c == quote:
			return i + 1
		}
	}
	if firstLine >= 0 {
		return firstLine
	}
	return len(o.source)
}

// members reads the members of a block mapping.
func (o *outliner) members(parent *node, column int) *node {
	n := &node{shape: mapping, parent: parent, start: o.pos, end: o.pos}
	for !o.blank() && o.column(o.pos) >= column {
		at := o.column(o.pos)
		if at > column { // a line that is indented too far
			if len(n.children) == 0 {
				break
			}
			o.stray(n, column)
			n.end = max(n.end, o.pos)
			continue
		}
		if o.isItem() {
			break
		}
		start := o.pos
		end, after, ok := o.key()
		m := &node{parent: n, keyStart: start}
		if !ok {
			m.bare, m.keyEnd = true, o.lineEnd()
			m.name = unquote(o.source[start:m.keyEnd])
			m.start, m.end = m.keyEnd, m.keyEnd
			o.pos = m.keyEnd
		} else {
			o.pos = after
			m = o.memberValue(n, column, after)
			m.name, m.keyStart, m.keyEnd = unquote(o.source[start:end]), start, end
		}
		n.children = append(n.children, m)
		n.end = max(n.end, m.end)
	}
	return n
}

// stray reads a value that follows the last member without belonging to it by its form. It belongs to the member if that
// has no value, or one of the same form; a text becomes a key without a colon.
func (o *outliner) stray(n *node, column int) {
	m := n.children[len(n.children)-1]
	part := o.value(m, column+1, column)
	if part == nil {
		o.line()
		return
	}
	switch {
	case m.shape == scalar && m.start == m.end, m.shape == scalar && part.shape != scalar:
		m.shape, m.start, m.end, m.children, m.text, m.flow = part.shape, part.start, part.end, part.children, part.text,
			part.flow
		adopt(m)
	case part.shape == scalar:
		n.children = append(n.children, &node{parent: n, bare: true, name: part.text, keyStart: part.start, keyEnd: part.end,
			start: part.end, end: part.end})
	case m.shape == part.shape:
		m.children, m.end = append(m.children, part.children...), max(m.end, part.end)
		adopt(m)
	}
}

// lineEnd returns the end of what the line has, without a comment and the space before it.
func (o *outliner) lineEnd() int {
	end := o.pos
	for end < len(o.source) && o.source[end] != '\n' && (o.source[end] != '#' || end > 0 && o.source[end-1] != ' ') {
		end++
	}
	return o.pos + len(strings.TrimRight(o.source[o.pos:end], " \t\r"))
}

// memberValue reads the value after the colon of a key.
func (o *outliner) memberValue(parent *node, column, after int) *node {
	o.properties()
	missing := &node{parent: parent, start: min(after, len(o.source)), end: min(after, len(o.source))}
	before := o.pos
	if o.blank() {
		return missing
	}
	if o.sameLine(before, o.pos) && o.isItem() {
		return o.scalar(parent, column) // a hyphen is no item here
	}
	if !o.sameLine(before, o.pos) {
		least := column + 1
		if o.column(o.pos) == column && o.isItem() {
			least = column
		}
		if v := o.value(parent, least, column); v != nil {
			return v
		}
		return missing
	}
	switch o.source[o.pos] {
	case '{', '[':
		return o.flow(parent, column)
	case '|', '>':
		return o.blockScalar(parent, column)
	}
	return o.scalar(parent, column)
}

// properties skips the anchor and the tag of a value.
func (o *outliner) properties() {
	for o.pos < len(o.source) {
		switch o.source[o.pos] {
		case ' ', '\t':
			o.pos++
			continue
		case '&', '!':
			for o.pos < len(o.source) && strings.IndexByte(" \t\r\n", o.source[o.pos]) < 0 {
				o.pos++
			}
			continue
		}
		return
	}
}

// blockScalar reads a text in the style | or >, whose lines have a larger column.
func (o *outliner) blockScalar(parent *node, column int) *node {
	n := &node{parent: parent, start: o.pos, block: true}
	o.line()
	body := o.pos
	n.end = o.pos
	for o.pos < len(o.source) {
		start := o.pos
		indent := start
		for indent < len(o.source) && o.source[indent] == ' ' {
			indent++
		}
		if indent < len(o.source) && o.source[indent] != '\n' && o.source[indent] != '\r' && indent-start <= column {
			break
		}
		o.line()
		if strings.TrimSpace(o.source[start:o.pos]) != "" {
			n.end = o.pos
		}
	}
	n.text = o.source[min(body, n.end):n.end]
	return n
}

// scalar reads a quoted or plain text. A plain one goes on in lines with a larger column that are no keys.
func (o *outliner) scalar(parent *node, column int) *node {
	n := &node{parent: parent, start: o.pos}
	if q := o.source[o.pos]; q == '"' || q == '\'' {
		o.pos = o.quoteEnd(o.pos, false)
		n.end = o.pos
		n.text = unquote(o.source[n.start:n.end])
		o.pos = max(o.pos, o.lineEnd())
		return n
	}
	for {
		n.end = max(o.lineEnd(), o.pos)
		o.pos = n.end
		if o.blank() || o.column(o.pos) <= column || o.isItem() || strings.IndexByte("{[", o.source[o.pos]) >= 0 {
			break
		}
		if _, _, isKey := o.key(); isKey {
			break
		}
	}
	n.text = strings.Join(strings.Fields(o.source[n.start:n.end]), " ")
	if n.end == n.start { // a character that begins no text
		o.pos, n.end = min(len(o.source), n.start+1), min(len(o.source), n.start+1)
	}
	return n
}

// unquote returns a scalar without its quotes.
func unquote(raw string) string {
	switch {
	case len(raw) > 1 && raw[0] == '\'' && raw[len(raw)-1] == '\'':
		return strings.ReplaceAll(raw[1:len(raw)-1], "''", "'")
	case len(raw) > 1 && raw[0] == '"' && raw[len(raw)-1] == '"':
		if text, err := strconv.Unquote(raw); err == nil {
			return text
		}
		return raw[1 : len(raw)-1]
	}
	return strings.TrimLeft(strings.TrimSpace(raw), `"'`)
}
