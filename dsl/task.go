package dsl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/internal/suggest"
	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
)

// taskKind is one row of the table of task kinds: the key that selects the kind, the other keys it allows, and the
// reader of its body.
type taskKind struct {
	key   string
	extra []string
	read  func(p *parser, task value, c taskContext) Body
}

func taskKinds() []taskKind {
	return []taskKind{
		{"call", []string{"with"}, (*parser).callTask},
		{"do", nil, (*parser).doTask},
		{"for", []string{"while", "do"}, (*parser).forTask},
		{"fork", nil, (*parser).forkTask},
		{"raise", nil, (*parser).raiseTask},
		{"set", nil, (*parser).setTask},
		{"switch", nil, (*parser).switchTask},
		{"try", []string{"catch"}, (*parser).tryTask},
		{"wait", nil, (*parser).waitTask},
		{"emit", nil, (*parser).emitTask},
		{"listen", []string{"foreach"}, (*parser).listenTask},
		{"run", nil, (*parser).runTask},
	}
}

// baseKeys are the keys every task may have.
func baseKeys() []string {
	return []string{"if", "input", "output", "export", "timeout", "then", "metadata"}
}

// taskContext is the context of a task: the variables available to it and the list it is in. Branches of a fork must
// not redirect to each other, because all of them run.
type taskContext struct {
	scope  scope
	names  []string
	self   string // the task's own name
	branch bool
}

func (p *parser) taskList(v value, s scope) []*Task { return p.tasks(v, s, false) }

func (p *parser) tasks(v value, s scope, branches bool) []*Task {
	if v.node.Kind == tree.Object {
		p.report(CodeType, v, "put a hyphen before each task: - name: …", "a list of tasks must be an array, got an object")
		return nil
	}
	if !p.is(v, tree.Array, "a list of tasks") {
		return nil
	}
	c := taskContext{scope: s, branch: branches}
	for _, item := range v.node.Items {
		for _, m := range item.Members {
			c.names = append(c.names, m.Key)
		}
	}
	out := make([]*Task, 0, len(v.node.Items))
	seen := make(map[string]Pos)
	before := p.errorCount
	for i := range v.node.Items {
		if p.countTask(v.item(i)); p.done(v) {
			break
		}
		if name, body, ok := p.named(v.item(i), "a task", seen); ok {
			out = append(out, p.task(name, i, body, c))
		}
	}
	if !branches && p.errorCount == before {
		p.checkFlow(v)
	}
	return out
}

// named splits an item of a list of named entries, an object with exactly one member, into its name and value.
func (p *parser) named(v value, what string, seen map[string]Pos) (string, value, bool) {
	if v.node.Kind != tree.Object || len(v.node.Members) != 1 {
		suggestion := "write - name: {…}"
		if len(v.node.Members) > 1 {
			suggestion = "indent what belongs to the name, or put a hyphen before each name"
		}
		p.report(CodeType, v, suggestion, "%s must be an object with its name as the only key, got %s", what,
			describe(v.node))
		return "", value{}, false
	}
	m := v.node.Members[0]
	body := v.child(m)
	if first, twice := seen[m.Key]; twice {
		p.add(Violation{
			Code: CodeDuplicateName, Path: body.path, Pos: Pos(m.Pos), Suggestion: "rename one of them",
			Message: fmt.Sprintf("the name %q is already used in this list, in line %d", m.Key, first.Line),
		})
	} else {
		seen[m.Key] = Pos(m.Pos)
	}
	return m.Key, body, true
}

func describe(n *tree.Node) string {
	if n.Kind == tree.Object {
		return fmt.Sprintf("an object with %d keys", len(n.Members))
	}
	return n.Kind.String()
}

