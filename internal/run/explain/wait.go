package explain

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/taskindex"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Kinds of waits beside [run.WaitingKinds].
const (
	KindCall        = "call"        // the answer of a service
	KindProgram     = "program"     // the end of a program
	KindPublication = "publication" // the acceptance of an event that the run emits
	KindEngine      = "engine"      // Temporal, which cannot be reached
	KindStarting    = "starting"    // Temporal's confirmation of the start
	KindWorker      = "worker"      // a worker that takes the first workflow task
	KindUnknown     = "unknown"
)

// Kinds returns all kinds of waits.
func Kinds() []string {
	return append(run.WaitingKinds(), KindCall, KindProgram, KindPublication, KindEngine, KindStarting, KindWorker, KindUnknown)
}

// Statuses of steps.
const (
	stepWaiting = "waiting"
	stepFailed  = "failed"
)

// Wait is one thing that a run waits for.
type Wait struct {
	Kind string
	// What describes the wait in one line, without its times.
	What string
	// Step is the number of the step that waits; 0 where the run as a whole waits. Task, Pointer and Path are the step's.
	Step                int64
	Task, Pointer, Path string
	Since               time.Time
	// Due is when the wait ends by itself; zero where it does not, or where that is unknown.
	Due time.Time
	// Deadline is when a timeout ends the wait with an error; zero where no timeout does. DeadlineBy is the pointer of the
	// timeout's task, or that of the run's timeout.
	Deadline   time.Time
	DeadlineBy string
	// DeadlineUnknown reports that there is a timeout with a length from an expression that the row does not record: it
	// may end the wait earlier.
	DeadlineUnknown bool
	// Mode is how many of Events are required: one, any or all. Events are what an event wait waits for.
	Mode   string
	Events []Event
	// Near are the newest events of the awaited types that the run has not taken, with the reason.
	Near []Near
	// Child is the run that a child wait waits for; nil where it is unknown.
	Child *Child
	// Retry is nil for a step that is not, and is in no try that is, attempted again.
	Retry *Retry
}

// State is the input of [Waits].
type State struct {
	Run run.Run
	// Document is nil where it no longer exists.
	Document *dsl.Document
	Rows     Rows
	// After is the number of the step that Rows begin after; 0 on the first page, which has what the run as a whole waits
	// for.
	After int64
	// Key is that of [Options].
	Key func(runID, path string) string
}

// Waits returns what a run waits for: first what the run as a whole waits for, then the open steps by number.
func Waits(s State) []Wait {
	switch r := s.Run; {
	case r.Status.Terminal():
		return nil
	case r.Status == run.Queued:
		return []Wait{queued(r)}
	}
	w := waiting{State: s, steps: make(map[string]*run.Step, len(s.Rows.Steps)), parents: map[string]bool{}}
	if s.Document != nil {
		w.tasks = taskindex.Of(s.Document)
	}
	for i := range s.Rows.Steps {
		w.steps[s.Rows.Steps[i].Path] = &s.Rows.Steps[i]
	}
	for i := range s.Rows.Steps {
		for path := range above(s.Rows.Steps[i].Path) {
			w.parents[path] = true
		}
	}
	for i := range s.Rows.Around {
		w.steps[s.Rows.Around[i].Path] = &s.Rows.Around[i]
	}
	var list []Wait
	if s.After == 0 {
		list = w.held()
	}
	for i := range s.Rows.Steps {
		if one, ok := w.step(&s.Rows.Steps[i]); ok {
			one.Retry = w.retry(s.Rows.Steps[i].Path)
			list = append(list, one)
		}
	}
	if len(list) == 0 && s.After == 0 && !s.Rows.More && s.Run.Status == run.Waiting {
		list = append(list, w.bounded(Wait{
			Kind: cmp.Or(s.Run.WaitingKind, KindUnknown), What: "unknown: no open step is recorded", Since: s.Run.StatusAt,
		}, nil))
	}
	return list
}

