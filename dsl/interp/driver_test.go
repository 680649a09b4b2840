package interp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tb is the common interface of *testing.T and *rapid.T.
type tb interface {
	require.TestingT
	Helper()
}

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// answer is the answer to a call, and its delay.
type answer struct {
	interp.Result
	after time.Duration
	never bool
	// refused: the child is not started.
	refused bool
}

// driver drives a machine with a clock that jumps from event to event.
type driver struct {
	t      tb
	doc    *dsl.Document
	m      *interp.Machine
	now    time.Time
	limits interp.Limits
	origin func(c interp.Call) answer
	// listening is the delay until a listener is committed.
	listening time.Duration
	listeners []*listener
	programs  []interp.RunProgram
	functions []interp.CallGo
	ended     interp.Result // of each program and each Go function
	emitted   []interp.Emit
	// child returns the end of a run that was started, and its delay.
	child     func(c interp.StartChild) answer
	accepting time.Duration // delay of a start
	children  []*childRun
	meter     *meter
	position  int64
	delivered int
	// between runs before every Advance; it may replace the machine.
	between func(w *driver)
	// inbox are the published events, reported the positions that the run has reported as taken. earlyFirst: earlier
	// events are delivered before the commit of their listener is complete.
	inbox      []accepted
	reported   []int64
	earlyFirst bool
	// cancelAt is the time at which the run is canceled, if not zero.
	cancelAt time.Time

	events    []event
	scheduled interp.EffectID // number of events that were passed to schedule
	effects   []interp.Effect
	calls     []interp.Call
	steps     map[int64]interp.StepRecord
	order     []int64             // step numbers as first seen
	taken     []interp.StepRecord // all records that were taken
	summary   interp.Summary
	runs      []interp.RunRecord
	yields    int
}

type event struct {
	id interp.EffectID
	at time.Time
	// result is nil for a timer.
	result *interp.Result
	// published is an event that was not emitted by the machine.
	published string
	// act is the action of any other event.
	act func(w *driver)
}

// childRun is a run that was started.
type childRun struct {
	interp.StartChild
	canceled bool
}

// begin starts a run and reports its end twice.
func (w *driver) begin(e interp.StartChild) {
	c := &childRun{StartChild: e}
	w.children = append(w.children, c)
	a := answer{never: true}
	if w.child != nil {
		a = w.child(e)
	}
	accepted := interp.Result{Value: fmt.Sprintf("child-%d", len(w.children))}
	if a.refused {
		accepted = a.Result
	}
	for range 2 {
		if e.Awaited && !a.never && !a.refused {
			w.schedule(event{at: w.now.Add(a.after), act: func(w *driver) {
				if !c.canceled {
					w.m.ChildEnded(e.Key, a.Result, w.now)
				}
			}})
		}
	}
	w.events = append(w.events, event{id: e.ID, at: w.now.Add(w.accepting), result: &accepted})
}

// listener is the dispatcher's record of a listener.
type listener struct {
	interp.Listen
	committed bool
	since     int64
	gone      bool
}

// accepted is an event in the inbox.
type accepted struct {
	position int64
	event    map[string]any
}

// wants reports whether an event matches the listener.
func (l *listener) wants(t tb, event map[string]any) bool {
	t.Helper()
	wanted := len(l.Spec.Filters) == 0
	for _, f := range l.Spec.Filters {
		m, err := eventfilter.Compile(f, jq.NewCompiler())
		require.NoError(t, err)
		wanted = wanted || m.Match(event).OK
	}
	return wanted
}

// commit commits a listener, and returns the delivery of the earlier events that it takes.
func (w *driver) commit(l *listener) (deliver func()) {
	l.committed, l.since = true, w.position
	w.reported = append(w.reported, l.Taken...)
	var list []accepted
	for _, e := range w.inbox {
		if !l.FromStart || e.position <= l.After || slices.Contains(w.reported, e.position) || !l.wants(w.t, e.event) {
			continue
		}
		list = append(list, e)
		if l.Single {
			break
		}
	}
	return func() {
		for _, e := range list {
			w.delivered++
			w.m.Deliver(l.Listener, e.position, e.event, w.now)
		}
	}
}

// publish schedules the publication of an event.
func (w *driver) publish(after time.Duration, text string) {
	w.schedule(event{at: epoch.Add(after), published: text})
}

// schedule adds an event that is neither a timer nor the result of an effect. Of the events at one time these come
// last, in the order of their scheduling: the order must not depend on the events that are open, as a snapshot removes
// timers.
func (w *driver) schedule(e event) {
	w.scheduled++
	e.id = 1<<60 + w.scheduled
	w.events = append(w.events, e)
}

