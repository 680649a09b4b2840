package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func TestAgreementChangesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.waiting(t, "r1", "r2")
		before := b.row(t, "r1")
		report, err := b.Reconcile(b.ctx, false)
		require.NoError(t, err)
		require.Equal(t, run.Report{Checked: 2, Open: 2, Took: report.Took}, report)
		require.Equal(t, []string{"look r1", "look r2"}, b.engine.called())
		require.Equal(t, before, b.row(t, "r1"))
		require.Empty(t, b.metrics.kinds)
	})
}

// makeDifferences makes one difference of each kind that is corrected, and returns the expected corrections.
func makeDifferences(t *testing.T, b *bench) []string {
	t.Helper()
	b.waiting(t, "closed", "behind", "missing", "reset")
	b.begin(t, "starting")
	refused := b.begin(t, "refused")
	b.engine.start = func(r run.Run) (string, error) {
		if r.ID == refused.ID {
			return "", apperror.New(apperror.Refused, apperror.EngineRefused, "no\x00 permission")
		}
		require.JSONEq(t, `{"n":1}`, string(r.Input), "the start has the input, which lists omit")
		return "x-starting", nil
	}
	closed := b.execution("closed")
	closed.Open, closed.ClosedAt = false, time.Now()
	b.unlist("closed", &closed)
	b.unlist("missing", nil)
	behind, reset, lost := b.execution("behind"), b.execution("reset"), b.execution("lost")
	behind.Accepted = 21
	reset.ExecutionID, reset.Relation, reset.Left = "y-reset", run.RelationReset, []string{"x-reset"}
	rewritten := b.update("reset", 7, run.Running)
	rewritten.ExecutionID = "y-reset"
	unrelated := run.Execution{RunID: "unrelated", ExecutionID: "x-unrelated", Open: true, StartedAt: time.Now()}
	b.engine.set(func() {
		b.engine.known["behind"], b.engine.known["reset"] = behind, reset
		b.engine.listed = append(b.engine.listed, lost, unrelated)
		b.engine.rebuilt = map[string]run.Update{
			"closed": b.update("closed", 30, run.Completed), "behind": b.update("behind", 21, run.Running),
			"reset": rewritten, "lost": b.update("lost", 20, run.Waiting),
		}
		b.engine.origins["lost"] = run.Origin{
			Identity: lostIdentity(), StartedAt: time.Now(),
		}
	})
	<-time.After(time.Minute)
	return []string{
		"adopted lost %t", "caught_up behind %t", "execution_missing missing %t", "finished closed %t",
		"handed_over starting %t",
		"not_started refused %t", "reset_followed reset %t",
	}
}

// lostIdentity is the identity of the run "lost".
func lostIdentity() run.Identity {
	return run.Identity{
		Project: here, Workflow: "a/b", Version: "1.0.0", DocumentHash: hash, Interpreter: 1,
		RequestID: "order-7", RequestDigest: "k:digest", Trigger: run.TriggerParent, Actor: "bea",
		CreatedAt: time.Date(1999, 12, 31, 23, 0, 0, 0, time.UTC),
		Labels:    map[string]string{"order": "7"},
		Parent:    run.Parent{RunID: "behind", Path: "/do/0", Depth: 1, Key: "k7", Awaited: true},
	}
}

func filled(lines []string, applied bool) []string {
	out := []string{}
	for _, line := range lines {
		out = append(out, fmt.Sprintf(line, applied))
	}
	return out
}

