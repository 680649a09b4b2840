package fsm_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/conn/internal/fsm"
)

// TestSchedules drives a machine through 1,000 random schedules of faults and checks its guarantees at every event. A
// failing schedule is shrunk, and printed with the flag that repeats it (-rapid.seed or -rapid.failfile).
func TestSchedules(t *testing.T) {
	t.Parallel()
	for i := range 10 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { // 100 each
				schedule := phases().Draw(t, "phases")
				random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "noise"), 0))
				newObserver(t, random).run(schedule)
			})
		})
	}
}

// observer runs a machine in a simulated world and compares it with a model of its own.
type observer struct {
	*rapid.T

	w            *world
	m            *fsm.Machine
	start        time.Time
	last         fsm.View
	due          time.Time // the next attempt, as reported after the last one
	built        bool      // there is a client
	polls        bool
	rebuildAfter time.Duration // the outage after which a client is replaced in any case

	rightAt  time.Time // when the state must be right at the latest
	readyAt  time.Time // when gRPC reported Ready in the present phase while down
	identity int       // changes
	tried    int
	current  int
	rebuild  bool
	missedAt time.Time
	lostAt   time.Time
	backAt   time.Time
	outage   time.Time
	failures int
	open     bool
	signs    map[string]time.Time // signs of life that no attempt has satisfied
	ended    map[string]time.Time // ends of the last attempts, by the signs that caused them
	causes   []string
}

func newObserver(t *rapid.T, random *rand.Rand) *observer {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	set := settings()
	set.Random = random.Float64
	set.RebuildAfter = []time.Duration{2 * s, time.Minute}[random.IntN(2)]
	m := fsm.New(set, start)
	return &observer{T: t, w: &world{now: start, random: random, probesLight: random.IntN(2) == 0}, m: m, start: start,
		last: m.View(start),
		due:  start, polls: true, rebuildAfter: set.RebuildAfter, signs: map[string]time.Time{},
		ended: map[string]time.Time{}}
}

func (o *observer) up() bool {
	return o.last.State == conntype.Connected || o.last.State == conntype.Degraded
}

// run runs a schedule, event by event.
func (o *observer) run(schedule []phase) {
	w := o.w
	for _, p := range schedule {
		w.enter(p)
		o.rightAt, o.readyAt = o.rightBy(), time.Time{}
		end, request := w.now.Add(p.duration), w.now.Add(w.within(0, 300*ms))
		for {
			next, what := end, "end"
			soonest := func(at time.Time, name string) {
				if !at.IsZero() && at.Before(next) {
					next, what = at, name
				}
			}
			if p.traffic && o.up() {
				soonest(latest(request, w.now), "request")
			}
			soonest(o.m.Deadline(), "tick")
			if w.op.Op != fsm.Nothing {
				soonest(w.op.ends, "op")
			}
			event := -1
			for i, e := range w.events {
				if at := e.at; at.Before(next) {
					next, what, event = at, "event", i
				}
			}
			w.now = next
			if what == "end" {
				break
			}
			switch what {
			case "request":
				w.request()
				request = w.now.Add(w.within(50*ms, 300*ms))
				continue
			case "tick":
				o.command(o.m.Tick(w.now), false)
			case "op":
				o.finish()
			case "event":
				e := w.events[event]
				w.events = append(w.events[:event:event], w.events[event+1:]...)
				if e.holds() {
					o.event(e.event)
				}
			}
			o.check()
		}
	}
}

// rightBy returns when the state must be right after a change.
func (o *observer) rightBy() time.Time {
	within := 25 * s
	if o.w.phase.traffic {
		within = 10 * s
		if o.w.phase.mode == slow {
			within = 12 * s // no request fails, so no check is brought forward
		}
	}
	if o.w.op.Op == fsm.Build {
		within += 10 * s
	}
	return latest(o.rightAt, o.w.changed.Add(within))
}

// event passes an event that is no result of an operation.
func (o *observer) event(e fsm.Event) {
	now, busy := o.w.now, o.w.op.Op != fsm.Nothing
	sign := func(name string) {
		if !o.up() || busy || !o.missedAt.IsZero() {
			o.signs[name] = now
		}
	}
	switch e := e.(type) {
	case fsm.Ready:
		sign("ready")
		if !o.lostAt.IsZero() && o.backAt.IsZero() {
			o.backAt = now
		}
		if !o.up() && o.readyAt.IsZero() {
			o.readyAt = now
		}
	case fsm.Changed:
		sign("changed")
		o.identity++
		if !o.built { // with valid options the next attempt succeeds
			o.rightAt = latest(o.rightAt, now.Add(25*s))
		}
		if o.w.op.Op == fsm.Nothing && o.up() && !o.missedAt.IsZero() {
			o.rightAt = o.rightAt.Add(10 * s)
		}
	case fsm.Reset:
		sign("reset")
		if !o.open {
			o.failures = 0
		}
	case fsm.Polling:
		o.polls = e.OK
	case fsm.Lost:
		if o.up() {
			o.backAt = time.Time{}
			if o.lostAt.IsZero() {
				o.lostAt = now
			}
		}
	}
	o.command(o.m.Handle(now, e), busy)
}

