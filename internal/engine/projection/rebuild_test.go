package projection_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// recordings is the directory of recorded histories that every release keeps, see test/replay.
const recordings = "../../../test/replay"

func recorded(t *testing.T, scenario string) (*historypb.History, flow.Execution) {
	t.Helper()
	f, err := os.Open(filepath.Join(recordings, "testdata", "1", scenario, "history-0.json"))
	require.NoError(t, err)
	defer f.Close()
	history, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
	require.NoError(t, err)
	started := history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
	return history, flow.Execution{WorkflowID: started.GetWorkflowId(), RunID: started.GetOriginalExecutionRunId()}
}

// fakeSource has one document, for every hash.
type fakeSource struct {
	doc *dsl.Document
	err error
}

func (s fakeSource) Document(context.Context, string) (*dsl.Document, error) { return s.doc, s.err }

func scenarioDocument(t *testing.T, scenario string) fakeSource {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(recordings, "scenario", "documents", scenario+".yaml"))
	require.NoError(t, err)
	doc, problems := dsl.Parse(source)
	require.False(t, problems.HasErrors(), problems)
	return fakeSource{doc: doc}
}

// sealing returns the keys of all histories of a test.
func sealing(t *testing.T) *keyring.Ring {
	t.Helper()
	keys, err := keyring.New("test", map[string][]byte{"test": bytes.Repeat([]byte("k"), keyring.KeySize)})
	require.NoError(t, err)
	return keys
}

func rebuilding(t *testing.T, history *historypb.History, e flow.Execution, docs flow.Documents) projection.Rebuilding {
	t.Helper()
	return projection.Rebuilding{
		History: history, Execution: e, Name: contract.RunWorkflow, Keys: sealing(t),
		Log:      logger.ForTemporal(slog.New(slog.DiscardHandler)),
		Workflow: func(sink flow.Sink) any { return flow.New(t.Context(), docs, sink, flow.DefaultLimits()).Run },
	}
}

// rebuild returns all parts of a rebuild as one update.
func rebuild(t *testing.T, history *historypb.History, e flow.Execution, docs flow.Documents) (run.Update, error) {
	t.Helper()
	var whole run.Update
	_, _, err := projection.Rebuild(t.Context(), rebuilding(t, history, e, docs),
		func(_ context.Context, part run.Update) error {
			whole = projection.Join(whole, part)
			return nil
		})
	return whole, err
}

func TestRebuildRestoresTheRecords(t *testing.T) {
	t.Parallel()
	history, e := recorded(t, "timers")
	u, err := rebuild(t, history, e, scenarioDocument(t, "timers"))
	require.NoError(t, err)
	require.Equal(t, []string{e.WorkflowID, e.RunID}, []string{u.RunID, u.ExecutionID})
	require.Equal(t, []any{run.Completed, `{"status":408}`}, []any{u.State.Status, string(u.State.Output)})
	events := history.GetEvents()
	require.Greater(t, u.Position, int64(3))
	require.Less(t, u.Position, int64(len(events)))
	require.WithinRange(t, u.State.StartedAt, events[0].GetEventTime().AsTime(), events[4].GetEventTime().AsTime())
	require.WithinRange(t, u.State.EndedAt, events[4].GetEventTime().AsTime(),
		events[len(events)-1].GetEventTime().AsTime())
	seen := map[int64]bool{}
	var open []string
	for _, s := range u.Steps {
		require.False(t, seen[s.Number], "each step once, with its last state")
		seen[s.Number] = true
		if s.EndedAt.IsZero() {
			open = append(open, s.Path)
		}
	}
	require.Empty(t, open)
	require.Equal(t, u.State.StepsTotal, int64(len(u.Steps)))

	again, err := rebuild(t, history, e, scenarioDocument(t, "timers"))
	require.NoError(t, err)
	require.Equal(t, u, again)
}

func TestRebuildOfAnOpenRun(t *testing.T) {
	t.Parallel()
	history, e := recorded(t, "timers")
	// The first workflow task with its commands, and nothing further.
	first := 0
	for i, event := range history.GetEvents() {
		if event.GetWorkflowTaskCompletedEventAttributes() != nil {
			first = i
			break
		}
	}
	history.Events = history.GetEvents()[:first+2]
	require.NotNil(t, history.GetEvents()[first+1].GetTimerStartedEventAttributes())
	u, err := rebuild(t, history, e, scenarioDocument(t, "timers"))
	require.NoError(t, err)
	require.Equal(t, []any{run.Waiting, "timer"}, []any{u.State.Status, u.State.WaitingKind})
	require.Equal(t, []string{"1 waiting@3"}, numbered(u.Steps))
}

func TestRebuildReportsUnreadableHistories(t *testing.T) {
	t.Parallel()
	history, e := recorded(t, "timers")
	_, err := rebuild(t, history, e, scenarioDocument(t, "canceled"))
	require.ErrorContains(t, err,
		fmt.Sprintf("interpreting the history of run %q (execution %q) again", e.WorkflowID, e.RunID))

	away := errors.New("the store is away")
	_, err = rebuild(t, history, e, fakeSource{err: away})
	require.ErrorContains(t, err, "the store is away")

	history, e = recorded(t, "pure")
	history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().WorkflowType.Name = "another.type"
	_, err = rebuild(t, history, e, scenarioDocument(t, "pure"))
	require.ErrorContains(t, err, "another.type")
}

