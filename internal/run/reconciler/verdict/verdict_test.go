package verdict

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/home"
)

const (
	timeout = 10 * time.Second
	lag     = run.WriteLag
)

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func ago(d time.Duration) time.Time { return noon().Add(-d) }

// rowOf is a row that has had its status for so long.
func rowOf(status run.Status, reason string, since time.Duration) *run.Run {
	r := &run.Run{ID: "r1", Status: status, QueuedReason: reason, StatusAt: ago(since), Position: 5<<32 | 20}
	if status.Terminal() {
		r.EndedAt = r.StatusAt
	}
	return r
}

func openOne(relation run.Relation, accepted int64, since time.Duration) run.Execution {
	return run.Execution{Open: true, StartedAt: ago(time.Hour), Relation: relation, Accepted: accepted, AcceptedAt: ago(since)}
}

func closedOne(relation run.Relation, since time.Duration) run.Execution {
	return run.Execution{StartedAt: ago(time.Hour), ClosedAt: ago(since), Relation: relation}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	waiting := rowOf(run.Waiting, "", time.Hour)
	tests := []struct {
		name string
		Facts
		want Verdict
	}{
		{"no row, young", Facts{Execution: run.Execution{StartedAt: ago(youngest - ms)}}, Leave},
		{"no row", Facts{Execution: run.Execution{StartedAt: ago(youngest)}}, ReadOrigin},
		{"no row, ours", Facts{Execution: run.Execution{StartedAt: ago(youngest)}, Origin: Ours}, Adopt},
		{"no row, not ours", Facts{Execution: run.Execution{StartedAt: ago(youngest)}, Origin: Strange}, Foreign},
		{"no row, ours, young", Facts{Execution: run.Execution{StartedAt: ago(youngest - ms)}, Origin: Ours}, Leave},

		{"ended", Facts{Row: rowOf(run.Completed, "", time.Hour)}, Leave},
		{"ended, listed", Facts{Row: rowOf(run.Completed, "", quietFor), Listed: true}, Look},
		{"ended just now, listed", Facts{Row: rowOf(run.Completed, "", quietFor-ms), Listed: true}, Leave},
		{"ended, open", Facts{Row: rowOf(run.Failed, "", time.Hour), Listed: true, Answer: Known, Execution: openOne(run.RelationReset, 0, 0)}, Reopened},
		{"ended, open as it was", Facts{Row: rowOf(run.Failed, "", time.Hour), Listed: true, Answer: Known, Execution: openOne(run.RelationSame, 99, time.Hour)}, Reopened},
		{"ended, closed", Facts{Row: rowOf(run.Failed, "", time.Hour), Listed: true, Answer: Known, Execution: closedOne(run.RelationReset, 0)}, Leave},
		{"ended, unknown", Facts{Row: rowOf(run.Failed, "", time.Hour), Listed: true, Answer: Unknown, Missed: 2}, Leave},

		{"being started", Facts{Row: rowOf(run.Queued, run.QueuedStarting, timeout-ms)}, Leave},
		{"start without an outcome", Facts{Row: rowOf(run.Queued, run.QueuedStarting, timeout)}, StartAgain},
		{"start without an outcome, listed", Facts{Row: rowOf(run.Queued, run.QueuedStarting, timeout), Listed: true}, StartAgain},
		{"in the queue", Facts{Row: rowOf(run.Queued, run.QueuedEngine, time.Hour), Answer: Unknown, Missed: 2}, Leave},
		{"waiting for admission", Facts{Row: rowOf(run.Queued, "admission", time.Hour), Answer: Unknown, Missed: 2}, Leave},

		{"just changed", Facts{Row: rowOf(run.Running, "", quietFor-ms)}, Leave},
		{"listed", Facts{Row: rowOf(run.Running, "", quietFor), Listed: true}, Walk},
		{"not listed", Facts{Row: rowOf(run.Running, "", quietFor)}, Look},
		{"without a worker, not listed", Facts{Row: rowOf(run.Queued, run.QueuedWorker, quietFor)}, Look},
		{"without a worker, listed", Facts{Row: rowOf(run.Queued, run.QueuedWorker, quietFor), Listed: true}, Walk},

		{"unknown", Facts{Row: waiting, Answer: Unknown, Missed: 1}, LookAgain},
		{"unknown twice", Facts{Row: waiting, Answer: Unknown, Missed: 2}, End},
		{"unknown in another place", Facts{Row: waiting, Answer: Unknown, Missed: 1, Moved: true}, Leave},
		{"unknown twice in another place", Facts{Row: waiting, Answer: Unknown, Missed: 2, Moved: true}, Leave},

		{"elsewhere, just changed", Facts{Row: rowOf(run.Running, "", 0), Standing: home.Elsewhere}, Look},
		{"elsewhere, just changed, listed", Facts{Row: rowOf(run.Running, "", 0), Standing: home.Elsewhere, Listed: true}, Leave},
		{"elsewhere, listed", Facts{Row: waiting, Standing: home.Elsewhere, Listed: true}, Walk},
		{"elsewhere, unknown", Facts{Row: waiting, Standing: home.Elsewhere, Answer: Unknown, Missed: 1}, Withhold},
		{"elsewhere, unknown, moved", Facts{Row: waiting, Standing: home.Elsewhere, Answer: Unknown, Missed: 2, Moved: true}, Withhold},
		{"elsewhere, closed", Facts{Row: waiting, Standing: home.Elsewhere, Answer: Known, Execution: closedOne(run.RelationSame, lag)}, Finish},
		{"elsewhere, being started", Facts{Row: rowOf(run.Queued, run.QueuedStarting, 0), Standing: home.Elsewhere}, Look},
		{"elsewhere, start without an outcome", Facts{Row: rowOf(run.Queued, run.QueuedStarting, timeout), Standing: home.Elsewhere, Listed: true}, Look},
		{"elsewhere, on its way", Facts{Row: rowOf(run.Queued, run.QueuedStarting, timeout-ms), Standing: home.Elsewhere, Answer: Unknown, Missed: 1}, LookAgain},
		{"elsewhere, not on its way", Facts{Row: rowOf(run.Queued, run.QueuedStarting, timeout-ms), Standing: home.Elsewhere, Answer: Unknown, Missed: 2}, Withhold},
		{"elsewhere, not started", Facts{Row: rowOf(run.Queued, run.QueuedStarting, timeout), Standing: home.Elsewhere, Answer: Unknown, Missed: 1}, Withhold},
		{"elsewhere, started", Facts{Row: rowOf(run.Queued, run.QueuedStarting, timeout), Standing: home.Elsewhere, Answer: Known}, StartAgain},
		{"elsewhere, being started, known", Facts{Row: rowOf(run.Queued, run.QueuedStarting, 0), Standing: home.Elsewhere, Answer: Known}, Leave},
		{"elsewhere, in the queue", Facts{Row: rowOf(run.Queued, run.QueuedEngine, time.Hour), Standing: home.Elsewhere}, Leave},
		{"divided, just changed", Facts{Row: rowOf(run.Running, "", 0), Standing: home.Divided}, Leave},
		{"divided, unknown", Facts{Row: waiting, Standing: home.Divided, Answer: Unknown, Missed: 1}, LookAgain},
		{"divided, unknown twice", Facts{Row: waiting, Standing: home.Divided, Answer: Unknown, Missed: 2}, Withhold},
		{"divided, start without an outcome", Facts{Row: rowOf(run.Queued, run.QueuedStarting, timeout), Standing: home.Divided}, StartAgain},

		{"closed", Facts{Row: waiting, Answer: Known, Execution: closedOne(run.RelationSame, lag)}, Finish},
		{"closed just now", Facts{Row: waiting, Answer: Known, Execution: closedOne(run.RelationSame, lag-ms)}, Leave},
		{"closed, continued", Facts{Row: waiting, Answer: Known, Execution: closedOne(run.RelationSuccessor, lag)}, Finish},
		{"closed after a reset", Facts{Row: waiting, Answer: Known, Execution: closedOne(run.RelationReset, 0)}, Follow},
		{"open after a reset", Facts{Row: waiting, Answer: Known, Execution: openOne(run.RelationReset, 0, 0)}, Follow},
		{"reset in another place", Facts{Row: waiting, Answer: Known, Moved: true, Execution: openOne(run.RelationReset, 0, 0)}, Follow},

		{"up to date", Facts{Row: waiting, Answer: Known, Execution: openOne(run.RelationSame, 20, time.Hour)}, Leave},
		{"behind", Facts{Row: waiting, Answer: Known, Execution: openOne(run.RelationSame, 21, lag)}, CatchUp},
		{"behind for a moment", Facts{Row: waiting, Answer: Known, Execution: openOne(run.RelationSame, 21, lag-ms)}, Leave},
		{"continued", Facts{Row: waiting, Answer: Known, Execution: openOne(run.RelationSuccessor, 3, lag)}, CatchUp},
		{"continued just now", Facts{Row: waiting, Answer: Known, Execution: openOne(run.RelationSuccessor, 3, lag-ms)}, Leave},
		{"continued, and nothing accepted", Facts{Row: waiting, Answer: Known, Execution: openOne(run.RelationSuccessor, 0, lag)}, Leave},
	}
	for _, tt := range tests {
		tt.Now, tt.StartTimeout = noon(), timeout
		require.Equal(t, tt.want, Of(tt.Facts), tt.name)
	}
}

