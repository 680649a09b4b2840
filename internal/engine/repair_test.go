package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store"
)

// recordings are the histories that every release keeps, see test/replay.
const recordings = "../../test/replay"

// load gives the frontend the executions of a recorded run, and returns the run's ID.
func (f *frontend) load(t *testing.T, scenario string) string {
	t.Helper()
	var newest *historypb.History
	for i := 0; ; i++ {
		file, err := os.Open(filepath.Join(recordings, "testdata", "1", scenario, fmt.Sprintf("history-%d.json", i)))
		if i > 0 && errors.Is(err, os.ErrNotExist) {
			break
		}
		require.NoError(t, err)
		newest, err = client.HistoryFromJSON(file, client.HistoryJSONOptions{})
		require.NoError(t, err)
		require.NoError(t, file.Close())
		f.histories[started(newest).GetOriginalExecutionRunId()] = newest
	}
	id := started(newest).GetWorkflowId()
	f.describe(id, newest, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	return id
}

func started(h *historypb.History) *historypb.WorkflowExecutionStartedEventAttributes {
	return h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
}

// describe says of a run's newest execution what Temporal would.
func (f *frontend) describe(id string, newest *historypb.History, status enumspb.WorkflowExecutionStatus) {
	f.set(func() {
		f.info[id] = &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: started(newest).GetOriginalExecutionRunId()},
			Status:    status, HistoryLength: int64(len(newest.GetEvents())),
			StartTime: newest.GetEvents()[0].GetEventTime(), CloseTime: newest.GetEvents()[len(newest.GetEvents())-1].GetEventTime(),
		}
	})
}

// scenarios keeps the documents of the recorded runs.
func scenarios(t *testing.T) *shelf {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(recordings, "scenario", "documents", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	s := &shelf{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		s.put(t, string(text))
	}
	return s
}

func insert(t *testing.T, s *store.Store, id string) run.Run {
	t.Helper()
	r, _, err := s.InsertRun(t.Context(), run.Run{
		ID: id, Project: project.Default, Workflow: "replay/any", Version: "1.0.0", Status: run.Queued,
		QueuedReason: run.QueuedStarting, StatusAt: noon(), CreatedAt: noon(), RequestID: id,
	}, audit.NewEntry(t.Context(), noon(), audit.RunStart, project.Default, id, ""))
	require.NoError(t, err)
	return r
}

// told is what the recording says of a step.
type told struct {
	Number int64  `json:"number"`
	Path   string `json:"path"`
	Status string `json:"status"`
	Output string `json:"output"`
}

func recordedSteps(t *testing.T, scenario string) []told {
	t.Helper()
	file, err := os.Open(filepath.Join(recordings, "testdata", "1", scenario, "steps.jsonl"))
	require.NoError(t, err)
	defer file.Close()
	var list []told
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s told
		require.NoError(t, json.Unmarshal(lines.Bytes(), &s))
		list = append(list, s)
	}
	require.NoError(t, lines.Err())
	return list
}

// TestRepairMakesUpForLostRecords has rows of which nothing but the start was ever written.
func TestRepairMakesUpForLostRecords(t *testing.T) {
	t.Parallel()
	for _, scenario := range []string{"calls", "canceled", "continued", "failed", "pure", "timed-out", "timers"} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			if underRace && scenario == "continued" {
				t.Skip("this run computes too much for the race detector")
			}
			f, kept := serve(t), openStore(t)
			id := f.load(t, scenario)
			r := insert(t, kept, id)
			e, _ := connect(t, f.address, kept, scenarios(t))
			changed, err := e.Repair(t.Context(), r)
			require.NoError(t, err)
			require.True(t, changed)

			var want struct {
				Status string                          `json:"status"`
				Output struct{ JSON string }           `json:"output"`
				Error  struct{ Type, Instance string } `json:"error"`
			}
			text, err := os.ReadFile(filepath.Join(recordings, "testdata", "1", scenario, "run.json"))
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &want))
			got, err := kept.GetRun(t.Context(), project.Default, id)
			require.NoError(t, err)
			require.Equal(t, []string{want.Status, want.Output.JSON}, []string{string(got.Status), string(got.Output)})
			if want.Error.Type != "" {
				require.Equal(t, []string{want.Error.Type, want.Error.Instance}, []string{got.Error.Type, got.Error.Instance})
			}
			require.Equal(t, f.info[id].GetExecution().GetRunId(), got.ExecutionID)
			require.False(t, got.StartedAt.IsZero())
			require.False(t, got.EndedAt.Before(got.StartedAt))

			var rows []told
			list, err := kept.ListSteps(t.Context(), project.Default, id, 0, 10_000)
			require.NoError(t, err)
			for _, s := range list {
				rows = append(rows, told{s.Number, s.Path, s.Status, string(s.Output)})
			}
			require.Equal(t, recordedSteps(t, scenario), rows)
			require.Equal(t, int64(len(rows)), got.StepsTotal)
		})
	}
}

