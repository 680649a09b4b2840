package machine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/signalbox-dev/signalbox/conn/internal/machine"
)

// TestSchedules drives a machine through 1,000 random schedules of faults and holds it to its promises at every event. A
// failing schedule is shrunk, and printed with what repeats it (-rapid.seed or -rapid.failfile).
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

// observer runs a machine in a world and holds it to what it promises, by bookkeeping of its own.
type observer struct {
	*rapid.T

	w     *world
	m     *machine.Machine
	start time.Time
	last  machine.View
	due   time.Time // the next attempt as last told after an attempt
	built bool      // there is a client
	polls bool
	long  time.Duration // the outage after which a client is replaced in any case

	settled  time.Time // when the state must be right at the latest
	readyAt  time.Time // when gRPC said Ready in the present phase while down
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
	signs    map[string]time.Time // unanswered signs of life
	ended    map[string]time.Time // the last attempts' ends by the signs that caused them
	causes   []string
}

func newObserver(t *rapid.T, random *rand.Rand) *observer {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	set := settings()
	set.Random = random.Float64
	set.RebuildAfter = []time.Duration{2 * s, time.Minute}[random.IntN(2)]
	m := machine.New(set, start)
	return &observer{T: t, w: &world{now: start, random: random, probesLight: random.IntN(2) == 0}, m: m, start: start, last: m.View(start),
		due: start, polls: true, long: set.RebuildAfter, signs: map[string]time.Time{}, ended: map[string]time.Time{}}
}

func (o *observer) up() bool {
	return o.last.State == machine.Connected || o.last.State == machine.Degraded
}