// TestDecideNeverGoesTooFar goes through all combinations and checks what must never happen.
func TestDecideNeverGoesTooFar(t *testing.T) {
	t.Parallel()
	combinations := 0
	everything(func(f Facts) {
		combinations++
		v := Of(f)
		name := fmt.Sprintf("%+v of %+v", v, f)
		open := f.Row != nil && !f.Row.Status.Terminal()
		handedOver := open && (f.Row.Status != run.Queued || f.Row.QueuedReason == run.QueuedWorker)
		starting := open && f.Row.Status == run.Queued && f.Row.QueuedReason == run.QueuedStarting
		switch v {
		case End:
			require.True(t, handedOver && f.Answer == Unknown && f.Missed >= Looks && !f.Moved && f.Standing == home.AtHome, name)
		case LookAgain:
			require.True(t, (handedOver || starting) && f.Answer == Unknown && f.Missed < Looks, name)
		case Withhold:
			require.True(t, (handedOver || starting && f.Standing == home.Elsewhere) && f.Answer == Unknown && f.Standing != home.AtHome, name)
		case Finish:
			require.True(t, handedOver && f.Answer == Known && !f.Execution.Open && f.Execution.Relation != run.RelationReset, name)
		case CatchUp:
			require.True(t, handedOver && f.Answer == Known && f.Execution.Open && f.Execution.Relation != run.RelationReset, name)
		case Follow:
			require.True(t, handedOver && f.Answer == Known && f.Execution.Relation == run.RelationReset, name)
		case StartAgain:
			require.True(t, starting && f.Now.Sub(f.Row.StatusAt) >= timeout, name)
			require.True(t, f.Standing != home.Elsewhere || f.Answer == Known, "started twice, in two places: %s", name)
		case Reopened:
			require.True(t, f.Row != nil && !open && f.Answer == Known && f.Execution.Open, name)
		case Adopt, Foreign, ReadOrigin:
			require.Nil(t, f.Row, name)
		case Look, Walk:
			require.True(t, f.Row != nil && f.Answer == Unasked, "asked for ever: %s", name)
		case Leave:
			require.False(t, handedOver && f.Answer == Unasked && f.Now.Sub(f.Row.StatusAt) >= quietFor, "never compared: %s", name)
			require.False(t, f.Standing == home.Elsewhere && (handedOver || starting) && f.Answer == Unknown, "not told of: %s", name)
			require.False(t, handedOver && f.Answer == Known && !f.Execution.Open && f.Now.Sub(f.Execution.ClosedAt) >= lag, "left open: %s", name)
		}
	})
	require.Greater(t, combinations, 25_000)
}

