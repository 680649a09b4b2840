package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

// recordings is the directory of recorded histories that every release keeps, see test/replay.
const recordings = "../../test/replay"

// load adds the executions of a recorded run to the frontend, and returns the run's ID.
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

// describe sets the description of a run's newest execution.
func (f *frontend) describe(id string, newest *historypb.History, status enumspb.WorkflowExecutionStatus) {
	f.set(func() {
		f.info[id] = &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: started(newest).GetOriginalExecutionRunId()},
			Status:    status, HistoryLength: int64(len(newest.GetEvents())),
			StartTime: newest.GetEvents()[0].GetEventTime(),
			CloseTime: newest.GetEvents()[len(newest.GetEvents())-1].GetEventTime(),
		}
	})
}

// scenarios returns the documents of the recorded runs.
func scenarios(t *testing.T) *fakeSource {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(recordings, "scenario", "documents", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	s := &fakeSource{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		s.putWith(t, string(text), func(uri string) []byte {
			if function, ofProject := strings.CutSuffix(uri, "@default"); ofProject {
				uri = "files/functions/" + strings.Replace(function, ":", "-", 1) + ".yaml"
			}
			content, err := os.ReadFile(filepath.Join(filepath.Dir(file), uri))
			require.NoError(t, err)
			return content
		})
	}
	return s
}

func insert(t *testing.T, s *storetest.Plain, id string) run.Run {
	t.Helper()
	r, _, err := s.InsertRun(t.Context(), run.Run{
		ID: id, Project: project.Default, Workflow: "replay/any", Version: "1.0.0", Status: run.Queued,
		QueuedReason: run.QueuedStarting, StatusAt: noon(), CreatedAt: noon(), RequestID: id,
	}, audit.NewEntry(t.Context(), noon(), audit.RunStart, project.Default, id, ""))
	require.NoError(t, err)
	return r
}

// recordedStep is a step in a recording.
type recordedStep struct {
	Number int64  `json:"number"`
	Path   string `json:"path"`
	Status string `json:"status"`
	Output string `json:"output"`
}

func recordedSteps(t *testing.T, scenario string) []recordedStep {
	t.Helper()
	file, err := os.Open(filepath.Join(recordings, "testdata", "1", scenario, "steps.jsonl"))
	require.NoError(t, err)
	defer file.Close()
	var list []recordedStep
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s recordedStep
		require.NoError(t, json.Unmarshal(lines.Bytes(), &s))
		list = append(list, s)
	}
	require.NoError(t, lines.Err())
	return list
}

// TestRebuildRestoresLostRecords has rows that contain only the start of a run.
func TestRebuildRestoresLostRecords(t *testing.T) {
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
			e, _ := connect(t, f.address, scenarios(t))
			w := &storeWriter{store: kept}
			require.NoError(t, e.Rebuild(t.Context(), r, "", w))
			require.Len(t, w.done, len(f.histories)-1, "all executions but the newest")

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

			var rows []recordedStep
			listPage, err := kept.ListSteps(t.Context(), project.Default, id, run.StepFilter{Limit: 10_000})
			require.NoError(t, err)
			list := listPage.Steps
			for _, s := range list {
				rows = append(rows, recordedStep{s.Number, s.Path, s.Status, string(s.Output)})
			}
			require.Equal(t, recordedSteps(t, scenario), rows)
			require.Equal(t, int64(len(rows)), got.StepsTotal)
		})
	}
}

// storeWriter writes the parts of a rebuild to a store.
type storeWriter struct {
	store engineStore
	err   error
	parts []run.Update
	done  []string
}

type engineStore interface {
	ApplyUpdates(ctx context.Context, updates []run.Update) ([]run.Transition, error)
}

func (w *storeWriter) Write(ctx context.Context, part run.Update) error {
	if w.err != nil {
		return w.err
	}
	w.parts = append(w.parts, part)
	_, err := w.store.ApplyUpdates(ctx, []run.Update{part})
	return err
}

func (w *storeWriter) Done(_ context.Context, id string) error {
	w.done = append(w.done, id)
	return nil
}

// TestRebuildContinuesAfterAnInterruption reads the executions of a run once, one at a time, and after an interruption
// those that follow the last written one.
func TestRebuildContinuesAfterAnInterruption(t *testing.T) {
	t.Parallel()
	if underRace {
		t.Skip("this run computes too much for the race detector")
	}
	f, kept := serve(t), openStore(t)
	r := insert(t, kept, f.load(t, "continued"))
	e, _ := connect(t, f.address, scenarios(t))
	whole := &storeWriter{store: kept}
	require.NoError(t, e.Rebuild(t.Context(), r, "", whole))
	require.NotEmpty(t, whole.done)
	before, err := kept.GetRun(t.Context(), project.Default, r.ID)
	require.NoError(t, err)

	last := whole.done[len(whole.done)-1]
	rest := &storeWriter{store: kept}
	require.NoError(t, e.Rebuild(t.Context(), r, last, rest))
	require.Empty(t, rest.done)
	require.Less(t, len(rest.parts), len(whole.parts))
	after, err := kept.GetRun(t.Context(), project.Default, r.ID)
	require.NoError(t, err)
	require.Equal(t, before.Sequence, after.Sequence, "the same again changes nothing")
}

