package interp

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/dsl/taskindex"
)

// snapshotFormat is the version of the snapshot's layout.
const snapshotFormat = 1

// ErrInFlight is the error of a Snapshot while calls are in flight.
var ErrInFlight = errors.New("calls are in flight")

// state is a snapshot: data only. Values are indices into Values, each of which is stored once however often it occurs.
// Tasks are pointers into the document, which the snapshot identifies by its hash.
type state struct {
	Format      int       `json:"format"`
	Document    string    `json:"document"`
	RunID       string    `json:"runId"`
	At          time.Time `json:"at"`
	Source      string    `json:"source,omitempty"`
	Runtime     [2]string `json:"runtime"`
	Interpreter int       `json:"interpreter"`

	Input   int           `json:"input"`
	Context int           `json:"context"`
	Now     time.Time     `json:"now"`
	LastID  int64         `json:"lastId"`
	Begun   bool          `json:"begun"`
	Total   int64         `json:"total"`
	Done    int64         `json:"done"`
	Run     RunRecord     `json:"run"`
	Summary *summaryState `json:"summary,omitempty"`
	Frames  []frameState  `json:"frames"` // parents before children, children in order
	Ready   []int64       `json:"ready"`
	Alarms  []alarmState  `json:"alarms"`
	Gate    *gateState    `json:"gate,omitempty"`
	// Unlisten are listeners that were removed since the last Advance. Other effects that it has not returned yet end
	// with the execution.
	Unlisten         []string          `json:"unlisten,omitempty"`
	CanceledChildren []childState      `json:"canceledChildren,omitempty"` // canceled children, likewise
	Values           []json.RawMessage `json:"values"`
	// Taken are the positions of the newest consumed events, each as the difference from the one before, of which a
	// listener has reported the first TakenReported. TakenAfter and TakenDropped are the fields after and dropped of
	// takenEvents.
	Taken         []int64 `json:"taken,omitempty"`
	TakenReported int     `json:"takenReported,omitempty"`
	TakenAfter    int64   `json:"takenAfter,omitempty"`
	TakenDropped  int64   `json:"takenDropped,omitempty"`
}

type frameState struct {
	ID        int64          `json:"id"`
	Parent    int64          `json:"parent,omitempty"`
	Role      role           `json:"role"`
	Task      string         `json:"task,omitempty"` // pointer; "" for a list
	Binds     []bindState    `json:"binds,omitempty"`
	Path      string         `json:"path,omitempty"`
	Key       string         `json:"key,omitempty"`
	Next      int            `json:"next,omitempty"`
	Jumps     int            `json:"jumps,omitempty"`
	Exited    bool           `json:"exited,omitempty"`
	Value     int            `json:"value"`
	Phase     phase          `json:"phase,omitempty"`
	StartedAt time.Time      `json:"startedAt"`
	Input     int            `json:"input"`
	Loop      *loopState     `json:"loop,omitempty"`
	Try       *tryState      `json:"try,omitempty"`
	Fork      *forkState     `json:"fork,omitempty"`
	Listener  *listenerState `json:"ear,omitempty"`
	Child     *childState    `json:"child,omitempty"`
	Extended  *extendedState `json:"extended,omitempty"`
	Check     *checkState    `json:"check,omitempty"`
	Step      *stepState     `json:"step,omitempty"`
}

type bindState struct {
	Name  string `json:"name"`
	Value int    `json:"value"`
}

type loopState struct {
	Items int `json:"items"` // the remaining ones
	Pos   int `json:"pos"`
	Value int `json:"value"`
}

type tryState struct {
	Number  int       `json:"number"`
	Scope   int       `json:"scope"`
	FirstAt time.Time `json:"firstAt"`
}

type forkState struct {
	Outputs    []int      `json:"outputs"`
	Open       int        `json:"open"`
	Ahead      int        `json:"ahead,omitempty"` // branches that have not been entered yet
	First      *dsl.Error `json:"first,omitempty"`
	Unanswered bool       `json:"unanswered,omitempty"`
	// RetryAfter is the delay before a retry that belongs to First.
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
}

