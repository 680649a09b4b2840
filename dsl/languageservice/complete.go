package languageservice

import (
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/vocabulary"
)

// CompletionKind is the kind of a completion.
type CompletionKind string

// The kinds of completions.
const (
	CompleteKey       CompletionKind = "key"
	CompleteValue     CompletionKind = "value"
	CompleteReference CompletionKind = "reference"
	CompleteVariable  CompletionKind = "variable"
	CompleteFunction  CompletionKind = "function"
)

// Completion is what may be written at a position.
type Completion struct {
	Label  string
	Kind   CompletionKind
	Detail string // one line
	Doc    string // Markdown
	// Edit replaces what is written already.
	Edit Edit
}

// marker stands at the position of a completion while the outline is read.
const marker = "zzcursorzz"

// Complete returns what may be written at a position, the most probable first.
func (t *Text) Complete(pos dsl.Pos) []Completion {
	at := t.offset(pos)
	marked := t.service.Open(t.source[:at] + marker + t.source[at:])
	n, inKey := marked.find(at)
	c := completer{text: t, marked: marked, at: at, before: t.source[:at]}
	if !inKey && n.shape == scalar {
		if source, ok := marked.expressionAt(n, at); ok {
			return c.expression(n, source)
		}
	}
	switch {
	case inKey && strings.Contains(n.name, marker):
		return c.keys(n.parent, n, marked.outline.types[n.parent])
	case n.shape == scalar && n.start <= at && strings.Contains(marked.source[n.start:n.end], marker):
		return c.values(n)
	}
	return nil
}

// completer completes at one position.
type completer struct {
	text, marked *Text
	at           int
	before       string
}

// word returns the part of the text before the position that the completion replaces: the letters that are accepted.
func (c *completer) word(accept string) span {
	start := c.at
	for start > 0 && (isWordByte(c.before[start-1]) || strings.IndexByte(accept, c.before[start-1]) >= 0) {
		start--
	}
	return span{start, c.at}
}

func (c *completer) completion(kind CompletionKind, replaced span, label, insert, detail, doc string) Completion {
	return Completion{Label: label, Kind: kind, Detail: detail, Doc: doc,
		Edit: Edit{Range: c.text.rangeOf(replaced), Text: insert}}
}

// keys returns the keys that an object of one of these types may have besides those that it has. written is the member
// that is being written; nil if there is none.
func (c *completer) keys(object, written *node, types []*vocabulary.Type) []Completion {
	replaced := c.word("-.")
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	colon := strings.HasPrefix(strings.TrimLeft(c.text.source[c.at:], letters), ":")
	var required, others []Completion
	seen := map[string]bool{}
	for _, t := range types {
		for i, key := range t.Keys {
			if m := object.member(key.Name); m != nil && m != written || seen[key.Name] || c.excluded(t, object, key.Name) ||
				i > 0 && t.Keys[0].Required && !inAll(types, key.Name) {
				continue
			}
			seen[key.Name] = true
			insert, detail := key.Name, ""
			if !colon {
				insert += ": "
			}
			if key.Required {
				detail = "required"
			}
			one := c.completion(CompleteKey, replaced, key.Name, insert, detail, key.Doc)
			if key.Required {
				required = append(required, one)
			} else {
				others = append(others, one)
			}
		}
	}
	return append(required, others...)
}

// inAll reports whether all types have a key. Of a task whose kind is open, the other keys are those of one kind only.
func inAll(types []*vocabulary.Type, key string) bool {
	return !slices.ContainsFunc(types, func(t *vocabulary.Type) bool { return t.Key(key) == nil })
}

// excluded reports whether an object has another key that excludes one.
func (c *completer) excluded(t *vocabulary.Type, object *node, key string) bool {
	return slices.Contains(t.OneOf, key) && slices.ContainsFunc(t.OneOf, func(other string) bool {
		return other != key && object.Has(other)
	})
}

