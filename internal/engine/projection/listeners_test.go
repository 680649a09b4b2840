package projection_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// requested returns the listeners that a history has requested and not removed. A commit that the last accepted
// workflow task does not know may be done: the run continues with it after the database was restored.
func requested(t *testing.T, history *historypb.History) (list []flow.ListenRequest) {
	t.Helper()
	removed := map[string]bool{}
	for _, event := range history.GetEvents() {
		scheduled := event.GetActivityTaskScheduledEventAttributes()
		switch scheduled.GetActivityType().GetName() {
		case flow.UnlistenActivity:
			var r flow.UnlistenRequest
			require.NoError(t, codec.Converter(sealing(t)).FromPayloads(scheduled.GetInput(), &r))
			removed[r.Listener] = true
		case flow.ListenActivity:
			var r flow.ListenRequest
			require.NoError(t, codec.Converter(sealing(t)).FromPayloads(scheduled.GetInput(), &r))
			r.Taken, r.After = nil, 0
			list = append(list, r)
		}
	}
	var open []flow.ListenRequest
	for _, r := range list {
		if !removed[r.Listener] {
			open = append(open, r)
		}
	}
	return open
}

// A rebuild up to any workflow task reads the listeners that the run has then, with what they were committed with.
func TestRebuildReadsListeners(t *testing.T) {
	t.Parallel()
	whole, e := recorded(t, "events")
	most := 0
	for i, event := range whole.GetEvents() {
		if event.GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED || i == 1 {
			continue
		}
		history := &historypb.History{Events: whole.GetEvents()[:i]}
		want := requested(t, history)
		most = max(most, len(want))
		var got []flow.ListenRequest
		written := false
		b := rebuilding(t, history, e, scenarioDocument(t, "events"))
		b.Listen = func(_ context.Context, listeners []flow.ListenRequest) error {
			require.False(t, written, "an interrupted rebuild must be repeated")
			for _, l := range listeners {
				l.Taken, l.After = nil, 0 // dsl/interp tests them
				got = append(got, l)
			}
			return nil
		}
		_, _, err := projection.Rebuild(t.Context(), b, func(_ context.Context, part run.Update) error {
			written = part.Position > 0
			return nil
		})
		require.NoError(t, err)
		require.ElementsMatch(t, want, got, "before event %d", event.GetEventId())
	}
	require.Positive(t, most)
}
