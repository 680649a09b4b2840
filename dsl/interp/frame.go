package interp

import (
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
)

// role defines the relation of a frame to its parent, and so the effect of its end.
type role string

const (
	roleTask   role = "task"   // a task in a list
	roleBranch role = "branch" // a task that is a fork's branch
	roleDo     role = "do"     // the list of a do task or of the workflow itself
	roleLoop   role = "loop"   // the list of a for task, once per iteration
	roleTry    role = "try"    // the list of a try task, once per attempt
	roleCatch  role = "catch"  // the list that handles a caught error
	roleItem   role = "item"   // the list of a listen task's foreach, once per event
	roleBefore role = "before" // the list that an extension runs before a task
	roleAfter  role = "after"  // the list that an extension runs after a task
	// the list with the function that a task calls
	roleFunction role = "function"
)

// phase defines the action of a task's frame in its turn.
type phase string

const (
	phaseEnter   phase = "enter"   // begin the task
	phaseIterate phase = "iterate" // begin the next iteration of a for
	phaseAttempt phase = "attempt" // begin the next attempt of a try
	phaseCall    phase = "call"    // start the call, the listener, the publication or the child
	phaseConsume phase = "hear"    // consume the next event
	phaseFork    phase = "fork"    // enter the branches of a fork that are not entered yet
	phaseCheck   phase = "check"   // read the schema of a check
	phaseBlocked phase = "blocked" // nothing: children, a timer or a call continue the task
)

// frame is one open task or one open list of tasks. Frames form a tree; a list has at most one child, its current task.
type frame struct {
	id       int64
	parent   *frame
	children []*frame
	role     role
	task     *dsl.Task   // nil for a list
	list     []*dsl.Task // nil for a task
	binds    []binding   // variables that a list defines for its tasks

	// path is the step's path. key is the same, but counts only attempts after a known response.
	path, key string

	next   int  // list: index of the task to enter next, or of the current one
	jumps  int  // list: jumps back so far
	exited bool // list: one of its tasks left it with exit
	value  any  // list: the data; task: its raw input

	phase     phase
	step      *step
	startedAt time.Time
	input     any // transformed input
	call      EffectID
	loop      *loop
	try       *attempts
	fork      *forkBranches
	listener  *listener
	child     *child
	emitted   map[string]any // the event that is being published
	source    *Source        // the source of a program while it is being read
	check     *check         // nil unless a schema is being read
	extended  *extended      // nil unless an extension applies to the task
	alarms    []*alarm

	queued, gone bool
	descriptor   map[string]any // $task, created when first needed
}

// binding is a variable: a for's item and index, a catch's error.
type binding struct {
	name  string
	value any
}

// loop is the state of a for task.
type loop struct {
	items []any // from position on
	base  int   // index of items[0]
	pos   int
	value any // the data passed from one iteration to the next
}

// attempts is the state of a try task.
type attempts struct {
	number  int // of the current attempt, from 1
	scope   int // number of attempts that ended with a known response
	firstAt time.Time
}

// forkBranches is the state of a fork task.
type forkBranches struct {
	outputs []any
	open    int
	entered int
	first   *raised // of a competing fork: the first failure
}

func (m *Machine) newFrame(parent *frame, r role) *frame {
	f := &frame{id: m.newID(), parent: parent, role: r}
	if parent != nil {
		parent.children = append(parent.children, f)
	}
	return f
}

// newList opens a list of tasks and queues it.
func (m *Machine) newList(parent *frame, r role, tasks []*dsl.Task, value any) *frame {
	f := m.newFrame(parent, r)
	f.list, f.value = tasks, value
	if parent != nil {
		f.path, f.key = parent.path, parent.key
		switch {
		case r == roleLoop:
			segment := "/for/" + strconv.Itoa(parent.loop.pos)
			f.path, f.key = f.path+segment, f.key+segment
		case r == roleItem:
			segment := "/foreach/" + strconv.Itoa(parent.listener.count)
			f.path, f.key = f.path+segment, f.key+segment
		case r == roleTry && parent.try.number > 1:
			f.path += "/retry/" + strconv.Itoa(parent.try.number)
			if parent.try.scope > 0 {
				f.key += "/scope/" + strconv.Itoa(parent.try.scope)
			}
		}
	}
	m.enqueue(f)
	return f
}

// newTask opens a task, gives it the next step number and queues it.
func (m *Machine) newTask(parent *frame, r role, task *dsl.Task, value any) {
	f := m.newFrame(parent, r)
	f.task, f.value, f.phase, f.startedAt = task, value, phaseEnter, m.now
	rel := task.Pointer
	if owner := ownerOf(parent); owner != nil {
		rel = strings.TrimPrefix(rel, owner.Pointer)
	}
	if parent.role == roleItem {
		rel = strings.TrimPrefix(rel, "/foreach")
	}
	if parent.jumps > 0 {
		rel += "#" + strconv.Itoa(parent.jumps+1)
	}
	f.path, f.key = parent.path+rel, parent.key+rel
	f.step = m.recorder.open(f, m.now)
	m.noteDeadline(f)
	m.enqueue(f)
}