func TestDifferencesAreCorrected(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		want := filled(makeDifferences(t, b), true)
		want = append(want[:3:3], append([]string{"finished closed true"}, want[4:]...)...)
		changed, stop := b.changes.Subscribe("missing")
		defer stop()
		require.Equal(t, want, b.pass(t, false))
		require.Len(t, changed, 1)

		status := func(id string) []any {
			r := b.row(t, id)
			return []any{r.Status, r.QueuedReason, r.ExecutionID, r.Position}
		}
		require.Equal(t, []any{run.Completed, "", "x-closed", int64(30)}, status("closed"))
		require.Equal(t, []any{run.Running, "", "x-behind", int64(21)}, status("behind"))
		require.Equal(t, []any{run.Failed, "", "x-missing", int64(20)}, status("missing"))
		require.Equal(t, []any{run.Running, "", "y-reset", int64(7)}, status("reset"))
		require.Equal(t, []any{run.Waiting, "", "x-lost", int64(20)}, status("lost"))
		require.Equal(t, []any{run.Queued, run.QueuedWorker, "x-starting", int64(0)}, status("starting"))
		require.Equal(t, []any{run.Failed, "", "", int64(0)}, status("refused"))
		require.Equal(t, "no\uFFFD permission", b.row(t, "refused").Error.Detail)
		missing := b.row(t, "missing").Error
		require.Equal(t, []string{run.ErrorTypeExecutionMissing, "Execution missing"}, []string{missing.Type, missing.Title})
		require.Contains(t, missing.Detail, `host:7233 has no execution of this run in namespace "ns"`)
		adopted := b.row(t, "lost")
		require.Equal(t, lostIdentity(), adopted.Identity())

		for id, action := range map[string]string{
			"missing": "run.execution_missing", "reset": "run.follow_reset", "lost": "run.adopt",
			"starting": "run.hand_over", "refused": "run.start_refused",
		} {
			require.Equal(t, []string{action + " by ada"}, b.audited(t, id), id)
		}
		require.Equal(t, []string{"run.finish by " + auth.System().Name}, b.audited(t, "closed"), "a worker wrote the end")
		require.Empty(t, b.audited(t, "behind"), "a row that was behind is not audited")
		for _, kind := range run.CorrectionKinds() {
			if kind != run.CorrectionReopened && kind != run.CorrectionForgotten && kind != run.CorrectionEngineGone {
				require.Equal(t, 1, b.metrics.kinds[string(kind)], kind)
			}
		}
		require.ElementsMatch(t, []string{"default completed", "default failed", "default failed"}, b.metrics.ended)
	})
}

func TestDryRunChangesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		// A dry run cannot report that a start would be refused.
		lines := makeDifferences(t, b)
		want := []string{
			"adopted lost false", "caught_up behind false", "execution_missing missing false", "finished closed false",
			"handed_over refused false", "handed_over starting false", "reset_followed reset false",
		}
		before, err := b.store.OpenRuns(b.ctx, "", 100)
		require.NoError(t, err)
		for range 2 {
			require.Equal(t, want, b.pass(t, true))
			after, err := b.store.OpenRuns(b.ctx, "", 100)
			require.NoError(t, err)
			require.Equal(t, before, after)
		}
		require.Empty(t, b.metrics.kinds)
		require.NotContains(t, b.engine.called(), "start starting")
		_, at, _ := b.Last()
		require.True(t, at.IsZero())
		require.Len(t, b.pass(t, false), len(lines), "all corrections are still to be made")
	})
}

func TestMissingRunIsComparedTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.waiting(t, "r1", "r2")
		b.unlist("r1", nil)
		b.unlist("r2", nil)
		seen := 0
		x := b.execution("r1")
		b.engine.lookup = func(r run.Run) (run.Execution, error) {
			if seen++; r.ID == "r1" && seen > 2 {
				return x, nil // the namespace is in the frontend's cache now
			}
			return run.Execution{}, run.ErrNotKnown
		}
		begun := time.Now()
		require.Equal(t, []string{"execution_missing r2 true"}, b.pass(t, false))
		require.GreaterOrEqual(t, time.Since(begun), 5*time.Second)
		require.Equal(t, run.Waiting, b.row(t, "r1").Status)
	})
}

func TestMissingRunThatChangedIsNotLost(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.waiting(t, "r1")
		b.unlist("r1", nil)
		go func() {
			<-time.After(time.Second)
			u := b.update("r1", 30, run.Running)
			if _, err := b.store.ApplyUpdates(b.ctx, []run.Update{u}); err != nil {
				t.Error(err)
			}
		}()
		require.Empty(t, b.pass(t, false))
		require.Equal(t, run.Running, b.row(t, "r1").Status)
	})
}

