package languageservice

import (
	"github.com/signalbox-dev/signalbox/dsl/vocabulary"
)

// typed is the outline of a document with the types of its values.
type typed struct {
	vocabulary *vocabulary.Vocabulary
	root       *node
	// types are the types that a value may have, without choices. A value of no known type has none.
	types map[*node][]*vocabulary.Type
	// lists are the nodes that are lists of tasks, or of other named values.
	lists map[*node]*vocabulary.Type
}

func typesOf(v *vocabulary.Vocabulary, root *node) *typed {
	t := &typed{vocabulary: v, root: root, types: map[*node][]*vocabulary.Type{}, lists: map[*node]*vocabulary.Type{}}
	t.assign(root, []*vocabulary.Type{v.Type(vocabulary.Document)})
	return t
}

// assign sets the types of a value, and those of the values in it.
func (t *typed) assign(n *node, candidates []*vocabulary.Type) {
	var object vocabulary.Object
	if n.shape == mapping {
		object = n
	}
	var types []*vocabulary.Type
	for _, c := range candidates {
		types = append(types, t.vocabulary.Resolve(c, object)...)
	}
	if len(types) == 0 {
		return
	}
	t.types[n] = types
	switch n.shape {
	case mapping:
		for _, c := range n.children {
			t.assign(c, t.member(types, c.name))
		}
	case sequence:
		t.assignItems(n, types)
	case scalar:
	}
}

// member returns the types of a key of an object of one of these types.
func (t *typed) member(types []*vocabulary.Type, name string) []*vocabulary.Type {
	var out []*vocabulary.Type
	seen := map[string]bool{}
	for _, of := range types {
		item := ""
		if key := of.Key(name); key != nil {
			item = key.Type
		} else if of.Form == vocabulary.Map {
			item = of.Item
		}
		if item != "" && !seen[item] {
			seen[item] = true
			out = append(out, t.vocabulary.Type(item))
		}
	}
	return out
}

func (t *typed) assignItems(n *node, types []*vocabulary.Type) {
	for _, of := range types {
		switch of.Form {
		case vocabulary.List:
			for _, c := range n.children {
				t.assign(c, []*vocabulary.Type{t.vocabulary.Type(of.Item)})
			}
		case vocabulary.Named:
			t.lists[n] = of
			for _, c := range n.children {
				if c.shape != mapping {
					continue
				}
				for _, named := range c.children {
					t.assign(named, []*vocabulary.Type{t.vocabulary.Type(of.Item)})
				}
			}
		case vocabulary.Any, vocabulary.Text, vocabulary.Expression, vocabulary.Wrapped, vocabulary.Integer,
			vocabulary.Boolean, vocabulary.Structure, vocabulary.Map, vocabulary.Choice, vocabulary.Variant:
		}
	}
}

// isTask reports whether a value is a task.
func (t *typed) isTask(n *node) bool {
	if n.parent == nil {
		return false
	}
	if list := t.lists[n.parent.parent]; list != nil && list.Item == vocabulary.Task && n.name != "" {
		return true
	}
	return t.section(n) == string(vocabulary.TargetFunctions)
}

// section returns the section of use whose entry a value is; empty if it is none.
func (t *typed) section(n *node) string {
	if n.name != "" && n.parent != nil && n.parent.parent != nil && n.parent.parent.name == "use" &&
		n.parent.parent.parent == t.root {
		return n.parent.name
	}
	return ""
}

// target returns what a text names.
func (t *typed) target(n *node) vocabulary.Target {
	if n.shape != scalar {
		return vocabulary.NoTarget
	}
	for _, of := range t.types[n] {
		if of.Target != vocabulary.NoTarget {
			return of.Target
		}
	}
	return vocabulary.NoTarget
}

// taskList returns the list of the tasks that a text in a task may name: that of the innermost task around it.
func (t *typed) taskList(n *node) *node {
	for ; n != nil; n = n.parent {
		if n.parent != nil {
			if list := t.lists[n.parent.parent]; list != nil && list.Item == vocabulary.Task && n.name != "" {
				return n.parent.parent
			}
		}
	}
	return nil
}

// names returns the entries of a list of named values.
func names(list *node) []*node {
	var out []*node
	if list == nil {
		return nil
	}
	for _, item := range list.children {
		if item.shape == mapping {
			out = append(out, item.children...)
		}
	}
	return out
}

// definitions returns what a text at a node may name.
func (t *typed) definitions(n *node, target vocabulary.Target) []*node {
	switch target {
	case vocabulary.NoTarget:
		return nil
	case vocabulary.TargetTask:
		return names(t.taskList(n))
	case vocabulary.TargetFunctions, vocabulary.TargetErrors, vocabulary.TargetRetries, vocabulary.TargetTimeouts,
		vocabulary.TargetAuthentications, vocabulary.TargetSecrets:
	}
	section := t.root.member("use").member(string(target))
	if section == nil {
		return nil
	}
	return section.children
}

// label returns the name of a definition: its key, or its text in a list of names.
func label(n *node) string {
	if n.name != "" {
		return n.name
	}
	return n.text
}

// nameSpan returns the position of the name of a definition.
func nameSpan(n *node) span {
	if n.name != "" {
		return span{n.keyStart, n.keyEnd}
	}
	return span{n.start, n.end}
}

// walk visits a node and all below it.
func walk(n *node, visit func(*node)) {
	visit(n)
	for _, c := range n.children {
		walk(c, visit)
	}
}