// queued returns what a run waits for before a worker executes it.
func queued(r run.Run) Wait {
	w := Wait{Since: r.StatusAt}
	position := ""
	if r.QueuePosition > 0 {
		position = fmt.Sprintf(", position %d in the queue", r.QueuePosition)
	}
	switch r.QueuedReason {
	case run.QueuedAdmission:
		w.Kind, w.What = run.WaitingQuota, "quota of concurrent runs of project "+r.Project+position
	case run.QueuedEngine:
		w.Kind, w.What, w.Deadline = KindEngine, "Temporal, which could not be reached"+position, r.ExpiresAt
	case run.QueuedStarting:
		w.Kind, w.What = KindStarting, "confirmation of the start by Temporal"
	case run.QueuedWorker:
		w.Kind, w.What = KindWorker, "a worker that takes the first workflow task"
	default:
		w.Kind, w.What = KindUnknown, "unknown: "+cmp.Or(r.QueuedReason, "no reason is recorded")
	}
	return w
}

// waiting determines the waits of a run that workers execute.
type waiting struct {
	State

	tasks map[string]*dsl.Task
	// steps are the known open ones by path, parents the paths under which there are open steps.
	steps   map[string]*run.Step
	parents map[string]bool
}

// held returns what the run as a whole waits for: the end of a pause, or the quota of steps.
func (w *waiting) held() []Wait {
	r := w.Run
	if r.Status != run.Waiting {
		return nil
	}
	one := Wait{Kind: r.WaitingKind, Since: r.StatusAt}
	switch r.WaitingKind {
	case run.WaitingPaused:
		one.What = "unpause: the run is paused"
	case run.WaitingQuota:
		one.What = "quota of steps of project " + r.Project
		if q := r.Quota; q != nil {
			one.What += fmt.Sprintf(": %d of %d used in this period", q.Used, q.Limit)
			one.Due = q.ResetAt
		} else {
			one.What += ": use unknown"
		}
	default:
		return nil
	}
	return []Wait{w.bounded(one, nil)}
}

// step returns what an open step waits for. A step with open steps below it waits for these alone.
func (w *waiting) step(t *run.Step) (Wait, bool) {
	if w.parents[t.Path] {
		return Wait{}, false
	}
	one := Wait{Step: t.Number, Task: t.Task, Pointer: t.Pointer, Path: t.Path, Since: t.StartedAt, Due: t.WaitUntil}
	task := w.tasks[t.Pointer]
	kind := t.WaitingKind
	if t.Status != stepWaiting {
		switch dsl.Kind(t.Kind) { //nolint:exhaustive // tasks of the other kinds wait for nothing while they run
		case dsl.KindCall:
			kind = KindCall
		case dsl.KindEmit:
			kind = KindPublication
		case dsl.KindListen:
			kind = run.WaitingEvent
		case dsl.KindRun:
			kind = run.WaitingChild
			if _, programs := bodyOf[*dsl.RunProgram](task); programs {
				kind = KindProgram
			}
		default:
			return Wait{}, false
		}
	}
	one.Kind = cmp.Or(kind, KindUnknown)
	switch kind {
	case run.WaitingEvent:
		w.events(&one, task)
	case run.WaitingChild:
		w.child(&one, task)
	case run.WaitingTimer:
		one.What = "timer"
	case run.WaitingRetry:
		one.What = fmt.Sprintf("attempt %d", len(t.Attempts)+1)
		if n := len(t.Attempts); n > 0 {
			last := t.Attempts[n-1]
			one.What = fmt.Sprintf("attempt %d", last.Number+1)
			if last.EndedAt != nil {
				one.Since = *last.EndedAt
			}
		}
	case KindCall:
		one.What = call(task, t)
	case KindProgram:
		one.What = "end of its program"
		if b, ok := bodyOf[*dsl.RunProgram](task); ok {
			one.What = "end of its " + string(b.Program)
		}
	case KindPublication:
		one.What = "acceptance of the event that it publishes"
	default:
		one.What = "unknown"
	}
	return w.bounded(one, t), true
}

// child adds the run that a task awaits.
func (w *waiting) child(one *Wait, task *dsl.Task) {
	key := w.Key(w.Run.ID, one.Path)
	for i := range w.Rows.Children {
		c := &w.Rows.Children[i]
		if c.Key != key {
			continue
		}
		one.Child = c
		one.What = fmt.Sprintf("child run %s of %s %s, which is %s", c.RunID, c.Workflow, c.Version, c.Status)
		if reason := cmp.Or(c.QueuedReason, c.WaitingKind); reason != "" {
			one.What += " (" + reason + ")"
		}
		return
	}
	one.What = "child run"
	if b, ok := bodyOf[*dsl.RunWorkflow](task); ok {
		one.What += " of " + b.Namespace + "/" + b.Name
	}
	one.What += ", whose ID is unknown"
}

