package languageservice

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/vocabulary"
)

// Location is where something is defined: a part of the text, or a file beside it.
type Location struct {
	Range Range
	// File is a path relative to the folder of the document; empty: the text itself.
	File string
}

// Definition returns where the task, the function or the part of use that the text at a position names is defined.
func (t *Text) Definition(pos dsl.Pos) (Location, bool) {
	n, inKey := t.find(t.offset(pos))
	if inKey {
		return Location{}, false
	}
	target := t.outline.target(n)
	if definition := t.named(n, target); definition != nil {
		return Location{Range: t.rangeOf(nameSpan(definition))}, true
	}
	if isFile(n.text) && (target == vocabulary.TargetFunctions || t.isResource(n)) {
		return Location{File: n.text}, true
	}
	return Location{}, false
}

// isFile reports whether a text is the path of a file beside a document.
func isFile(text string) bool {
	return text != "" && !strings.Contains(text, ":") && !strings.HasPrefix(text, "/") && !strings.Contains(text, "${") &&
		strings.Contains(text, ".")
}

// isResource reports whether a value is the URI of a resource.
func (t *Text) isResource(n *node) bool {
	for ; n != nil; n = n.parent {
		if n.name == "resource" || n.name == "source" {
			return true
		}
	}
	return false
}

// named returns the definition that a text names; nil if there is none.
func (t *Text) named(n *node, target vocabulary.Target) *node {
	for _, definition := range t.outline.definitions(n, target) {
		if label(definition) == n.text && n.text != "" {
			return definition
		}
	}
	return nil
}

// definitionAt returns the definition whose name is at a position, or that the text there names, and what kind it is.
func (t *Text) definitionAt(offset int) (*node, vocabulary.Target) {
	n, inKey := t.find(offset)
	if !inKey {
		target := t.outline.target(n)
		if section := n.parent; section != nil && n.shape == scalar && section.name == "secrets" &&
			section.parent == t.outline.root.member("use") && section.parent != nil {
			return n, vocabulary.TargetSecrets
		}
		return t.named(n, target), target
	}
	if section := t.outline.section(n); section != "" {
		return n, vocabulary.Target(section)
	}
	if t.outline.isTask(n) {
		return n, vocabulary.TargetTask
	}
	return nil, vocabulary.NoTarget
}

// References returns the places that name what is at a position, the definition included, in the order of the text.
func (t *Text) References(pos dsl.Pos) []Range {
	var out []Range
	for _, s := range t.references(t.offset(pos)) {
		out = append(out, t.rangeOf(s))
	}
	return out
}

func (t *Text) references(offset int) []span {
	definition, target := t.definitionAt(offset)
	if definition == nil {
		return nil
	}
	found := []span{nameSpan(definition)}
	walk(t.outline.root, func(n *node) {
		if t.outline.target(n) == target && n.text == label(definition) && t.named(n, target) == definition {
			found = append(found, span{n.start, n.end})
		}
	})
	if target == vocabulary.TargetSecrets {
		found = append(found, t.secretUses(label(definition))...)
	}
	slices.SortFunc(found, func(a, b span) int { return a.start - b.start })
	return found
}

// secretUses returns the places at which expressions name a secret.
func (t *Text) secretUses(name string) []span {
	const variable = "$secrets."
	var found []span
	for at := 0; ; {
		i := strings.Index(t.source[at:], variable+name)
		if i < 0 {
			return found
		}
		start := at + i + len(variable)
		at = start + len(name)
		if at == len(t.source) || !isWordByte(t.source[at]) {
			found = append(found, span{start, at})
		}
	}
}

// Renameable returns the range of the name at a position and the name, and false if nothing there can be renamed.
func (t *Text) Renameable(pos dsl.Pos) (Range, string, bool) {
	offset := t.offset(pos)
	definition, _ := t.definitionAt(offset)
	for _, s := range t.references(offset) {
		if s.has(offset) {
			return t.rangeOf(s), label(definition), true
		}
	}
	return Range{}, "", false
}

