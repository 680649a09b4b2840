package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parseJSON reads the source if it is JSON. JSON has a reader of its own, because YAML parsers refuse some of it: long
// keys, escaped surrogate pairs, tabs.
func parseJSON(source []byte, limits Limits) (*Node, []Violation, bool) {
	if t := bytes.TrimLeft(source, " \t\r\n"); len(t) == 0 || t[0] != '{' || !utf8.Valid(source) || !json.Valid(source) {
		return nil, nil, false
	}
	r := &jsonReader{source: source, dec: json.NewDecoder(bytes.NewReader(source)), builder: builder{limits: limits},
		pos: Pos{1, 1}}
	r.dec.UseNumber()
	n := r.value("", 0)
	return r.result(n)
}

type jsonReader struct {
	builder
	source []byte
	dec    *json.Decoder
	offset int // of pos
	pos    Pos
}

func (r *jsonReader) result(n *Node) (*Node, []Violation, bool) {
	if r.stopped {
		n = nil
	}
	return n, r.violations, true
}

// trailingComma finds the first comma before a closing bracket, in a text that is JSON up to there.
func trailingComma(source []byte) []Violation {
	if t := bytes.TrimLeft(source, " \t\r\n"); len(t) == 0 || t[0] != '{' {
		return nil
	}
	var text json.RawMessage
	broken, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(source, &text))
	if !ok || broken.Offset < 1 || !strings.ContainsRune("]}", rune(source[broken.Offset-1])) {
		return nil
	}
	before := bytes.TrimRight(source[:broken.Offset-1], " \t\r\n")
	if !bytes.HasSuffix(before, []byte(",")) {
		return nil
	}
	return []Violation{{
		Kind: TrailingComma, Pos: position(source, len(before)-1), Suggestion: "remove the comma",
		Message: "JSON has no comma before a closing bracket: the document is read as YAML, and other programs will refuse " +
			"it",
	}}
}

// nextPosition moves to the start of the next token and returns its position.
func (r *jsonReader) nextPosition() Pos {
	target := int(r.dec.InputOffset())
	for target < len(r.source) && strings.IndexByte(" \t\r\n,:", r.source[target]) >= 0 {
		target++
	}
	for r.offset < target {
		c, size := utf8.DecodeRune(r.source[r.offset:])
		r.offset += size
		r.pos.Column++
		if c == '\n' {
			r.pos = Pos{r.pos.Line + 1, 1}
		}
	}
	return r.pos
}

func (r *jsonReader) value(pointer string, depth int) *Node {
	pos := r.nextPosition()
	token, err := r.dec.Token()
	if err != nil || !r.enter(pos, pointer, depth) {
		r.stopped = true
		return nil
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			return r.array(pos, pointer, depth)
		}
		return r.object(pos, pointer, depth)
	case json.Number:
		return r.number(pos, pointer, token.String())
	case string:
		return &Node{Kind: String, Scalar: token, Text: token, Pos: pos}
	case bool:
		return &Node{Kind: Bool, Scalar: token, Text: strconv.FormatBool(token), Pos: pos}
	}
	return &Node{Kind: Null, Text: "null", Pos: pos}
}

func (r *jsonReader) number(pos Pos, pointer, text string) *Node {
	v, ok := integer(text, 10)
	if strings.ContainsAny(text, ".eE") {
		f, err := strconv.ParseFloat(text, 64)
		v, ok = f, err == nil
	}
	if !ok {
		r.report(Violation{Kind: NotJSON, Pos: pos, Pointer: pointer,
			Message: fmt.Sprintf("the number %.40s is out of range", text)})
		return &Node{Kind: Null, Text: text, Pos: pos}
	}
	return &Node{Kind: Number, Scalar: v, Text: text, Pos: pos}
}

func (r *jsonReader) array(pos Pos, pointer string, depth int) *Node {
	n := &Node{Kind: Array, Pos: pos}
	for r.dec.More() && !r.stopped {
		n.Items = append(n.Items, r.value(pointer+"/"+strconv.Itoa(len(n.Items)), depth+1))
	}
	r.close()
	return n
}

func (r *jsonReader) object(pos Pos, pointer string, depth int) *Node {
	n := &Node{Kind: Object, Pos: pos}
	seen := make(map[string]Pos)
	for r.dec.More() && !r.stopped {
		at := r.nextPosition()
		token, err := r.dec.Token()
		key, ok := token.(string)
		if err != nil || !ok {
			r.stopped = true
			return n
		}
		child := pointer + "/" + Escape(key)
		value := r.value(child, depth+1)
		r.member(n, seen, Member{Key: key, Pos: at, Value: value}, child)
	}
	r.close()
	return n
}

// close reads the closing bracket; the text has been checked to be valid JSON.
func (r *jsonReader) close() {
	if r.stopped {
		return
	}
	if _, err := r.dec.Token(); err != nil {
		r.stopped = true
	}
}
