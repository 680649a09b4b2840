package dsl

import (
	"regexp"

	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
)

// Identity is how a document names itself.
type Identity struct {
	Namespace string
	Name      string
	Version   string
}

// Identify reads only how a document names itself, whatever else is wrong with it. It returns false where the source
// cannot be read as YAML or JSON, or where namespace or name are missing or not well-formed.
func Identify(source []byte, opts ...Option) (Identity, bool) {
	p := &parser{limits: DefaultLimits()}
	for _, o := range opts {
		o(p)
	}
	root, _ := tree.Parse(source, tree.Limits{
		Bytes: p.limits.MaxBytes, Depth: p.limits.MaxDepth, Aliases: p.limits.MaxAliases, Nodes: p.limits.MaxNodes,
	})
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
