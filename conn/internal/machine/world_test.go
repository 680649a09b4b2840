package machine_test

import (
	"errors"
	"math/rand/v2"
	"time"

	"pgregory.net/rapid"

	"github.com/signalbox-dev/signalbox/conn/internal/machine"
)

// mode is what Temporal does.
type mode string

const (
	serving   mode = "serving"
	slow      mode = "slow"      // every answer takes more than a second
	refusing  mode = "refusing"  // nobody listens; connections are cut
	frozen    mode = "frozen"    // connections stay, nothing moves
	stuck     mode = "stuck"     // connections become ready, the check never ends; a probe may be answered
	nameless  mode = "nameless"  // the namespace is missing
	forbidden mode = "forbidden" // the credentials are refused
	insecure  mode = "insecure"  // TLS does not fit; connections are cut
)

// accepts tells whether a gRPC connection becomes ready.
func (m mode) accepts() bool { return m != refusing && m != frozen && m != insecure }

// hangs tells whether a full check never ends.
func (m mode) hangs() bool { return m == frozen || m == stuck }

// kind is what a full check finds.
func (m mode) kind() machine.Kind {
	return map[mode]machine.Kind{refusing: machine.Unreachable, frozen: machine.Hung, stuck: machine.Hung,
		nameless: machine.NamespaceMissing, forbidden: machine.AuthFailed, insecure: machine.TLSError}[m]
}

// phase is a stretch of a schedule.
type phase struct {
	mode    mode
	lasts   time.Duration
	traffic bool
	nudge   string // what else happens in the middle of it, if anything
}

func phases() *rapid.Generator[[]phase] {
	one := rapid.Custom(func(t *rapid.T) phase {
		most := rapid.SampledFrom([]int{300, 2500, 12_000, 60_000, 60_000}).Draw(t, "most")
		return phase{
			mode:    rapid.SampledFrom([]mode{serving, serving, slow, refusing, frozen, stuck, nameless, forbidden, insecure}).Draw(t, "mode"),
			lasts:   time.Duration(rapid.IntRange(20, most).Draw(t, "lasts")) * ms,
			traffic: rapid.Bool().Draw(t, "traffic"),
			nudge:   rapid.SampledFrom([]string{"", "", "changed", "reset", "polls", "polls not", "spoilt", "mended"}).Draw(t, "nudge"),
		}
	})
	return rapid.SliceOfN(one, 1, 14)
}

// world is a simulated Temporal, the gRPC connection to it, and those who use it.
type world struct {
	now         time.Time
	random      *rand.Rand
	phase       phase
	changed     time.Time // when the mode last changed
	probesLight bool      // a light probe is answered without credentials and by a stuck server

	served  bool // there is a client that has served
	dead    bool // its connection is, in this phase, though nobody has noticed
	spoilt  bool // what a new client is made of is wrong, so that a server that serves refuses it
	dialled bool // there is a client
	ready   bool // its connection is
	events  []timed
	op      operation
}

// timed is an event to come. A condition that fails when it is due drops it.
type timed struct {
	at    time.Time
	event machine.Event
	holds func() bool
}

// operation is what is under way, as it would end if nothing changed.
type operation struct {
	machine.Command

	started, ends time.Time
	kind          machine.Kind
	broken        bool // a build that fails for a reason of its own
}

func (w *world) within(from, to time.Duration) time.Duration {
	return from + time.Duration(w.random.Int64N(int64(to-from)))
}

func (w *world) later(d time.Duration, e machine.Event, holds func() bool) {
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
		w.later(0, machine.Lost{}, func() bool { return true })
	}
	if another && w.dialled && !w.ready {
		w.redial()
	}
	if another && w.op.Do != machine.Nothing {
		w.disturb()
	}
	nudges := map[string]machine.Event{"changed": machine.Changed{}, "reset": machine.Reset{}, "polls": machine.Polling{OK: true}, "polls not": machine.Polling{}}
	if e, ok := nudges[p.nudge]; ok {
		w.later(p.lasts/2, e, func() bool { return true })
	}
	if p.nudge == "spoilt" || p.nudge == "mended" {
		w.later(p.lasts/2, machine.Changed{}, func() bool {
			w.spoilt = p.nudge == "spoilt"
			return true
		})
	}
}

