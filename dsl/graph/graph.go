// Package graph returns the tasks of a document as nodes and their possible successors as edges, for display.
//
//	g := graph.Of(doc)
//
// The graph has one node per task, one per catch, two per extension at most, and the nodes [Start] and [End]. A node's
// Parent is the task, catch or extension whose list contains it. Edges follow the flow directives as package interp
// executes them:
//
//   - Inside a list, an edge goes from each task to its possible successors. A task with a condition may be skipped; a
//     skipped task continues with the next one.
//   - An edge from a task to one of its own tasks begins the inner list, a branch or the catch.
//   - An edge from a task to its Parent ends the list. The parent's own edges say what follows.
//
// Each list is assumed to be able to end normally. Errors are not edges, except that a try leads to its catch. No edge
// connects the tasks of an extension with those that they extend. The functions are pure: the same document always gives
// the same graph.
package graph

import (
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
)

// The IDs of the nodes that are not in the document.
const (
	Start = "start"
	End   = "end"
)

// The kinds of the nodes of a catch, and of the tasks of an extension before and after others. The other kinds are those
// of tasks, and "start" and "end".
const (
	KindCatch  = "catch"
	KindBefore = "before"
	KindAfter  = "after"
)

// Graph is the control flow of a document. Nodes are in document order between start and end; edges are in the order
// of the nodes that they leave.
type Graph struct {
	Nodes []Node
	Edges []Edge
}

// Node is a task, a catch, the start or the end.
type Node struct {
	ID     string // JSON pointer of the task, catch or list of an extension in the document
	Name   string // of the task or extension; empty for a catch, the start and the end
	Kind   string
	Parent string // ID of the containing node; empty at the top level
	Label  string // what the node does, one short line; may be empty
	Pos    dsl.Pos
}

// EdgeKind is the reason for an edge.
type EdgeKind string

// The kinds of edges.
const (
	Next   EdgeKind = "next"   // the task ends; to the parent: the list ends after its last task
	Enter  EdgeKind = "enter"  // the task begins its inner list
	Branch EdgeKind = "branch" // a fork begins a branch
	Case   EdgeKind = "case"   // a case of a switch applies
	Catch  EdgeKind = "catch"  // a try catches an error
	Retry  EdgeKind = "retry"  // a catch begins the try again
	Exit   EdgeKind = "exit"   // the directive exit ends the list
	Ends   EdgeKind = "end"    // the directive end ends the run
)

// Edge is a possible step from one node to another.
type Edge struct {
	From, To string
	Kind     EdgeKind
	Label    string // the condition of the edge, or the name of the branch; may be empty
}

// Of returns the graph of a document.
func Of(doc *dsl.Document) Graph {
	b := &builder{}
	b.node(Node{ID: Start, Kind: Start, Label: scheduleLabel(doc)})
	first := End
	if len(doc.Do) > 0 {
		first = doc.Do[0].Pointer
	}
	b.edge(Start, first, Next, "")
	b.list(doc.Do, "")
	b.node(Node{ID: End, Kind: End})
	for _, e := range doc.Extensions {
		b.extension(e, KindBefore, e.Before)
		b.extension(e, KindAfter, e.After)
	}
	return b.Graph
}

// extension adds the tasks of an extension before or after others, if there are any.
func (b *builder) extension(e *dsl.Extension, kind string, tasks []*dsl.Task) {
	if len(tasks) == 0 {
		return
	}
	pointer := e.Pointer + "/" + kind
	b.node(Node{ID: pointer, Name: e.Name, Kind: kind, Label: extensionLabel(e), Pos: e.Pos})
	b.inner(pointer, tasks)
}

type builder struct{ Graph }

func (b *builder) node(n Node) { b.Nodes = append(b.Nodes, n) }

// edge adds an edge, unless there is an equal one.
func (b *builder) edge(from, to string, kind EdgeKind, label string) {
	added := Edge{From: from, To: to, Kind: kind, Label: label}
	if !b.has(added) {
		b.Edges = append(b.Edges, added)
	}
}

// has reports whether the edge is among the last ones, those that leave the same node.
func (b *builder) has(e Edge) bool {
	for i := len(b.Edges) - 1; i >= 0 && b.Edges[i].From == e.From; i-- {
		if b.Edges[i] == e {
			return true
		}
	}
	return false
}

// list is the list of tasks of one node.
type list struct {
	parent   string            // empty for the list of the document
	pointers map[string]string // by name
}

// list adds the tasks of a node, with all that they contain.
func (b *builder) list(tasks []*dsl.Task, parent string) {
	l := list{parent: parent, pointers: make(map[string]string, len(tasks))}
	for _, t := range tasks {
		l.pointers[t.Name] = t.Pointer
	}
	for i, t := range tasks {
		b.task(t, l, nextIn(tasks, i, l))
	}
}