func (p *parser) task(name string, index int, v value, c taskContext) *Task {
	t := &Task{Name: name, Index: index, Pointer: v.path, Pos: p.taskPosition(v.key), Definition: v.node.Value()}
	if !p.is(v, tree.Object, fmt.Sprintf("the task %q", name)) {
		return t
	}
	what := fmt.Sprintf("the task %q", name)
	present := presentKinds(v.node)
	known := baseKeys()
	c.self = name
	switch len(present) {
	case 0:
		p.report(CodeTaskKind, v, p.kindSuggestion(v.node), "%s says nothing to do", what)
		known = append(known, allKindKeys()...)
	case 1:
		kind := present[0]
		known = append(append(known, kind.key), kind.extra...)
		t.Body = kind.read(p, v, c)
		if !p.inExtension {
			p.kinds[Kind(kind.key)] = true
		}
	default:
		keys := make([]string, len(present))
		for i, k := range present {
			keys[i] = k.key
			known = append(append(known, k.key), k.extra...)
		}
		p.report(CodeTaskKind, v, "make each a task of its own", "%s must be of one kind, got %s", what,
			strings.Join(keys, ", "))
	}
	p.baseProperties(t, v, c)
	if len(present) > 0 {
		p.unknownKeys(v, what, known)
	} else {
		p.unknownKeysOfNoKind(v, what, known)
	}
	return t
}

// unknownKeysOfNoKind reports unknown keys, except those that look like a mistyped kind: the violation about the
// missing kind covers them.
func (p *parser) unknownKeysOfNoKind(v value, what string, known []string) {
	rest := &tree.Node{Kind: tree.Object, Pos: v.node.Pos}
	for _, m := range v.node.Members {
		if p.mistypedKind(m.Key) == "" {
			rest.Members = append(rest.Members, m)
		}
	}
	p.unknownKeys(value{node: rest, path: v.path}, what, known)
}

func (p *parser) mistypedKind(key string) string {
	if slices.Contains(baseKeys(), key) {
		return ""
	}
	return suggest.Closest(key, kindKeys())
}

func (p *parser) kindSuggestion(n *tree.Node) string {
	for _, m := range n.Members {
		if s := p.mistypedKind(m.Key); s != "" {
			return fmt.Sprintf("%q: %s", m.Key, s)
		}
	}
	return "give it one of " + strings.Join(kindKeys(), ", ")
}

func kindKeys() []string {
	var keys []string
	for _, k := range taskKinds() {
		keys = append(keys, k.key)
	}
	return keys
}

func allKindKeys() []string {
	var keys []string
	for _, k := range taskKinds() {
		keys = append(append(keys, k.key), k.extra...)
	}
	return keys
}

// presentKinds returns the kinds whose key a task has. A key that another present kind allows, as for allows do, is not
// a kind there.
func presentKinds(n *tree.Node) []taskKind {
	kinds := slices.DeleteFunc(taskKinds(), func(k taskKind) bool { return n.Get(k.key) == nil })
	return slices.DeleteFunc(slices.Clone(kinds), func(k taskKind) bool {
		return slices.ContainsFunc(kinds, func(other taskKind) bool { return slices.Contains(other.extra, k.key) })
	})
}

func (p *parser) baseProperties(t *Task, v value, c taskContext) {
	read := func(key string, f func(value)) {
		if member, ok := v.member(key); ok {
			f(member)
		}
	}
	read("if", func(v value) { t.If = p.expr(v, "if", c.scope.at(slotTask)) })
	read("input", func(v value) { t.Input = p.input(v, c.scope.at(slotTaskInput), true) })
	read("output", func(v value) { t.Output = p.output(v, c.scope.at(slotTaskOutput), true) })
	read("export", func(v value) { t.Export = p.export(v, c.scope.at(slotTaskExport), true) })
	read("timeout", func(v value) { t.Timeout = p.timeout(v, c.scope.at(slotTask)) })
	read("then", func(v value) { t.Then = p.flow(v, c) })
	read("metadata", func(metadata value) {
		t.Metadata = p.plainObject(metadata, "metadata")
		p.checkRepeat(metadata, v)
		_, listens := v.member("listen")
		p.checkSetting(metadata, SinceKey, SinceListen, listens, "listen")
	})
}

