package pages

import (
	"strings"

	"github.com/signalbox-dev/signalbox/internal/hygiene"
)

// head completes examples that show a part of a workflow, on one line.
const head = "document: {dsl: '1.0.3', namespace: example, name: example, version: '1.0.0'}\n"

// Workflows finds examples of workflows in the pages below root in which check finds violations. An example is a YAML
// block with `document` or `do` at its top level; check gets a whole document and returns its violations.
func Workflows(root string, check func(source string) []string) ([]hygiene.Violation, error) {
	return each(root, func(_, text string, find func(line int, violation string)) {
		for _, block := range blocks(text) {
			source, is := workflow(block.source)
			if !is {
				continue
			}
			for _, violation := range check(source) {
				find(block.line, "shows a workflow with a violation: "+violation)
			}
		}
	})
}

// block is a YAML block in a page, from a line on.
type block struct {
	line   int
	source string
}

// blocks returns the YAML blocks of a page. They may be indented, as in lists.
func blocks(text string) (found []block) {
	var source strings.Builder
	begun, indent := 0, ""
	for i, line := range strings.Split(text, "\n") {
		fence := strings.TrimSpace(line)
		switch {
		case begun == 0 && (fence == "```yaml" || fence == "```yml"):
			begun = i + 1
			indent, _, _ = strings.Cut(line, "`")
			source.Reset()
		case begun > 0 && strings.HasPrefix(fence, "```"):
			found = append(found, block{begun, source.String()})
			begun = 0
		case begun > 0:
			source.WriteString(strings.TrimPrefix(line, indent) + "\n")
		}
	}
	return found
}

// workflow returns the whole document of a block that is a workflow, or a part of one.
func workflow(block string) (source string, is bool) {
	top := "\n" + block
	switch {
	case strings.Contains(top, "\ndocument:"):
		return block, true
	case strings.Contains(top, "\ndo:"):
		return head + block, true
	default:
		return "", false
	}
}