// dispatch delivers an event to the listeners that match it, as a dispatcher does: to those that were committed before,
// and each event twice.
func (w *driver) dispatch(text string) {
	w.t.Helper()
	w.position++
	object, ok := value(w.t, text).(map[string]any)
	require.True(w.t, ok, text)
	w.inbox = append(w.inbox, accepted{w.position, object})
	for _, l := range w.listeners {
		if l.committed && !l.gone && l.wants(w.t, object) {
			w.delivered++
			w.m.Deliver(l.Listener, w.position, object, w.now)
			w.m.Deliver(l.Listener, w.position, object, w.now)
		}
	}
}

func parse(t tb, source string) *dsl.Document {
	t.Helper()
	doc, violations := dsl.Parse([]byte(source))
	require.False(t, violations.HasErrors(), "%v\n%s", violations, source)
	return doc
}

// document prepends a header to a document.
func document(rest string) string {
	return "document: {dsl: '1.0.0', namespace: test, name: test, version: '1.0.0'}\n" + rest
}

func value(t tb, text string) any {
	t.Helper()
	if text == "" {
		return nil
	}
	v, err := jq.DecodeJSON([]byte(text))
	require.NoError(t, err)
	return v
}

func newDriver(t tb, source, input string) *driver {
	t.Helper()
	doc := parse(t, source)
	w := &driver{t: t, doc: doc, now: epoch, limits: interp.DefaultLimits(), steps: map[int64]interp.StepRecord{}}
	w.m = interp.New(doc, interp.Start{
		RunID: "run-1", Input: value(t, input), At: epoch, RuntimeName: "signalbox", RuntimeVersion: "1",
	}, w.limits)
	return w
}

// metered starts the machine again, as a run with granted steps.
func (w *driver) metered() {
	w.m = interp.New(w.doc, interp.Start{RunID: "run-1", Input: value(w.t, `{}`), At: epoch, Metered: true}, w.limits)
}

// run drives the machine to its end.
func (w *driver) run() interp.Outcome {
	w.t.Helper()
	for range 10_000_000 {
		if w.between != nil {
			w.between(w)
		}
		w.perform(w.m.Advance(w.now))
		w.take()
		if outcome, done := w.m.Done(); done {
			require.Empty(w.t, w.open(), "the run left steps open")
			w.events = slices.DeleteFunc(w.events, func(e event) bool { return e.published != "" || e.act != nil })
			for _, l := range w.listeners {
				require.True(w.t, l.gone, "the run left the listener %s", l.Listener)
			}
			require.Empty(w.t, w.events, "the run left effects open")
			w.checkGraph()
			return outcome
		}
		if w.m.Yielded() {
			w.yields++
			continue
		}
		w.next()
	}
	require.Fail(w.t, "the run does not end")
	return interp.Outcome{}
}

// next processes the earliest event.
func (w *driver) next() {
	w.t.Helper()
	if len(w.events) == 0 && w.cancelAt.IsZero() {
		require.FailNow(w.t, "the run is blocked for ever")
	}
	first := -1
	for i, e := range w.events {
		if f := first; f < 0 || e.at.Before(w.events[f].at) || e.at.Equal(w.events[f].at) && e.id < w.events[f].id {
			first = i
		}
	}
	if !w.cancelAt.IsZero() && (first < 0 || !w.events[first].at.Before(w.cancelAt)) {
		w.now = w.cancelAt
		w.m.Cancel("asked to", w.now)
		return
	}
	e := w.events[first]
	w.events = slices.Delete(w.events, first, first+1)
	if e.at.After(w.now) {
		w.now = e.at
	}
	switch {
	case e.published != "":
		w.dispatch(e.published)
		return
	case e.act != nil:
		e.act(w)
		return
	case e.result == nil:
		w.m.Fire(e.id, w.now)
		return
	}
	deliver := func() {}
	for _, l := range w.listeners {
		if l.ID == e.id {
			deliver = w.commit(l)
		}
	}
	if w.earlyFirst { // a delivery may overtake the commit
		deliver()
		deliver = func() {}
	}
	w.m.Complete(e.id, *e.result, w.now)
	deliver()
}