// Rename returns the edits that give the task, the function or the part of use at a position another name.
func (t *Text) Rename(pos dsl.Pos, name string) ([]Edit, error) {
	offset := t.offset(pos)
	definition, target := t.definitionAt(offset)
	switch {
	case definition == nil:
		return nil, errors.New("there is no task, function or part of use here")
	case strings.TrimSpace(name) == "" || strings.ContainsAny(name, "\n\r"):
		return nil, fmt.Errorf("%q is not a name", name)
	case target == vocabulary.TargetTask && slices.Contains(directives(), name):
		return nil, fmt.Errorf("a task cannot have the name of the directive %q", name)
	}
	others := t.outline.definitions(definition, target)
	if slices.ContainsFunc(others, func(n *node) bool { return n != definition && label(n) == name }) {
		return nil, fmt.Errorf("the name %q is already used", name)
	}
	var edits []Edit
	for _, s := range t.references(offset) {
		edits = append(edits, Edit{t.rangeOf(s), t.quoted(s, name)})
	}
	return edits, nil
}

// quoted returns a name with the quotes that the text at a place has, or that it needs.
func (t *Text) quoted(s span, name string) string {
	quote := byte(0)
	if s.start < len(t.source) && s.end > s.start {
		quote = t.source[s.start]
	}
	switch {
	case quote == '"':
		return fmt.Sprintf("%q", name)
	case quote == '\'' || needsQuotes(name):
		return "'" + strings.ReplaceAll(name, "'", "''") + "'"
	}
	return name
}

// needsQuotes reports whether a name would be read as something else without quotes.
func needsQuotes(name string) bool {
	plain := strings.IndexFunc(name, func(r rune) bool {
		return !strings.ContainsRune("-_./", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
	letter := name != "" && (name[0] >= 'a' && name[0] <= 'z' || name[0] >= 'A' && name[0] <= 'Z')
	words := []string{"true", "false", "null"}
	return !plain || !letter || slices.Contains(words, strings.ToLower(name))
}

// directives are the words that a then may have instead of the name of a task.
func directives() []string { return []string{"continue", "exit", "end"} }

// SymbolKind is the kind of a symbol.
type SymbolKind string

// The kinds of symbols.
const (
	SymbolTask       SymbolKind = "task"
	SymbolDefinition SymbolKind = "definition"
)

// Symbol is a task or a part of use, with those in it.
type Symbol struct {
	Name string
	// Detail is the kind of a task, or the section of use.
	Detail   string
	Kind     SymbolKind
	Range    Range // of the whole
	Selected Range // of the name
	Children []Symbol
}

// Symbols returns the tasks and the parts of use, in the order of the text.
func (t *Text) Symbols() []Symbol { return t.symbols(t.outline.root) }

func (t *Text) symbols(n *node) []Symbol {
	var out []Symbol
	for _, c := range n.children {
		inner := t.symbols(c)
		s := Symbol{Name: c.name, Range: t.rangeOf(span{c.keyStart, max(c.end, c.keyEnd)}),
			Selected: t.rangeOf(span{c.keyStart, c.keyEnd}), Children: inner}
		section := t.outline.section(c)
		switch {
		case c.name == "" || section == "" && !t.outline.isTask(c):
			out = append(out, inner...)
			continue
		case section != "":
			s.Kind, s.Detail = SymbolDefinition, section
		default:
			s.Kind, s.Detail = SymbolTask, t.kindOf(c)
		}
		out = append(out, s)
	}
	return out
}

// kindOf returns the key that selects the kind of a task.
func (t *Text) kindOf(task *node) string {
	types := t.outline.types[task]
	if len(types) == 1 && len(types[0].Keys) > 0 {
		return types[0].Keys[0].Name
	}
	return ""
}

// Folds returns the ranges of lines that can be folded: values that go over several lines, outermost first.
func (t *Text) Folds() []Range {
	var out []Range
	walk(t.outline.root, func(n *node) {
		start := n.start
		if n.name != "" {
			start = n.keyStart
		}
		if n == t.outline.root || t.line(start) == t.line(n.end) {
			return
		}
		s := t.rangeOf(span{start, len(strings.TrimRight(t.source[:n.end], " \t\r\n"))})
		if s.Start.Line < s.End.Line && (len(out) == 0 || out[len(out)-1] != s) {
			out = append(out, s)
		}
	})
	return out
}
