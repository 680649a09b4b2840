// Package redact says what is sensitive in the values of runs, and puts marks in its place.
//
//	policy := redact.For(doc)                   // once per document
//	var taint redact.Taint                      // once per run
//	shown, found := policy.Value(redact.Place{}, input, &taint)
//	taint.Add(found...)
//	text, changed := taint.Text(problem.Detail) // what stood at a sensitive place, wherever it comes up again
//
// Sensitive is what a document names in `metadata.sensitive`, what its schemas call `writeOnly` or `format: password`, and what stands
// under a usual name (see [Named]). The package is pure: it keeps nothing and knows nothing of where values are kept.
package redact

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
)

// Mark stands where a sensitive value was.
const Mark = "\u27e6redacted\u27e7"

// Place is which value of a run is looked at.
type Place struct {
	// Pointer is the task's place in the document; empty for the run's own input and output. Task is its name.
	Pointer, Task string
	// Output tells the output from the input.
	Output bool
}

// tree is a set of JSON pointers; "*" stands for every name and index.
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
	all      bool
	run      sides
	named    map[string]*sides // by the task's name; "*" is every task
	pointers map[string]*sides // by the task's pointer
	cached   bool              // whether any tree holds anything
	both     []*Policy         // what it is made of, when it is of two
	room     int               // how many parts of schemas may still be looked at
}

// Inherited is what is sensitive in a run beside what its own document says.
type Inherited struct {
	// Texts are hidden wherever they come up. In a continued execution, what was found so far is among them.
	Texts []string `json:"texts,omitempty"`
	// Documents are the hashes of those whose places count too, All tells that everything is sensitive.
	Documents []string `json:"documents,omitempty"`
	All       bool     `json:"all,omitempty"`
}

// Everything is the policy for runs of which nothing is known: all of it is sensitive.
func Everything() *Policy { return &Policy{all: true} }

// With is what either policy hides.
func (p *Policy) With(other *Policy) *Policy {
	return &Policy{all: p.all || other.all, cached: p.cached || other.cached, both: []*Policy{p, other}}
}

// All tells whether everything is sensitive, Any whether anything is beside what stands under a usual name.
func (p *Policy) All() bool { return p.all }

// Any is told of with All.
func (p *Policy) Any() bool { return p.all || p.cached }

// For compiles the policy of a document. What [Problems] reports is left out.
func For(doc *dsl.Document) *Policy {
	p := &Policy{named: map[string]*sides{}, pointers: map[string]*sides{}, room: mostNodes}
	for _, pointer := range sensitive(doc.Metadata) {
		p.name(pointer)
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

// name adds a pointer of document.metadata.sensitive, if it is one.
func (p *Policy) name(pointer string) {
	task, output, parts, ok := place(pointer)
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

// place takes a pointer of document.metadata.sensitive apart: the task that it names, which side it is on, and where in it.
func place(pointer string) (task string, output bool, parts []string, ok bool) {
	parts = strings.Split(pointer, "/")
	if len(parts) < 2 || parts[0] != "" {
		return "", false, nil, false
	}
	parts = parts[1:]
	if parts[0] == "tasks" && len(parts) > 2 {
		task, parts = unescape(parts[1]), parts[2:]
	}
	if parts[0] != "input" && parts[0] != "output" {
		return "", false, nil, false
	}
	return task, parts[0] == "output", parts[1:], true
}

func (p *Policy) add(at *tree, parts []string) {
	for _, part := range parts {
		at = at.at(unescape(part))
	}
	at.end, p.cached = true, true
}

func unescape(part string) string { return strings.NewReplacer("~1", "/", "~0", "~").Replace(part) }

// tasks looks for schemas and sensitive places of tasks, at any depth: a task is an object, and what is none has a pointer that no
// step has.
func (p *Policy) tasks(pointer string, node any) {
	switch node := node.(type) {
	case []any:
		for i, item := range node {
			p.tasks(fmt.Sprintf("%s/%d", pointer, i), item)
		}
	case map[string]any:
		p.task(pointer, node)
		for _, name := range slices.Sorted(maps.Keys(node)) {
			p.tasks(pointer+"/"+escape(name), node[name])
		}
	}
}

func (p *Policy) task(pointer string, task map[string]any) {
	var own sides
	before := p.cached
	p.cached = false
	for _, name := range []string{"input", "output"} {
		model, _ := task[name].(map[string]any)
		schema, _ := model["schema"].(map[string]any)
		p.schema(own.side(name == "output"), schema["document"])
	}
	metadata, _ := task["metadata"].(map[string]any)
	for _, text := range sensitive(metadata) {
		if task, output, parts, ok := place(text); ok && task == "" {
			p.add(own.side(output), parts)
		}
	}
	if p.cached {
		p.pointers[pointer] = &own
	}
	p.cached = p.cached || before
}

// trees are those that apply to a place. What is sensitive in the run's own input is so wherever it is passed on as it is: in the
// inputs and outputs of its tasks.
func (p *Policy) trees(at Place) []*tree {
	if !p.cached {
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
