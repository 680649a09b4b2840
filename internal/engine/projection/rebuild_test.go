package projection_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/seal"
)

// recordings are the histories that every release keeps, see test/replay.
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

// shelf has one document, under whatever hash.
type shelf struct {
	doc *dsl.Document
	err error
}

func (s shelf) Document(context.Context, string) (*dsl.Document, error) { return s.doc, s.err }

func scenarioDocument(t *testing.T, scenario string) shelf {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(recordings, "scenario", "documents", scenario+".yaml"))
	require.NoError(t, err)
	doc, problems := dsl.Parse(source)
	require.Empty(t, problems)
	return shelf{doc: doc}
}

func rebuild(t *testing.T, history *historypb.History, e flow.Execution, docs flow.Documents) (run.Update, error) {
	t.Helper()
	return projection.Rebuild(history, e, contract.RunWorkflow, seal.Random("test"), logger.ForTemporal(slog.New(slog.DiscardHandler)),
		func(sink flow.Sink) any { return flow.New(t.Context(), docs, sink, flow.DefaultLimits()).Run })
}

func TestRebuildMakesTheRecordsAgain(t *testing.T) {
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
	require.WithinRange(t, u.State.EndedAt, events[4].GetEventTime().AsTime(), events[len(events)-1].GetEventTime().AsTime())
	seen := map[int64]bool{}
	var open []string
	for _, s := range u.Steps {
		require.False(t, seen[s.Number], "each step once, as it is now")
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
	// The first workflow task, its commands and no further.
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

func TestRebuildSaysWhatItCannotRead(t *testing.T) {
	t.Parallel()
	history, e := recorded(t, "timers")
	_, err := rebuild(t, history, e, scenarioDocument(t, "canceled"))
	require.ErrorContains(t, err, fmt.Sprintf("interpreting the history of run %q (execution %q) again", e.WorkflowID, e.RunID))

	away := errors.New("the store is away")
	_, err = rebuild(t, history, e, shelf{err: away})
	require.ErrorContains(t, err, "the store is away")

	history, e = recorded(t, "pure")
	history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().WorkflowType.Name = "another.type"
	_, err = rebuild(t, history, e, scenarioDocument(t, "pure"))
	require.ErrorContains(t, err, "another.type")
}
