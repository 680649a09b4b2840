package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	timeout = 10 * time.Second
	lag     = run.WriteLag
)

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func ago(d time.Duration) time.Time { return noon().Add(-d) }

// rowOf returns a row that has had its status since that long ago.
func rowOf(status run.Status, reason string, since time.Duration) *run.Run {
	r := &run.Run{ID: "r1", Status: status, QueuedReason: reason, StatusAt: ago(since), Position: 5<<32 | 20}
	if status.Terminal() {
		r.EndedAt = r.StatusAt
	}
	return r
}

func openExecution(relation run.Relation, accepted int64, since time.Duration) run.Execution {
	return run.Execution{Open: true, StartedAt: ago(time.Hour), Relation: relation, Accepted: accepted,
		AcceptedAt: ago(since)}
}

func closedExecution(relation run.Relation, since time.Duration) run.Execution {
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
		{"no row, young", Facts{Execution: run.Execution{StartedAt: ago(minAge - ms)}}, Leave},
		{"no row", Facts{Execution: run.Execution{StartedAt: ago(minAge)}}, ReadOrigin},
		{"no row, ours", Facts{Execution: run.Execution{StartedAt: ago(minAge)}, Origin: Ours}, Adopt},
		{"no row, not ours", Facts{Execution: run.Execution{StartedAt: ago(minAge)}, Origin: Foreign}, ReportForeign},
		{"no row, ours, young", Facts{Execution: run.Execution{StartedAt: ago(minAge - ms)}, Origin: Ours}, Leave},

		{"ended", Facts{Row: rowOf(run.Completed, "", time.Hour)}, Leave},
		{"ended, listed", Facts{Row: rowOf(run.Completed, "", quietPeriod), Listed: true}, Compare},
		{"ended just now, listed", Facts{Row: rowOf(run.Completed, "", quietPeriod-ms), Listed: true}, Leave},
		{"ended, open", Facts{Row: rowOf(run.Failed, "", time.Hour), Listed: true, Answer: Known,
			Execution: openExecution(run.RelationReset, 0, 0)}, ReportReopened},
		{"ended, open as it was",
			Facts{Row: rowOf(run.Failed, "", time.Hour), Listed: true, Answer: Known,
				Execution: openExecution(run.RelationSame, 99, time.Hour)}, ReportReopened},
		{"ended, closed", Facts{Row: rowOf(run.Failed, "", time.Hour), Listed: true, Answer: Known,
			Execution: closedExecution(run.RelationReset, 0)}, Leave},
		{"ended, unknown", Facts{Row: rowOf(run.Failed, "", time.Hour), Listed: true, Answer: Unknown, Missed: 2}, Leave},

		{"being started", Facts{Row: rowOf(run.Queued, run.QueuedStarting, timeout-ms)}, Leave},
		{"start without an outcome", Facts{Row: rowOf(run.Queued, run.QueuedStarting, timeout)}, StartAgain},
		{"start without an outcome, listed", Facts{Row: rowOf(run.Queued, run.QueuedStarting, timeout), Listed: true},
			StartAgain},
		{"in the queue", Facts{Row: rowOf(run.Queued, run.QueuedEngine, time.Hour), Answer: Unknown, Missed: 2}, Leave},
		{"waiting for admission", Facts{Row: rowOf(run.Queued, "admission", time.Hour), Answer: Unknown, Missed: 2}, Leave},

		{"just changed", Facts{Row: rowOf(run.Running, "", quietPeriod-ms)}, Leave},
		{"listed", Facts{Row: rowOf(run.Running, "", quietPeriod), Listed: true}, CompareInTurn},
		{"not listed", Facts{Row: rowOf(run.Running, "", quietPeriod)}, Compare},
		{"without a worker, not listed", Facts{Row: rowOf(run.Queued, run.QueuedWorker, quietPeriod)}, Compare},
		{"without a worker, listed", Facts{Row: rowOf(run.Queued, run.QueuedWorker, quietPeriod), Listed: true},
			CompareInTurn},

		{"unknown", Facts{Row: waiting, Answer: Unknown, Missed: 1}, CompareAgain},
		{"unknown twice", Facts{Row: waiting, Answer: Unknown, Missed: 2}, FailMissing},
		{"unknown, moved", Facts{Row: waiting, Answer: Unknown, Missed: 1, Moved: true}, Leave},
		{"unknown twice, moved", Facts{Row: waiting, Answer: Unknown, Missed: 2, Moved: true}, Leave},

		{"elsewhere, just changed", Facts{Row: rowOf(run.Running, "", 0), Placement: run.PlacementElsewhere}, Compare},
		{"elsewhere, just changed, listed",
			Facts{Row: rowOf(run.Running, "", 0), Placement: run.PlacementElsewhere, Listed: true}, Leave},
		{"elsewhere, listed", Facts{Row: waiting, Placement: run.PlacementElsewhere, Listed: true}, CompareInTurn},
		{"elsewhere, unknown", Facts{Row: waiting, Placement: run.PlacementElsewhere, Answer: Unknown, Missed: 1}, Withhold},
		{"elsewhere, unknown, moved",
			Facts{Row: waiting, Placement: run.PlacementElsewhere, Answer: Unknown, Missed: 2, Moved: true}, Withhold},
		{"elsewhere, closed", Facts{
			Row: waiting, Placement: run.PlacementElsewhere, Answer: Known, Execution: closedExecution(run.RelationSame, lag)},
			Finish},
		{"elsewhere, being started", Facts{Row: rowOf(run.Queued, run.QueuedStarting, 0), Placement: run.PlacementElsewhere},
			Compare},
		{"elsewhere, start without an outcome",
			Facts{Row: rowOf(run.Queued, run.QueuedStarting, timeout), Placement: run.PlacementElsewhere, Listed: true},
			Compare},
		{"elsewhere, may be starting",
			Facts{Row: rowOf(run.Queued, run.QueuedStarting, timeout-ms), Placement: run.PlacementElsewhere, Answer: Unknown,
				Missed: 1}, CompareAgain},
		{"elsewhere, unknown twice while starting",
			Facts{Row: rowOf(run.Queued, run.QueuedStarting, timeout-ms), Placement: run.PlacementElsewhere, Answer: Unknown,
				Missed: 2}, Withhold},
		{"elsewhere, not started",
			Facts{Row: rowOf(run.Queued, run.QueuedStarting, timeout), Placement: run.PlacementElsewhere, Answer: Unknown,
				Missed: 1}, Withhold},
		{"elsewhere, started", Facts{
			Row: rowOf(run.Queued, run.QueuedStarting, timeout), Placement: run.PlacementElsewhere, Answer: Known}, StartAgain},
		{"elsewhere, being started, known",
			Facts{Row: rowOf(run.Queued, run.QueuedStarting, 0), Placement: run.PlacementElsewhere, Answer: Known}, Leave},
		{"elsewhere, in the queue",
			Facts{Row: rowOf(run.Queued, run.QueuedEngine, time.Hour), Placement: run.PlacementElsewhere}, Leave},
		{"divided, just changed", Facts{Row: rowOf(run.Running, "", 0), Placement: run.PlacementDivided}, Leave},
		{"divided, unknown", Facts{Row: waiting, Placement: run.PlacementDivided, Answer: Unknown, Missed: 1}, CompareAgain},
		{"divided, unknown twice", Facts{Row: waiting, Placement: run.PlacementDivided, Answer: Unknown, Missed: 2},
			Withhold},
		{"divided, start without an outcome",
			Facts{Row: rowOf(run.Queued, run.QueuedStarting, timeout), Placement: run.PlacementDivided}, StartAgain},

		{"closed", Facts{Row: waiting, Answer: Known, Execution: closedExecution(run.RelationSame, lag)}, Finish},
		{"closed just now", Facts{Row: waiting, Answer: Known, Execution: closedExecution(run.RelationSame, lag-ms)}, Leave},
		{"closed, continued", Facts{Row: waiting, Answer: Known, Execution: closedExecution(run.RelationSuccessor, lag)},
			Finish},
		{"closed after a reset", Facts{Row: waiting, Answer: Known, Execution: closedExecution(run.RelationReset, 0)},
			FollowReset},
		{"open after a reset", Facts{Row: waiting, Answer: Known, Execution: openExecution(run.RelationReset, 0, 0)},
			FollowReset},
		{"reset, moved", Facts{Row: waiting, Answer: Known, Moved: true, Execution: openExecution(run.RelationReset, 0, 0)},
			FollowReset},

		{"up to date", Facts{Row: waiting, Answer: Known, Execution: openExecution(run.RelationSame, 20, time.Hour)}, Leave},
		{"behind", Facts{Row: waiting, Answer: Known, Execution: openExecution(run.RelationSame, 21, lag)}, CatchUp},
		{"behind for a moment", Facts{Row: waiting, Answer: Known, Execution: openExecution(run.RelationSame, 21, lag-ms)},
			Leave},
		{"continued", Facts{Row: waiting, Answer: Known, Execution: openExecution(run.RelationSuccessor, 3, lag)}, CatchUp},
		{"continued just now", Facts{Row: waiting, Answer: Known, Execution: openExecution(run.RelationSuccessor, 3, lag-ms)},
			Leave},
		{"continued, and nothing accepted",
			Facts{Row: waiting, Answer: Known, Execution: openExecution(run.RelationSuccessor, 0, lag)}, Leave},
	}
	for _, tt := range tests {
		tt.Now, tt.StartTimeout = noon(), timeout
		require.Equal(t, tt.want, Decide(tt.Facts), tt.name)
	}
}