// finish passes the result of the running operation.
func (o *observer) finish() {
	op, now := o.w.op, o.w.now
	e := o.w.end()
	up := o.up()
	c := o.m.Handle(now, e)
	kind, failed, current := conntype.None, false, false
	switch e := e.(type) {
	case fsm.Checked:
		kind, failed, current = e.Kind, e.Kind != conntype.None, e.CurrentAnswered
	case fsm.Built:
		kind, failed, current = e.Kind, e.Err != nil, e.CurrentAnswered
		o.readyAt = time.Time{}                      // connected, or the connection is not the reason
		o.rightAt = latest(o.rightAt, now.Add(10*s)) // it may have taken long, and failed
	}
	switch {
	case up && op.Op == fsm.Build:
		clear(o.signs)
		if !failed {
			o.renewed()
		}
	case up:
		o.watched(op, kind)
	case op.Op == fsm.Probe:
		if !failed {
			o.signs["probed"] = now
		}
	case failed && current:
		require.NotEqual(o, fsm.Build, c.Op, "the replacement has just failed")
		o.rebuild = o.rebuild || !o.pollersSurvived()
		o.connected()
	case failed:
		o.failed(op, kind, c)
	case op.Op == fsm.Build:
		o.renewed()
		o.connected()
	case !op.Fresh:
		o.rebuild = o.rebuild || now.Sub(o.outage) >= o.rebuildAfter
		o.connected()
	case current && o.pollersSurvived() && !o.rebuild && o.current == o.identity:
		require.NotEqual(o, fsm.Build, c.Op, "a client replaced without need")
		o.connected()
	default:
		require.Equal(o, fsm.Command{Op: fsm.Build, Fresh: true, Number: op.Number}, c)
		delete(o.signs, "ready")
	}
	o.command(c, false)
}

// pollersSurvived reports whether the workers of the current client can be kept after the outage: their polls were not
// refused, and have not waited for too long.
func (o *observer) pollersSurvived() bool {
	return o.last.Kind != conntype.NamespaceMissing && o.last.Kind != conntype.AuthFailed &&
		o.w.now.Sub(o.outage) < o.rebuildAfter
}

func (o *observer) watched(op operation, kind conntype.Kind) {
	now, began := o.w.now, o.missedAt
	if !o.lostAt.IsZero() && (began.IsZero() || o.lostAt.Before(began)) {
		began = o.lostAt
	}
	switch {
	case kind != conntype.None && o.missedAt.IsZero():
		o.missedAt = now
	case kind != conntype.None:
		require.Equal(o, conntype.Down, o.m.View(now).State)
		o.outage, o.missedAt, o.lostAt = began, time.Time{}, time.Time{}
		if o.due = o.m.View(now).NextAttempt; o.due.IsZero() { // a sign of life has caused an attempt, or it is too early
			o.due = now.Add(s)
		}
	default:
		clear(o.signs)
		until := now
		if o.missedAt.IsZero() && !o.backAt.IsZero() {
			until = o.backAt
		}
		if !began.IsZero() && (!o.missedAt.IsZero() || !op.started.Before(o.lostAt)) && until.Sub(began) >= o.rebuildAfter {
			o.rebuild = true
		}
		o.missedAt = time.Time{}
		if !op.started.Before(o.lostAt) {
			o.lostAt, o.backAt = time.Time{}, time.Time{}
		}
	}
}

func (o *observer) renewed() {
	o.w.served = true
	o.built, o.rebuild, o.current, o.lostAt, o.backAt = true, false, o.tried, time.Time{}, time.Time{}
}

func (o *observer) connected() {
	o.failures, o.open, o.outage, o.missedAt, o.lostAt = 0, false, time.Time{}, time.Time{}, time.Time{}
	clear(o.signs)
	require.Contains(o, []conntype.State{conntype.Connected, conntype.Degraded}, o.m.View(o.w.now).State)
}