// TestNoRunIsLostAfterANamespaceChange has Temporal's namespace created anew before and during a pass.
func TestNoRunIsLostAfterANamespaceChange(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.waiting(t, "r1")
		require.Empty(t, b.pass(t, false))
		b.unlist("r1", nil)
		b.engine.set(func() { b.engine.cluster.NamespaceID = "n2" })
		require.Empty(t, b.pass(t, false), "it has just changed")
		time.AfterFunc(time.Second, func() { b.engine.set(func() { b.engine.cluster.NamespaceID = "n3" }) })
		require.Empty(t, b.pass(t, false), "it changes between the two comparisons")
		require.Equal(t, []string{"execution_missing r1 true"}, b.pass(t, false))
	})
}

func TestReopenedIsReportedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.waiting(t, "r1")
		b.apply(t, b.update("r1", 30, run.Completed))
		<-time.After(time.Minute)
		for i := range 4 {
			if i == 2 {
				b.restart()
			}
			require.Equal(t, []string{"reopened_in_temporal r1 false"}, b.pass(t, false))
		}
		require.Equal(t, run.Completed, b.row(t, "r1").Status)
		require.Equal(t, []string{"run.reopened_in_temporal by ada"}, b.audited(t, "r1"))
		require.Equal(t, 1, b.metrics.kinds["reopened_in_temporal"])
		x := b.execution("r1")
		x.ExecutionID = "y-r1"
		b.engine.set(func() { b.engine.known["r1"] = x })
		b.pass(t, false)
		require.Len(t, b.audited(t, "r1"), 2, "another execution is reported again")
	})
}

// Executions that cannot be adopted are reported apart from the corrections by every pass, and counted once. Open ones
// are stored, until they have ended.
func TestForeignRunsAreNoCorrections(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.engine.origins = map[string]run.Origin{
			"project":  {Identity: run.Identity{Project: "none", Workflow: "a/b", Version: "1.0.0", DocumentHash: hash}},
			"document": {Identity: run.Identity{Project: here, Workflow: "a/b", Version: "2.0.0", DocumentHash: "sha256:none"}},
		}
		for _, id := range []string{"project", "document", "unrelated"} {
			b.engine.listed = append(b.engine.listed, b.execution(id))
		}
		require.Empty(t, b.pass(t, false), "they are young")
		<-time.After(time.Minute)
		for _, dry := range []bool{true, false, false} {
			report, err := b.Reconcile(b.ctx, dry)
			require.NoError(t, err)
			require.Zero(t, report.Total, report.Corrections)
			require.Equal(t, 3, report.ForeignCount())
			var groups [][]any
			for _, f := range report.Foreign {
				groups = append(groups, []any{f.Project, f.Workflow, f.Version, f.NoProject, f.Count, f.Open, f.RunIDs})
			}
			require.Equal(t, [][]any{
				{"", "", "", false, 1, 1, []string{"unrelated"}}, {here, "a/b", "2.0.0", false, 1, 1, []string{"document"}},
				{"none", "a/b", "1.0.0", true, 1, 1, []string{"project"}},
			}, groups)
		}
		stored, err := b.store.Problems().ForeignRuns(b.ctx)
		require.NoError(t, err)
		require.Len(t, stored, 3)
		require.Equal(t, 3, b.metrics.kinds["foreign_execution"])
		require.Len(t, b.engine.called(), 6, "by the dry run and by the first pass")
		open, err := b.store.OpenRuns(b.ctx, "", 10)
		require.NoError(t, err)
		require.Empty(t, open)
		b.engine.set(func() { b.engine.listed = nil })
		require.Empty(t, b.pass(t, false))
		stored, err = b.store.Problems().ForeignRuns(b.ctx)
		require.NoError(t, err)
		require.Empty(t, stored)
	})
}

// TestTasksThatChangeNothingAreInterpretedOnce has a history with further events that change nothing in the row.
func TestTasksThatChangeNothingAreInterpretedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.waiting(t, "r1")
		x := b.execution("r1")
		x.Accepted, x.AcceptedAt = 25, time.Now().Add(-time.Minute)
		x.StartedAt = x.AcceptedAt
		b.engine.set(func() { b.engine.known["r1"], b.engine.rebuilt["r1"] = x, b.update("r1", 25, run.Waiting) })
		require.Equal(t, []string{"caught_up r1 true"}, b.pass(t, false))
		require.Equal(t, []string{"look r1", "rebuild r1"}, b.engine.called())
		<-time.After(time.Minute)
		require.Empty(t, b.pass(t, false))
		require.Equal(t, []string{"look r1"}, b.engine.called())
	})
}

