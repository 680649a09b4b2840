package redact

import (
	"maps"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

const (
	// deepest and mostNodes bound the walk through the schemas of a document, which may refer to themselves.
	deepest   = 32
	mostNodes = 20_000
)

// spot is a part of a schema, and the location that it describes.
type spot struct {
	at    *tree
	node  any
	depth int
}

// walk visits the parts of a JSON Schema breadth first.
type walk struct {
	root   any
	labels labels
	queue  []spot
	room   int
}

// labels index the parts of a schema to which references refer by other means than pointers. A name may refer to
// several parts. Which of them applies depends on the path to the reference, so all of them are used.
type labels struct {
	anchors map[string][]any // by $anchor and $dynamicAnchor
	ids     map[string][]any // by the last part of the path of $id
	within  []any            // the parts with an $id, except the root
	dynamic []any            // the parts with $recursiveAnchor
}

// schema adds the locations that a JSON Schema declares writeOnly or a password. Parts beyond the limits of the walk
// are sensitive.
func (p *Policy) schema(at *tree, root any) {
	if !hasSensitive(root) {
		return
	}
	// A schema that refers to itself uses at most half of the remaining limit, so that enough is left for those of other
	// tasks.
	w := walk{root: root, queue: []spot{{at: at, node: root}}, room: p.room / 2}
	w.labels = labels{anchors: map[string][]any{}, ids: map[string][]any{}}
	w.labels.collect(root, true)
	p.room -= w.room
	for len(w.queue) > 0 {
		here := w.queue[0]
		w.queue = w.queue[1:]
		s, ok := here.node.(map[string]any)
		switch {
		case !ok:
		case s["writeOnly"] == true, s["format"] == "password", here.depth > deepest, w.room < 0:
			p.add(here.at, nil)
		default:
			w.same(here, s)
			w.inner(here, s)
		}
	}
	p.room += max(w.room, 0)
	at.prune()
}

// hasSensitive reports whether a schema declares anything sensitive.
func hasSensitive(node any) bool {
	switch node := node.(type) {
	case []any:
		return slices.ContainsFunc(node, hasSensitive)
	case map[string]any:
		if node["writeOnly"] == true || node["format"] == "password" {
			return true
		}
		for _, child := range node {
			if hasSensitive(child) {
				return true
			}
		}
	}
	return false
}

// collect adds the labels of a schema, in the same order in every process.
func (l *labels) collect(node any, isRoot bool) {
	switch node := node.(type) {
	case []any:
		for _, child := range node {
			l.collect(child, false)
		}
	case map[string]any:
		for _, key := range []string{"$anchor", "$dynamicAnchor"} {
			if name, ok := node[key].(string); ok {
				l.anchors[name] = append(l.anchors[name], node)
			}
		}
		if id, ok := node["$id"].(string); ok {
			base, anchor, _ := strings.Cut(id, "#")
			l.ids[path.Base(base)] = append(l.ids[path.Base(base)], node)
			if !isRoot {
				l.within = append(l.within, node)
			}
			if anchor != "" {
				l.anchors[anchor] = append(l.anchors[anchor], node)
			}
		}
		if node["$recursiveAnchor"] == true {
			l.dynamic = append(l.dynamic, node)
		}
		for _, name := range slices.Sorted(maps.Keys(node)) {
			l.collect(node[name], false)
		}
	}
}

func (w *walk) add(at *tree, node any, above spot) {
	if _, ok := node.(map[string]any); ok {
		w.queue = append(w.queue, spot{at, node, above.depth + 1})
		w.room--
	}
}

// same adds the parts of a schema that describe the same location.
func (w *walk) same(here spot, s map[string]any) {
	for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if ref, ok := s[key].(string); ok {
			for _, target := range w.targets(ref) {
				w.add(here.at, target, here)
			}
		}
	}
	if s["$recursiveRef"] != nil {
		for _, target := range w.labels.dynamic {
			w.add(here.at, target, here)
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[key].([]any)
		for _, item := range list {
			w.add(here.at, item, here)
		}
	}
	for _, key := range []string{"if", "then", "else"} {
		w.add(here.at, s[key], here)
	}
	for _, key := range []string{"dependentSchemas", "dependencies"} {
		schemas, _ := s[key].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(schemas)) {
			w.add(here.at, schemas[name], here)
		}
	}
}

// targets returns the parts of the schema to which a reference may refer.
func (w *walk) targets(ref string) (found []any) {
	base, fragment, _ := strings.Cut(ref, "#")
	if plain, err := url.PathUnescape(fragment); err == nil {
		fragment = plain
	}
	if fragment != "" && fragment[0] != '/' {
		return w.labels.anchors[fragment]
	}
	// A pointer without a base begins at the enclosing part with an $id, or at the root.
	roots := append([]any{w.root}, w.labels.within...)
	if base != "" {
		roots = w.labels.ids[path.Base(base)]
	}
	for _, root := range roots {
		if target := descendTo(root, fragment); target != nil {
			found = append(found, target)
		}
	}
	return found
}

// descendTo returns the part of a schema at a JSON pointer; nil where there is none.
func descendTo(node any, pointer string) any {
	for _, part := range strings.Split(pointer, "/")[1:] {
		switch inner := node.(type) {
		case map[string]any:
			node = inner[UnescapePart(part)]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(inner) {
				return nil
			}
			node = inner[i]
		default:
			return nil
		}
	}
	return node
}

// inner adds the members and items of a schema. They are sorted, so that the limit ends the walk at the same part in
// every process.
func (w *walk) inner(here spot, s map[string]any) {
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		w.add(here.at.at(name), properties[name], here)
	}
	for _, key := range []string{
		"items", "additionalItems", "unevaluatedItems", "additionalProperties", "unevaluatedProperties", "contains",
	} {
		if s[key] != nil {
			w.add(here.at.at("*"), s[key], here)
		}
	}
	patterns, _ := s["patternProperties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(patterns)) {
		w.add(here.at.at("*"), patterns[name], here)
	}
	for _, key := range []string{"prefixItems", "items"} {
		list, _ := s[key].([]any)
		for i, schema := range list {
			w.add(here.at.at(strconv.Itoa(i)), schema, here)
		}
	}
}

// prune removes the branches in which nothing is sensitive.
func (t *tree) prune() {
	for name, child := range t.children {
		if child.prune(); !child.end && child.children == nil {
			delete(t.children, name)
		}
	}
	if len(t.children) == 0 {
		t.children = nil
	}
}
