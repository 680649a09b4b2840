package config

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

	"github.com/signalbox-dev/signalbox/internal/config/spelling"
)

// fileLayer reads one YAML document into the schema's keys, noting where each value stands.
type fileLayer struct {
	name     string
	schema   *schema
	sources  map[string]string
	problems Problems
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
		f.problems = append(f.problems, Problem{Source: f.name, Message: "holds more than one YAML document; keep the first"})
	}
	f.mapping(document.Content[0], "")
}

// syntax moves the line the parser names to where every other problem has it.
func (f *fileLayer) syntax(err error) {
	source, message := f.name, strings.TrimPrefix(err.Error(), "yaml: ")
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(message); m != nil {
		source, message = f.name+":"+m[1], strings.TrimPrefix(message, m[0])
	}
	f.problems = append(f.problems, Problem{Source: source, Message: "is not YAML: " + message})
}

func (f *fileLayer) at(node *yaml.Node) string {
	return f.name + ":" + strconv.Itoa(node.Line)
}

func (f *fileLayer) fault(node *yaml.Node, path, format string, args ...any) {
	f.problems = append(f.problems, Problem{Path: path, Source: f.at(node), Message: fmt.Sprintf(format, args...)})
}

func (f *fileLayer) mapping(node *yaml.Node, prefix string) {
	node = target(node)
	if isNull(node) {
		return
	}
	if node.Kind != yaml.MappingNode {
		f.fault(node, prefix, "is not a mapping; write its keys below it, one per line")
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		path := join(prefix, name.Value)
		if line, twice := seen[path]; twice {
			f.fault(name, path, "stands here and in line %d; keep one", line)
			continue
		}
		seen[path] = name.Line
		k, isKey := f.schema.byPath[path]
		switch {
		case isKey:
			f.assign(k, name, target(value))
		case f.schema.isSection(path):
			f.mapping(value, path)
		default:
			f.fault(name, path, "is not a key%s", f.suggest(prefix, name.Value))
		}
	}
}

// suggest looks among the siblings first, then for a key of that name elsewhere.
func (f *fileLayer) suggest(prefix, name string) string {
	if near := spelling.DidYouMean(name, f.schema.names[prefix]); near != "" {
		return near
	}
	for _, k := range f.schema.keys {
		if strings.HasSuffix(k.path, "."+name) {
			return fmt.Sprintf(" here, did you mean %q?", k.path)
		}
	}
	known := slices.Sorted(slices.Values(f.schema.names[prefix]))
	return "; known here: " + strings.Join(known, ", ")
}

func (f *fileLayer) assign(k key, name, value *yaml.Node) {
	if isNull(value) {
		return
	}
	_, wantsList := reflect.TypeAssert[[]string](k.value)
	text := value.Value
	switch {
	case value.Kind == yaml.SequenceNode && wantsList:
		items := []string{}
		for _, item := range value.Content {
			item = target(item)
			if item.Kind != yaml.ScalarNode {
				f.fault(item, k.path, "holds something that is not a plain value; write a list of texts")
				return
			}
			items = append(items, item.Value)
		}
		text = strings.Join(items, ",")
	case value.Kind != yaml.ScalarNode:
		f.fault(value, k.path, "is a %s where a %s belongs", nodeKind(value), k.typeName())
		return
	}
	if err := setText(k.value, text); err != nil {
		f.fault(value, k.path, "%v", err)
		return
	}
	f.sources[k.path] = f.at(name)
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