func TestFailureDoesNotPreventOtherRepairs(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.waiting(t, "r1", "r2")
		for _, id := range []string{"r1", "r2"} {
			x := b.execution(id)
			x.Open, x.ClosedAt = false, time.Now().Add(-time.Minute)
			b.unlist(id, &x)
		}
		b.engine.rebuilt["r2"] = b.update("r2", 30, run.Failed)
		report, err := b.Reconcile(b.ctx, false)
		require.NoError(t, err)
		require.Equal(t, []string{"finished r1 false", "finished r2 true"}, corrections(report))
		require.Contains(t, b.row(t, "r1").Behind.Failure, "the history of r1 cannot be read")
		last, at, lastErr := b.Last()
		require.Equal(t, []any{report, err}, []any{last, lastErr})
		require.Equal(t, time.Now(), at)
	})
}

func TestTemporalAwayEndsAPass(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		var names []string
		for i := range 50 {
			names = append(names, fmt.Sprintf("r%02d", i))
		}
		b.waiting(t, names...)
		b.engine.lookup = func(run.Run) (run.Execution, error) {
			b.engine.unavailable = unavailable()
			return run.Execution{}, errors.New("cut")
		}
		_, err := b.Reconcile(b.ctx, false)
		require.True(t, apperror.Is(err, apperror.EngineUnavailable), "%v", err)
		require.Less(t, len(b.engine.called()), 20)
		for _, dry := range []bool{true, false} {
			_, err = b.Reconcile(b.ctx, dry)
			require.True(t, apperror.Is(err, apperror.EngineUnavailable), "%v", err)
		}
		require.Empty(t, b.engine.called())
	})
}

// TestRunsAreComparedInTurn has more runs than one pass compares.
func TestRunsAreComparedInTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		var names []string
		for i := range 1500 {
			names = append(names, fmt.Sprintf("r%04d", i))
		}
		b.waiting(t, names...)
		require.NoError(t, b.Start(b.ctx))
		<-time.After(19 * time.Second)
		require.Less(t, len(b.engine.called()), 1000, "not all at once")
		<-time.After(3 * time.Second)
		_, at, err := b.Last()
		require.NoError(t, err)
		require.False(t, at.IsZero())
		b.engine.called()
		<-time.After(30 * time.Second)
		require.NoError(t, b.Stop(b.ctx))
		next := b.engine.called()
		require.Len(t, next, 1000)
		require.Equal(t, []string{"look r0000", "look r0499", "look r1000", "look r1499"},
			[]string{next[0], next[499], next[500], next[999]})

		// A requested pass is limited to ten seconds.
		begun := time.Now()
		require.Empty(t, b.pass(t, true))
		require.Less(t, time.Since(begun), 11*time.Second)
		next = b.engine.called()
		require.Equal(t, "look r0500", next[0])
		require.Less(t, len(next), 600)
	})
}

// TestRequestedPassInterruptsComparisonsInTurn requests a pass while the background pass compares in turn.
func TestRequestedPassInterruptsComparisonsInTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		var names []string
		for i := range 900 {
			names = append(names, fmt.Sprintf("r%03d", i))
		}
		b.waiting(t, names...)
		require.NoError(t, b.Start(b.ctx))
		<-time.After(time.Second)
		begun := time.Now()
		b.pass(t, true)
		require.Less(t, time.Since(begun), 19*time.Second, "all comparisons in turn take 18 s")
		require.NoError(t, b.Stop(b.ctx))
	})
}