// ownerOf returns the task that a list or a branch belongs to, nil for the workflow's own list.
func ownerOf(parent *frame) *dsl.Task {
	if parent.task != nil {
		return parent.task
	}
	if parent.parent != nil {
		return parent.parent.task
	}
	return nil
}

// attempt returns the number of the current attempt of the nearest try around f, f included.
func (f *frame) attempt() int {
	for ; f != nil; f = f.parent {
		if f.try != nil {
			return f.try.number
		}
	}
	return 1
}

// deadline returns the time at which the task's own timeout ends it; zero if it has none.
func (f *frame) deadline() time.Time {
	for _, a := range f.alarms {
		if a.Kind == alarmTimeout {
			return a.At
		}
	}
	return time.Time{}
}

func (m *Machine) enqueue(f *frame) {
	if !f.queued && !f.gone {
		f.queued = true
		m.ready = append(m.ready, f)
	}
}

// remove removes a frame without children from the tree.
func (m *Machine) remove(f *frame) {
	f.gone = true
	m.closeListener(f)
	m.cancelChild(f)
	for len(f.alarms) > 0 {
		m.dropAlarm(f.alarms[len(f.alarms)-1])
	}
	if f.parent == nil {
		return
	}
	for i, k := range f.parent.children {
		if k == f {
			f.parent.children = append(f.parent.children[:i], f.parent.children[i+1:]...)
			return
		}
	}
}

// cancelTree cancels a frame and everything under it, children first and in order. It reports whether a call was
// canceled.
func (m *Machine) cancelTree(f *frame) (cutOff bool) {
	cutOff = m.cancelPending(f)
	if f.step != nil {
		m.recorder.close(f.step, StatusCanceled, m.now)
	}
	m.remove(f)
	return cutOff
}

// cancelPending cancels everything a frame waits for: its children and its own call. It reports whether a call was
// canceled.
func (m *Machine) cancelPending(f *frame) (cutOff bool) {
	cutOff = m.cancelChildren(f)
	if f.call != 0 && f.listener == nil && f.child == nil { // a listener and a child are removed with their frame
		cutOff = f.check == nil || cutOff // a schema that was being read says nothing of the work of the task
		delete(m.calls, f.call)
		m.effects = append(m.effects, CancelCall{ID: f.call})
		f.call = 0
	}
	return cutOff
}

func (m *Machine) cancelChildren(f *frame) (cutOff bool) {
	for len(f.children) > 0 {
		cutOff = m.cancelTree(f.children[0]) || cutOff
	}
	return cutOff
}

// runTurn runs one step of a frame.
func (m *Machine) runTurn(f *frame) {
	switch {
	case f.task == nil:
		m.nextTask(f)
	case f.phase == phaseEnter:
		m.enter(f)
	case f.phase == phaseIterate:
		m.iterate(f)
	case f.phase == phaseAttempt:
		m.tryBody(f)
	case f.phase == phaseCall:
		m.startCall(f)
	case f.phase == phaseConsume:
		m.consumeNext(f)
	case f.phase == phaseFork:
		m.enterBranches(f)
	case f.phase == phaseCheck:
		m.readSchema(f)
	}
}

// nextTask enters the next task of a list, or ends the list.
func (m *Machine) nextTask(f *frame) {
	if f.next < len(f.list) {
		if !m.admits(f, f.list[f.next]) {
			return
		}
		m.newTask(f, roleTask, f.list[f.next], f.value)
		return
	}
	p, value := f.parent, f.value
	m.remove(f)
	switch f.role {
	case roleLoop:
		p.loop.value = value
		p.loop.pos++
		p.phase = phaseIterate
		m.enqueue(p)
	case roleTry:
		p.step.endAttempt(m.now, nil)
		m.finish(p, value, p.task.Then)
	case roleCatch:
		m.finish(p, value, catchThen(p.task))
	case roleItem:
		m.itemDone(p, value, f.binds)
	case roleBefore:
		m.beforeDone(p, value, f.exited)
	case roleAfter:
		m.afterDone(p)
	default:
		if p == nil {
			m.root = nil
			m.conclude(value)
			return
		}
		m.finish(p, value, p.task.Then)
	}
}

// follow continues at the target of a finished task's flow directive.
func (m *Machine) follow(f *frame, output any, then dsl.Flow) {
	p := f.parent
	m.remove(f)
	if then.Kind == dsl.FlowEnd {
		m.endRun(p, output)
		return
	}
	if p.task != nil {
		m.branchDone(p, f, output)
		return
	}
	p.value = output
	switch then.Kind {
	case dsl.FlowExit:
		p.next, p.exited = len(p.list), true
	case dsl.FlowGoto:
		from := p.next
		for i, t := range p.list {
			if t.Name == then.Task {
				p.next = i
			}
		}
		if p.next <= from {
			p.jumps++
		}
	default:
		p.next++
	}
	m.enqueue(p)
}

// endRun ends the run from within f: the tasks around it are completed with the output, everything else is canceled.
func (m *Machine) endRun(f *frame, output any) {
	for ; f != nil; f = f.parent {
		m.cancelChildren(f)
		if f.step != nil {
			f.step.output, f.step.hasOutput = output, true
			m.recorder.close(f.step, StatusCompleted, m.now)
		}
		m.remove(f)
	}
	m.root = nil
	m.conclude(output)
}
