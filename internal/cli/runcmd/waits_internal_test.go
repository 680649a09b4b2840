package runcmd

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
)

func TestWaitLine(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	in := func(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(now.Add(d)) }
	for want, w := range map[string]*signalboxv1.Wait{
		"event a with id = 4711, since 12s, until 2026-11-23T10:05:00Z": {
			What: "event a with id = 4711", Since: in(-12 * time.Second), Deadline: in(5 * time.Minute)},
		"timer, since 1m, due in 3m": {
			What: "timer", Since: in(-time.Minute), DueTime: in(3 * time.Minute)},
		"timer, due 2s ago":        {What: "timer", DueTime: in(-2 * time.Second)},
		"answer, deadline unknown": {What: "answer", DeadlineUnknown: true},
		"answer, until 2026-11-23T10:01:00Z at the latest": {
			What: "answer", Deadline: in(time.Minute), DeadlineUnknown: true},
	} {
		require.Equal(t, want, waitLine(w, now))
	}
}

func TestWaitLinesOfManySteps(t *testing.T) {
	t.Parallel()
	run := &signalboxv1.Run{Id: "r", Waits: []*signalboxv1.Wait{{What: "unpause: the run is paused"}}}
	for i := range mostWaits + 1 {
		run.Waits = append(run.Waits, &signalboxv1.Wait{Step: int64(i + 2), Task: "t", What: "timer"})
	}
	lines := strings.Split(waitLines(run, time.Now(), "./signalbox run waits r"), "\n")
	require.Len(t, lines, mostWaits+1)
	require.Equal(t, []string{"unpause: the run is paused", "step 2 t: timer"}, lines[:2])
	require.Equal(t, "and 2 more: ./signalbox run waits r", lines[mostWaits])
	run.MoreWaits = true
	require.Contains(t, waitLines(run, time.Now(), "./signalbox run waits r"), "\nand more: ./signalbox run waits r")
	require.Empty(t, waitLines(&signalboxv1.Run{}, time.Now(), ""))
}

func TestErrorTitle(t *testing.T) {
	t.Parallel()
	require.Empty(t, errorTitle(nil))
	require.Equal(t, "Out of stock", errorTitle(&signalboxv1.RunError{Type: "https://x", Title: "Out of stock"}))
	require.Equal(t, "https://x", errorTitle(&signalboxv1.RunError{Type: "https://x"}))
	require.Equal(t, strings.Repeat("é", mostTitle)+"…",
		errorTitle(&signalboxv1.RunError{Title: strings.Repeat("é", 100)}))
}

func TestStepAttempts(t *testing.T) {
	t.Parallel()
	for want, step := range map[string]*signalboxv1.Step{
		"":  {Status: "skipped"},
		"1": {Status: "completed"},
		"2": {Status: "running", Attempts: []*signalboxv1.Attempt{{Number: 1}, {Number: 2}}},
		// the newest ones alone are recorded
		"70": {Status: "failed", Attempts: []*signalboxv1.Attempt{{Number: 69}, {Number: 70}}},
	} {
		require.Equal(t, want, tries(step))
	}
}

func TestRunWithoutSteps(t *testing.T) {
	t.Parallel()
	require.Equal(t, "none entered yet", steps(&signalboxv1.Run{Status: statusQueued}))
	require.Equal(t, "1 of 2 done", steps(&signalboxv1.Run{StepsDone: 1, StepsTotal: 2}))
}