func (w *driver) perform(effects []interp.Effect) {
	w.effects = append(w.effects, effects...)
	drop := func(id interp.EffectID) {
		w.events = slices.DeleteFunc(w.events, func(e event) bool { return e.id == id })
	}
	for _, e := range effects {
		switch e := e.(type) {
		case interp.StartTimer:
			w.events = append(w.events, event{id: e.ID, at: e.Deadline})
		case interp.CancelTimer:
			drop(e.ID)
		case interp.Call:
			w.calls = append(w.calls, e)
			a := w.origin(e)
			if a.never {
				a.after = 1000 * time.Hour
			}
			w.events = append(w.events, event{id: e.ID, at: w.now.Add(a.after), result: &a.Result})
		case interp.CancelCall:
			drop(e.ID)
		case interp.Listen:
			w.listeners = append(w.listeners, &listener{Listen: e})
			w.events = append(w.events, event{id: e.ID, at: w.now.Add(w.listening), result: &interp.Result{}})
		case interp.Unlisten:
			for _, l := range w.listeners {
				if l.Listener == e.Listener {
					require.False(w.t, l.gone, "removed twice")
					l.gone = true
					drop(l.ID)
				}
			}
		case interp.RequestSteps:
			w.events = append(w.events, event{id: e.ID, at: w.now, act: func(w *driver) { w.meter.grant(w, e) }})
		case interp.StartChild:
			w.begin(e)
		case interp.CancelChild:
			for _, c := range w.children {
				if c.Key == e.Key {
					require.False(w.t, c.canceled, "canceled twice")
					c.canceled = true
					drop(c.ID)
				}
			}
		case interp.RunProgram:
			w.programs = append(w.programs, e)
			w.events = append(w.events, event{id: e.ID, at: w.now.Add(time.Second), result: &w.ended})
		case interp.CallGo:
			w.functions = append(w.functions, e)
			w.events = append(w.events, event{id: e.ID, at: w.now.Add(time.Second), result: &w.ended})
		case interp.Emit:
			w.emitted = append(w.emitted, e)
			w.events = append(w.events, event{id: e.ID, at: w.now, result: &interp.Result{}})
		}
	}
}

func (w *driver) take() {
	run, steps := w.m.TakeRecords()
	if run != nil {
		w.runs = append(w.runs, *run)
	}
	w.taken = append(w.taken, steps...)
	for _, s := range steps {
		if _, seen := w.steps[s.Number]; !seen {
			w.order = append(w.order, s.Number)
		}
		w.steps[s.Number] = s
	}
	if run == nil || run.Summary == nil {
		return
	}
	gone := w.summary.Open
	for n := max(run.Summary.From, w.summary.To+1); n <= run.Summary.To; n++ {
		gone = append(gone, n)
	}
	w.summary = *run.Summary.Merge(&w.summary)
	for _, n := range gone {
		if s := w.steps[n]; !s.Kept || s.EndedAt == nil && !slices.Contains(w.summary.Open, n) {
			delete(w.steps, n)
		}
	}
}

// open lists the paths of steps that have not ended.
func (w *driver) open() []string {
	var out []string
	for _, n := range w.order {
		if s, kept := w.steps[n]; kept && s.EndedAt == nil {
			out = append(out, s.Path)
		}
	}
	return out
}

// trace lists the steps in the order of their entry as "path status".
func (w *driver) trace() []string {
	var out []string
	for n := int64(1); n <= int64(len(w.steps)); n++ {
		out = append(out, w.steps[n].Path+" "+string(w.steps[n].Status))
	}
	return out
}

// step finds the record of a step by its path.
func (w *driver) step(path string) interp.StepRecord {
	w.t.Helper()
	for n := int64(1); n <= int64(len(w.steps)); n++ {
		if w.steps[n].Path == path {
			return w.steps[n]
		}
	}
	require.Failf(w.t, "no such step", "%s in %v", path, w.trace())
	return interp.StepRecord{}
}

// completes runs to completion and compares the output.
func (w *driver) completes(want string) {
	w.t.Helper()
	o := w.run()
	require.Equal(w.t, interp.StatusCompleted, o.Status, "%v", o.Error)
	got, err := jq.EncodeJSON(o.Output)
	require.NoError(w.t, err)
	require.JSONEq(w.t, want, string(got))
}

// fails runs to a failure and returns its error.
func (w *driver) fails() dsl.Error {
	w.t.Helper()
	o := w.run()
	require.Equal(w.t, interp.StatusFailed, o.Status, "output %v", o.Output)
	require.NotNil(w.t, o.Error)
	return *o.Error
}

func answered(status int) interp.Result {
	return interp.Result{Error: &dsl.Error{
		Type: dsl.ErrorTypeCommunication, Status: status, Title: "Bad status", Detail: "the origin said so",
	}}
}

func ok(v any) answer { return answer{Result: interp.Result{Value: v}} }

// officialData is the folder with the language's schema, examples and conformance kit.
func officialData(t *testing.T, part string) string {
	t.Helper()
	dir := os.Getenv("OWS_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "open-workflow")
	}
	dir = filepath.Join(dir, part)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the official data is missing (set OWS_DIR): %v", err)
	}
	return dir
}
