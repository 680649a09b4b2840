package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

func parseYAML(source []byte, limits Limits) (*Node, []Violation) {
	if f, bad := encodingViolation(source); bad {
		return nil, []Violation{f}
	}
	var doc, more yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(withoutVersion(source)))
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0 {
		return nil, []Violation{{Kind: Syntax, Pos: Pos{1, 1}, Message: "the document is empty"}}
	}
	if err != nil {
		return nil, []Violation{diagnose(source, err)}
	}
	if err := dec.Decode(&more); err == nil {
		at := Pos{more.Line, more.Column}
		return nil, []Violation{{
			Kind: Syntax, Pos: at, Message: "a second document begins here", Suggestion: "put each workflow into its own file"}}
	} else if !errors.Is(err, io.EOF) {
		return nil, []Violation{diagnose(source, err)}
	}
	y := &yamlReader{builder: builder{limits: limits}, open: make(map[*yaml.Node]bool)}
	n := y.value(doc.Content[0], "", 0)
	if y.stopped {
		n = nil
	}
	return n, y.violations
}

// withoutVersion returns the source with a directive for YAML 1.1 in the place of one for 1.2, which the parser refuses
// although it reads both. Positions stay the same.
func withoutVersion(source []byte) []byte {
	const directive = "%YAML 1.2"
	start := 0
	for start < len(source) {
		line, _, _ := bytes.Cut(source[start:], []byte("\n"))
		text := bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff")))
		switch {
		case string(text) == directive:
			at := start + bytes.Index(line, []byte(directive)) + len(directive) - 1
			return slices.Concat(source[:at], []byte("1"), source[at+1:])
		case len(text) > 0 && text[0] != '#' && text[0] != '%':
			return source
		}
		start += len(line) + 1
	}
	return source
}

func encodingViolation(source []byte) (Violation, bool) {
	pos := Pos{1, 1}
	for i := 0; i < len(source); {
		r, size := utf8.DecodeRune(source[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return Violation{Kind: Syntax, Pos: pos, Message: fmt.Sprintf("byte 0x%02x is not valid UTF-8", source[i]),
				Suggestion: "save the file as UTF-8"}, true
		case r < 0x20 && r != '\n' && r != '\r' && r != '\t', r == 0x7f:
			return Violation{Kind: Syntax, Pos: pos, Message: fmt.Sprintf("the control character U+%04X is not allowed", r),
				Suggestion: "remove it"}, true
		}
		i += size
		pos.Column++
		if r == '\n' {
			pos = Pos{pos.Line + 1, 1}
		}
	}
	return Violation{}, false
}

type yamlReader struct {
	builder
	aliases int
	open    map[*yaml.Node]bool // anchors being expanded, to find those that contain themselves
}

func (y *yamlReader) value(n *yaml.Node, pointer string, depth int) *Node {
	pos := Pos{n.Line, n.Column}
	if !y.enter(pos, pointer, depth) {
		return &Node{Pos: pos}
	}
	switch n.Kind {
	case yaml.AliasNode:
		return y.alias(n, pointer, depth)
	case yaml.SequenceNode:
		out := &Node{Kind: Array, Pos: pos}
		y.checkTag(n, "!!seq", pointer)
		for i, e := range n.Content {
			out.Items = append(out.Items, y.value(e, pointer+"/"+strconv.Itoa(i), depth+1))
		}
		return out
	case yaml.MappingNode:
		y.checkTag(n, "!!map", pointer)
		return y.mapping(n, pointer, depth)
	}
	return y.scalar(n, pointer)
}

func (y *yamlReader) alias(n *yaml.Node, pointer string, depth int) *Node {
	pos := Pos{n.Line, n.Column}
	if y.aliases++; y.aliases > y.limits.Aliases {
		y.stop(Violation{Kind: Limit, Pos: pos, Pointer: pointer,
			Message: fmt.Sprintf("more than %d aliases", y.limits.Aliases), Suggestion: "use fewer aliases"})
		return &Node{Pos: pos}
	}
	if y.open[n.Alias] {
		y.stop(Violation{Kind: Syntax, Pos: pos, Pointer: pointer,
			Message: fmt.Sprintf("the anchor %q contains itself", n.Value), Suggestion: "remove the alias"})
		return &Node{Pos: pos}
	}
	y.open[n.Alias] = true
	defer delete(y.open, n.Alias)
	return y.value(n.Alias, pointer, depth)
}

func (y *yamlReader) mapping(n *yaml.Node, pointer string, depth int) *Node {
	out := &Node{Kind: Object, Pos: Pos{n.Line, n.Column}}
	seen := make(map[string]Pos)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content) && !y.stopped; i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind == yaml.ScalarNode && k.Value == "<<" && k.Style == 0 {
			merges = append(merges, v)
			continue
		}
		key, ok := y.key(k, pointer)
		if !ok {
			continue
		}
		child := pointer + "/" + Escape(key)
		y.member(out, seen, Member{Key: key, Pos: Pos{k.Line, k.Column}, Value: y.value(v, child, depth+1)}, child)
	}
	for _, m := range merges {
		y.merge(out, seen, m, pointer, depth)
	}
	return out
}

