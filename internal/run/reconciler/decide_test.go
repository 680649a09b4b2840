package reconciler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run"
)

const timeout = 10 * time.Second

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
		facts
		want verdict
	}{
		{"no row, young", facts{execution: run.Execution{StartedAt: ago(youngest - ms)}}, leave},
		{"no row", facts{execution: run.Execution{StartedAt: ago(youngest)}}, readOrigin},
		{"no row, ours", facts{execution: run.Execution{StartedAt: ago(youngest)}, origin: ours}, adopt},
		{"no row, not ours", facts{execution: run.Execution{StartedAt: ago(youngest)}, origin: strange}, foreign},
		{"no row, ours, young", facts{execution: run.Execution{StartedAt: ago(youngest - ms)}, origin: ours}, leave},

		{"ended", facts{row: rowOf(run.Completed, "", time.Hour)}, leave},
		{"ended, listed", facts{row: rowOf(run.Completed, "", quietFor), listed: true}, look},
		{"ended just now, listed", facts{row: rowOf(run.Completed, "", quietFor-ms), listed: true}, leave},
		{"ended, open", facts{row: rowOf(run.Failed, "", time.Hour), listed: true, answer: known, execution: openOne(run.RelationReset, 0, 0)}, reopened},
		{"ended, open as it was", facts{row: rowOf(run.Failed, "", time.Hour), listed: true, answer: known, execution: openOne(run.RelationSame, 99, time.Hour)}, reopened},
		{"ended, closed", facts{row: rowOf(run.Failed, "", time.Hour), listed: true, answer: known, execution: closedOne(run.RelationReset, 0)}, leave},
		{"ended, unknown", facts{row: rowOf(run.Failed, "", time.Hour), listed: true, answer: unknown, missed: 2}, leave},

		{"being started", facts{row: rowOf(run.Queued, run.QueuedStarting, timeout-ms)}, leave},
		{"start without an outcome", facts{row: rowOf(run.Queued, run.QueuedStarting, timeout)}, startAgain},
		{"start without an outcome, listed", facts{row: rowOf(run.Queued, run.QueuedStarting, timeout), listed: true}, startAgain},
		{"in the queue", facts{row: rowOf(run.Queued, run.QueuedEngine, time.Hour), answer: unknown, missed: 2}, leave},
		{"waiting for admission", facts{row: rowOf(run.Queued, "admission", time.Hour), answer: unknown, missed: 2}, leave},

		{"just changed", facts{row: rowOf(run.Running, "", quietFor-ms)}, leave},
		{"listed", facts{row: rowOf(run.Running, "", quietFor), listed: true}, walk},
		{"not listed", facts{row: rowOf(run.Running, "", quietFor)}, look},
		{"without a worker, not listed", facts{row: rowOf(run.Queued, run.QueuedWorker, quietFor)}, look},
		{"without a worker, listed", facts{row: rowOf(run.Queued, run.QueuedWorker, quietFor), listed: true}, walk},

		{"unknown", facts{row: waiting, answer: unknown, missed: 1}, lookAgain},
		{"unknown twice", facts{row: waiting, answer: unknown, missed: 2}, end},
		{"unknown in another place", facts{row: waiting, answer: unknown, missed: 1, moved: true}, leave},
		{"unknown twice in another place", facts{row: waiting, answer: unknown, missed: 2, moved: true}, leave},

		{"elsewhere, just changed", facts{row: rowOf(run.Running, "", 0), standing: elsewhere}, look},
		{"elsewhere, just changed, listed", facts{row: rowOf(run.Running, "", 0), standing: elsewhere, listed: true}, leave},
		{"elsewhere, listed", facts{row: waiting, standing: elsewhere, listed: true}, walk},
		{"elsewhere, unknown", facts{row: waiting, standing: elsewhere, answer: unknown, missed: 1}, withhold},
		{"elsewhere, unknown, moved", facts{row: waiting, standing: elsewhere, answer: unknown, missed: 2, moved: true}, withhold},
		{"elsewhere, closed", facts{row: waiting, standing: elsewhere, answer: known, execution: closedOne(run.RelationSame, lag)}, finish},
		{"elsewhere, being started", facts{row: rowOf(run.Queued, run.QueuedStarting, 0), standing: elsewhere}, look},
		{"elsewhere, start without an outcome", facts{row: rowOf(run.Queued, run.QueuedStarting, timeout), standing: elsewhere, listed: true}, look},
		{"elsewhere, on its way", facts{row: rowOf(run.Queued, run.QueuedStarting, timeout-ms), standing: elsewhere, answer: unknown, missed: 1}, lookAgain},
		{"elsewhere, not on its way", facts{row: rowOf(run.Queued, run.QueuedStarting, timeout-ms), standing: elsewhere, answer: unknown, missed: 2}, withhold},
		{"elsewhere, not started", facts{row: rowOf(run.Queued, run.QueuedStarting, timeout), standing: elsewhere, answer: unknown, missed: 1}, withhold},
		{"elsewhere, started", facts{row: rowOf(run.Queued, run.QueuedStarting, timeout), standing: elsewhere, answer: known}, startAgain},
		{"elsewhere, being started, known", facts{row: rowOf(run.Queued, run.QueuedStarting, 0), standing: elsewhere, answer: known}, leave},
		{"elsewhere, in the queue", facts{row: rowOf(run.Queued, run.QueuedEngine, time.Hour), standing: elsewhere}, leave},
		{"divided, just changed", facts{row: rowOf(run.Running, "", 0), standing: divided}, leave},
		{"divided, unknown", facts{row: waiting, standing: divided, answer: unknown, missed: 1}, lookAgain},
		{"divided, unknown twice", facts{row: waiting, standing: divided, answer: unknown, missed: 2}, withhold},
		{"divided, start without an outcome", facts{row: rowOf(run.Queued, run.QueuedStarting, timeout), standing: divided}, startAgain},

		{"closed", facts{row: waiting, answer: known, execution: closedOne(run.RelationSame, lag)}, finish},
		{"closed just now", facts{row: waiting, answer: known, execution: closedOne(run.RelationSame, lag-ms)}, leave},
		{"closed, continued", facts{row: waiting, answer: known, execution: closedOne(run.RelationSuccessor, lag)}, finish},
		{"closed after a reset", facts{row: waiting, answer: known, execution: closedOne(run.RelationReset, 0)}, follow},
		{"open after a reset", facts{row: waiting, answer: known, execution: openOne(run.RelationReset, 0, 0)}, follow},
		{"reset in another place", facts{row: waiting, answer: known, moved: true, execution: openOne(run.RelationReset, 0, 0)}, follow},

		{"up to date", facts{row: waiting, answer: known, execution: openOne(run.RelationSame, 20, time.Hour)}, leave},
		{"behind", facts{row: waiting, answer: known, execution: openOne(run.RelationSame, 21, lag)}, catchUp},
		{"behind for a moment", facts{row: waiting, answer: known, execution: openOne(run.RelationSame, 21, lag-ms)}, leave},
		{"a task that changed nothing", facts{row: waiting, answer: known, rebuilt: true, execution: openOne(run.RelationSame, 21, lag)}, leave},
		{"continued", facts{row: waiting, answer: known, execution: openOne(run.RelationSuccessor, 3, lag)}, catchUp},
		{"continued just now", facts{row: waiting, answer: known, execution: openOne(run.RelationSuccessor, 3, lag-ms)}, leave},
		{"continued, and nothing new", facts{row: waiting, answer: known, rebuilt: true, execution: openOne(run.RelationSuccessor, 3, lag)}, leave},
	}
	for _, tt := range tests {
		tt.now, tt.startTimeout = noon(), timeout
		require.Equal(t, tt.want, decide(tt.facts), tt.name)
	}
}

