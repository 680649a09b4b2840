package workflowtest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// maxSteps limits the steps of one case: a run that repeats for ever fails, with the error of a run that is over the
// limit of the platform.
const maxSteps = 100_000

// runID is the ID of the runs of cases.
const runID = "test"

// runner drives the machine of one case. Its clock jumps from one occurrence to the next.
type runner struct {
	doc     *dsl.Document
	c       *Case
	machine *interp.Machine
	began   time.Time
	now     time.Time

	agenda   []occurrence
	sequence int
	queue    []Event // events that are published when a task waits, in order

	scripts   *scripts
	mocks     []*mock
	compiler  *jq.Compiler
	listeners []*listener
	inbox     []accepted
	taken     []int64       // positions of the events that the run has reported as consumed
	steps     map[int64]int // index in the result by number
	result    *Result
	stopped   bool // a mismatch prevents the run from going on
}

// occurrence is something that will happen.
type occurrence struct {
	at       time.Time
	sequence int
	effect   interp.EffectID // 0: of none
	child    string          // key of the run that ends; empty: of none
	act      func()
}

// listener is the dispatcher's part of a listen task.
type listener struct {
	interp.Listen
	task      *dsl.Task
	matchers  []*eventfilter.Matcher
	committed bool
}

// accepted is an event that was published.
type accepted struct {
	position int64
	event    map[string]any
}

// execute runs a case whose mocks after the first own ones belong to its file.
func execute(ctx context.Context, doc *dsl.Document, c *Case, shared []Mock, programs *scripts) *Result {
	began := c.Now
	if began.IsZero() {
		began = DefaultNow()
	}
	r := &runner{
		doc: doc, c: c, scripts: programs, began: began, now: began, compiler: jq.NewCompiler(), steps: map[int64]int{},
		result: &Result{Case: c.Name, Pos: c.at.pos, coverage: newCoverage(doc)},
	}
	limits := interp.DefaultLimits()
	limits.Steps, limits.Records = maxSteps, interp.RecordLimits{}
	r.machine = interp.New(doc, interp.Start{
		RunID: runID, Input: jq.Normalize(c.Input), At: began,
		Source:      "/projects/default/workflows/" + doc.Namespace + "/" + doc.Name + "/runs/" + runID,
		RuntimeName: "signalbox", RuntimeVersion: fmt.Sprint(interp.Version),
	}, limits)
	r.machine.OnBranch(r.result.coverage.branch)
	r.addMocks(c.Mocks, shared)
	for _, e := range c.Events {
		if !e.HasAt {
			r.queue = append(r.queue, e)
			continue
		}
		r.schedule(occurrence{at: began.Add(e.At), act: func() { r.publish(r.complete(e.Event)) }})
	}
	r.run(ctx)
	r.result.Duration = r.now.Sub(r.began)
	for i := range r.result.Steps {
		r.result.coverage.entered(&r.result.Steps[i])
	}
	r.check()
	return r.result
}

// run drives the machine until the run has ended, waits for ever or cannot go on.
func (r *runner) run(ctx context.Context) {
	for !r.stopped {
		if err := ctx.Err(); err != nil {
			r.stop(Mismatch{What: "run", Message: "the case was interrupted: " + err.Error()})
			return
		}
		effects := r.machine.Advance(r.now)
		r.takeRecords()
		for _, e := range effects {
			r.perform(ctx, e)
		}
		if outcome, done := r.machine.Done(); done {
			r.result.Status, r.result.Output, r.result.Error = outcome.Status, outcome.Output, outcome.Error
			return
		}
		if r.machine.Yielded() {
			continue
		}
		if !r.next() {
			r.result.Status = interp.StatusWaiting
			return
		}
	}
}

// next lets the next thing happen. It returns false if there is nothing left.
func (r *runner) next() bool {
	first := -1
	for i, o := range r.agenda {
		if f := first; f < 0 || o.at.Before(r.agenda[f].at) ||
			o.at.Equal(r.agenda[f].at) && o.sequence < r.agenda[f].sequence {
			first = i
		}
	}
	if first >= 0 && !r.agenda[first].at.After(r.now) || !r.publishQueued() {
		if first < 0 {
			return false
		}
		o := r.agenda[first]
		r.agenda = slices.Delete(r.agenda, first, first+1)
		if o.at.After(r.now) {
			r.now = o.at
		}
		o.act()
	}
	return true
}

// publishQueued publishes the first event in the queue if the task that it waits for listens.
func (r *runner) publishQueued() bool {
	if len(r.queue) == 0 {
		return false
	}
	e := r.queue[0]
	waits := func(l *listener) bool { return l.committed && (e.Task == "" || isNamed(l.task, e.Task)) }
	if !slices.ContainsFunc(r.listeners, waits) {
		return false
	}
	r.queue = r.queue[1:]
	r.publish(r.complete(e.Event))
	return true
}