// TestRebuildWithoutTheFirstHistories has a run that is older than Temporal's retention of the histories of closed
// executions.
func TestRebuildWithoutTheFirstHistories(t *testing.T) {
	t.Parallel()
	if underRace {
		t.Skip("this run computes too much for the race detector")
	}
	f, kept := serve(t), openStore(t)
	r := insert(t, kept, f.load(t, "continued"))
	newest := f.info[r.ID].GetExecution().GetRunId()
	f.set(func() {
		for id := range f.histories {
			if id != newest {
				delete(f.histories, id)
			}
		}
	})
	e, _ := connect(t, f.address, scenarios(t))
	require.NoError(t, e.Rebuild(t.Context(), r, "", &storeWriter{store: kept}))
	got, err := kept.GetRun(t.Context(), project.Default, r.ID)
	require.NoError(t, err)
	require.Equal(t, []any{run.Completed, newest}, []any{got.Status, got.ExecutionID})
}

// TestRebuildWhileTemporalIsUnavailable has a Temporal that describes the run and does not return its history.
func TestRebuildWhileTemporalIsUnavailable(t *testing.T) {
	t.Parallel()
	f, kept := serve(t), openStore(t)
	r := insert(t, kept, f.load(t, "pure"))
	e, _ := connect(t, f.address, scenarios(t))
	f.set(func() { f.withhold = true })
	requireError(t, e.Rebuild(t.Context(), r, "", &storeWriter{store: kept}), apperror.Unavailable,
		apperror.EngineUnavailable, "reading the history of run")
}

func TestRebuildOfAnUnknownRun(t *testing.T) {
	t.Parallel()
	f, kept := serve(t), openStore(t)
	r := insert(t, kept, "r1")
	e, _ := connect(t, f.address, &fakeSource{})
	require.ErrorIs(t, e.Rebuild(t.Context(), r, "", &storeWriter{store: kept}), run.ErrNotKnown)
}

// TestRebuildOfARunEndedFromOutside truncates a recorded history, as if the run had been ended while it waited.
func TestRebuildOfARunEndedFromOutside(t *testing.T) {
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
					WorkflowExecutionTerminatedEventAttributes: &historypb.WorkflowExecutionTerminatedEventAttributes{
						Reason: "runaway", Identity: "ada"},
				}
			} else {
				event.EventType = enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT
				event.Attributes = &historypb.HistoryEvent_WorkflowExecutionTimedOutEventAttributes{
					WorkflowExecutionTimedOutEventAttributes: &historypb.WorkflowExecutionTimedOutEventAttributes{},
				}
			}
			history.Events = append(history.GetEvents(), event)
			f.describe(id, history, status)

			e, _ := connect(t, f.address, scenarios(t))
			require.NoError(t, e.Rebuild(t.Context(), insert(t, kept, id), "", &storeWriter{store: kept}))
			got, err := kept.GetRun(t.Context(), project.Default, id)
			require.NoError(t, err)
			require.Equal(t, want, got.Status)
			require.NotNil(t, got.Error)
			require.Equal(t, at.UTC().Truncate(time.Microsecond), got.EndedAt)
			require.True(t, got.StartedAt.Before(got.EndedAt.Add(-59*time.Minute)), "the start of the run, not of the rebuild")
			listPage, err := kept.ListSteps(t.Context(), project.Default, id, run.StepFilter{Limit: 10})
			require.NoError(t, err)
			list := listPage.Steps
			require.Len(t, list, 1)
			require.Equal(t, []string{"/do/0/rest", "canceled"}, []string{list[0].Path, list[0].Status})
		})
	}
}

// timerAt returns the index of the first started timer.
func timerAt(h *historypb.History) int {
	for i, event := range h.GetEvents() {
		if event.GetTimerStartedEventAttributes() != nil {
			return i
		}
	}
	return len(h.GetEvents()) - 1
}

// A run that has ended and whose history cannot be read, because a large value is lost, has its end at least.
func TestRunThatLacksAValueHasItsEnd(t *testing.T) {
	t.Parallel()
	f, kept := serve(t), openStore(t)
	r := insert(t, kept, f.load(t, "pure"))
	e, _ := connect(t, f.address,
		&fakeSource{err: errors.New("a large value is in no store: " + contract.PayloadMissing + " one was restored")})
	require.NoError(t, e.Rebuild(t.Context(), r, "", &storeWriter{store: kept}))
	got, err := kept.GetRun(t.Context(), r.Project, r.ID)
	require.NoError(t, err)
	require.Equal(t, run.Completed, got.Status)
	require.False(t, got.EndedAt.IsZero())
}

func TestRebuildReportsItsErrors(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	f, kept := serve(t), openStore(t)
	r := insert(t, kept, f.load(t, "pure"))

	e, _ := connect(t, f.address, scenarios(t))
	err := e.Rebuild(t.Context(), r, "", &storeWriter{store: kept, err: full})
	require.ErrorIs(t, err, full)
	require.False(t, projection.Unusable(err))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, e.Rebuild(canceled, r, "", &storeWriter{store: kept}), "context canceled")

	e, _ = connect(t, f.address, &fakeSource{err: errors.New("the source is empty")})
	err = e.Rebuild(t.Context(), r, "", &storeWriter{store: kept})
	require.ErrorContains(t, err, "interpreting the history of run")
	require.ErrorContains(t, err, "the source is empty")
	require.True(t, projection.Unusable(err))

	e, _ = connect(t, f.address, scenarios(t))
	f.set(func() { f.histories = nil })
	err = e.Rebuild(t.Context(), r, "", &storeWriter{store: kept})
	require.ErrorContains(t, err, "reading the history of run")
	require.ErrorContains(t, err, r.ID)
	got, err := kept.GetRun(t.Context(), project.Default, r.ID)
	require.NoError(t, err)
	require.Equal(t, run.Queued, got.Status)
}