// TestDecideNeverGoesTooFar goes through all combinations and checks what must never happen.
func TestDecideNeverGoesTooFar(t *testing.T) {
	t.Parallel()
	combinations := 0
	everything(func(f facts) {
		combinations++
		v := decide(f)
		name := fmt.Sprintf("%+v of %+v", v, f)
		open := f.row != nil && !f.row.Status.Terminal()
		handedOver := open && (f.row.Status != run.Queued || f.row.QueuedReason == run.QueuedWorker)
		starting := open && f.row.Status == run.Queued && f.row.QueuedReason == run.QueuedStarting
		switch v {
		case end:
			require.True(t, handedOver && f.answer == unknown && f.missed >= looks && !f.moved && f.standing == athome, name)
		case lookAgain:
			require.True(t, (handedOver || starting) && f.answer == unknown && f.missed < looks, name)
		case withhold:
			require.True(t, (handedOver || starting && f.standing == elsewhere) && f.answer == unknown && f.standing != athome, name)
		case finish:
			require.True(t, handedOver && f.answer == known && !f.execution.Open && f.execution.Relation != run.RelationReset, name)
		case catchUp:
			require.True(t, handedOver && f.answer == known && f.execution.Open && f.execution.Relation != run.RelationReset, name)
		case follow:
			require.True(t, handedOver && f.answer == known && f.execution.Relation == run.RelationReset, name)
		case startAgain:
			require.True(t, starting && f.now.Sub(f.row.StatusAt) >= timeout, name)
			require.True(t, f.standing != elsewhere || f.answer == known, "started twice, in two places: %s", name)
		case reopened:
			require.True(t, f.row != nil && !open && f.answer == known && f.execution.Open, name)
		case adopt, foreign, readOrigin:
			require.Nil(t, f.row, name)
		case look, walk:
			require.True(t, f.row != nil && f.answer == unasked, "asked for ever: %s", name)
		case leave:
			require.False(t, handedOver && f.answer == unasked && f.now.Sub(f.row.StatusAt) >= quietFor, "never compared: %s", name)
			require.False(t, f.standing == elsewhere && (handedOver || starting) && f.answer == unknown, "not told of: %s", name)
			require.False(t, handedOver && f.answer == known && !f.execution.Open && f.now.Sub(f.execution.ClosedAt) >= lag, "left open: %s", name)
		}
	})
	require.Greater(t, combinations, 50_000)
}