func (r *runner) schedule(o occurrence) {
	r.sequence++
	o.sequence = r.sequence
	r.agenda = append(r.agenda, o)
}

func (r *runner) drop(id interp.EffectID) {
	r.agenda = slices.DeleteFunc(r.agenda, func(o occurrence) bool { return o.effect == id && id != 0 })
}

// stop ends a run that cannot go on.
func (r *runner) stop(m Mismatch) {
	r.stopped = true
	r.result.Mismatches = append(r.result.Mismatches, m)
}

func (r *runner) perform(ctx context.Context, e interp.Effect) {
	switch e := e.(type) {
	case interp.StartTimer:
		r.schedule(occurrence{at: e.Deadline, effect: e.ID, act: func() { r.machine.Fire(e.ID, r.now) }})
	case interp.CancelTimer:
		r.drop(e.ID)
	case interp.Call:
		r.call(ctx, e)
	case interp.CancelCall:
		r.drop(e.ID)
	case interp.Listen:
		r.listen(e)
	case interp.Unlisten:
		for _, l := range r.listeners {
			if l.Listener == e.Listener {
				r.drop(l.ID)
			}
		}
		r.listeners = slices.DeleteFunc(r.listeners, func(l *listener) bool { return l.Listener == e.Listener })
	case interp.Emit:
		r.result.Events = append(r.result.Events, e.Event)
		r.schedule(occurrence{at: r.now, effect: e.ID, act: func() {
			r.publish(e.Event)
			r.machine.Complete(e.ID, interp.Result{}, r.now)
		}})
	case interp.RunProgram:
		r.program(ctx, e)
	case interp.CallGo:
		r.callGo(e)
	case interp.StartChild:
		r.child(e)
	case interp.CancelChild:
		r.agenda = slices.DeleteFunc(r.agenda, func(o occurrence) bool { return o.child == e.Key })
	}
}

// listen commits a listener, and delivers the earlier events that it takes.
func (r *runner) listen(e interp.Listen) {
	l := &listener{Listen: e, task: r.machine.TaskOf(e.ID)}
	if l.task == nil {
		return // it was canceled in the same turn
	}
	for _, filter := range e.Spec.Filters {
		matcher, err := eventfilter.Compile(filter, r.compiler)
		if err != nil {
			r.stop(Mismatch{What: "run", Message: fmt.Sprintf("listen of the task %q: %v", l.task.Name, err)})
			return
		}
		l.matchers = append(l.matchers, matcher)
	}
	r.listeners = append(r.listeners, l)
	r.schedule(occurrence{at: r.now, effect: e.ID, act: func() {
		l.committed = true
		r.taken = append(r.taken, l.Taken...)
		var earlier []accepted
		for _, a := range r.inbox {
			if !l.FromStart || a.position <= l.After || slices.Contains(r.taken, a.position) || !l.matches(a.event) {
				continue
			}
			if earlier = append(earlier, a); l.Single {
				break
			}
		}
		r.machine.Complete(e.ID, interp.Result{}, r.now)
		for _, a := range earlier {
			r.machine.Deliver(l.Listener, a.position, a.event, r.now)
		}
	}})
}

func (l *listener) matches(event map[string]any) bool {
	return len(l.matchers) == 0 ||
		slices.ContainsFunc(l.matchers, func(m *eventfilter.Matcher) bool { return m.Match(event).OK })
}

// complete adds the attributes that every event has.
func (r *runner) complete(event map[string]any) map[string]any {
	out := map[string]any{"specversion": "1.0", "id": fmt.Sprintf("event-%d", len(r.inbox)+1), "source": "/test"}
	for name, value := range event {
		out[name] = value
	}
	return out
}

// publish accepts an event and delivers it to the listeners that it matches.
func (r *runner) publish(event map[string]any) {
	a := accepted{int64(len(r.inbox) + 1), event}
	r.inbox = append(r.inbox, a)
	for _, l := range slices.Clone(r.listeners) {
		if l.committed && l.matches(event) {
			r.machine.Deliver(l.Listener, a.position, event, r.now)
		}
	}
}

// takeRecords adds the records of steps to the result.
func (r *runner) takeRecords() {
	_, records := r.machine.TakeRecords()
	for _, s := range records {
		step := Step{
			Path: s.Path, Pointer: s.Pointer, Task: s.Task, Kind: s.Kind, Status: s.Status, At: s.StartedAt.Sub(r.began),
			Attempt: s.Attempt, Error: s.Error, Pos: r.result.coverage.position(s.Pointer),
		}
		if s.EndedAt != nil {
			step.Duration = s.EndedAt.Sub(s.StartedAt)
		}
		i, seen := r.steps[s.Number]
		if !seen {
			i = len(r.result.Steps)
			r.steps[s.Number] = i
			r.result.Steps = append(r.result.Steps, step)
		}
		r.result.Steps[i] = step
	}
}
