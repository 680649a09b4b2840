package fsm_test

import (
	"errors"
	"math/rand/v2"
	"time"

	"pgregory.net/rapid"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/conn/internal/fsm"
)

// mode is what Temporal does.
type mode string

const (
	serving   mode = "serving"
	slow      mode = "slow"      // every answer takes more than a second
	refusing  mode = "refusing"  // the port is closed; connections are cut
	frozen    mode = "frozen"    // connections stay, nothing moves
	stuck     mode = "stuck"     // connections become ready, the check never ends; a probe may be answered
	nameless  mode = "nameless"  // the namespace is missing
	forbidden mode = "forbidden" // the credentials are refused
	insecure  mode = "insecure"  // TLS handshakes fail; connections are cut
)

// accepts reports whether a gRPC connection becomes ready.
func (m mode) accepts() bool { return m != refusing && m != frozen && m != insecure }

// hangs reports whether a full check never ends.
func (m mode) hangs() bool { return m == frozen || m == stuck }

// kind is the result of a full check.
func (m mode) kind() conntype.Kind {
	return map[mode]conntype.Kind{refusing: conntype.Unreachable, frozen: conntype.Hung, stuck: conntype.Hung,
		nameless: conntype.NamespaceMissing, forbidden: conntype.AuthFailed, insecure: conntype.TLSError}[m]
}

// phase is a period of a schedule.
type phase struct {
	mode     mode
	duration time.Duration
	traffic  bool
	extra    string // a further event in the middle of it; empty: none
}

func phases() *rapid.Generator[[]phase] {
	one := rapid.Custom(func(t *rapid.T) phase {
		most := rapid.SampledFrom([]int{300, 2500, 12_000, 60_000, 60_000}).Draw(t, "most")
		return phase{
			mode: rapid.SampledFrom([]mode{serving, serving, slow, refusing, frozen, stuck, nameless, forbidden, insecure}).
				Draw(t, "mode"),
			duration: time.Duration(rapid.IntRange(20, most).Draw(t, "lasts")) * ms,
			traffic:  rapid.Bool().Draw(t, "traffic"),
			extra: rapid.SampledFrom(
				[]string{"", "", "changed", "reset", "polls", "polls not", "bad options", "good options"}).Draw(t, "nudge"),
		}
	})
	return rapid.SliceOfN(one, 1, 14)
}

// world simulates Temporal, the gRPC connection to it, and requests of a program.
type world struct {
	now         time.Time
	random      *rand.Rand
	phase       phase
	changed     time.Time // when the mode last changed
	probesLight bool      // a light probe is answered without credentials and by a stuck server

	served     bool // there is a current client
	dead       bool // its connection is dead in this phase, and gRPC has not noticed
	badOptions bool // the options of a new client are wrong, so that a serving server refuses it
	dialled    bool // there is a client
	ready      bool // its connection is ready
	events     []timed
	op         operation
}

// timed is a scheduled event. It is dropped if its condition does not hold when it is due.
type timed struct {
	at    time.Time
	event fsm.Event
	holds func() bool
}

// operation is the running operation, with the result it will have if the mode does not change.
type operation struct {
	fsm.Command

	started, ends time.Time
	kind          conntype.Kind
	broken        bool // a build that fails without an error of the connection
}

func (w *world) within(from, to time.Duration) time.Duration {
	return from + time.Duration(w.random.Int64N(int64(to-from)))
}

func (w *world) later(d time.Duration, e fsm.Event, holds func() bool) {
	w.events = append(w.events, timed{w.now.Add(d), e, holds})
}

// enter begins a phase.
func (w *world) enter(p phase) {
	another := p.mode != w.phase.mode
	if another {
		w.changed = w.now
	}
	w.phase = p
	w.dead = w.random.IntN(6) == 0
	if w.ready && !p.mode.accepts() && p.mode != frozen {
		w.ready = false
		w.later(0, fsm.Lost{}, func() bool { return true })
	}
	if another && w.dialled && !w.ready {
		w.redial()
	}
	if another && w.op.Op != fsm.Nothing {
		w.modeChanged()
	}
	extras := map[string]fsm.Event{
		"changed": fsm.Changed{}, "reset": fsm.Reset{}, "polls": fsm.Polling{OK: true}, "polls not": fsm.Polling{}}
	if e, ok := extras[p.extra]; ok {
		w.later(p.duration/2, e, func() bool { return true })
	}
	if p.extra == "bad options" || p.extra == "good options" {
		w.later(p.duration/2, fsm.Changed{}, func() bool {
			w.badOptions = p.extra == "bad options"
			return true
		})
	}
}