func TestRebuildEndsWithItsContext(t *testing.T) {
	t.Parallel()
	history, e := recorded(t, "timers")
	ctx, cancel := context.WithCancel(t.Context())
	writes := 0
	_, _, err := projection.Rebuild(ctx, rebuilding(t, history, e, scenarioDocument(t, "timers")),
		func(context.Context, run.Update) error {
			writes++
			return nil
		})
	require.NoError(t, err)
	require.Positive(t, writes)
	cancel()
	history, e = recorded(t, "timers")
	_, _, err = projection.Rebuild(ctx, rebuilding(t, history, e, scenarioDocument(t, "timers")),
		func(context.Context, run.Update) error {
			t.Error("nothing is written after the end")
			return nil
		})
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, projection.Unusable(err))
}

// TestRebuildIgnoresUnacceptedTasks has a workflow task at the end of the history that a worker has just received.
func TestRebuildIgnoresUnacceptedTasks(t *testing.T) {
	t.Parallel()
	history, e := recorded(t, "timers")
	last := 0
	for i, event := range history.GetEvents() {
		if event.GetWorkflowTaskStartedEventAttributes() != nil {
			last = i
		}
	}
	history.Events = history.GetEvents()[:last+1]
	u, err := rebuild(t, history, e, scenarioDocument(t, "timers"))
	require.NoError(t, err)
	require.Equal(t, run.Waiting, u.State.Status, "not completed: Temporal has not accepted that yet")
	require.Less(t, u.Position, int64(last))
}

// TestRebuildWritesInParts has one workflow task that enters more steps than a part holds, each of which has a row.
func TestRebuildWritesInParts(t *testing.T) {
	t.Parallel()
	const rounds = 2500
	doc, problems := dsl.Parse(fmt.Appendf(nil, `
document: {dsl: '1.0.0', namespace: test, name: long, version: '1.0.0'}
do:
  - f: {for: {in: '${ [range(%d)] }'}, do: [{s: {set: {x: 1}}}]}
  - w: {wait: {hours: 1}}`, rounds))
	require.Empty(t, problems)
	largest, steps, open := 0, map[int64]bool{}, 0
	var last run.Update
	_, position, err := projection.Rebuild(t.Context(),
		rebuilding(t, firstTask(t), flow.Execution{WorkflowID: "r1", RunID: "x"}, fakeSource{doc: doc}),
		func(_ context.Context, part run.Update) error {
			largest = max(largest, len(part.Steps))
			for _, s := range part.Steps {
				require.False(t, steps[s.Number], "step %d once: the second would be taken for an old one", s.Number)
				steps[s.Number] = true
				if s.EndedAt.IsZero() {
					open++
				}
			}
			require.Nil(t, last.State, "the state comes last, with the position")
			last = part
			return nil
		})
	require.NoError(t, err)
	require.Len(t, steps, rounds+2)
	require.Equal(t, []any{1, run.Waiting, int64(3), int64(3)}, []any{open, last.State.Status, last.Position, position})
	require.LessOrEqual(t, largest, 2000)
}

// firstTask returns the history of a run in which the first workflow task ended with a timer.
func firstTask(t *testing.T) *historypb.History {
	t.Helper()
	input, err := codec.For(sealing(t),
		"r1").ToPayloads(flow.Input{RunID: "r1", Project: "default", Interpreter: interp.Version})
	require.NoError(t, err)
	events := []*historypb.HistoryEvent{
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
				WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
					WorkflowType: &commonpb.WorkflowType{Name: contract.RunWorkflow}, TaskQueue: &taskqueuepb.TaskQueue{Name: "q"},
					Input:               input,
					WorkflowTaskTimeout: durationpb.New(10 * time.Second),
				},
			}},
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
			Attributes: &historypb.HistoryEvent_WorkflowTaskScheduledEventAttributes{
				WorkflowTaskScheduledEventAttributes: &historypb.WorkflowTaskScheduledEventAttributes{},
			}},
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED,
			Attributes: &historypb.HistoryEvent_WorkflowTaskStartedEventAttributes{
				WorkflowTaskStartedEventAttributes: &historypb.WorkflowTaskStartedEventAttributes{ScheduledEventId: 2},
			}},
		{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
			Attributes: &historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{
				WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{
					ScheduledEventId: 2, StartedEventId: 3},
			}},
		{EventType: enumspb.EVENT_TYPE_TIMER_STARTED, Attributes: &historypb.HistoryEvent_TimerStartedEventAttributes{
			TimerStartedEventAttributes: &historypb.TimerStartedEventAttributes{
				TimerId: "5", StartToFireTimeout: durationpb.New(time.Hour), WorkflowTaskCompletedEventId: 4,
			},
		}},
	}
	for i, event := range events {
		event.EventId, event.EventTime = int64(i+1), timestamppb.New(at(0))
	}
	return &historypb.History{Events: events}
}
