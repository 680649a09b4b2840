package redact

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
)

// Violation is an invalid list of sensitive locations, an invalid location, which would protect nothing, or a label
// with a sensitive value.
type Violation struct {
	// Path is the JSON pointer of the violation in the document.
	Path, Message, Suggestion string
}

// Violations returns the violations of the sensitive locations that a document names, and of its labels.
func Violations(doc *dsl.Document) []Violation {
	c := checker{tasks: map[string]bool{"*": true}}
	var whole map[string]any
	if json.Unmarshal(doc.Canonical(), &whole) != nil {
		return nil
	}
	c.walk("/do", whole["do"])
	inTasks := c.found
	c.found = nil
	c.list("/document/metadata/sensitive", doc.Metadata, true)
	slices.SortStableFunc(inTasks, func(a, b Violation) int { return strings.Compare(a.Path, b.Path) })
	c.labels(doc)
	return append(c.found, inTasks...)
}

// labels reports labels of runs that are plain paths to sensitive values: runs could not have them.
func (c *checker) labels(doc *dsl.Document) {
	policy := For(doc)
	for _, l := range doc.Labels {
		path := l.Path()
		if path == nil {
			continue
		}
		probe := `"value"`
		for _, name := range slices.Backward(path) {
			probe = `{"` + name + `":` + probe + `}`
		}
		if shown, _ := policy.Value(Location{}, json.RawMessage(probe), nil); strings.Contains(string(shown), Mark) {
			c.add("/document/metadata/labels/"+EscapePart(l.Key), "take another value, or remove the label",
				"the value of the label %q is sensitive, and labels are visible to all readers of the run", l.Key)
		}
	}
}

type checker struct {
	tasks map[string]bool // the names of all tasks
	found []Violation
}

func (c *checker) add(path, suggestion, format string, args ...any) {
	c.found = append(c.found, Violation{path, fmt.Sprintf(format, args...), suggestion})
}

// walk visits the lists of tasks at any depth: a task is the value of the only key of an item.
func (c *checker) walk(pointer string, node any) {
	switch node := node.(type) {
	case []any:
		for i, item := range node {
			at := fmt.Sprintf("%s/%d", pointer, i)
			if named, ok := item.(map[string]any); ok && len(named) == 1 {
				for name, task := range named {
					c.task(at+"/"+EscapePart(name), name, task)
				}
			}
			c.walk(at, item)
		}
	case map[string]any:
		for name, child := range node {
			c.walk(pointer+"/"+EscapePart(name), child)
		}
	}
}

func (c *checker) task(pointer, name string, node any) {
	task, ok := node.(map[string]any)
	if !ok {
		return
	}
	c.tasks[name] = true
	if metadata, ok := task["metadata"].(map[string]any); ok {
		c.list(pointer+"/metadata/sensitive", metadata, false)
	}
}

// list checks the locations of the document, or those of one task.
func (c *checker) list(path string, metadata map[string]any, ofDocument bool) {
	value, present := metadata["sensitive"]
	if !present {
		return
	}
	forms := "write /input/… or /output/…"
	if ofDocument {
		forms = "write /input/…, /output/… or /tasks/NAME/input/…"
	}
	items, ok := value.([]any)
	if !ok {
		c.add(path, "write for example [/input/card/number]", "the sensitive locations are not a list")
		return
	}
	for i, item := range items {
		at := fmt.Sprintf("%s/%d", path, i)
		text, ok := item.(string)
		if !ok {
			c.add(at, forms, "a sensitive location is a JSON pointer, not %v", item)
			continue
		}
		task, _, _, ok := parsePointer(text)
		switch {
		case !ok || task != "" && !ofDocument:
			c.add(at, forms, "%q does not point into an input or output", text)
		case task != "" && !c.tasks[task]:
			c.add(at, "name a task of the document, or * for every one", "%q names no task: the document has no task %q", text,
				task)
		}
	}
}
