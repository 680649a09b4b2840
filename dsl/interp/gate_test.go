package interp_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

// at schedules an action at a time after the start, independent of the machine's effects.
func (w *driver) at(after time.Duration, act func(w *driver)) {
	w.schedule(event{at: epoch.Add(after), act: act})
}

func (w *driver) pauseAt(after time.Duration) {
	w.at(after, func(w *driver) { w.m.Pause(w.now) })
}

func (w *driver) unpauseAt(after time.Duration) {
	w.at(after, func(w *driver) { w.m.Unpause(w.now) })
}

// history is the run's records: each state, its kind, and the seconds since the start.
func (w *driver) history() []string {
	var out []string
	for _, r := range w.runs {
		line := fmt.Sprintf("%s %s %d", r.Status, r.WaitKind, int(r.Since.Sub(epoch)/time.Second))
		if len(out) == 0 || out[len(out)-1] != line {
			out = append(out, line)
		}
	}
	return out
}

func TestPausedRunEntersNoTask(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ rest, input, step, want string }{
		"between two waits": {
			`do: [{w: {wait: {seconds: 3}}}, {s: {set: {late: true}}}]`, `{}`, "/do/1/s", `{"late": true}`,
		},
		"a call in flight": {
			`do: [{c: {call: http, with: {method: post, endpoint: 'http://x'}}}, {s: {set: {got: '${ . }'}}}]`, `{}`, "/do/1/s",
			`{"got": "late"}`,
		},
		"a listener": {
			`do: [{l: {listen: {to: {one: {with: {type: t}}}}}}, {s: {set: {got: '${ .[0] }'}}}]`, `{}`, "/do/1/s", `{"got": 5}`,
		},
		"a round of a loop": {
			`do: [{f: {for: {in: '[1, 2]'}, do: [{w: {wait: {seconds: 3}}}]}}]`, `{}`, "/do/0/f/for/1/do/0/w", `{}`,
		},
		"a handler": {
			`do: [{t: {try: [{w: {timeout: {after: {seconds: 3}}, wait: {hours: 1}}}], catch: {do: [{h: {set: {handled: '${ $error.status }'}}}]}}}]`,
			`{}`, "/do/0/t/catch/do/0/h", `{"handled": 408}`,
		},
		"a retry": {
			`do: [{t: {try: [{c: {call: http, with: {method: put, endpoint: 'http://flaky'}}}], catch: {retry: {delay: {seconds: 2}, limit: {attempt: {count: 1}}}}}}]`,
			`{}`, "/do/0/t/retry/2/try/0/c", `"late"`,
		},
	} {
		for _, moved := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, moved %v", name, moved), func(t *testing.T) {
				t.Parallel()
				w := newDriver(t, document(tt.rest), tt.input)
				w.origin = func(c interp.Call) answer {
					if c.HTTP.Method == http.MethodPut && len(w.calls) == 1 {
						return answer{Result: answered(503), after: time.Second}
					}
					return answer{Result: interp.Result{Value: "late"}, after: 3 * time.Second}
				}
				w.publish(3*time.Second, `{"id": "1", "type": "t", "data": 5}`)
				w.pauseAt(2 * time.Second)
				w.pauseAt(4 * time.Second)
				w.at(9*time.Second, func(w *driver) {
					for _, s := range w.steps {
						require.NotEqual(t, tt.step, s.Path, "entered while it was paused")
					}
					last := w.runs[len(w.runs)-1]
					require.Equal(t, interp.StatusWaiting, last.Status)
					require.Equal(t, interp.WaitPaused, last.WaitKind)
					require.Equal(t, epoch.Add(2*time.Second), last.Since, "since the first of the two")
					require.Nil(t, last.WaitUntil)
					if moved {
						w.restore()
					}
				})
				w.unpauseAt(10 * time.Second)
				w.unpauseAt(11 * time.Second)
				w.completes(tt.want)
				require.False(t, w.step(tt.step).StartedAt.Before(epoch.Add(10*time.Second)), "entered as soon as it may")
			})
		}
	}
}

