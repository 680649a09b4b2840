package dsl

import (
	"fmt"
	"maps"
	"slices"

	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
)

// Extension runs tasks before and after other tasks of its document: those of one kind, or all. Tasks of extensions are
// not extended.
type Extension struct {
	Name    string
	Pointer string // JSON pointer in the document, e.g. /use/extensions/0/logging
	Pos     Pos    // of its name
	Extend  string // a key of extensionTargets
	When    *Expr  // sees the raw input of the extended task; nil holds always
	Before  []*Task
	After   []*Task
}

// extendAll is the target of an extension of all tasks.
const extendAll = "all"

// extensionTargets maps what an extension can extend to the kinds of tasks. A composite task contains others and does
// nothing else.
func extensionTargets() map[string][]Kind {
	return map[string][]Kind{
		extendAll: nil, "call": {KindCall}, "composite": {KindDo, KindFork}, "emit": {KindEmit}, "for": {KindFor},
		"listen": {KindListen}, "raise": {KindRaise}, "run": {KindRun}, "set": {KindSet}, "switch": {KindSwitch},
		"try": {KindTry}, "wait": {KindWait},
	}
}

// Extends reports whether the extension is for tasks of a kind.
func (e *Extension) Extends(kind Kind) bool {
	return e.Extend == extendAll || slices.Contains(extensionTargets()[e.Extend], kind)
}

// extensions reads the extensions of a document.
func (p *parser) extensions(use value) []*Extension {
	v, ok := use.member("extensions")
	if !ok || !p.is(v, tree.Array, "use.extensions") {
		return nil
	}
	p.inExtension = true
	defer func() { p.inExtension = false }()
	var out []*Extension
	seen := make(map[string]Pos)
	for i := range v.node.Items {
		if name, body, ok := p.named(v.item(i), "an extension", seen); ok {
			out = append(out, p.extension(name, body))
		}
	}
	return out
}

func (p *parser) extension(name string, v value) *Extension {
	e := &Extension{Name: name, Pointer: v.path, Pos: v.key}
	ok := p.object(v, fmt.Sprintf("the extension %q", name), fields{
		{"extend", true, func(v value) {
			e.Extend = p.oneOf(v, "what an extension extends", slices.Sorted(maps.Keys(extensionTargets()))...)
		}},
		{"when", false, func(v value) { e.When = p.expr(v, "when", scope{}.at(slotTask)) }},
		{"before", false, func(v value) { e.Before = p.taskList(v, scope{}) }},
		{"after", false, func(v value) { e.After = p.taskList(v, scope{}) }},
	})
	if ok && v.node.Get("before") == nil && v.node.Get("after") == nil {
		p.report(CodeMissingKey, v, "", "the extension %q needs the key %q or %q", name, "before", "after")
	}
	return e
}

// finishExtensions warns of extensions that extend no task of the document.
func (p *parser) finishExtensions(d *Document) {
	for _, e := range d.Extensions {
		if _, known := extensionTargets()[e.Extend]; !known || e.Extend == extendAll ||
			slices.ContainsFunc(extensionTargets()[e.Extend], func(k Kind) bool { return p.kinds[k] }) {
			continue
		}
		p.add(Violation{
			Severity: SeverityWarning, Code: CodeUnused, Path: e.Pointer, Pos: e.Pos,
			Message:    fmt.Sprintf("the extension %q extends no task: the document has none of the kind %q", e.Name, e.Extend),
			Suggestion: "extend another kind, or remove it",
		})
	}
}