type listenerState struct {
	Listener string `json:"listener"`
	Mark     int64  `json:"mark"`
	Queue    []int  `json:"queue,omitempty"`
	// Positions are those of the events in Queue.
	Positions []int64 `json:"positions,omitempty"`
	// Expect, Vars and Met of the task's filters, then of its until's. Vars is absent where no filter uses variables.
	Expect  [2][]int  `json:"expect"`
	Vars    [][]int   `json:"vars,omitempty"`
	Met     [2][]bool `json:"met"`
	Keys    int       `json:"keys"`
	Count   int       `json:"count"`
	Outputs []int     `json:"outputs,omitempty"`
	// Taken is absent in older snapshots.
	Taken []TakenEvent `json:"taken,omitempty"`
}

type stepState struct {
	Number    int64           `json:"number"`
	Status    Status          `json:"status"`
	WaitKind  string          `json:"waitKind,omitempty"`
	WaitUntil time.Time       `json:"waitUntil"`
	Attempt   int             `json:"attempt"`
	Input     int             `json:"input"`
	Attempts  []AttemptRecord `json:"attempts,omitempty"`
}

type alarmState struct {
	ID    EffectID  `json:"id"`
	Kind  alarmKind `json:"kind"`
	At    time.Time `json:"at"`
	Frame int64     `json:"frame,omitempty"`
}

// Snapshot returns the state of a run that has not ended, for Restore. Records that were not taken are lost: take them
// first. With calls in flight it returns ErrInFlight.
func (m *Machine) Snapshot() ([]byte, error) {
	if m.outcome != nil {
		return nil, errors.New("snapshot: the run has ended")
	}
	if n := m.InFlight(); n > 0 {
		return nil, fmt.Errorf("snapshot: %d %w", n, ErrInFlight)
	}
	p := newValuePool()
	s := state{
		Format: snapshotFormat, Document: m.doc.Hash(), RunID: m.start.RunID, At: m.start.At, Source: m.start.Source,
		Runtime: [2]string{m.start.RuntimeName, m.start.RuntimeVersion}, Interpreter: m.start.Interpreter,
		Input: p.put(m.start.Input), Context: p.put(m.context), Now: m.now, LastID: m.lastID, Begun: m.begun,
		Total: m.recorder.total, Done: m.recorder.done, Run: m.recorder.run, Gate: m.gate.save(),
		Summary: m.recorder.summary.save(m.recorder.total),
		Taken:   m.taken.save(), TakenReported: m.taken.reported, TakenAfter: m.taken.after, TakenDropped: m.taken.dropped,
	}
	if m.root != nil {
		s.Frames = saveFrames(nil, m.root, p)
	}
	for _, queue := range [][]*frame{m.ready, m.held, m.gate.stopped} {
		for _, f := range queue {
			if !f.gone {
				s.Ready = append(s.Ready, f.id)
			}
		}
	}
	for _, e := range m.effects {
		switch e := e.(type) {
		case Unlisten:
			s.Unlisten = append(s.Unlisten, e.Listener)
		case CancelChild:
			s.CanceledChildren = append(s.CanceledChildren, childState(e))
		}
	}
	for _, a := range m.alarms {
		as := alarmState{ID: a.ID, Kind: a.Kind, At: a.At}
		if a.frame != nil {
			as.Frame = a.frame.id
		}
		s.Alarms = append(s.Alarms, as)
	}
	if s.Values = p.values; p.err != nil {
		return nil, fmt.Errorf("snapshot: %w", p.err)
	}
	return compressState(s)
}