func (o *observer) failed(op operation, kind conntype.Kind, next fsm.Command) {
	v := o.m.View(o.w.now)
	if kind != conntype.None {
		require.Equal(o, conntype.Down, v.State)
		require.Equal(o, kind, v.Kind)
	}
	// A Ready during an attempt may be caused by it; see TestReadyCausedByAttempt.
	reached := kind == conntype.None || kind == conntype.NamespaceMissing || kind == conntype.AuthFailed
	if reached || op.Fresh && kind == conntype.Hung && slices.Contains(o.causes, "ready") {
		delete(o.signs, "ready")
	}
	for _, cause := range o.causes {
		o.ended[cause] = o.w.now
	}
	o.failures++
	o.open = o.open || o.failures >= 10
	if next.Op == fsm.Nothing {
		o.due = v.NextAttempt
	}
}

// command checks a command of the machine and starts it.
func (o *observer) command(c fsm.Command, busy bool) {
	now := o.w.now
	if c.Op == fsm.Nothing {
		return
	}
	require.False(o, busy, "two operations at a time")
	v := o.m.View(now)
	up := v.State == conntype.Connected || v.State == conntype.Degraded
	outdated := !o.built || o.current != o.identity
	switch c.Op {
	case fsm.Probe:
		require.True(o, up || v.NextAttempt.Sub(now) >= 0)
	case fsm.Check:
		require.True(o, up)
		require.True(o, o.missedAt.IsZero() || now.Sub(o.missedAt) >= s, "confirmed too soon")
		delete(o.signs, "ready")
	case fsm.Attempt:
		require.False(o, up)
		require.Equal(o, outdated || now.Sub(o.outage) >= 2*s, c.Fresh)
		o.causes = nil
		allowed := !now.Before(o.due)
		for sign := range o.signs {
			o.causes = append(o.causes, sign)
			allowed = allowed || now.Sub(o.ended[sign]) >= 500*ms
		}
		require.True(o, allowed, "an attempt too early: %v before %v, signs %v ended %v now %v", c, o.due, o.signs, o.ended,
			now)
		clear(o.signs)
	case fsm.Build:
		require.True(o, !up || outdated || o.rebuild, "a client replaced without need")
	}
	if c.Fresh && (c.Op == fsm.Attempt || up) {
		o.tried = o.identity
	}
	o.w.begin(c)
}

// check checks the machine after every event.
func (o *observer) check() {
	now, v := o.w.now, o.m.View(o.w.now)
	if o.w.op.Op == fsm.Nothing {
		require.True(o, o.m.Deadline().After(now), "a deadline in the past")
	} else {
		require.Zero(o, o.m.Deadline())
	}
	require.Equal(o, now.Sub(o.start), v.Statistics.Uptime+v.Statistics.Downtime)
	down := v.State == conntype.Down
	switch {
	case v.State == o.last.State && (down || v.Kind == o.last.Kind):
		require.Equal(o, o.last.Since, v.Since)
	case down && v.Statistics.Outages > 0:
		require.Equal(o, o.outage, v.Since)
	default:
		require.Equal(o, now, v.Since)
	}
	if down && v.Statistics.Outages > 0 {
		require.Equal(o, now.Sub(v.Since), v.Statistics.LastOutage)
	}
	most := 36 * s
	if o.open {
		most = 6 * time.Minute
	}
	require.LessOrEqual(o, v.NextAttempt.Sub(now), most)
	require.Equal(o, o.open, v.Breaker.State != conntype.BreakerClosed)
	require.Equal(o, o.failures, v.Breaker.Failures)
	require.Equal(o, v.State == conntype.Down || v.State == conntype.Degraded, v.Kind != conntype.None)
	o.last = v
	right := o.right()
	if building := o.w.op.Op == fsm.Build; !building && !now.Before(o.rightAt) { // no check runs during a build
		require.True(o, right, "%s for %s, but the state is %s %s since %s", o.w.phase.mode, now.Sub(o.w.changed), v.State,
			v.Kind, now.Sub(v.Since))
	}
	if o.up() || !o.w.phase.mode.accepts() || o.noClientPossible() {
		o.readyAt = time.Time{}
	}
	if o.w.phase.mode == serving && !o.readyAt.IsZero() {
		require.LessOrEqual(o, now.Sub(o.readyAt), 900*ms, "not reconnected")
	}
}

// right reports whether the state corresponds to the world.
func (o *observer) right() bool {
	state, kind := conntype.Connected, conntype.None
	switch {
	case o.noClientPossible():
		return true // the state is right once the first attempt has failed, which the back-off may delay
	case o.w.phase.mode == slow:
		state, kind = conntype.Degraded, conntype.Slow
	case o.w.phase.mode != serving:
		state, kind = conntype.Down, o.w.phase.mode.kind()
	case !o.polls:
		state, kind = conntype.Degraded, conntype.NotPolling
	}
	return o.last.State == state && o.last.Kind == kind
}

// noClientPossible reports whether there is no client, and none can be made.
func (o *observer) noClientPossible() bool {
	return o.w.badOptions && !o.built && o.w.phase.mode == serving
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
