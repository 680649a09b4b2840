package interp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

func TestEmit(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - a: {emit: {event: {with: {type: told, data: {n: '${ .n }'}}}}}
  - b: {emit: {event: {with: {type: '${ .type }', id: own, source: 'https://e.com/{id}', time: '2026-01-01T00:00:00Z', subject: s, datacontenttype: text/plain, data: x, urgent: true, level: 3}}}}
  - c: {set: '${ {b: ., a: $context} }'}`), `{"n": 5}`)
	w.m = interp.New(w.doc, interp.Start{RunID: "run-1", Input: value(t, `{"n": 5}`), At: epoch, Source: "/here"},
		w.limits)
	outcome := w.run()
	require.Equal(t, interp.StatusCompleted, outcome.Status, "%v", outcome.Error)
	require.Len(t, w.emitted, 2)
	key := w.emitted[0].Key
	first := map[string]any{
		"specversion": "1.0", "id": key, "source": "/here", "type": "told", "time": "2026-03-01T12:00:00Z",
		"datacontenttype": "application/json", "data": map[string]any{"n": 5},
	}
	second := map[string]any{
		"specversion": "1.0", "id": "own", "source": "https://e.com/" +
			key, "type": "told", "time": "2026-01-01T00:00:00Z", "subject": "s",
		"datacontenttype": "text/plain", "data": "x", "urgent": true, "level": 3,
	}
	require.Equal(t, first, w.emitted[0].Event)
	require.Equal(t, second, w.emitted[1].Event)
	require.Equal(t, map[string]any{"b": second, "a": map[string]any{"n": 5}}, outcome.Output)
	require.NotEqual(t, key, w.emitted[1].Key)
	require.Equal(t, "emit", w.steps[1].Kind)
	require.Len(t, w.steps[1].Attempts, 1)
}

func TestEmitErrors(t *testing.T) {
	t.Parallel()
	for with, detail := range map[string]string{
		`{type: '${ .none }'}`:           "the type of an event must be a string that is not empty, got null",
		`{type: '${ .n }'}`:              "the type of an event must be a string that is not empty, got a number",
		`{type: t, subject: '${ "" }'}`:  "the subject of an event",
		`{type: t, time: '${ "soon" }'}`: `the time of an event must be a date and time such as 2026-01-31T08:00:00Z, got "soon"`,
		`{type: t, level: '${ [1] }'}`: "the level of an event must be a string, a number or a boolean, got " +
			"an array",
		`{type: t, data: '${ .n.x }'}`:              "expected an object",
		`{type: t, source: 'https://e.com/{deep}'}`: "an object",
	} {
		w := newDriver(t, document(`do: [{e: {emit: {event: {with: `+with+`}}}}]`), `{"n": 5, "deep": {}}`)
		runError := w.fails()
		require.Equal(t, dsl.ErrorTypeExpression, runError.Type)
		require.Contains(t, runError.Detail, detail, with)
		require.Empty(t, w.emitted)
	}
}

// An event of unknown acceptance is emitted again as the same event, one that was refused as another.
func TestEmitKeys(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - t:
      try: [{e: {emit: {event: {with: {type: t}}}}}]
      catch: {retry: {delay: PT0S, limit: {attempt: {count: 5}}}}`), `{}`)
	var keys []string
	for i, result := range []interp.Result{
		{Error: &dsl.Error{Type: dsl.ErrorTypeCommunication, Status: 504}, Unanswered: true},
		{Error: &dsl.Error{Type: dsl.ErrorTypeValidation, Status: 400}},
		{},
	} {
		emit, ok := w.m.Advance(epoch)[0].(interp.Emit)
		require.True(t, ok)
		require.Equal(t, i+1, emit.Attempt)
		require.Equal(t, emit.Key, emit.Event["id"])
		keys = append(keys, emit.Key)
		w.m.Complete(emit.ID, result, epoch)
	}
	require.Equal(t, keys[0], keys[1])
	require.NotEqual(t, keys[1], keys[2])
	w.m.Advance(epoch)
	outcome, _ := w.m.Done()
	require.Equal(t, interp.StatusCompleted, outcome.Status)
	require.Equal(t, "/workflows/test/test", outcome.Output.(map[string]any)["source"])
}