func saveFrames(out []frameState, f *frame, p *valuePool) []frameState {
	s := frameState{
		ID: f.id, Role: f.role, Path: f.path, Key: f.key, Next: f.next, Jumps: f.jumps, Exited: f.exited, Value: p.put(f.value),
		Phase: f.phase, StartedAt: f.startedAt, Input: p.put(f.input),
	}
	if f.parent != nil {
		s.Parent = f.parent.id
	}
	if f.task != nil {
		s.Task = f.task.Pointer
	}
	for _, b := range f.binds {
		s.Binds = append(s.Binds, bindState{b.name, p.put(b.value)})
	}
	if l := f.loop; l != nil {
		s.Loop = &loopState{Items: p.put(l.items[min(l.pos-l.base, len(l.items)):]), Pos: l.pos, Value: p.put(l.value)}
	}
	if t := f.try; t != nil {
		s.Try = &tryState{Number: t.number, Scope: t.scope, FirstAt: t.firstAt}
	}
	if r := f.fork; r != nil {
		s.Fork = &forkState{Open: r.open, Ahead: len(r.outputs) - r.entered}
		for _, v := range r.outputs {
			s.Fork.Outputs = append(s.Fork.Outputs, p.put(v))
		}
		if r.first != nil {
			s.Fork.First, s.Fork.Unanswered, s.Fork.RetryAfter = &r.first.runError, r.first.unanswered, r.first.retryAfter
		}
	}
	if e := f.listener; e != nil {
		s.Listener = e.save(p)
	}
	if c := f.child; c != nil {
		s.Child = &childState{c.key, c.runID}
	}
	s.Extended, s.Check = f.extended.save(p), f.check.save(p)
	if st := f.step; st != nil {
		s.Step = &stepState{
			Number: st.number, Status: st.status, WaitKind: st.waitKind, WaitUntil: st.waitUntil, Attempt: st.attempt,
			Input: p.put(st.input), Attempts: st.attempts,
		}
	}
	out = append(out, s)
	for _, k := range f.children {
		out = saveFrames(out, k, p)
	}
	return out
}

// Restore returns a machine that continues from a snapshot. doc must be the document that the snapshot identifies. Open
// timers are started again by the next Advance.
func Restore(doc *dsl.Document, snapshot []byte, limits Limits) (*Machine, error) {
	var s state
	if err := readState(snapshot, &s); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	if s.Format != snapshotFormat {
		return nil, fmt.Errorf("restore: the snapshot has format %d, this version reads %d", s.Format, snapshotFormat)
	}
	if s.Document != doc.Hash() {
		return nil, fmt.Errorf("restore: the snapshot is of document %s, not %s", s.Document, doc.Hash())
	}
	r := restorer{frames: map[int64]*frame{}, steps: map[int64]*step{}, tasks: taskindex.Of(doc)}
	for _, raw := range s.Values {
		v, err := jq.DecodeJSON(raw)
		if err != nil {
			return nil, fmt.Errorf("restore: %w", err)
		}
		r.values = append(r.values, v)
	}
	m := &Machine{
		doc: doc, limits: limits, now: s.Now, context: r.value(s.Context), calls: map[EffectID]*frame{},
		start: Start{
			RunID: s.RunID, Input: r.value(s.Input), At: s.At, Source: s.Source, RuntimeName: s.Runtime[0],
			RuntimeVersion: s.Runtime[1],
			Interpreter:    s.Interpreter,
		},
		taken:  restoreTaken(s),
		lastID: s.LastID, begun: s.Begun, recorder: recorder{total: s.Total, done: s.Done, run: s.Run}, gate: s.Gate.gate(),
	}
	m.describe()
	r.machine = m
	for _, fs := range s.Frames {
		if err := r.frame(doc, fs); err != nil {
			return nil, fmt.Errorf("restore: %w", err)
		}
		if fs.Parent == 0 {
			m.root = r.frames[fs.ID]
		}
		if f := r.frames[fs.ID]; f.listener != nil {
			m.listeners = append(m.listeners, f)
		} else if f.child != nil {
			m.parents = append(m.parents, f)
		}
	}
	var err error
	if m.recorder.summary, err = restoreSummary(s.Summary, s.Total, r.tasks, r.steps); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	for _, id := range s.Ready {
		f := r.frames[id]
		if f == nil {
			return nil, fmt.Errorf("restore: no frame %d", id)
		}
		m.enqueue(f)
	}
	for _, listener := range s.Unlisten {
		m.effects = append(m.effects, Unlisten{Listener: listener})
	}
	for _, c := range s.CanceledChildren {
		m.effects = append(m.effects, CancelChild(c))
	}
	for _, as := range s.Alarms {
		a := &alarm{ID: as.ID, Kind: as.Kind, At: as.At, frame: r.frames[as.Frame]}
		m.alarms = append(m.alarms, a)
		if a.frame != nil {
			a.frame.alarms = append(a.frame.alarms, a)
		}
	}
	for _, f := range r.frames {
		if f.step != nil {
			m.noteDeadline(f)
		}
	}
	return m, r.err
}

