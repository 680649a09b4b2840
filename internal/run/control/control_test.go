package control_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
)

// TestEveryStateHasAnAnswer makes every possible row, valid and invalid.
func TestEveryStateHasAnAnswer(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for _, s := range control.States() {
		require.False(t, listed[s.String()], "%s is listed twice", s)
		listed[s.String()] = true
	}
	for _, status := range run.Statuses() {
		for _, reason := range []string{
			run.QueuedEngine, run.QueuedAdmission, run.QueuedStarting, run.QueuedWorker, "", "odd"} {
			for _, kind := range []string{
				run.WaitingEvent, run.WaitingTimer, run.WaitingRetry, run.WaitingQuota, run.WaitingChild, run.WaitingPaused, "",
				"odd"} {
				for _, requested := range []bool{false, true} {
					for _, trigger := range []string{run.TriggerAPI, run.TriggerImport} {
						r := run.Run{ID: "r", Status: status, CancelRequested: requested, Trigger: trigger}
						if status == run.Queued {
							r.QueuedReason = reason
						}
						if status == run.Waiting {
							r.WaitingKind = kind
						}
						s := control.StateOf(r)
						for _, c := range control.Controls() {
							a := control.Decide(c, s)
							require.NotZero(t, a.Effect, "%s of %s", c, s)
							require.Equal(t, a.Effect == control.Refused, a.Reason != "", "%s of %s", c, s)
							require.Equal(t, a.Effect == control.Done, slices.Contains(control.Available(r), c), "%s of %s", c, s)
						}
					}
				}
			}
		}
	}
}

// TestRules checks the rules that the table follows, one by one.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, s := range control.States() {
		is := func(c control.Control) control.Answer { return control.Decide(c, s) }
		require.Equal(t, control.Done, is(control.Export).Effect, "%s: every run can be exported", s)
		switch {
		case s.Imported:
			for _, c := range control.Controls() {
				require.Equal(t, c != control.Export && c != control.Replay, is(c).Reason == apperror.RunImported, "%s of %s", c, s)
			}
			require.Equal(t, control.Answer{Effect: control.Done, May: apperror.RunImported}, is(control.Replay))
			continue
		case s.Status.Terminal():
			for _, c := range []control.Control{
				control.Cancel, control.Terminate, control.Pause, control.Unpause, control.ResumeQuota} {
				require.Equal(t, apperror.RunEnded, is(c).Reason, "%s of %s", c, s)
			}
		default:
			require.Equal(t, control.Done, is(control.Terminate).Effect, "%s: an open run can be ended", s)
			require.NotEqual(t, control.Refused, is(control.Cancel).Effect, "%s: an open run can be cancelled", s)
		}
		require.Equal(t, control.Done, is(control.Replay).Effect, "%s: replay is the way to recover", s)
		require.False(t, is(control.Pause).Effect == control.Done && is(control.Unpause).Effect == control.Done,
			"%s is paused, or not", s)
	}
}

// TestMissingRuns checks the rules for runs that were handed over and that Temporal does not have.
func TestMissingRuns(t *testing.T) {
	t.Parallel()
	for _, standing := range []run.Placement{run.PlacementHere, run.PlacementDivided, run.PlacementElsewhere} {
		for _, c := range []control.Control{
			control.Cancel, control.Terminate, control.Pause, control.Unpause, control.ResumeQuota} {
			want := control.Answer{Effect: control.Refused, Reason: apperror.RunElsewhere}
			switch {
			case c == control.Terminate, c == control.Cancel && standing == run.PlacementHere:
				want = control.Answer{Effect: control.Done}
			case standing == run.PlacementHere:
				want.Reason = apperror.ExecutionMissing
			}
			require.Equal(t, want, control.DecideMissing(c, standing), "%s, %d", c, standing)
		}
	}
}

// TestOutcomesExplainEveryEffect checks that a person reads why a control does not take effect, or may not.
func TestOutcomesExplainEveryEffect(t *testing.T) {
	t.Parallel()
	for _, s := range control.States() {
		r := run.Run{
			ID: "r", Status: s.Status, QueuedReason: s.QueuedReason, WaitingKind: s.WaitingKind,
			CancelRequested: s.CancelRequested,
			Trigger:         run.TriggerAPI,
		}
		if s.Imported {
			r.Trigger = run.TriggerImport
		}
		outcomes := control.Outcomes(r)
		require.Len(t, outcomes, len(control.Controls()))
		for i, o := range outcomes {
			require.Equal(t, control.Controls()[i], o.Control)
			require.Equal(t, control.Decide(o.Control, s), o.Answer, "%s of %s", o.Control, s)
			require.Equal(t, o.Effect == control.Done && o.May == "", o.Detail == "", "%s of %s: %q", o.Control, s, o.Detail)
		}
	}
}
