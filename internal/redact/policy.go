// Package redact determines what is sensitive in the values of runs, and replaces it by marks.
//
//	policy := redact.For(doc)       // once per document
//	var secrets redact.SecretSet    // once per run
//	shown, found := policy.Value(redact.Location{}, input, &secrets)
//	secrets.Add(found...)
//	text, changed := secrets.Text(problem.Detail) // replaces values from sensitive locations wherever they occur again
//
// Sensitive are the values that a document names in `metadata.sensitive`, those that its schemas declare `writeOnly` or
// `format: password`, and those under a usual name of a secret (see [Named]).
//
//	s := redact.NewScrubber(token, password)
//	text, content := s.Text(text), s.Value(content)
//
// A [Scrubber] removes secrets from what a service returned, so that a service that echoes a request, or an error that
// quotes one, does not put a secret into a history, a row or a log.
//
// The package is pure: it stores nothing and performs no I/O.
package redact

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
)

// Mark replaces a sensitive value.
const Mark = "\u27e6redacted\u27e7"

// Location names a value of a run.
type Location struct {
	// Pointer is the JSON pointer of the task in the document; empty for the run's own input and output. Task is the
	// task's name.
	Pointer, Task string
	// Output selects the output instead of the input.
	Output bool
}

// tree is a set of JSON pointers; "*" matches every name and index.
type tree struct {
	children map[string]*tree
	end      bool
}

func (t *tree) at(name string) *tree {
	if t.children == nil {
		t.children = map[string]*tree{}
	}
	if t.children[name] == nil {
		t.children[name] = &tree{}
	}
	return t.children[name]
}

// sides are the trees of an input and an output.
type sides struct{ input, output tree }

func (s *sides) side(output bool) *tree {
	if output {
		return &s.output
	}
	return &s.input
}

// Policy is what is sensitive in the runs of one document. It is safe for concurrent use.
type Policy struct {
	all      bool // everything is sensitive
	run      sides
	named    map[string]*sides // by the task's name; "*" is every task
	pointers map[string]*sides // by the task's pointer
	nonEmpty bool              // whether any tree has a pointer
	both     []*Policy         // the policies that With combined
	room     int               // how many parts of schemas may still be visited
}

// Inherited is what is sensitive in a run in addition to what its own document declares.
type Inherited struct {
	// Texts are hidden wherever they occur. In a continued execution, they include the texts found so far.
	Texts []string `json:"texts,omitempty"`
	// Documents are the hashes of further documents that name sensitive locations. All reports that everything is
	// sensitive.
	Documents []string `json:"documents,omitempty"`
	All       bool     `json:"all,omitempty"`
}

// Everything returns the policy that everything is sensitive, for runs without a readable document or secrets.
func Everything() *Policy { return &Policy{all: true} }

// With returns a policy that hides what either policy hides.
func (p *Policy) With(other *Policy) *Policy {
	return &Policy{all: p.all || other.all, nonEmpty: p.nonEmpty || other.nonEmpty, both: []*Policy{p, other}}
}

// All reports whether everything is sensitive.
func (p *Policy) All() bool { return p.all }

// Any reports whether anything is sensitive in addition to values under usual names of secrets.
func (p *Policy) Any() bool { return p.all || p.nonEmpty }

// For compiles the policy of a document. It ignores entries that [Violations] reports.
func For(doc *dsl.Document) *Policy {
	p := &Policy{named: map[string]*sides{}, pointers: map[string]*sides{}, room: mostNodes}
	for _, pointer := range sensitive(doc.Metadata) {
		p.addPointer(pointer)
	}
	if doc.Input != nil && doc.Input.Schema != nil {
		p.schema(&p.run.input, doc.Input.Schema.Definition)
	}
	if doc.Output != nil && doc.Output.Schema != nil {
		p.schema(&p.run.output, doc.Output.Schema.Definition)
	}
	var whole map[string]any
	if json.Unmarshal(doc.Canonical(), &whole) == nil {
		p.tasks("/do", whole["do"])
	}
	return p
}

func sensitive(metadata map[string]any) []string {
	list, _ := metadata["sensitive"].([]any)
	var texts []string
	for _, item := range list {
		if text, ok := item.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// addPointer adds a pointer of document.metadata.sensitive, if it is valid.
func (p *Policy) addPointer(pointer string) {
	task, output, parts, ok := parsePointer(pointer)
	if !ok {
		return
	}
	at := &p.run
	if task != "" {
		if p.named[task] == nil {
			p.named[task] = &sides{}
		}
		at = p.named[task]
	}
	p.add(at.side(output), parts)
}

// parsePointer splits a pointer of document.metadata.sensitive: the task that it names, whether it is in the output,
// and the parts within.
func parsePointer(pointer string) (task string, output bool, parts []string, ok bool) {
	parts = strings.Split(pointer, "/")
	if len(parts) < 2 || parts[0] != "" {
		return "", false, nil, false
	}
	parts = parts[1:]
	if parts[0] == "tasks" && len(parts) > 2 {
		task, parts = UnescapePart(parts[1]), parts[2:]
	}
	if parts[0] != "input" && parts[0] != "output" {
		return "", false, nil, false
	}
	return task, parts[0] == "output", parts[1:], true
}

func (p *Policy) add(at *tree, parts []string) {
	for _, part := range parts {
		at = at.at(UnescapePart(part))
	}
	at.end, p.nonEmpty = true, true
}

// tasks adds the schemas and sensitive locations of tasks, at any depth. Every object is treated as a task: the pointer
// of one that is not a task matches no step.
func (p *Policy) tasks(pointer string, node any) {
	switch node := node.(type) {
	case []any:
		for i, item := range node {
			p.tasks(fmt.Sprintf("%s/%d", pointer, i), item)
		}
	case map[string]any:
		p.task(pointer, node)
		for _, name := range slices.Sorted(maps.Keys(node)) {
			p.tasks(pointer+"/"+EscapePart(name), node[name])
		}
	}
}

func (p *Policy) task(pointer string, task map[string]any) {
	var own sides
	before := p.nonEmpty
	p.nonEmpty = false
	for _, name := range []string{"input", "output"} {
		model, _ := task[name].(map[string]any)
		schema, _ := model["schema"].(map[string]any)
		p.schema(own.side(name == "output"), schema["document"])
	}
	metadata, _ := task["metadata"].(map[string]any)
	for _, text := range sensitive(metadata) {
		if task, output, parts, ok := parsePointer(text); ok && task == "" {
			p.add(own.side(output), parts)
		}
	}
	if p.nonEmpty {
		p.pointers[pointer] = &own
	}
	p.nonEmpty = p.nonEmpty || before
}

// trees returns the trees that apply to a location. What is sensitive in the run's own input and output is also
// sensitive in the inputs and outputs of its tasks, to which values are often passed unchanged.
func (p *Policy) trees(at Location) []*tree {
	if !p.nonEmpty {
		return nil
	}
	var list []*tree
	for _, part := range p.both {
		list = append(list, part.trees(at)...)
	}
	add := func(t *tree) {
		if t.end || t.children != nil {
			list = append(list, t)
		}
	}
	if at.Pointer == "" {
		add(p.run.side(at.Output))
		return list
	}
	add(&p.run.input)
	add(&p.run.output)
	for _, s := range []*sides{p.named[at.Task], p.named["*"], p.pointers[at.Pointer]} {
		if s != nil {
			add(s.side(at.Output))
		}
	}
	return list
}