type restorer struct {
	machine *Machine
	values  []any
	frames  map[int64]*frame
	steps   map[int64]*step // open steps, by number
	tasks   map[string]*dsl.Task
	err     error
}

func (r *restorer) value(i int) any {
	if i < 0 || i >= len(r.values) {
		r.err = fmt.Errorf("restore: no value %d", i)
		return nil
	}
	return r.values[i]
}

func (r *restorer) frame(doc *dsl.Document, s frameState) error {
	f := &frame{
		id: s.ID, parent: r.frames[s.Parent], role: s.Role, path: s.Path, key: s.Key, next: s.Next, jumps: s.Jumps,
		exited: s.Exited,
		value:  r.value(s.Value), phase: s.Phase, startedAt: s.StartedAt, input: r.value(s.Input),
	}
	r.frames[f.id] = f
	if f.parent != nil {
		f.parent.children = append(f.parent.children, f)
	}
	if s.Task != "" {
		if f.task = r.tasks[s.Task]; f.task == nil {
			return fmt.Errorf("no task %q in the document", s.Task)
		}
	} else {
		list, ok := listOf(doc, f)
		if !ok {
			return fmt.Errorf("no list of the role %q", f.role)
		}
		f.list = list
	}
	for _, b := range s.Binds {
		f.binds = append(f.binds, binding{b.Name, r.value(b.Value)})
	}
	if l := s.Loop; l != nil {
		items, _ := r.value(l.Items).([]any)
		f.loop = &loop{items: items, base: l.Pos, pos: l.Pos, value: r.value(l.Value)}
	}
	if t := s.Try; t != nil {
		f.try = &attempts{number: t.Number, scope: t.Scope, firstAt: t.FirstAt}
	}
	if k := s.Fork; k != nil {
		f.fork = &forkBranches{open: k.Open, entered: len(k.Outputs) - k.Ahead}
		for _, v := range k.Outputs {
			f.fork.outputs = append(f.fork.outputs, r.value(v))
		}
		if k.First != nil {
			f.fork.first = &raised{runError: *k.First, unanswered: k.Unanswered, retryAfter: k.RetryAfter}
		}
	}
	if s.Listener != nil {
		if err := r.listener(f, *s.Listener); err != nil {
			return err
		}
	}
	f.extended, f.check = r.extended(s.Extended), r.check(s.Check)
	if s.Child != nil {
		if err := r.child(f, *s.Child); err != nil {
			return err
		}
	}
	if st := s.Step; st != nil {
		f.step = &step{
			number: st.Number, path: f.path, task: f.task, status: st.Status, waitKind: st.WaitKind, waitUntil: st.WaitUntil,
			attempt: st.Attempt, startedAt: f.startedAt, input: r.value(st.Input), attempts: st.Attempts,
		}
		if f.listener != nil {
			f.step.taken = f.listener.taken
		}
		r.steps[st.Number] = f.step
	}
	return nil
}

// listOf returns the list of tasks that a frame runs: the workflow's own, or one of its parent's task.
func listOf(doc *dsl.Document, f *frame) ([]*dsl.Task, bool) {
	if f.parent == nil {
		return doc.Do, true
	}
	if f.parent.task == nil {
		return nil, false
	}
	if f.role == roleBefore || f.role == roleAfter {
		return f.parent.extended.list(doc, f.role)
	}
	switch b := f.parent.task.Body.(type) {
	case *dsl.Do:
		return b.Tasks, f.role == roleDo
	case *dsl.For:
		return b.Tasks, f.role == roleLoop
	case *dsl.Try:
		if f.role == roleCatch {
			return b.Catch.Tasks, true
		}
		return b.Tasks, f.role == roleTry
	case *dsl.FunctionCall:
		return b.Tasks(), f.role == roleFunction
	case *dsl.Listen:
		if b.Each != nil {
			return b.Each.Tasks, f.role == roleItem
		}
	}
	return nil, false
}
