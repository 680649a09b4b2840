package language_test

import (
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// The numbers of steps at the beginning and the end of a run that have rows of their own.
const firstSteps, lastSteps = 5_000, 4_000

// requireRecorded checks that the first and last steps of a run without failures have rows, and that all others are
// counted.
func requireRecorded(t *testing.T, s *stack, id string, total int) {
	t.Helper()
	run := s.Run(t, id)
	require.EqualValues(t, total, run.GetStepsTotal())
	require.EqualValues(t, total, run.GetStepsDone())
	steps := s.Steps(t, id)
	if total <= firstSteps+lastSteps {
		require.Nil(t, run.GetStepSummary())
		requireOnce(t, steps)
		require.Len(t, steps, total)
		return
	}
	require.Len(t, steps, firstSteps+lastSteps)
	requireOnce(t, steps[:firstSteps])
	for i, step := range steps[firstSteps:] {
		require.EqualValues(t, total-lastSteps+i+1, step.GetNumber())
	}
	summary := run.GetStepSummary()
	require.EqualValues(t, firstSteps+1, summary.GetFrom())
	require.EqualValues(t, total-lastSteps, summary.GetTo())
	require.EqualValues(t, total-firstSteps-lastSteps, summary.GetSteps())
}

// A run with a very large number of steps costs about as much as one of 20,000: in rows, and in memory.
func TestStepsOfALongRunAreSummarized(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	outer := size(40, 1_000)
	const tasks = "        - g:\n            for: {in: '${ [range(1000)] }', each: j}\n            do: [{s: {set: {x: " +
		"1}}}]\n"
	name := s.Publish(t, platform.Document("nested", loop(outer, tasks)))
	idle := s.Memory(t)
	began := time.Now()
	id := s.Start(t, name, "{}").GetId()

	// A watch receives every change while rows are removed.
	watched := make(chan int64, 1)
	go func() {
		defer close(watched)
		stream, err := s.Runs.WatchRun(t.Context(),
			connect.NewRequest(&signalboxv1.WatchRunRequest{Project: platform.DefaultProject, Id: id}))
		if err != nil {
			return
		}
		counts := map[string]int64{}
		for stream.Receive() {
			for _, task := range stream.Msg().GetSummary().GetTasks() {
				counts[task.GetPointer()] = task.GetCount()
			}
		}
		var all int64
		for _, n := range counts {
			all += n
		}
		watched <- all
	}()
	ended, sampled := make(chan struct{}), make(chan float64)
	go func() {
		most := idle
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				sampled <- most
				return
			case <-ticker.C:
				most = max(most, s.Memory(t))
			}
		}
	}()
	s.Await(t, id, 30*time.Minute, "completed")
	close(ended)
	most := <-sampled
	total := 1 + outer*1001
	t.Logf("%d steps in %s, %.0f MB idle, %.0f MB at most", total, time.Since(began).Round(time.Millisecond), idle, most)
	requireRecorded(t, s, id, total)
	require.EqualValues(t, total-firstSteps-lastSteps, <-watched, "a watch receives all counts")
	require.Less(t, most-idle, 200.0)
}