// key returns the text of a scalar as a key, as JSON has only string keys.
func (y *yamlReader) key(k *yaml.Node, pointer string) (string, bool) {
	if k.Kind == yaml.AliasNode && k.Alias.Kind == yaml.ScalarNode {
		return k.Alias.Value, true
	}
	if k.Kind != yaml.ScalarNode {
		y.report(Violation{Kind: NotJSON, Pos: Pos{k.Line, k.Column}, Pointer: pointer,
			Message: "a key must be a single word or string", Suggestion: "quote the key"})
		return "", false
	}
	return k.Value, true
}

// merge adds those members of a merge key's mappings that do not exist yet.
func (y *yamlReader) merge(out *Node, seen map[string]Pos, m *yaml.Node, pointer string, depth int) {
	n := y.value(m, pointer, depth+1)
	sources := []*Node{n}
	if n.Kind == Array {
		sources = n.Items
	}
	for _, s := range sources {
		if s.Kind != Object {
			y.report(Violation{Kind: NotJSON, Pos: s.Pos, Pointer: pointer,
				Message: "a merge key << takes mappings, got " + s.Kind.String(), Suggestion: "refer to an anchor of a mapping"})
			continue
		}
		for _, member := range s.Members {
			if _, ok := seen[member.Key]; !ok {
				seen[member.Key] = member.Pos
				out.Members = append(out.Members, member)
			}
		}
	}
}

func (y *yamlReader) checkTag(n *yaml.Node, want, pointer string) {
	if n.Style&yaml.TaggedStyle != 0 && n.ShortTag() != want {
		y.badTag(n, pointer)
	}
}

func (y *yamlReader) badTag(n *yaml.Node, pointer string) {
	y.report(Violation{
		Kind: NotJSON, Pos: Pos{n.Line, n.Column}, Pointer: pointer,
		Message: fmt.Sprintf("the tag %q has no meaning in JSON here", n.ShortTag()), Suggestion: "remove the tag",
	})
}

func (y *yamlReader) scalar(n *yaml.Node, pointer string) *Node {
	out := &Node{Kind: String, Scalar: n.Value, Text: n.Value, Pos: Pos{n.Line, n.Column}}
	resolve := n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	want := ""
	if n.Style&yaml.TaggedStyle != 0 {
		want = n.ShortTag()
		if want == "!!str" || want == "!" {
			return out
		}
		resolve = true
	}
	if !resolve {
		return out
	}
	var ok bool
	if out.Kind, out.Scalar, ok = resolveScalar(n.Value); !ok {
		y.report(Violation{
			Kind: NotJSON, Pos: out.Pos, Pointer: pointer,
			Message: fmt.Sprintf("%.40s is not a number JSON can hold", n.Value), Suggestion: "quote it to make it a string",
		})
		return out
	}
	if want != "" && !matchesTag(want, out) {
		y.badTag(n, pointer)
	}
	return out
}

func matchesTag(tag string, n *Node) bool {
	switch tag {
	case "!!null":
		return n.Kind == Null
	case "!!bool":
		return n.Kind == Bool
	case "!!int", "!!float":
		return n.Kind == Number
	}
	return false
}

// resolveScalar applies the core schema of YAML 1.2 to a plain scalar. It fails for numbers that JSON cannot represent.
func resolveScalar(s string) (Kind, any, bool) {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return Null, nil, true
	case "true", "True", "TRUE":
		return Bool, true, true
	case "false", "False", "FALSE":
		return Bool, false, true
	case ".nan", ".NaN", ".NAN":
		return Null, nil, false
	}
	unsigned := strings.TrimLeft(s[:1], "+-") + s[1:]
	switch unsigned {
	case ".inf", ".Inf", ".INF":
		return Null, nil, false
	}
	if !numberLike(unsigned) {
		return String, s, true
	}
	if v, isInt, ok := resolveInteger(s, unsigned); isInt {
		return Number, v, ok
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) {
		return Null, nil, false
	}
	return Number, f, true
}

func resolveInteger(s, unsigned string) (v any, isInt, ok bool) {
	switch {
	case strings.HasPrefix(s, "0o"):
		v, ok = integer(s[2:], 8)
		return v, true, ok
	case strings.HasPrefix(s, "0x"):
		v, ok = integer(s[2:], 16)
		return v, true, ok
	case strings.Trim(unsigned, "0123456789") == "":
		v, ok = integer(strings.TrimPrefix(s, "+"), 10)
		return v, true, ok
	}
	return nil, false, false
}

// numberLike reports whether text without a sign has the form of a YAML 1.2 number.
func numberLike(s string) bool {
	if digits, ok := strings.CutPrefix(s, "0o"); ok {
		return digits != "" && strings.Trim(digits, "01234567") == ""
	}
	if digits, ok := strings.CutPrefix(s, "0x"); ok {
		return digits != "" && strings.Trim(digits, "0123456789abcdefABCDEF") == ""
	}
	mantissa, exponent, hasExponent := strings.Cut(strings.ToLower(s), "e")
	if hasExponent {
		digits := strings.TrimLeft(exponent, "+-")
		if len(exponent)-len(digits) > 1 || digits == "" || strings.Trim(digits, "0123456789") != "" {
			return false
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	return whole+fraction != "" && strings.Trim(whole+fraction, "0123456789") == ""
}