func TestPauseShowsAtOnceAndCallsInFlightEnd(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - c: {call: http, with: {method: post, endpoint: 'http://x'}}
  - w: {wait: {seconds: 5}}`), `{}`)
	w.origin = func(interp.Call) answer { return answer{Result: interp.Result{Value: 1}, after: 4 * time.Second} }
	w.pauseAt(time.Second)
	w.unpauseAt(6 * time.Second)
	w.completes(`1`)
	require.Equal(t, []string{"running  0", "waiting paused 1", "waiting timer 6", "completed  11"}, w.history())
	require.Equal(t, epoch.Add(4*time.Second), *w.step("/do/0/c").EndedAt)
}

func TestTimersFireWhileTheRunIsPaused(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
timeout: {after: {seconds: 20}}
do: [{w: {wait: {seconds: 5}}}, {s: {set: {x: 1}}}]`), `{}`)
	w.pauseAt(time.Second)
	require.Equal(t, interp.StatusTimedOut, w.run().Status)
	require.Equal(t, epoch.Add(5*time.Second), *w.step("/do/0/w").EndedAt)
	require.Len(t, w.steps, 1)
}

func TestPausedRunCanBeCanceledAndEndsWithItsLastTask(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`do: [{w: {wait: {seconds: 5}}}, {s: {set: {x: 1}}}]`), `{}`)
	w.pauseAt(time.Second)
	w.cancelAt = epoch.Add(9 * time.Second)
	require.Equal(t, interp.StatusCanceled, w.run().Status)
	require.Equal(t, []string{"/do/0/w completed"}, w.trace())

	w = newDriver(t, document(`do: [{w: {wait: {seconds: 5}}}]`), `{}`)
	w.pauseAt(time.Second)
	w.completes(`{}`)
}

func TestUnpauseWithoutPauseHasNoEffect(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`do: [{w: {wait: {seconds: 5}}}, {s: {set: {x: 1}}}]`), `{}`)
	w.unpauseAt(time.Second)
	w.at(2*time.Second, func(w *driver) { w.m.ResumeQuota(w.now) })
	w.completes(`{"x": 1}`)
	require.Equal(t, []string{"waiting timer 0", "completed  5"}, w.history())
	w.m.Pause(w.now)
	w.m.Unpause(w.now)
	_, done := w.m.Done()
	require.True(t, done)
}

// meter grants steps from what is left of a period.
type meter struct {
	limit, block int64
	period       time.Duration
	used         map[time.Time]int64
	asks         int
	forced       int
}

func (m *meter) grant(w *driver, e interp.RequestSteps) {
	m.asks++
	if e.Force {
		m.forced++
	}
	begin := w.now.Truncate(m.period)
	steps := min(m.block, m.limit-m.used[begin])
	m.used[begin] += steps
	w.m.Grant(e.ID, steps, begin.Add(m.period), w.now)
}

const loop30 = `do: [{f: {for: {in: '[range(10)]'}, do: [{a: {fork: {branches: [{x: {set: '${ 1 }'}}, {y: {set: '${ 2 }'}}]}}}]}}]`

func TestNeverMoreStepsThanTheQuotaInAPeriod(t *testing.T) {
	t.Parallel()
	for _, block := range []int64{1, 3, 100} {
		for _, moved := range []bool{false, true} {
			t.Run(fmt.Sprintf("blocks of %d, moved %v", block, moved), func(t *testing.T) {
				t.Parallel()
				w := newDriver(t, document(loop30), `{}`)
				w.metered()
				m := &meter{limit: 4, block: block, period: time.Minute, used: map[time.Time]int64{}}
				w.meter = m
				if moved {
					w.between = func(w *driver) {
						if w.m.InFlight() == 0 {
							w.restore()
						}
					}
				}
				w.completes(`[1, 2]`)
				entered := map[time.Time]int{}
				for _, s := range w.steps {
					entered[s.StartedAt.Truncate(time.Minute)]++
				}
				require.Len(t, w.steps, 31)
				require.Len(t, entered, 8)
				for at, n := range entered {
					require.LessOrEqual(t, n, 4, "in the period that begins at %s", at)
				}
				require.Contains(t, w.history(), "waiting quota 0")
				require.Contains(t, w.history(), "waiting quota 60")
			})
		}
	}
}

