package batch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// TestOutcomeOfStartedRun has each status, and failures whose groups are the same, different or unknown.
func TestOutcomeOfStartedRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status          run.Status
		group, selected string
		want            batch.Outcome
	}{
		{"", "", "", batch.RunUnknown},
		{run.Queued, "", "", batch.RunOpen},
		{run.Running, "", "", batch.RunOpen},
		{run.Waiting, "", "", batch.RunOpen},
		{run.Completed, "", "", batch.RunCompleted},
		{run.Canceled, "g", "g", batch.RunCanceled},
		{run.Terminated, "g", "g", batch.RunTerminated},
		{run.Failed, "g", "g", batch.FailedSameCause},
		{run.TimedOut, "g", "g", batch.FailedSameCause},
		{run.Failed, "g", "h", batch.FailedOtherCause},
		{run.TimedOut, "", "h", batch.FailedOtherCause},
		{run.Failed, "", "", batch.FailedOtherCause}, // two unknown groups are not one group
	} {
		r := batch.StartedRun{Status: c.status, FailureGroup: c.group, SelectedGroup: c.selected}
		require.Equal(t, c.want, r.Outcome(), "%q, groups %q and %q", c.status, c.group, c.selected)
	}
	all := batch.Outcomes{batch.RunCompleted: 1, batch.FailedSameCause: 2, batch.FailedOtherCause: 4, batch.RunUnknown: 8}
	require.EqualValues(t, 6, all.Failed())
}