func TestUnknownStartOutcomeIsRetriedLater(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{
		"not known": run.ErrUnknownOutcome,
		"exhausted": apperror.New(apperror.Exhausted, apperror.EngineRefused, "over its limits"),
		"broken":    errors.New("broken"),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				first, _ := b.begin(t, "r1"), b.begin(t, "r2")
				b.engine.start = func(r run.Run) (string, error) {
					if r.ID == first.ID {
						return "", failure
					}
					return "x", nil
				}
				<-time.After(startTimeout)
				report, err := b.Reconcile(b.ctx, false)
				require.NoError(t, err, "one run fails no pass")
				require.Equal(t, 1, report.Failed)
				require.Equal(t, "run r1: "+failure.Error(), report.FailedBecause)
				_, _, failed := b.Last()
				require.ErrorIs(t, failed, failure)
				require.Equal(t, []string{"handed_over r2 true"}, corrections(report))
				require.Equal(t, first.QueuedReason, b.row(t, "r1").QueuedReason)
			})
		})
	}
}

func TestReconcilerLifecycle(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		ctx, cancel := context.WithCancel(b.ctx)
		require.NoError(t, b.Start(ctx))
		cancel() // the context of Start may end
		synctest.Wait()
		_, first, err := b.Last()
		require.NoError(t, err)
		require.Equal(t, time.Now(), first, "at once")

		// Runs without a start outcome are started again after the timeout, between two passes.
		r := b.begin(t, "r1")
		b.engine.set(func() {
			fresh := b.execution("r1")
			fresh.Accepted = 0
			b.engine.listed, b.engine.known["r1"] = []run.Execution{fresh}, fresh
		})
		<-time.After(startTimeout - time.Second)
		synctest.Wait()
		require.Equal(t, run.QueuedStarting, b.row(t, r.ID).QueuedReason)
		<-time.After(6 * time.Second)
		synctest.Wait()
		require.Equal(t, run.QueuedWorker, b.row(t, r.ID).QueuedReason)
		require.Equal(t, []string{"run.hand_over by signalbox"}, b.audited(t, r.ID))
		_, at, _ := b.Last()
		require.Equal(t, first, at)
		<-time.After(16 * time.Second)
		synctest.Wait()
		_, at, _ = b.Last()
		require.GreaterOrEqual(t, at.Sub(first), 30*time.Second)

		b.Wake()
		b.Wake()
		synctest.Wait()
		_, woken, _ := b.Last()
		require.Equal(t, time.Now(), woken)

		// Another reconciler takes over only after this one has stopped.
		other := *b
		other.restart()
		require.NoError(t, other.Start(b.ctx))
		<-time.After(time.Minute)
		synctest.Wait()
		_, at, _ = other.Last()
		require.True(t, at.IsZero())
		require.NoError(t, b.Stop(b.ctx))
		<-time.After(6 * time.Second)
		synctest.Wait()
		_, at, _ = other.Last()
		require.False(t, at.IsZero())
		require.NoError(t, other.Stop(b.ctx))
	})
}

func TestOnePassAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.waiting(t, "r1")
		b.unlist("r1", nil)
		done := make(chan []string)
		for range 2 {
			go func() {
				report, err := b.Reconcile(b.ctx, false)
				if err != nil {
					t.Error(err)
				}
				done <- corrections(report)
			}()
		}
		<-time.After(time.Second)
		ctx, cancel := context.WithTimeout(b.ctx, time.Second)
		defer cancel()
		_, err := b.Reconcile(ctx, true)
		require.True(t, apperror.Is(err, apperror.EngineUnavailable), "%v", err)
		require.Equal(t, []string{"execution_missing r1 true"}, <-done)
		require.Empty(t, <-done)
	})
}

// A request that was repeated after the loss of its row, and before the reconciler saw it, has made another run: both
// have a row.
func TestAdoptedRunWhoseRequestWasRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		makeDifferences(t, b)
		repeated := b.begin(t, "repeated")
		b.engine.set(func() {
			o := b.engine.origins["lost"]
			o.RequestID = repeated.RequestID
			b.engine.origins["lost"] = o
		})
		require.Contains(t, b.pass(t, false), "adopted lost true")
		adopted := b.row(t, "lost")
		require.Equal(t, []string{"lost", "bea"}, []string{adopted.RequestID, adopted.Actor})
		require.Equal(t, repeated.RequestID, b.row(t, "repeated").RequestID)
	})
}
