package schema

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Violation is one mistake in a file.
type Violation struct {
	Path    string // the key; empty where the whole file is the subject
	Source  string // "signalbox.yaml:12"
	Message string
}

// ReadFile reads one YAML document into the schema's keys. It returns the source of each value that it set, by the
// key's path, and all violations.
func (s *Schema) ReadFile(name string, content []byte) (sources map[string]string, violations []Violation) {
	f := &fileLayer{name: name, schema: s, sources: map[string]string{}}
	f.load(content)
	return f.sources, f.violations
}

// fileLayer is one file being read.
type fileLayer struct {
	name       string
	schema     *Schema
	sources    map[string]string
	violations []Violation
}

func (f *fileLayer) load(content []byte) {
	decoder := yaml.NewDecoder(strings.NewReader(string(content)))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if !errors.Is(err, io.EOF) {
			f.syntax(err)
		}
		return // an empty file sets nothing
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		f.violations = append(f.violations,
			Violation{Source: f.name, Message: "holds more than one YAML document; keep the first"})
	}
	f.mapping(document.Content[0], "")
}

// syntax moves the line number of the parser's message to the source, as in other violations.
func (f *fileLayer) syntax(err error) {
	source, message := f.name, strings.TrimPrefix(err.Error(), "yaml: ")
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(message); m != nil {
		source, message = f.name+":"+m[1], strings.TrimPrefix(message, m[0])
	}
	f.violations = append(f.violations, Violation{Source: source, Message: "is not YAML: " + message})
}

func (f *fileLayer) at(node *yaml.Node) string {
	return f.name + ":" + strconv.Itoa(node.Line)
}

func (f *fileLayer) report(node *yaml.Node, path, format string, args ...any) {
	f.violations = append(f.violations, Violation{Path: path, Source: f.at(node), Message: fmt.Sprintf(format, args...)})
}

func (f *fileLayer) mapping(node *yaml.Node, prefix string) {
	node = target(node)
	if isNull(node) {
		return
	}
	if node.Kind != yaml.MappingNode {
		f.report(node, prefix, "is not a mapping; write its keys below it, one per line")
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		path := Join(prefix, name.Value)
		if line, twice := seen[path]; twice {
			f.report(name, path, "is set here and in line %d; keep one", line)
			continue
		}
		seen[path] = name.Line
		k, isKey := f.schema.ByPath[path]
		switch {
		case isKey:
			f.assign(k, name, target(value))
		case f.schema.isSection(path):
			f.mapping(value, path)
		default:
			f.report(name, path, "is not a key%s", f.suggest(prefix, name.Value))
		}
	}
}

// suggest searches the siblings first, then the keys with that name elsewhere.
func (f *fileLayer) suggest(prefix, name string) string {
	if near := DidYouMean(name, f.schema.Names[prefix]); near != "" {
		return near
	}
	for _, k := range f.schema.Keys {
		if strings.HasSuffix(k.Path, "."+name) {
			return fmt.Sprintf(" here, did you mean %q?", k.Path)
		}
	}
	known := slices.Sorted(slices.Values(f.schema.Names[prefix]))
	return "; known here: " + strings.Join(known, ", ")
}

func (f *fileLayer) assign(k Key, name, value *yaml.Node) {
	if isNull(value) {
		return
	}
	_, wantsList := reflect.TypeAssert[[]string](k.Value)
	text := value.Value
	switch {
	case value.Kind == yaml.SequenceNode && wantsList:
		items := []string{}
		for _, item := range value.Content {
			item = target(item)
			if item.Kind != yaml.ScalarNode {
				f.report(item, k.Path, "holds something that is not a plain value; write a list of texts")
				return
			}
			items = append(items, item.Value)
		}
		text = strings.Join(items, ",")
	case value.Kind == yaml.MappingNode && k.Kind == Pairs:
		items := make([]string, 0, len(value.Content)/2)
		for i := 0; i+1 < len(value.Content); i += 2 {
			items = append(items, value.Content[i].Value+"="+target(value.Content[i+1]).Value)
		}
		text = strings.Join(items, ",")
	case value.Kind != yaml.ScalarNode:
		f.report(value, k.Path, "is a %s where a %s belongs", nodeKind(value), k.TypeName())
		return
	}
	if err := k.Set(text); err != nil {
		f.report(value, k.Path, "%v", err)
		return
	}
	f.sources[k.Path] = f.at(name)
}

func target(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.Tag == "!!null"
}

func nodeKind(node *yaml.Node) string {
	if node.Kind == yaml.SequenceNode {
		return "list"
	}
	return "mapping"
}