// redial lets gRPC find out that the server accepts, as long as it does.
func (w *world) redial() {
	since := w.changed
	if w.phase.mode.accepts() {
		w.later(w.within(100*ms, 700*ms), machine.Ready{}, func() bool {
			ok := !w.ready && w.phase.mode.accepts() && w.changed.Equal(since)
			w.ready = w.ready || ok
			return ok
		})
	}
}

// begin starts an operation.
func (w *world) begin(c machine.Command) {
	w.op = operation{Command: c, started: w.now, broken: c.Do == machine.Build && w.random.IntN(20) == 0}
	if c.Fresh {
		w.dialled = true
		if w.phase.mode.accepts() {
			w.ready = true
			w.later(ms/2, machine.Ready{}, func() bool { return true }) // its own connection
		}
	}
	if w.phase.mode.accepts() && !w.ready { // gRPC waits between its dials, and fails what is asked for meanwhile
		w.op.ends, w.op.kind = w.now.Add(ms), machine.Unreachable
		return
	}
	w.work()
}

// work computes how an operation ends in the present mode.
func (w *world) work() {
	o, m := &w.op, w.phase.mode
	o.kind = m.kind()
	if w.spoilt && m == serving && o.Fresh {
		o.kind = machine.AuthFailed
	}
	light := o.Do == machine.Probe && (m == nameless || w.probesLight && (m == stuck || m == forbidden))
	if light {
		o.kind = machine.None
	}
	limit := 3 * s
	if o.Do == machine.Build {
		limit = 10 * s
	}
	switch {
	case light:
		o.ends = w.now.Add(w.within(ms, 30*ms))
	case m.hangs():
		o.ends = o.started.Add(limit)
	case m == slow:
		o.ends = w.now.Add(w.within(1050*ms, 1500*ms))
	case m == serving && o.Do == machine.Build:
		o.ends = w.now.Add(w.within(50*ms, 300*ms))
	default:
		o.ends = w.now.Add(w.within(ms, 30*ms))
	}
	if end := o.started.Add(limit); o.ends.After(end) {
		o.ends, o.kind = end, machine.Hung
	}
}

// disturb tells what is under way of a change of mode.
func (w *world) disturb() {
	if m := w.phase.mode; m.accepts() || m.hangs() {
		w.work()
		return
	}
	w.op.ends, w.op.kind = w.now, machine.Unreachable
}

// end is the end of what is under way.
func (w *world) end() machine.Event {
	o := w.op
	w.op = operation{}
	current := o.Fresh && w.served && w.phase.mode == serving && (!w.dead || w.spoilt)
	switch {
	case o.Do != machine.Build:
		return machine.Checked{Kind: o.kind, Took: w.now.Sub(o.started), Err: errOf(o.kind), Current: current}
	case o.broken && o.kind == machine.None:
		return machine.Built{Err: errRefused, Current: current}
	default:
		return machine.Built{Kind: o.kind, Err: errOf(o.kind), Current: current && o.kind != machine.None}
	}
}

func errOf(k machine.Kind) error {
	if k == machine.None {
		return nil
	}
	return errors.New(string(k))
}

// request is one by a user. It is refused while the state is down, and otherwise its failure raises a suspicion.
func (w *world) request() {
	m := w.phase.mode
	switch {
	case m.hangs():
		since := w.changed
		w.later(2*s, machine.Suspected{}, func() bool { return w.changed.Equal(since) })
	case m.kind() != machine.None || !w.ready:
		w.later(ms, machine.Suspected{}, func() bool { return true })
	}
}