// values returns the texts that a value may be, or the keys of the object that may be in its place.
func (c *completer) values(n *node) []Completion {
	var out []Completion
	var structures []*vocabulary.Type
	replaced := c.word("-./")
	add := func(kind CompletionKind, label, detail, doc string) {
		if !slices.ContainsFunc(out, func(o Completion) bool { return o.Label == label }) {
			out = append(out, c.completion(kind, replaced, label, label, detail, doc))
		}
	}
	for _, t := range c.marked.outline.types[n] {
		for _, word := range t.Words {
			add(CompleteValue, word, "", "")
		}
		switch t.Form {
		case vocabulary.Boolean:
			add(CompleteValue, "true", "", "")
			add(CompleteValue, "false", "", "")
		case vocabulary.Structure:
			structures = append(structures, t)
		case vocabulary.Any, vocabulary.Text, vocabulary.Expression, vocabulary.Wrapped, vocabulary.Integer,
			vocabulary.Map, vocabulary.List, vocabulary.Named, vocabulary.Choice, vocabulary.Variant:
		}
		c.references(n, t.Target, add)
	}
	if c.onOwnLine(n) {
		out = append(out, c.keys(&node{shape: mapping}, nil, structures)...)
	}
	return out
}

// onOwnLine reports whether a value is not in the line of its key, so that it may become an object.
func (c *completer) onOwnLine(n *node) bool {
	return n.name == "" || strings.Contains(c.marked.source[n.keyEnd:n.start], "\n")
}

// references adds what a text may name.
func (c *completer) references(n *node, target vocabulary.Target,
	add func(kind CompletionKind, label, detail, doc string)) {
	if target == vocabulary.NoTarget {
		return
	}
	o := c.marked.outline
	if target == vocabulary.TargetTask {
		add(CompleteValue, "continue", "the next task of the list", "")
		add(CompleteValue, "exit", "leave the list", "")
		add(CompleteValue, "end", "end the workflow", "")
	}
	for _, d := range o.definitions(n, target) {
		if name := label(d); name != "" && !strings.Contains(name, marker) && !isInside(n, d) {
			add(CompleteReference, name, describe(c.marked, d, target), "")
		}
	}
}

func isInside(n, around *node) bool {
	for ; n != nil; n = n.parent {
		if n == around {
			return true
		}
	}
	return false
}

// describe returns one line about a definition.
func describe(t *Text, d *node, target vocabulary.Target) string {
	if target == vocabulary.TargetTask {
		return "task " + t.kindOf(d)
	}
	return "use." + string(target)
}

// expression returns what may be written in an expression. source is the part of it before the position.
func (c *completer) expression(n *node, source string) []Completion {
	if strings.HasSuffix(source[:len(source)-len(trailingWord(source))], "$secrets.") {
		var out []Completion
		for _, d := range c.marked.outline.definitions(n, vocabulary.TargetSecrets) {
			out = append(out, c.completion(CompleteReference, c.word(""), label(d), label(d), "use.secrets", ""))
		}
		return out
	}
	word := trailingWord(source)
	rest := source[:len(source)-len(word)]
	switch {
	case strings.HasSuffix(rest, "$"):
		return c.variables(n, c.word("$"))
	case strings.HasSuffix(rest, "."), insideText(rest):
		return nil
	}
	replaced := c.word("@")
	out := c.variables(n, replaced)
	for _, b := range c.text.service.builtins {
		if strings.HasSuffix(rest, "@") == strings.HasPrefix(b.Label, "@") {
			b.Edit.Range = c.text.rangeOf(replaced)
			out = append(out, b)
		}
	}
	return out
}

func (c *completer) variables(n *node, replaced span) []Completion {
	var out []Completion
	for _, name := range c.marked.variablesAt(n) {
		out = append(out, c.completion(CompleteVariable, replaced, "$"+name, "$"+name, "", variableDoc(name)))
	}
	return out
}

func trailingWord(source string) string {
	start := len(source)
	for start > 0 && isWordByte(source[start-1]) {
		start--
	}
	return source[start:]
}

// insideText reports whether an expression ends within a text in quotes.
func insideText(source string) bool {
	inside := false
	for i := 0; i < len(source); i++ {
		switch {
		case source[i] == '\\' && inside:
			i++
		case source[i] == '"':
			inside = !inside
		}
	}
	return inside
}

// expressionAt returns the part of an expression before an offset, if there is one around the offset.
func (t *Text) expressionAt(n *node, at int) (string, bool) {
	raw := t.source[n.start:min(max(at, n.start), n.end)]
	if n.block {
		_, raw, _ = strings.Cut(raw, "\n")
	}
	body := strings.TrimLeft(raw, " \t\r\n'\"")
	if inner, wrapped := strings.CutPrefix(body, "${"); wrapped {
		return inner, true
	}
	for _, of := range t.outline.types[n] {
		if of.Form == vocabulary.Expression {
			return body, true
		}
	}
	return "", false
}

