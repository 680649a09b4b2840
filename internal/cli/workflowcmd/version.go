package workflowcmd

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
)

// withNextVersion writes the next version into the file of a document, and returns the document.
func withNextVersion(doc document) (document, error) {
	if doc.file == "" {
		return doc, exit.Usagef("--bump: the document comes from standard input; there is no file to write the next " +
			"version into")
	}
	source, err := bumped(doc.source)
	if err != nil {
		return doc, exit.Errorf(exit.Failed, "--bump: %s: %w", doc.name, err)
	}
	if err := invocation.WriteFile(doc.file, source, 0); err != nil {
		return doc, fmt.Errorf("write the next version: %w", err)
	}
	doc.source = source
	return doc, nil
}

// bumped returns a document with the third number of its version plus one. Nothing else of the text changes.
func bumped(source []byte) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(source, &root); err != nil {
		return nil, err
	}
	node := child(child(content(&root), "document"), "version")
	if node == nil {
		return nil, fmt.Errorf("document.version is missing")
	}
	next, err := nextVersion(node.Value)
	if err != nil {
		return nil, err
	}
	lines := bytes.SplitAfter(source, []byte("\n"))
	line := lines[node.Line-1]
	before, rest := line[:node.Column-1], line[node.Column-1:]
	if !bytes.Contains(rest, []byte(node.Value)) {
		return nil, fmt.Errorf("the text of document.version differs from its value %q; write it without escapes", node.Value)
	}
	changed := append(bytes.Clone(before), bytes.Replace(rest, []byte(node.Value), []byte(next), 1)...)
	lines[node.Line-1] = changed
	return bytes.Join(lines, nil), nil
}

func content(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.DocumentNode && len(node.Content) > 0 {
		return node.Content[0]
	}
	return node
}

// child returns the value of a key; nil if there is none.
func child(node *yaml.Node, key string) *yaml.Node {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

// nextVersion returns a version with its third number plus one, without what follows it: 1.0.0-rc.1 becomes 1.0.1.
func nextVersion(version string) (string, error) {
	core, _, _ := strings.Cut(version, "+")
	core, _, _ = strings.Cut(core, "-")
	numbers := strings.Split(core, ".")
	if len(numbers) == 3 {
		if third, err := strconv.Atoi(numbers[2]); err == nil {
			return fmt.Sprintf("%s.%s.%d", numbers[0], numbers[1], third+1), nil
		}
	}
	return "", fmt.Errorf("the version %q has no third number to count up", version)
}