func everything(do func(facts)) {
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
			for _, said := range []answer{unasked, unknown, known} {
				for missed := 1; missed <= looks; missed++ {
					for _, listed := range both {
						for _, moved := range both {
							for _, rebuilt := range both {
								for _, s := range []standing{athome, divided, elsewhere} {
									do(facts{
										now: noon(), startTimeout: timeout, row: row, listed: listed, answer: said, execution: x,
										missed: missed, moved: moved, rebuilt: rebuilt, standing: s,
									})
								}
							}
						}
					}
				}
			}
		}
	}
}

func TestStand(t *testing.T) {
	t.Parallel()
	place := func(address, namespace, id string) run.Place {
		return run.Place{Address: address, Namespace: namespace, NamespaceID: id}
	}
	here := place("a", "ns", "1")
	tests := []struct {
		name    string
		home    run.Place
		workers []run.Place
		want    standing
	}{
		{"nothing recorded", run.Place{}, nil, athome},
		{"here", here, []run.Place{here}, athome},
		{"another address of the same", place("b", "ns", "1"), []run.Place{place("b", "ns", "1")}, athome},
		{"the data is lost", place("a", "ns", "0"), []run.Place{place("a", "ns", "0")}, athome},
		{"another address", place("b", "ns", "0"), []run.Place{here}, elsewhere},
		{"another namespace", place("a", "other", "0"), nil, elsewhere},
		{"a worker at another address", here, []run.Place{here, place("b", "ns", "0")}, divided},
		{"a worker in another namespace", here, []run.Place{place("a", "other", "0")}, divided},
		{"nothing recorded, and a worker elsewhere", run.Place{}, []run.Place{place("b", "ns", "0")}, divided},
		{"elsewhere, with all workers there", place("b", "ns", "0"), []run.Place{place("b", "ns", "0")}, elsewhere},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, stand(tt.home, here, tt.workers), tt.name)
	}
}