// variablesAt returns the variables that an expression in a value may use.
func (t *Text) variablesAt(n *node) []string {
	var defined []string
	key, secrets := "", false
	for at := n; at != nil; at = at.parent {
		if !t.outline.isTask(at) {
			defined = append(defined, scopeOf(at)...)
			secrets = secrets || at.name == "with" && at.parent.Has("call")
			if at.name != "" && (at.name != "foreach" || key != "output" && key != "export") {
				key = at.name
			}
			continue
		}
		names := dsl.Variables(true, key)
		if secrets {
			names = append(names, "secrets")
		}
		return append(slices.Clone(names), append(defined, t.around(at)...)...)
	}
	return dsl.Variables(false, key)
}

// around returns the variables that the loops and catches around a task define.
func (t *Text) around(task *node) []string {
	var defined []string
	for at := task.parent; at != nil; at = at.parent {
		defined = append(defined, scopeOf(at)...)
	}
	return defined
}

// scopeOf returns the variables that a loop or a catch defines for the value of one of its keys.
func scopeOf(n *node) []string {
	if n.parent == nil || n.name == "" {
		return nil
	}
	named := func(object *node, key, otherwise string) string {
		if name := object.Text(key); name != "" {
			return name
		}
		return otherwise
	}
	loop := n.parent.member("for")
	switch {
	case (n.name == "do" || n.name == "while") && loop != nil:
		return []string{named(loop, "each", "item"), named(loop, "at", "index")}
	case n.name == "foreach":
		return []string{named(n, "item", "item"), named(n, "at", "index")}
	case n.name == "catch" && n.parent.Has("try"):
		return []string{named(n, "as", "error")}
	}
	return nil
}

// Hover is what is shown for a part of a text.
type Hover struct {
	Range Range
	Doc   string // Markdown
}

// Hover returns the documentation of what is at a position, and false if there is none.
func (t *Text) Hover(pos dsl.Pos) (Hover, bool) {
	at := t.offset(pos)
	n, inKey := t.find(at)
	if inKey {
		return t.hoverKey(n)
	}
	if n.shape != scalar {
		return Hover{}, false
	}
	if _, ok := t.expressionAt(n, at); ok {
		return t.hoverExpression(n, at)
	}
	target := t.outline.target(n)
	if d := t.named(n, target); d != nil {
		s := nameSpan(d)
		return Hover{t.rangeOf(span{n.start, n.end}), fmt.Sprintf("**%s**: %s, defined in line %d", label(d),
			describe(t, d, target), t.pos(s.start).Line)}, true
	}
	return Hover{}, false
}

func (t *Text) hoverKey(n *node) (Hover, bool) {
	at := t.rangeOf(span{n.keyStart, n.keyEnd})
	if t.outline.isTask(n) {
		return Hover{at, fmt.Sprintf("**%s**: task %s", n.name, t.kindOf(n))}, true
	}
	for _, of := range t.outline.types[n.parent] {
		key := of.Key(n.name)
		if key == nil {
			continue
		}
		doc := "**" + key.Name + "**"
		if key.Required {
			doc += " (required)"
		}
		doc += ": " + key.Doc
		if words := t.service.vocabulary.Type(key.Type).Words; len(words) > 1 {
			doc += "\n\nOne of `" + strings.Join(words, "`, `") + "`."
		}
		return Hover{at, doc}, true
	}
	return Hover{}, false
}

func (t *Text) hoverExpression(n *node, at int) (Hover, bool) {
	start, end := at, at
	for start > n.start && isWordByte(t.source[start-1]) {
		start--
	}
	for end < n.end && isWordByte(t.source[end]) {
		end++
	}
	word := t.source[start:end]
	if start > n.start && t.source[start-1] == '$' {
		if doc := variableDoc(word); word != "" && slices.Contains(t.variablesAt(n), word) {
			return Hover{t.rangeOf(span{start - 1, end}), "**$" + word + "**: " + doc}, true
		}
		return Hover{}, false
	}
	if start > n.start && t.source[start-1] == '.' {
		return Hover{}, false
	}
	for _, b := range t.service.builtins {
		if b.Label == word {
			return Hover{t.rangeOf(span{start, end}), b.Doc}, true
		}
	}
	return Hover{}, false
}
