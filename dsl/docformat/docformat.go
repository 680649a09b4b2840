// Package docformat lays out the source of documents uniformly: two spaces for each level, one space around what is
// written in one line, at most one empty line between others, and one line break at the end. Comments, the order of keys,
// quotes, anchors and the choice between block and flow style stay as they are.
//
//	formatted, err := docformat.Format(source)
package docformat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
)

// indent is the number of spaces of a level.
const indent = 2

// emptyLine is the comment that stands for an empty line while the source is a tree: the tree has no empty lines.
const emptyLine = "#docformat:empty"

// errUnsafe reports a source whose layout would change its meaning, or lose a comment.
var errUnsafe = errors.New("it cannot be laid out without a change of its content")

// Format returns a source in YAML or JSON in the uniform layout. It fails for a source that is neither, and for one
// whose content the new layout would change.
func Format(source []byte) ([]byte, error) {
	limits := dsl.DefaultLimits()
	bounds := tree.Limits{
		Bytes: limits.MaxBytes, Depth: limits.MaxDepth, Aliases: limits.MaxAliases, Nodes: limits.MaxNodes,
	}
	before, found := tree.Parse(source, bounds)
	if before == nil {
		return nil, fmt.Errorf("%d:%d: %s", found[0].Pos.Line, found[0].Pos.Column, found[0].Message)
	}
	if json.Valid(source) {
		return formatJSON(source)
	}
	formatted, remarks, err := formatYAML(source)
	if err != nil || bytes.Equal(formatted, source) {
		return formatted, err
	}
	after, _ := tree.Parse(formatted, bounds)
	if after == nil || !eventfilter.Equal(before.Value(), after.Value()) {
		return nil, errUnsafe
	}
	var root yaml.Node
	if yaml.Unmarshal(formatted, &root) != nil || comments(&root) != remarks {
		return nil, errUnsafe
	}
	return formatted, nil
}

func formatJSON(source []byte) ([]byte, error) {
	var out bytes.Buffer
	if err := json.Indent(&out, bytes.TrimSpace(source), "", strings.Repeat(" ", indent)); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// formatYAML returns a source in the layout, and its comments.
func formatYAML(source []byte) (formatted []byte, remarks string, err error) {
	var root yaml.Node
	if err := yaml.Unmarshal(marked(source), &root); err != nil {
		return nil, "", errUnsafe
	}
	remarks = comments(&root) // before the encoder changes the tree
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(indent)
	if err := encoder.Encode(&root); err != nil {
		return nil, "", errUnsafe
	}
	if err := encoder.Close(); err != nil {
		return nil, "", errUnsafe
	}
	return unmarked(out.Bytes()), remarks, nil
}

// marked replaces the empty lines of a source by comments, except those inside of block scalars.
func marked(source []byte) []byte {
	var out bytes.Buffer
	block := -1    // indentation of the line that begins a block scalar; -1: outside of one
	keeps := false // whether that scalar keeps the empty lines at its end
	lines := strings.Split(strings.ReplaceAll(string(source), "\r\n", "\n"), "\n")
	for i, line := range lines {
		text := strings.TrimSpace(line)
		depth := len(line) - len(strings.TrimLeft(line, " "))
		if text == "" && !keeps {
			depth = nextDepth(lines[i:]) // an empty line belongs to what follows it
		}
		if (text != "" || !keeps) && block >= 0 && depth <= block {
			block = -1
		}
		switch {
		case block >= 0:
		case text == "" && i+1 < len(lines):
			line = strings.Repeat(" ", nextDepth(lines[i:])) + emptyLine
		case blockHeader.MatchString(line):
			block, keeps = depth, strings.Contains(blockHeader.FindString(line), "+")
		}
		out.WriteString(line)
		if i+1 < len(lines) {
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

// blockHeader matches a line that begins a literal or folded block scalar.
var blockHeader = regexp.MustCompile(`(^|[\s:-])[|>][-+0-9]*\s*(#.*)?$`)

// nextDepth returns the indentation of the first of the lines that is not empty.
func nextDepth(lines []string) int {
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			return len(line) - len(strings.TrimLeft(line, " "))
		}
	}
	return 0
}

// unmarked replaces the marks by empty lines: one for several, none at the beginning and the end.
func unmarked(source []byte) []byte {
	var out []string
	for line := range strings.SplitSeq(strings.TrimRight(string(source), "\n"), "\n") {
		if strings.TrimSpace(line) == emptyLine {
			line = ""
			if len(out) == 0 || out[len(out)-1] == "" {
				continue
			}
		}
		out = append(out, line)
	}
	return []byte(strings.TrimRight(strings.Join(out, "\n"), "\n") + "\n")
}

// comments returns the comments of a source, sorted by their text, without the space before them and without those that
// stand for empty lines: a layout that loses one has other comments.
func comments(root *yaml.Node) string {
	var all []string
	collect(root, &all)
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func collect(n *yaml.Node, all *[]string) {
	for _, text := range []string{n.HeadComment, n.LineComment, n.FootComment} {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && line != emptyLine {
				*all = append(*all, line)
			}
		}
	}
	for _, inner := range n.Content {
		collect(inner, all)
	}
}
