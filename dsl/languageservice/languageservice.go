// Package languageservice answers what editors ask about the text of a workflow: its errors and their fixes, what may be
// written at a position, what the text there means and where it is defined, its symbols, and the edits of a rename.
//
//	text := languageservice.New().Open(source)
//	for _, c := range text.Complete(dsl.Pos{Line: 4, Column: 7}) {
//		fmt.Println(c.Label, c.Doc)
//	}
//
// It works on every text, also on one that is being typed and is not YAML: positions come from an outline that is read
// line by line, errors and layout from packages dsl and docformat, keys from package vocabulary. It reads no files.
package languageservice

import (
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/docformat"
	"github.com/signalbox-dev/signalbox/dsl/vocabulary"
)

// Service is immutable and safe for concurrent use.
type Service struct {
	vocabulary *vocabulary.Vocabulary
	builtins   []Completion
}

// New returns a service.
func New() *Service { return &Service{vocabulary: vocabulary.New(), builtins: builtins()} }

// Text is the text of a document at one moment. It is not safe for concurrent use.
type Text struct {
	service *Service
	source  string
	lines   []int // offsets of the beginnings of lines
	counts  []int // numbers of characters before each block, so that positions in long lines are found quickly
	outline *typed
}

// Open returns a text for questions about it. A text over the size limit of documents is read up to there.
func (s *Service) Open(source string) *Text {
	if most := dsl.DefaultLimits().MaxBytes; len(source) > most {
		source = strings.ToValidUTF8(source[:most], "")
	}
	t := &Text{service: s, source: source, lines: []int{0}}
	for i := range len(source) {
		if source[i] == '\n' {
			t.lines = append(t.lines, i+1)
		}
	}
	for at := 0; at <= len(source); at += block {
		before := 0
		if at > 0 {
			before = t.counts[len(t.counts)-1] + runeStarts(source[at-block:at])
		}
		t.counts = append(t.counts, before)
	}
	t.outline = typesOf(s.vocabulary, outline(source))
	return t
}

// Range is a part of a text, without the character at End.
type Range struct{ Start, End dsl.Pos }

// Edit is the replacement of a part of a text.
type Edit struct {
	Range Range
	Text  string
}

// span is a part of a text by offsets.
type span struct{ start, end int }

func (s span) has(offset int) bool { return s.start <= offset && offset <= s.end }

// offset returns the offset of a position. A position outside of the text becomes the nearest one inside.
func (t *Text) offset(pos dsl.Pos) int {
	line := min(max(pos.Line, 1), len(t.lines)) - 1
	offset, end := t.lines[line], len(t.source)
	if line+1 < len(t.lines) {
		end = t.lines[line+1] - 1
	}
	for column := 1; column < pos.Column && offset < end; column++ {
		_, size := utf8.DecodeRuneInString(t.source[offset:end])
		offset += size
	}
	return offset
}

// pos returns the position of an offset.
func (t *Text) pos(offset int) dsl.Pos {
	offset = min(max(offset, 0), len(t.source))
	line := t.line(offset)
	return dsl.Pos{Line: line, Column: 1 + t.characters(offset) - t.characters(t.lines[line-1])}
}

// line returns the number of the line of an offset.
func (t *Text) line(offset int) int { return sort.SearchInts(t.lines, offset+1) }

// block is the number of bytes between two counts of characters.
const block = 1 << 10

// characters returns the number of characters before an offset.
func (t *Text) characters(offset int) int {
	return t.counts[offset/block] + runeStarts(t.source[offset/block*block:offset])
}

// runeStarts returns the number of characters that begin in a part of a text.
func runeStarts(part string) int {
	n := 0
	for i := range len(part) {
		if utf8.RuneStart(part[i]) {
			n++
		}
	}
	return n
}

func (t *Text) rangeOf(s span) Range { return Range{t.pos(s.start), t.pos(s.end)} }

// End returns the position after the last character.
func (t *Text) End() dsl.Pos { return t.pos(len(t.source)) }

// IsWorkflow reports whether the text has a key by which a workflow is recognized, or nothing yet.
func (t *Text) IsWorkflow() bool {
	root := t.outline.root
	return len(root.children) == 0 || root.Has("document") || root.Has("do") || root.Has("use")
}

// Format returns the edit that lays out the text, and false if nothing changes. It fails for a text that is neither YAML
// nor JSON.
func (t *Text) Format() (Edit, bool, error) {
	formatted, err := docformat.Format([]byte(t.source))
	if err != nil {
		return Edit{}, false, err
	}
	if string(formatted) == t.source {
		return Edit{}, false, nil
	}
	return Edit{Range{dsl.Pos{Line: 1, Column: 1}, t.End()}, string(formatted)}, true, nil
}

// find returns the innermost node whose key or value has an offset, and whether it is in the key.
func (t *Text) find(offset int) (n *node, inKey bool) {
	n = t.outline.root
	for {
		next := (*node)(nil)
		for _, c := range n.children {
			key := span{c.keyStart, c.keyEnd}
			if c.name != "" && key.has(offset) {
				return c, true
			}
			if (span{c.start, c.end}).has(offset) {
				next = c
			}
		}
		if next == nil {
			return n, false
		}
		n = next
	}
}

// at returns the node at a JSON pointer, or the innermost one on the way to it. exact reports that it is the pointer's.
func (t *Text) at(pointer string) (n *node, exact bool) {
	n = t.outline.root
	for _, part := range strings.Split(pointer, "/")[1:] {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		next := n.member(part)
		if n.shape == sequence {
			next = item(n, part)
		}
		if next == nil {
			return n, false
		}
		n = next
	}
	return n, true
}

func item(n *node, index string) *node {
	i := 0
	for _, c := range index {
		if c < '0' || c > '9' || i > len(n.children) {
			return nil
		}
		i = 10*i + int(c-'0')
	}
	if index == "" || i >= len(n.children) {
		return nil
	}
	return n.children[i]
}