// TestDecideOverAllCombinations checks the conditions of each verdict over all combinations of facts.
func TestDecideOverAllCombinations(t *testing.T) {
	t.Parallel()
	combinations := 0
	forAllFacts(func(f Facts) {
		combinations++
		v := Decide(f)
		name := fmt.Sprintf("%+v of %+v", v, f)
		open := f.Row != nil && !f.Row.Status.Terminal()
		handedOver := open && (f.Row.Status != run.Queued || f.Row.QueuedReason == run.QueuedWorker)
		starting := open && f.Row.Status == run.Queued && f.Row.QueuedReason == run.QueuedStarting
		switch v {
		case FailMissing:
			require.True(t, handedOver && f.Answer == Unknown && f.Missed >= MaxMisses && !f.Moved &&
				f.Placement == run.PlacementHere, name)
		case CompareAgain:
			require.True(t, (handedOver || starting) && f.Answer == Unknown && f.Missed < MaxMisses, name)
		case Withhold:
			require.True(t, (handedOver || starting && f.Placement == run.PlacementElsewhere) && f.Answer == Unknown &&
				f.Placement != run.PlacementHere, name)
		case Finish:
			require.True(t, handedOver && f.Answer == Known && !f.Execution.Open && f.Execution.Relation != run.RelationReset,
				name)
		case CatchUp:
			require.True(t, handedOver && f.Answer == Known && f.Execution.Open && f.Execution.Relation != run.RelationReset,
				name)
		case FollowReset:
			require.True(t, handedOver && f.Answer == Known && f.Execution.Relation == run.RelationReset, name)
		case StartAgain:
			require.True(t, starting && f.Now.Sub(f.Row.StatusAt) >= timeout, name)
			require.True(t, f.Placement != run.PlacementElsewhere || f.Answer == Known, "started in two Temporals: %s", name)
		case ReportReopened:
			require.True(t, f.Row != nil && !open && f.Answer == Known && f.Execution.Open, name)
		case Adopt, ReportForeign, ReadOrigin:
			require.Nil(t, f.Row, name)
		case Compare, CompareInTurn:
			require.True(t, f.Row != nil && f.Answer == Unasked, "queried forever: %s", name)
		case Leave:
			require.False(t, handedOver && f.Answer == Unasked && f.Now.Sub(f.Row.StatusAt) >= quietPeriod, "never compared: %s",
				name)
			require.False(t, f.Placement == run.PlacementElsewhere && (handedOver || starting) && f.Answer == Unknown,
				"not reported: %s", name)
			require.False(t, handedOver && f.Answer == Known && !f.Execution.Open && f.Now.Sub(f.Execution.ClosedAt) >= lag,
				"left open: %s", name)
		}
	})
	require.Greater(t, combinations, 25_000)
}

func forAllFacts(do func(Facts)) {
	both := []bool{false, true}
	ages := []time.Duration{0, lag, timeout, quietPeriod, time.Hour}
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
			executions = append(executions, closedExecution(relation, age), openExecution(relation, 20, age),
				openExecution(relation, 21, age))
		}
	}
	for _, row := range rows {
		for _, x := range executions {
			for _, answer := range []Answer{Unasked, Unknown, Known} {
				for missed := 1; missed <= MaxMisses; missed++ {
					for _, listed := range both {
						for _, moved := range both {
							for _, s := range []run.Placement{run.PlacementHere, run.PlacementDivided, run.PlacementElsewhere} {
								do(Facts{
									Now: noon(), StartTimeout: timeout, Row: row, Listed: listed, Answer: answer, Execution: x,
									Missed: missed, Moved: moved, Placement: s,
								})
							}
						}
					}
				}
			}
		}
	}
}