// TestStepsGrantedWithTheStart enters the first steps without a request, and none of them once they have lapsed.
func TestStepsGrantedWithTheStart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lapses time.Time
		asks   int
	}{"in their period": {epoch.Add(time.Minute), 3}, "lapsed": {epoch, 4}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newDriver(t, document(loop30), `{}`)
			w.m = interp.New(w.doc, interp.Start{
				RunID: "run-1", Input: value(t, `{}`), At: epoch, Metered: true, Granted: 10, Lapses: tt.lapses,
			}, w.limits)
			m := &meter{limit: 1000, block: 10, period: time.Hour, used: map[time.Time]int64{}}
			w.meter = m
			w.completes(`[1, 2]`)
			require.Len(t, w.steps, 31)
			require.Equal(t, tt.asks, m.asks)
		})
	}
}

func TestQuotaIsRequestedAgainOnDemand(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`do: [{a: {set: '${ 1 }'}}, {b: {set: '${ 2 }'}}]`), `{}`)
	w.metered()
	m := &meter{limit: 1, block: 1, period: time.Hour, used: map[time.Time]int64{}}
	w.meter = m
	w.at(10*time.Second, func(w *driver) {
		require.Equal(t, epoch.Add(time.Hour), *w.runs[len(w.runs)-1].WaitUntil)
		w.m.ResumeQuota(w.now) // the limit is as it was
	})
	w.at(20*time.Second, func(w *driver) {
		m.limit = 2
		w.m.ResumeQuota(w.now)
	})
	w.completes(`2`)
	require.Equal(t, 4, m.asks)
	require.Equal(t, 2, m.forced)
	require.Equal(t, epoch.Add(20*time.Second), w.step("/do/1/b").StartedAt)
}

func TestUnusedStepsLapse(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`do: [{a: {wait: {seconds: 90}}}, {b: {set: '${ 2 }'}}]`), `{}`)
	w.metered()
	m := &meter{limit: 10, block: 10, period: time.Minute, used: map[time.Time]int64{}}
	w.meter = m
	w.completes(`2`)
	require.Equal(t, 2, m.asks, "steps of the first minute cannot be used in the second")
}

func TestPausedRunRequestsNoSteps(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`do: [{a: {set: '${ 1 }'}}, {b: {set: '${ 2 }'}}]`), `{}`)
	w.metered()
	m := &meter{limit: 1, block: 1, period: time.Minute, used: map[time.Time]int64{}}
	w.meter = m
	w.pauseAt(10 * time.Second)
	w.unpauseAt(5 * time.Minute)
	w.completes(`2`)
	require.Equal(t, []string{"running  0", "waiting quota 0", "waiting paused 10", "running  300", "completed  300"},
		w.history())
	require.Equal(t, 3, m.asks)
}

func TestHoldPreventsNewListeners(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`do: [{e: {emit: {event: {with: {type: t}}}}}, {l: {listen: {to: {any: []}}}}]`), `{}`)
	emit, ok := w.m.Advance(epoch)[0].(interp.Emit)
	require.True(t, ok)
	w.m.Hold()
	w.m.Complete(emit.ID, interp.Result{}, epoch)
	require.Empty(t, w.m.Advance(epoch))
	snapshot, err := w.m.Snapshot()
	require.NoError(t, err)
	w.m, err = interp.Restore(w.doc, snapshot, w.limits)
	require.NoError(t, err)
	listen, ok := w.m.Advance(epoch)[0].(interp.Listen)
	require.True(t, ok)
	require.Equal(t, eventfilter.Spec{Mode: eventfilter.Any}, listen.Spec)
}
