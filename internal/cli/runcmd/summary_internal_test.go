package runcmd

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

func ended(n int64) *signalboxv1.Step {
	return &signalboxv1.Step{Number: n, Status: "completed", Kind: "set", Path: "/do/0/a", EndTime: timestamppb.Now()}
}

func TestWatchViewsShowStepSummary(t *testing.T) {
	t.Parallel()
	summary := &signalboxv1.StepSummary{
		From: 3, To: 40, Steps: 38, Tasks: []*signalboxv1.TaskSummary{{Pointer: "/do/0/a", Count: 38}}}
	message := &signalboxv1.WatchRunResponse{}
	for n := int64(1); n <= 60; n++ {
		message.Steps = append(message.Steps, ended(n))
	}

	var text strings.Builder
	view := newScreen(&text, output.Style{}, 100)
	view.update(message)
	require.Contains(t, text.String(), "… 45 earlier steps")
	text.Reset()
	view.update(&signalboxv1.WatchRunResponse{Summary: summary})
	require.Contains(t, text.String(), "… 45 earlier steps", "none is lost, though its row is gone")
	require.Len(t, view.steps, 22)

	text.Reset()
	list := newLines(&text, output.Style{})
	list.update(message)
	text.Reset()
	list.update(&signalboxv1.WatchRunResponse{Summary: summary})
	require.Equal(t, "steps 3 to 40 are summarized\n", text.String())
	require.Len(t, list.steps, 22)
}

func TestRunShowsStepSummary(t *testing.T) {
	t.Parallel()
	run := &signalboxv1.Run{StepsDone: 99, StepsTotal: 100,
		StepSummary: &signalboxv1.StepSummary{From: 3, To: 40, Steps: 37}}
	require.Equal(t, "99 of 100 done; steps 3 to 40 are summarized: 37 of them are not listed", steps(run))
	require.Equal(t, "…", stepRow(run.GetStepSummary(), time.Now())[0].Value)
	require.Equal(t, "steps 3 to 40: 37 not listed", stepRow(run.GetStepSummary(), time.Now())[1].Value)
}
