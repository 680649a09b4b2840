package dsl

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
)

// Identity is the name and version that a document declares.
type Identity struct {
	Namespace string
	Name      string
	Version   string
}

// Identify reads only the identity of a document, whatever else is wrong with it. It returns false if the source is not
// YAML or JSON, or if namespace or name are missing or not well-formed.
func Identify(source []byte, opts ...Option) (Identity, bool) {
	root := read(source, opts)
	if root == nil || root.Get("document") == nil {
		return Identity{}, false
	}
	head := root.Get("document")
	text := func(key string) string {
		if n := head.Get(key); n != nil && n.Kind == tree.String {
			return n.Text
		}
		return ""
	}
	id := Identity{Namespace: text("namespace"), Name: text("name"), Version: text("version")}
	name := regexp.MustCompile(namePattern)
	return id, name.MatchString(id.Namespace) && name.MatchString(id.Name)
}

// Locate returns the positions of values in a source by their JSON pointers. For a value that does not exist it returns
// the position of the innermost value on the path to it.
func Locate(source []byte, pointers []string, opts ...Option) []Pos {
	found := make([]Pos, len(pointers))
	root := read(source, opts)
	if root == nil {
		return found
	}
	for i, pointer := range pointers {
		found[i] = locate(root, pointer)
	}
	return found
}

func locate(node *tree.Node, pointer string) Pos {
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		next := node.Get(tree.Unescape(part))
		if i, err := strconv.Atoi(part); err == nil && node.Kind == tree.Array && i >= 0 && i < len(node.Items) {
			next = node.Items[i]
		}
		if next == nil {
			break
		}
		node = next
	}
	return Pos(node.Pos)
}

// read parses a source into a tree; nil if it cannot be parsed.
func read(source []byte, opts []Option) *tree.Node {
	p := &parser{limits: DefaultLimits()}
	for _, o := range opts {
		o(p)
	}
	root, _ := tree.Parse(source, tree.Limits{
		Bytes: p.limits.MaxBytes, Depth: p.limits.MaxDepth, Aliases: p.limits.MaxAliases, Nodes: p.limits.MaxNodes,
	})
	return root
}