// run plays a schedule, event by event.
func (o *observer) run(schedule []phase) {
	w := o.w
	for _, p := range schedule {
		w.enter(p)
		o.settled, o.readyAt = o.promise(), time.Time{}
		end, request := w.now.Add(p.lasts), w.now.Add(w.within(0, 300*ms))
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
			if w.op.Do != machine.Nothing {
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
				o.ending()
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

// promise is when the state must be right after a change.
func (o *observer) promise() time.Time {
	within := 25 * s
	if o.w.phase.traffic {
		within = 10 * s
		if o.w.phase.mode == slow {
			within = 12 * s // no request fails, so nothing hastens the checks
		}
	}
	if o.w.op.Do == machine.Build {
		within += 10 * s
	}
	return latest(o.settled, o.w.changed.Add(within))
}

// event is one from outside.
func (o *observer) event(e machine.Event) {
	now, busy := o.w.now, o.w.op.Do != machine.Nothing
	sign := func(name string) {
		if !o.up() || busy || !o.missedAt.IsZero() {
			o.signs[name] = now
		}
	}
	switch e := e.(type) {
	case machine.Ready:
		sign("ready")
		if !o.lostAt.IsZero() && o.backAt.IsZero() {
			o.backAt = now
		}
		if !o.up() && o.readyAt.IsZero() {
			o.readyAt = now
		}
	case machine.Changed:
		sign("changed")
		o.identity++
		if !o.built { // what was hopeless until now is right as soon as attempts find it so
			o.settled = latest(o.settled, now.Add(25*s))
		}
		if o.w.op.Do == machine.Nothing && o.up() && !o.missedAt.IsZero() {
			o.settled = o.settled.Add(10 * s)
		}
	case machine.Reset:
		sign("reset")
		if !o.open {
			o.failures = 0
		}
	case machine.Polling:
		o.polls = e.OK
	case machine.Lost:
		if o.up() {
			o.backAt = time.Time{}
			if o.lostAt.IsZero() {
				o.lostAt = now
			}
		}
	}
	o.command(o.m.On(now, e), busy)
}

// ending reports the end of what is under way.
func (o *observer) ending() {
	op, now := o.w.op, o.w.now
	e := o.w.end()
	up := o.up()
	c := o.m.On(now, e)
	kind, failed, current := machine.None, false, false
	switch e := e.(type) {
	case machine.Checked:
		kind, failed, current = e.Kind, e.Kind != machine.None, e.Current
	case machine.Built:
		kind, failed, current = e.Kind, e.Err != nil, e.Current
		o.readyAt = time.Time{}                      // connected, or not for want of a connection
		o.settled = latest(o.settled, now.Add(10*s)) // it took its time, and may have failed
	}
	switch {
	case up && op.Do == machine.Build:
		clear(o.signs)
		if !failed {
			o.renewed()
		}
	case up:
		o.watched(op, kind)
	case op.Do == machine.Probe:
		if !failed {
			o.signs["probed"] = now
		}
	case failed && current:
		require.NotEqual(o, machine.Build, c.Do, "it has failed just now")
		o.rebuild = o.rebuild || !o.bore()
		o.connected()
	case failed:
		o.failed(op, kind, c)
	case op.Do == machine.Build:
		o.renewed()
		o.connected()
	case !op.Fresh:
		o.rebuild = o.rebuild || now.Sub(o.outage) >= o.long
		o.connected()
	case current && o.bore() && !o.rebuild && o.current == o.identity:
		require.NotEqual(o, machine.Build, c.Do, "a client replaced for nothing")
		o.connected()
	default:
		require.Equal(o, machine.Command{Do: machine.Build, Fresh: true, Number: op.Number}, c)
		delete(o.signs, "ready")
	}
	o.command(c, false)
}

// bore tells whether the workers of the current client can go on after the outage there is: their polls were not refused, and
// have not waited for too long.
func (o *observer) bore() bool {
	return o.last.Kind != machine.NamespaceMissing && o.last.Kind != machine.AuthFailed && o.w.now.Sub(o.outage) < o.long
}

func (o *observer) watched(op operation, kind machine.Kind) {
	now, began := o.w.now, o.missedAt
	if !o.lostAt.IsZero() && (began.IsZero() || o.lostAt.Before(began)) {
		began = o.lostAt
	}
	switch {
	case kind != machine.None && o.missedAt.IsZero():
		o.missedAt = now
	case kind != machine.None:
		require.Equal(o, machine.Down, o.m.View(now).State)
		o.outage, o.missedAt, o.lostAt = began, time.Time{}, time.Time{}
		if o.due = o.m.View(now).NextAttempt; o.due.IsZero() { // under way by a sign of life, or it is too early
			o.due = now.Add(s)
		}
	default:
		clear(o.signs)
		until := now
		if o.missedAt.IsZero() && !o.backAt.IsZero() {
			until = o.backAt
		}
		if !began.IsZero() && (!o.missedAt.IsZero() || !op.started.Before(o.lostAt)) && until.Sub(began) >= o.long {
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
	require.Contains(o, []machine.State{machine.Connected, machine.Degraded}, o.m.View(o.w.now).State)
}

func (o *observer) failed(op operation, kind machine.Kind, next machine.Command) {
	v := o.m.View(o.w.now)
	if kind != machine.None {
		require.Equal(o, machine.Down, v.State)
		require.Equal(o, kind, v.Kind)
	}
	// What becomes ready during an attempt may be its own doing; see TestReadyOfTheAttemptItself.
	reached := kind == machine.None || kind == machine.NamespaceMissing || kind == machine.AuthFailed
	if reached || op.Fresh && kind == machine.Hung && slices.Contains(o.causes, "ready") {
		delete(o.signs, "ready")
	}
	for _, cause := range o.causes {
		o.ended[cause] = o.w.now
	}
	o.failures++
	o.open = o.open || o.failures >= 10
	if next.Do == machine.Nothing {
		o.due = v.NextAttempt
	}
}

// command takes what the machine asks for.
func (o *observer) command(c machine.Command, busy bool) {
	now := o.w.now
	if c.Do == machine.Nothing {
		return
	}
	require.False(o, busy, "two at a time")
	v := o.m.View(now)
	up := v.State == machine.Connected || v.State == machine.Degraded
	outdated := !o.built || o.current != o.identity
	switch c.Do {
	case machine.Probe:
		require.True(o, up || v.NextAttempt.Sub(now) >= 0)
	case machine.Check:
		require.True(o, up)
		require.True(o, o.missedAt.IsZero() || now.Sub(o.missedAt) >= s, "confirmed too soon")
		delete(o.signs, "ready")
	case machine.Attempt:
		require.False(o, up)
		require.Equal(o, outdated || now.Sub(o.outage) >= 2*s, c.Fresh)
		o.causes = nil
		allowed := !now.Before(o.due)
		for sign := range o.signs {
			o.causes = append(o.causes, sign)
			allowed = allowed || now.Sub(o.ended[sign]) >= 500*ms
		}
		require.True(o, allowed, "an attempt too early: %v before %v, signs %v ended %v now %v", c, o.due, o.signs, o.ended, now)
		clear(o.signs)
	case machine.Build:
		require.True(o, !up || outdated || o.rebuild, "a client replaced for nothing")
	}
	if c.Fresh && (c.Do == machine.Attempt || up) {
		o.tried = o.identity
	}
	o.w.begin(c)
}

// check holds after every event.
func (o *observer) check() {
	now, v := o.w.now, o.m.View(o.w.now)
	if o.w.op.Do == machine.Nothing {
		require.True(o, o.m.Deadline().After(now), "a deadline in the past")
	} else {
		require.Zero(o, o.m.Deadline())
	}
	require.Equal(o, now.Sub(o.start), v.Statistics.Uptime+v.Statistics.Downtime)
	if v.State == o.last.State && v.Kind == o.last.Kind {
		require.Equal(o, o.last.Since, v.Since)
	} else {
		require.Equal(o, now, v.Since)
	}
	most := 36 * s
	if o.open {
		most = 6 * time.Minute
	}
	require.LessOrEqual(o, v.NextAttempt.Sub(now), most)
	require.Equal(o, o.open, v.Breaker.State != machine.BreakerClosed)
	require.Equal(o, o.failures, v.Breaker.Failures)
	require.Equal(o, v.State == machine.Down || v.State == machine.Degraded, v.Kind != machine.None)
	o.last = v
	right := o.right()
	if building := o.w.op.Do == machine.Build; !building && !now.Before(o.settled) { // a build holds back the checks
		require.True(o, right, "%s for %s, but the state is %s %s since %s", o.w.phase.mode, now.Sub(o.w.changed), v.State, v.Kind, now.Sub(v.Since))
	}
	if o.up() || !o.w.phase.mode.accepts() || o.hopeless() {
		o.readyAt = time.Time{}
	}
	if o.w.phase.mode == serving && !o.readyAt.IsZero() {
		require.LessOrEqual(o, now.Sub(o.readyAt), 900*ms, "not reconnected")
	}
}

// right tells whether the state is what the world is like.
func (o *observer) right() bool {
	state, kind := machine.Connected, machine.None
	switch {
	case o.hopeless():
		return true // it is right when the first attempt has failed, which the back-off may put off
	case o.w.phase.mode == slow:
		state, kind = machine.Degraded, machine.Slow
	case o.w.phase.mode != serving:
		state, kind = machine.Down, o.w.phase.mode.kind()
	case !o.polls:
		state, kind = machine.Degraded, machine.NotPolling
	}
	return o.last.State == state && o.last.Kind == kind
}

// hopeless tells whether there is no client, and none can be made.
func (o *observer) hopeless() bool { return o.w.spoilt && !o.built && o.w.phase.mode == serving }

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
