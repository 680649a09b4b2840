package reconcile_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// restored makes a bench whose database was searched for the last time when it was backed up.
func (b *bench) restored(t *testing.T, age time.Duration) {
	t.Helper()
	require.Empty(t, b.pass(t, false))
	b.engine.called()
	<-time.After(age)
}

// endedWithoutRow adds a run that ended a while ago and has no row.
func (b *bench) endedWithoutRow(id string, ago time.Duration) {
	x := run.Execution{RunID: id, ExecutionID: "x-" + id, StartedAt: time.Now().Add(-ago - time.Second),
		ClosedAt: time.Now().Add(-ago)}
	b.engine.set(func() {
		b.engine.ended, b.engine.known[id], b.engine.rebuilt[id] = append(b.engine.ended, x), x,
			b.update(id, 20, run.Completed)
		b.engine.origins[id] = run.Origin{
			StartedAt: x.StartedAt,
			Identity: run.Identity{
				Project: here, Workflow: "a/b", Version: "1.0.0", DocumentHash: hash, RequestID: "request-" +
					id, Trigger: run.TriggerAPI, CreatedAt: x.StartedAt,
			},
		}
	})
}

func (b *bench) searched(t *testing.T) time.Time {
	t.Helper()
	known, err := b.store.Comparisons(b.ctx)
	require.NoError(t, err)
	return known.SearchedUntil
}

// Runs that started after the backup and ended before the restore are found, however long ago that was, and once.
func TestEndedExecutionsWithoutRowAreAdopted(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.endedWithoutRow("before", 4*time.Minute)
		b.restored(t, 9*time.Hour)
		before := b.searched(t)
		b.endedWithoutRow("old", 8*time.Hour)
		b.endedWithoutRow("middle", 3*time.Hour)
		b.endedWithoutRow("new", 5*time.Minute)

		require.Equal(t, []string{"adopted middle false", "adopted new false", "adopted old false"}, b.pass(t, true))
		require.Equal(t, before, b.searched(t), "a dry run changes nothing")
		require.Equal(t, []string{"adopted middle true", "adopted new true", "adopted old true"}, b.pass(t, false))
		require.Equal(t, "request-old", b.row(t, "old").RequestID)
		require.WithinDuration(t, time.Now(), b.searched(t), 3*time.Minute)
		b.engine.called()
		require.Empty(t, b.pass(t, false))
		require.NotContains(t, b.engine.called(), "origin old")
	})
}

// A pass searches for ten seconds, and the next one continues where it stopped.
func TestSearchContinues(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.restored(t, 6*time.Hour)
		for i := range 12_000 { // they are not of this installation, and 500 are compared per second
			x := run.Execution{RunID: fmt.Sprintf("r%d", i), ExecutionID: fmt.Sprintf("x%d", i),
				ClosedAt: time.Now().Add(-4*time.Hour + time.Duration(i)*time.Second)}
			b.engine.ended = append(b.engine.ended, x)
		}
		total, passes := 0, 0
		for until := time.Now(); until != (time.Time{}); passes++ {
			report, err := b.Reconcile(b.ctx, false)
			require.NoError(t, err)
			require.False(t, b.searched(t).IsZero())
			total, until = total+report.ForeignCount(), report.SearchedUntil
			require.LessOrEqual(t, report.Took, 30*time.Second)
		}
		require.Equal(t, 12_000, total)
		require.Greater(t, passes, 1)
	})
}

// Runs of a workflow that the restored database did not have are adopted when it is published: those that are open at
// once, those that have ended once they are searched again.
func TestRunsOfALaterWorkflowAreAdopted(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.restored(t, time.Hour)
		b.endedWithoutRow("ended", 30*time.Minute)
		b.endedWithoutRow("open", 30*time.Minute)
		b.engine.set(func() {
			for id, o := range b.engine.origins {
				o.DocumentHash = "sha256:later"
				b.engine.origins[id] = o
			}
			x := b.engine.ended[1]
			x.Open, x.ClosedAt = true, time.Time{}
			b.engine.ended, b.engine.listed, b.engine.known["open"] = b.engine.ended[:1], append(b.engine.listed, x), x
		})
		before := time.Now().Add(-time.Hour)
		for _, count := range []int{2, 1} { // the ended one is found once
			report, err := b.Reconcile(b.ctx, false)
			require.NoError(t, err)
			require.Zero(t, report.Total)
			require.Equal(t, count, report.ForeignCount())
		}
		stored, err := b.store.Problems().ForeignRuns(b.ctx)
		require.NoError(t, err)
		require.Len(t, stored, 1)
		require.Equal(t, []string{"open"}, stored[0].RunIDs)

		_, _, err = b.store.Publish(b.ctx,
			workflow.Version{Project: here, Workflow: "a/b", Version: "1.1.0", Hash: "sha256:later", Canonical: []byte("{}"),
				PublishedAt: time.Now()},
			func(string, string) bool { return true }, audit.NewEntry(b.ctx, time.Now(), audit.WorkflowPublish, here, "a/b", ""))
		require.NoError(t, err)
		require.Equal(t, []string{"adopted open true"}, b.pass(t, false))
		stored, err = b.store.Problems().ForeignRuns(b.ctx)
		require.NoError(t, err)
		require.Empty(t, stored)
		require.Empty(t, b.pass(t, false))
		require.NoError(t, b.SearchSince(b.ctx, before))
		require.Equal(t, []string{"adopted ended true"}, b.pass(t, false))
	})
}

// A run of which the database has lost a large input gets its row nevertheless, and says what it lacks.
func TestRunWithoutItsInputIsAdopted(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.restored(t, time.Hour)
		b.endedWithoutRow("lost", 30*time.Minute)
		b.engine.set(func() {
			o := b.engine.origins["lost"]
			o.InputMissing = "the input is lost"
			b.engine.origins["lost"] = o
		})
		require.Equal(t, []string{"adopted lost true"}, b.pass(t, false))
		r := b.row(t, "lost")
		require.Nil(t, r.Input)
		require.Len(t, r.Warnings, 1)
		require.Equal(t, []string{run.WarningInputMissing, "the input is lost"},
			[]string{r.Warnings[0].Code, r.Warnings[0].Detail})
	})
}

// What Temporal no longer keeps is reported, once.
func TestForgottenExecutionsAreReported(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.engine.retention = 2 * time.Hour
		b.restored(t, 3*time.Hour)
		report, err := b.Reconcile(b.ctx, false)
		require.NoError(t, err)
		require.Len(t, report.Corrections, 1)
		require.Equal(t, run.CorrectionForgotten, report.Corrections[0].Kind)
		require.Contains(t, report.Corrections[0].Detail, "Temporal keeps them for 2h0m0s only")
		require.Empty(t, b.pass(t, false))
	})
}