// nextIn returns the node that follows the task with an index if no directive says otherwise.
func nextIn(tasks []*dsl.Task, i int, l list) string {
	if i+1 < len(tasks) {
		return tasks[i+1].Pointer
	}
	return l.end()
}

// end returns the node that follows the end of a list.
func (l list) end() string {
	if l.parent == "" {
		return End
	}
	return l.parent
}

// target returns the node that a directive leads to, and the kind of the edge.
func (l list) target(then dsl.Flow, next string) (string, EdgeKind) {
	switch then.Kind {
	case dsl.FlowExit:
		return l.end(), Exit
	case dsl.FlowEnd:
		return End, Ends
	case dsl.FlowGoto:
		return l.pointers[then.Task], Next
	default:
		return next, Next
	}
}

// task adds a task, the edges to its successors, and all that it contains. next is the node that follows in its list.
func (b *builder) task(t *dsl.Task, l list, next string) {
	b.node(Node{ID: t.Pointer, Name: t.Name, Kind: string(t.Body.Kind()), Parent: l.parent, Label: taskLabel(t),
		Pos: t.Pos})
	b.successors(t, l, next)
	switch body := t.Body.(type) {
	case *dsl.Do:
		b.inner(t.Pointer, body.Tasks)
	case *dsl.For:
		b.inner(t.Pointer, body.Tasks)
	case *dsl.FunctionCall:
		b.inner(t.Pointer, body.Tasks())
	case *dsl.Listen:
		if body.Each != nil {
			b.inner(t.Pointer, body.Each.Tasks)
		}
	case *dsl.Fork:
		for _, branch := range body.Branches {
			b.edge(t.Pointer, branch.Pointer, Branch, branch.Name)
		}
		for _, branch := range body.Branches {
			own := list{parent: t.Pointer}
			b.task(branch, own, own.end())
		}
	case *dsl.Try:
		b.try(t, body, l, next)
	}
}

// inner adds the list of tasks of a node.
func (b *builder) inner(pointer string, tasks []*dsl.Task) {
	if len(tasks) > 0 {
		b.edge(pointer, tasks[0].Pointer, Enter, "")
	}
	b.list(tasks, pointer)
}

// successors adds the edges from a task to the nodes that may follow it.
func (b *builder) successors(t *dsl.Task, l list, next string) {
	if s, ok := t.Body.(*dsl.Switch); ok {
		b.cases(t, s, l, next)
	} else if _, raises := t.Body.(*dsl.Raise); !raises {
		to, kind := l.target(t.Then, next)
		b.edge(t.Pointer, to, kind, "")
	}
	if t.If != nil && !b.has(Edge{From: t.Pointer, To: next, Kind: Next}) {
		b.edge(t.Pointer, next, Next, clip("unless "+t.If.Source))
	}
}

// cases adds the edges of a switch: its cases, and its own directive if no case applies to all data.
func (b *builder) cases(t *dsl.Task, s *dsl.Switch, l list, next string) {
	applies := false
	for _, c := range s.Cases {
		label := c.Name
		if c.When != nil {
			label = clip(c.When.Source)
		}
		applies = applies || c.When == nil
		to, _ := l.target(c.Then, next)
		b.edge(t.Pointer, to, Case, label)
	}
	if !applies {
		to, kind := l.target(t.Then, next)
		b.edge(t.Pointer, to, kind, "otherwise")
	}
}

// try adds the list and the catch of a try.
func (b *builder) try(t *dsl.Task, body *dsl.Try, l list, next string) {
	c := body.Catch
	pointer := t.Pointer + "/catch"
	b.edge(t.Pointer, pointer, Catch, caughtLabel(c))
	b.inner(t.Pointer, body.Tasks)
	b.node(Node{ID: pointer, Kind: KindCatch, Parent: t.Pointer, Label: caughtLabel(c), Pos: c.Pos})
	if c.Retry != nil {
		b.edge(pointer, t.Pointer, Retry, retryLabel(c.Retry))
	}
	if c.HasThen {
		to, kind := l.target(c.Then, next)
		b.edge(pointer, to, kind, "")
	} else if c.Handles() {
		b.edge(pointer, t.Pointer, Next, "")
	}
	b.inner(pointer, c.Tasks)
}

// maxLabel is the maximum number of characters of a label.
const maxLabel = 80

// clip returns a text as one line of at most maxLabel characters.
func clip(text string) string {
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) > maxLabel {
		line = append(line[:maxLabel-1], '…')
	}
	return string(line)
}