// call returns which response a call waits for, as the document has it.
func call(task *dsl.Task, t *run.Step) string {
	text := "answer"
	if task != nil {
		with := member(task.Definition, "with")
		method, _ := member(with, "method").(string)
		endpoint, ok := member(with, "endpoint").(string)
		if !ok {
			endpoint, _ = member(member(with, "endpoint"), "uri").(string)
		}
		if endpoint != "" {
			text += " of " + strings.TrimSpace(strings.ToUpper(method)+" "+short(endpoint))
		}
	}
	if n := len(t.Attempts); n > 1 {
		text += fmt.Sprintf(", attempt %d", t.Attempts[n-1].Number)
	}
	return text
}

// bounded adds the earliest deadline: that of the step, of the enclosing steps or of the run. Where an expression gives
// the length of one of these timeouts, the interpreter has recorded the earliest deadline; otherwise it follows from
// the document.
func (w *waiting) bounded(one Wait, t *run.Step) Wait {
	if t != nil && t.Wait != nil && !t.Wait.Deadline.IsZero() {
		one.Deadline, one.DeadlineBy = t.Wait.Deadline, t.Wait.DeadlineBy
		return one
	}
	if w.Document == nil {
		one.DeadlineUnknown = true
		return one
	}
	note := func(timeout *dsl.Duration, since time.Time, by string) {
		if timeout == nil {
			return
		}
		length, fixed := timeout.Fixed()
		if !fixed || since.IsZero() {
			one.DeadlineUnknown = true
			return
		}
		if at := since.Add(length); one.Deadline.IsZero() || at.Before(one.Deadline) {
			one.Deadline, one.DeadlineBy = at, by
		}
	}
	if w.Document.Timeout != nil {
		if at := w.runEnds(); !at.IsZero() && t == nil {
			one.Deadline, one.DeadlineBy = at, "/timeout"
			return one
		}
		note(w.Document.Timeout.After, w.Run.StartedAt, "/timeout")
	}
	if t == nil {
		return one
	}
	w.timeout(t, note)
	for path := range above(t.Path) {
		around := w.steps[path]
		if around == nil {
			continue
		}
		w.timeout(around, note)
		if rest := t.Path[len(path):]; strings.HasPrefix(rest, "/try/") || strings.HasPrefix(rest, "/retry/") {
			w.attemptLimit(around, note)
		}
	}
	return one
}

// runEnds returns the recorded deadline of the run itself; zero where there is none. It is stored with those open steps
// that have no earlier deadline.
func (w *waiting) runEnds() time.Time {
	for _, t := range w.steps {
		if t.Wait != nil && t.Wait.DeadlineBy == "/timeout" {
			return t.Wait.Deadline
		}
	}
	return time.Time{}
}

func (w *waiting) timeout(t *run.Step, note func(*dsl.Duration, time.Time, string)) {
	if task := w.tasks[t.Pointer]; task != nil && task.Timeout != nil {
		note(task.Timeout.After, t.StartedAt, t.Pointer)
	}
}

// attemptLimit notes the timeout of the current attempt of a try.
func (w *waiting) attemptLimit(t *run.Step, note func(*dsl.Duration, time.Time, string)) {
	b, ok := bodyOf[*dsl.Try](w.tasks[t.Pointer])
	if !ok || b.Catch.Retry == nil || len(t.Attempts) == 0 {
		return
	}
	note(b.Catch.Retry.Limit.Attempt.Duration, t.Attempts[len(t.Attempts)-1].StartedAt, t.Pointer)
}

// above yields the prefixes of a path that end before a slash. Those that are paths of steps are the enclosing steps.
func above(path string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := len(path) - 1; i > 0; i-- {
			if path[i] == '/' && !yield(path[:i]) {
				return
			}
		}
	}
}

func bodyOf[B dsl.Body](task *dsl.Task) (body B, ok bool) {
	if task == nil {
		return body, false
	}
	body, ok = task.Body.(B)
	return body, ok
}

// member returns a member of a plain JSON object; nil where there is none.
func member(value any, name string) any {
	object, _ := value.(map[string]any)
	return object[name]
}