// The settings of the platform in a task's metadata, each with its only value.
const (
	// RepeatKey controls whether the platform may send a call, or execute a program, again if its result was lost.
	// RepeatNever forbids it, RepeatAllowed allows it for a program and for a Go function.
	RepeatKey     = "signalbox.repeat"
	RepeatNever   = "never"
	RepeatAllowed = "allowed"
	// SinceKey controls which events a listen task takes: by default those that were accepted since the run's start.
	SinceKey    = "signalbox.since"
	SinceListen = "listen"
)

// ForbidsRepeat reports whether the work of the task must not be done again if its result was lost. A call may be sent
// again unless the metadata forbids it. A program that may have effects, and a Go function that is not idempotent, are
// not executed again unless the metadata allows it.
func (t *Task) ForbidsRepeat() bool {
	setting := t.Metadata[RepeatKey]
	switch b := t.Body.(type) {
	case *RunProgram:
		if !b.Repeatable() {
			return setting != RepeatAllowed
		}
	case *GoCall:
		if !b.Idempotent {
			return setting != RepeatAllowed
		}
	}
	return setting == RepeatNever
}

// IgnoresEarlier reports whether the task's metadata limits a listen task to events that are accepted after it has
// begun to wait.
func (t *Task) IgnoresEarlier() bool { return t.Metadata[SinceKey] == SinceListen }

// checkRepeat checks the setting that controls repetition.
func (p *parser) checkRepeat(metadata, task value) {
	v, given := metadata.member(RepeatKey)
	run, runs := task.member("run")
	call, calls := task.member("call")
	program := runs && run.node.Kind == tree.Object && run.node.Get("workflow") == nil
	if !given || !program && (!calls || call.node.Text == "http") {
		p.checkSetting(metadata, RepeatKey, RepeatNever, calls, "call")
		return
	}
	p.oneOf(v, RepeatKey, RepeatNever, RepeatAllowed)
}

// checkSetting checks a setting of the platform in a task's metadata, which concerns only tasks of a kind.
func (p *parser) checkSetting(metadata value, key, only string, concerned bool, kind string) {
	v, ok := metadata.member(key)
	if !ok {
		return
	}
	if v.node.Kind != tree.String || v.node.Text != only {
		p.report(CodeValue, v, "write "+key+": "+only+", or leave it out", "%s must be %s", key, only)
		return
	}
	if !concerned {
		p.report(CodeValue, v, "move it to the metadata of the task that "+kind+"s", "%s concerns only tasks that %s", key,
			kind)
	}
}

// suggestedTargets returns the names that a mistyped target may have been meant to be: not the task itself, which would
// repeat for ever, and no directive that is much shorter.
func (c taskContext) suggestedTargets(target string) []string {
	names := slices.DeleteFunc(slices.Clone(c.names), func(name string) bool { return name == c.self })
	for _, directive := range []string{"continue", "exit", "end"} {
		if len(target) <= len(directive)+1 {
			names = append(names, directive)
		}
	}
	return names
}

// flow reads a flow directive. A target cannot have the name of a directive.
func (p *parser) flow(v value, c taskContext) Flow {
	name := p.text(v, "then")
	switch {
	case v.node.Kind != tree.String, name == "continue":
		return Flow{}
	case name == "exit":
		return Flow{Kind: FlowExit}
	case name == "end":
		return Flow{Kind: FlowEnd}
	case c.branch:
		p.report(CodeValue, v, "use continue, exit or end",
			"a branch of a fork cannot go to the task %q, as all branches run", name)
	case !slices.Contains(c.names, name):
		suggestion := suggest.Name(name, c.suggestedTargets(name))
		p.report(CodeUnknownReference, v, suggestion,
			"there is no task %q in this list; a task can only go to tasks of its own list", name)
	}
	return Flow{Kind: FlowGoto, Task: name}
}