// redial schedules the Ready of gRPC's next dial, if the server accepts connections then.
func (w *world) redial() {
	since := w.changed
	if w.phase.mode.accepts() {
		w.later(w.within(100*ms, 700*ms), fsm.Ready{}, func() bool {
			ok := !w.ready && w.phase.mode.accepts() && w.changed.Equal(since)
			w.ready = w.ready || ok
			return ok
		})
	}
}

// begin starts an operation.
func (w *world) begin(c fsm.Command) {
	w.op = operation{Command: c, started: w.now, broken: c.Op == fsm.Build && w.random.IntN(20) == 0}
	if c.Fresh {
		w.dialled = true
		if w.phase.mode.accepts() {
			w.ready = true
			w.later(ms/2, fsm.Ready{}, func() bool { return true }) // of its own connection
		}
	}
	if w.phase.mode.accepts() && !w.ready { // gRPC is in its back-off, and fails requests meanwhile
		w.op.ends, w.op.kind = w.now.Add(ms), conntype.Unreachable
		return
	}
	w.computeResult()
}

// computeResult computes the result of the operation in the present mode.
func (w *world) computeResult() {
	o, m := &w.op, w.phase.mode
	o.kind = m.kind()
	if w.badOptions && m == serving && o.Fresh {
		o.kind = conntype.AuthFailed
	}
	light := o.Op == fsm.Probe && (m == nameless || w.probesLight && (m == stuck || m == forbidden))
	if light {
		o.kind = conntype.None
	}
	limit := 3 * s
	if o.Op == fsm.Build {
		limit = 10 * s
	}
	switch {
	case light:
		o.ends = w.now.Add(w.within(ms, 30*ms))
	case m.hangs():
		o.ends = o.started.Add(limit)
	case m == slow:
		o.ends = w.now.Add(w.within(1050*ms, 1500*ms))
	case m == serving && o.Op == fsm.Build:
		o.ends = w.now.Add(w.within(50*ms, 300*ms))
	default:
		o.ends = w.now.Add(w.within(ms, 30*ms))
	}
	if end := o.started.Add(limit); o.ends.After(end) {
		o.ends, o.kind = end, conntype.Hung
	}
}

// modeChanged updates the running operation after a change of mode.
func (w *world) modeChanged() {
	if m := w.phase.mode; m.accepts() || m.hangs() {
		w.computeResult()
		return
	}
	w.op.ends, w.op.kind = w.now, conntype.Unreachable
}

// end ends the running operation and returns its result.
func (w *world) end() fsm.Event {
	o := w.op
	w.op = operation{}
	current := o.Fresh && w.served && w.phase.mode == serving && (!w.dead || w.badOptions)
	switch {
	case o.Op != fsm.Build:
		return fsm.Checked{Kind: o.kind, Took: w.now.Sub(o.started), Err: errOf(o.kind), CurrentAnswered: current}
	case o.broken && o.kind == conntype.None:
		return fsm.Built{Err: errRefused, CurrentAnswered: current}
	default:
		return fsm.Built{Kind: o.kind, Err: errOf(o.kind), CurrentAnswered: current && o.kind != conntype.None}
	}
}

func errOf(k conntype.Kind) error {
	if k == conntype.None {
		return nil
	}
	return errors.New(string(k))
}

// request is a request of the program while the connection is up. Its failure causes a Suspected.
func (w *world) request() {
	m := w.phase.mode
	switch {
	case m.hangs():
		since := w.changed
		w.later(2*s, fsm.Suspected{}, func() bool { return w.changed.Equal(since) })
	case m.kind() != conntype.None || !w.ready:
		w.later(ms, fsm.Suspected{}, func() bool { return true })
	}
}
