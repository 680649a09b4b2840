package main

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const schemaPrefix = "#/components/schemas/"

// mapping returns a mapping of keys and values in turn. Empty values are left out.
func mapping(pairs ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for i := 0; i+1 < len(pairs); i += 2 {
		key, _ := pairs[i].(string)
		put(n, key, pairs[i+1])
	}
	return n
}

// put appends a key and its value, unless the value is empty.
func put(n *yaml.Node, key string, value any) {
	if value == nil || reflect.ValueOf(value).IsZero() {
		return
	}
	n.Content = append(n.Content, node(key), node(value))
}

// sequence returns a sequence.
func sequence(items ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: items}
}

func node(value any) *yaml.Node {
	if n, ok := value.(*yaml.Node); ok {
		return n
	}
	n := &yaml.Node{}
	if err := n.Encode(value); err != nil {
		panic(err) // texts, numbers, booleans and lists of texts have a form in YAML
	}
	return n
}

// get returns the value of a key in a mapping; nil without one.
func get(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// child returns the value of a key in a mapping, which it adds as an empty mapping if it is missing.
func child(n *yaml.Node, key string) *yaml.Node {
	if found := get(n, key); found != nil {
		return found
	}
	added := mapping()
	n.Content = append(n.Content, node(key), added)
	return added
}

// sortKeys sorts a mapping by its keys.
func sortKeys(n *yaml.Node) {
	type pair struct{ key, value *yaml.Node }
	pairs := make([]pair, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		pairs = append(pairs, pair{n.Content[i], n.Content[i+1]})
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return strings.Compare(a.key.Value, b.key.Value) })
	n.Content = n.Content[:0]
	for _, p := range pairs {
		n.Content = append(n.Content, p.key, p.value)
	}
}

func sortByName[D protoreflect.Descriptor](list []D) {
	slices.SortFunc(list, func(a, b D) int { return strings.Compare(string(a.FullName()), string(b.FullName())) })
}

// referredSchemas returns the names of the schemas to which a tree refers, each once, sorted.
func referredSchemas(n *yaml.Node) []string {
	var names []string
	if n.Kind == yaml.MappingNode {
		if ref := get(n, "$ref"); ref != nil {
			if name, ok := strings.CutPrefix(ref.Value, schemaPrefix); ok {
				names = append(names, name)
			}
		}
	}
	for _, inner := range n.Content {
		names = append(names, referredSchemas(inner)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