func TestRepairReadsAHistoryOnce(t *testing.T) {
	t.Parallel()
	f, kept := serve(t), openStore(t)
	r := insert(t, kept, f.load(t, "pure"))
	var seen []string // the changes of status that somebody is told of
	e, _ := connect(t, f.address, kept, scenarios(t), func(o *engine.Options) {
		o.Changed = func(_ context.Context, transitions []run.Transition) {
			for _, c := range transitions {
				seen = append(seen, fmt.Sprintf("%s %s: %s to %s", c.Project, c.RunID, c.From, c.To))
			}
		}
	})
	changed, err := e.Repair(t.Context(), r)
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, []string{"describe", "history"}, f.called())
	changed, err = e.Repair(t.Context(), r)
	require.NoError(t, err)
	require.False(t, changed)
	require.Equal(t, []string{"describe"}, f.called(), "Temporal has not moved since")

	f.set(func() { f.info[r.ID].HistoryLength++ })
	_, err = e.Repair(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, []string{"describe", "history"}, f.called())
	require.Equal(t, []string{"default " + r.ID + ": queued to completed"}, seen, "once")
}

func TestRepairLeavesWhatTemporalDoesNotKnow(t *testing.T) {
	t.Parallel()
	f, kept := serve(t), openStore(t)
	r := insert(t, kept, "r1")
	e, _ := connect(t, f.address, kept, &shelf{})
	changed, err := e.Repair(t.Context(), r)
	require.NoError(t, err)
	require.False(t, changed)
	got, err := kept.GetRun(t.Context(), project.Default, "r1")
	require.NoError(t, err)
	require.Equal(t, r.Status, got.Status)
}

// TestRepairOfWhatWasEndedFromOutside cuts a recorded history short, as if the run had been ended while it waited.
func TestRepairOfWhatWasEndedFromOutside(t *testing.T) {
	t.Parallel()
	for status, want := range map[enumspb.WorkflowExecutionStatus]run.Status{
		enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED: run.Terminated,
		enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:  run.TimedOut,
	} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			f, kept := serve(t), openStore(t)
			id := f.load(t, "timers")
			history := f.histories[f.info[id].GetExecution().GetRunId()]
			history.Events = history.GetEvents()[:timerAt(history)+1]
			at := history.GetEvents()[0].GetEventTime().AsTime().Add(time.Hour)
			event := &historypb.HistoryEvent{EventId: int64(len(history.GetEvents()) + 1), EventTime: timestamppb.New(at)}
			if want == run.Terminated {
				event.EventType = enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED
				event.Attributes = &historypb.HistoryEvent_WorkflowExecutionTerminatedEventAttributes{
					WorkflowExecutionTerminatedEventAttributes: &historypb.WorkflowExecutionTerminatedEventAttributes{Reason: "runaway", Identity: "ada"},
				}
			} else {
				event.EventType = enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT
				event.Attributes = &historypb.HistoryEvent_WorkflowExecutionTimedOutEventAttributes{
					WorkflowExecutionTimedOutEventAttributes: &historypb.WorkflowExecutionTimedOutEventAttributes{},
				}
			}
			history.Events = append(history.GetEvents(), event)
			f.describe(id, history, status)

			e, _ := connect(t, f.address, kept, scenarios(t))
			changed, err := e.Repair(t.Context(), insert(t, kept, id))
			require.NoError(t, err)
			require.True(t, changed)
			got, err := kept.GetRun(t.Context(), project.Default, id)
			require.NoError(t, err)
			require.Equal(t, want, got.Status)
			require.NotNil(t, got.Error)
			require.Equal(t, at.UTC().Truncate(time.Microsecond), got.EndedAt)
			require.True(t, got.StartedAt.Before(got.EndedAt.Add(-59*time.Minute)), "it began when it began")
			list, err := kept.ListSteps(t.Context(), project.Default, id, 0, 10)
			require.NoError(t, err)
			require.Len(t, list, 1)
			require.Equal(t, []string{"/do/0/rest", "canceled"}, []string{list[0].Path, list[0].Status})
		})
	}
}

// timerAt is where the first timer was started.
func timerAt(h *historypb.History) int {
	for i, event := range h.GetEvents() {
		if event.GetTimerStartedEventAttributes() != nil {
			return i
		}
	}
	return len(h.GetEvents()) - 1
}

// brokenStore takes nothing.
type brokenStore struct{ err error }

func (s brokenStore) ApplyUpdates(context.Context, []run.Update) ([]run.Transition, error) {
	return nil, s.err
}

func TestRepairSaysWhatFailed(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	f, kept := serve(t), openStore(t)
	r := insert(t, kept, f.load(t, "pure"))

	e, _ := connect(t, f.address, brokenStore{full}, scenarios(t))
	for range 2 { // a repair that was not written is not remembered as one
		changed, err := e.Repair(t.Context(), r)
		require.ErrorIs(t, err, full)
		require.False(t, changed)
	}
	e, _ = connect(t, f.address, kept, &shelf{err: errors.New("the shelf is empty")})
	_, err := e.Repair(t.Context(), r)
	require.ErrorContains(t, err, "interpreting the history of run")
	require.ErrorContains(t, err, "the shelf is empty")

	e, _ = connect(t, f.address, kept, scenarios(t))
	f.set(func() { f.histories = nil })
	_, err = e.Repair(t.Context(), r)
	require.ErrorContains(t, err, "reading the history of run")
	require.ErrorContains(t, err, r.ID)
	got, err := kept.GetRun(t.Context(), project.Default, r.ID)
	require.NoError(t, err)
	require.Equal(t, run.Queued, got.Status)
}