func everything(do func(Facts)) {
	both := []bool{false, true}
	ages := []time.Duration{0, lag, timeout, quietFor, time.Hour}
	var rows []*run.Run
	rows = append(rows, nil)
	for _, age := range ages {
		for _, status := range run.Statuses() {
			if status != run.Queued {
				rows = append(rows, rowOf(status, "", age))
			}
		}
		for _, reason := range []string{run.QueuedStarting, run.QueuedWorker, run.QueuedEngine, "admission"} {
			rows = append(rows, rowOf(run.Queued, reason, age))
		}
	}
	var executions []run.Execution
	for _, relation := range []run.Relation{run.RelationSame, run.RelationSuccessor, run.RelationReset} {
		for _, age := range []time.Duration{0, lag, time.Hour} {
			executions = append(executions, closedOne(relation, age), openOne(relation, 20, age), openOne(relation, 21, age))
		}
	}
	for _, row := range rows {
		for _, x := range executions {
			for _, said := range []Answer{Unasked, Unknown, Known} {
				for missed := 1; missed <= Looks; missed++ {
					for _, listed := range both {
						for _, moved := range both {
							for _, s := range []home.Standing{home.AtHome, home.Divided, home.Elsewhere} {
								do(Facts{
									Now: noon(), StartTimeout: timeout, Row: row, Listed: listed, Answer: said, Execution: x,
									Missed: missed, Moved: moved, Standing: s,
								})
							}
						}
					}
				}
			}
		}
	}
}
