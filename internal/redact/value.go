package redact

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
)

// quotedMark is the mark as a JSON value.
const quotedMark = `"` + Mark + `"`

// Value replaces the sensitive parts of a JSON value by marks, and returns the new value with the texts that were
// replaced. Where nothing is to be hidden, it returns the value itself without a copy. The rest of a changed value
// stays the same byte for byte. A value that is not JSON is hidden as a whole.
func (p *Policy) Value(at Location, value json.RawMessage, secrets *SecretSet) (shown json.RawMessage, found []string) {
	if len(value) == 0 {
		return value, nil
	}
	w := walker{in: value, secrets: secrets}
	if p.all {
		w.hide(0, len(value))
	} else if w.value(p.trees(at)); w.bad || w.space() != len(value) {
		w = walker{in: value, secrets: secrets}
		w.hide(0, len(value))
	}
	if w.out == nil {
		return value, nil
	}
	return append(w.out, value[w.copied:]...), w.found
}

// walker reads one JSON value once, from left to right.
type walker struct {
	in      []byte
	pos     int
	out     []byte // nil until something is replaced
	copied  int    // how much of in is in out
	secrets *SecretSet
	found   []string
	bad     bool
}

// space skips white space and returns the position.
func (w *walker) space() int {
	for w.pos < len(w.in) && (w.in[w.pos] == ' ' || w.in[w.pos] == '\n' || w.in[w.pos] == '\t' || w.in[w.pos] == '\r') {
		w.pos++
	}
	return w.pos
}

func (w *walker) peek() byte {
	if w.space(); w.pos < len(w.in) {
		return w.in[w.pos]
	}
	w.bad = true
	return 0
}

func (w *walker) value(trees []*tree) {
	for _, t := range trees {
		if t.end {
			start := w.space()
			w.skip()
			w.hide(start, w.pos)
			return
		}
	}
	start := w.space()
	switch w.peek() {
	case '{':
		w.object(trees)
	case '[':
		w.array(trees)
	case '"':
		w.text()
		if w.secrets.Any() {
			w.scrub(start)
		}
	default:
		w.scalar()
		if w.secrets.Any() && w.secrets.values[string(w.in[start:w.pos])] {
			w.replace(start, w.pos, quotedMark)
		}
	}
}

func (w *walker) object(trees []*tree) {
	w.pos++
	for first := true; !w.bad; first = false {
		if c := w.peek(); c == '}' {
			w.pos++
			return
		} else if !first {
			w.expect(',')
			w.space()
		}
		start := w.pos
		w.text()
		if w.bad {
			return
		}
		key := w.in[start+1 : w.pos-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			key = []byte(unquote(w.in[start:w.pos]))
		}
		if w.secrets.Any() {
			w.scrub(start)
		}
		w.peek()
		w.expect(':')
		if Named(key) && w.hasContent() {
			start := w.space()
			w.skip()
			w.hide(start, w.pos)
			continue
		}
		w.value(descend(trees, string(key)))
	}
}

func (w *walker) array(trees []*tree) {
	w.pos++
	for i := 0; !w.bad; i++ {
		if c := w.peek(); c == ']' {
			w.pos++
			return
		} else if i > 0 {
			w.expect(',')
		}
		if len(trees) == 0 {
			w.value(nil)
		} else {
			w.value(descend(trees, strconv.Itoa(i)))
		}
	}
}

func descend(trees []*tree, name string) []*tree {
	var next []*tree
	for _, t := range trees {
		if child := t.children[name]; child != nil {
			next = append(next, child)
		}
		if child := t.children["*"]; child != nil && name != "*" {
			next = append(next, child)
		}
	}
	return next
}

func (w *walker) expect(c byte) {
	if w.pos >= len(w.in) || w.in[w.pos] != c {
		w.bad = true
		return
	}
	w.pos++
}

// text skips a string.
func (w *walker) text() {
	w.expect('"')
	for ; w.pos < len(w.in); w.pos++ {
		switch w.in[w.pos] {
		case '\\':
			w.pos++
		case '"':
			w.pos++
			return
		}
	}
	w.pos, w.bad = len(w.in), true // a last backslash has passed the end
}

// scalar skips a number, true, false or null.
func (w *walker) scalar() {
	start := w.pos
	for ; w.pos < len(w.in); w.pos++ {
		switch w.in[w.pos] {
		case ',', '}', ']', ' ', '\n', '\t', '\r', ':', '"', '{', '[':
			w.bad = w.bad || w.pos == start
			return
		}
	}
	w.bad = w.bad || w.pos == start
}

// skip skips a whole value.
func (w *walker) skip() {
	for depth := 0; !w.bad; {
		switch w.peek() {
		case '{', '[':
			depth++
			w.pos++
		case '}', ']':
			depth--
			w.pos++
		case ',', ':':
			w.pos++
			continue
		case '"':
			w.text()
		default:
			w.scalar()
		}
		if depth <= 0 {
			w.bad = w.bad || depth < 0
			return
		}
	}
}

// hasContent reports whether the next value may hold a secret: null, true, false and empty values do not.
func (w *walker) hasContent() bool {
	switch w.peek() {
	case 'n', 't', 'f':
		return false
	}
	start := w.pos
	w.skip()
	value := w.in[start:w.pos]
	w.pos = start
	return len(bytes.Trim(value, "\"{}[] \n\t\r")) > 0
}

// hide replaces a value by the mark and records the texts in it. null and marks stay.
func (w *walker) hide(start, end int) {
	value := w.in[start:end]
	if w.bad || string(value) == "null" || string(value) == quotedMark {
		return
	}
	w.replace(start, end, quotedMark)
	w.found = append(w.found, leaves(value)...)
}

func (w *walker) replace(start, end int, with string) {
	w.out = append(append(w.out, w.in[w.copied:start]...), with...)
	w.copied = end
}

// scrub replaces the secrets inside a string.
func (w *walker) scrub(start int) {
	if w.bad {
		return
	}
	text := unquote(w.in[start:w.pos])
	if clean, changed := w.secrets.Text(text); changed {
		w.replace(start, w.pos, quote(clean))
	}
}

func unquote(token []byte) string {
	if len(token) >= 2 && bytes.IndexByte(token, '\\') < 0 {
		return string(token[1 : len(token)-1])
	}
	var text string
	if json.Unmarshal(token, &text) != nil {
		return string(token)
	}
	return text
}

func quote(text string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) //nolint:errchkjson // texts always encode
	return strings.TrimSuffix(b.String(), "\n")
}

// leaves returns the texts and numbers in a value. It omits names of members that look like ordinary names: they also
// occur in other values, where they must stay visible.
func leaves(value []byte) []string {
	var list []string
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	var open []byte // the objects and arrays around, as they begin
	name := false   // whether a name of a member is next
	for {
		token, err := decoder.Token()
		if err != nil {
			return list
		}
		switch token := token.(type) {
		case json.Delim:
			if token == '{' || token == '[' {
				open = append(open, byte(token))
			} else {
				open = open[:len(open)-1]
			}
			name = len(open) > 0 && open[len(open)-1] == '{'
			continue
		case string:
			if !name || !isName(token) {
				list = append(list, token)
			}
		case json.Number:
			list = append(list, token.String())
		}
		name = !name && len(open) > 0 && open[len(open)-1] == '{'
	}
}

// isName reports whether a text looks like the name of a field: letters, underscores and hyphens.
func isName(text string) bool {
	for _, c := range text {
		if !unicode.IsLetter(c) && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
