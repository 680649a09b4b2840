package start_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// TestStartWithAGivenID: a caller that derives the run's ID from its trigger may repeat the request any number of
// times.
func TestStartWithAGivenID(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	req := request()
	req.RunID, req.RequestID, req.Trigger, req.Version = "7b0dd6bb-0000-8000-8000-000000000001",
		"7b0dd6bb-0000-8000-8000-000000000001", run.TriggerEvent, "1.0.0"
	first, created, err := b.Start(b.ctx, req)
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, []string{req.RunID, req.RunID, run.TriggerEvent}, []string{first.ID, first.RequestID, first.Trigger})

	again, created, err := b.Start(b.ctx, req)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, first.ID, again.ID)

	b.publish(t, "examples/hello", "1.1.0")
	_, err = b.workflows.SetPaused(b.ctx, here, "hello", true, "")
	require.NoError(t, err)
	again, created, err = b.Start(b.ctx, req)
	require.NoError(t, err, "the response is independent of the workflow's state")
	require.False(t, created)
	require.Equal(t, first.ID, again.ID)
	require.Len(t, b.rows(t), 1)
}

func TestStartMakesTheInputForTheDocument(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	req := request()
	req.Input = nil
	req.InputOf = func(doc *dsl.Document) (json.RawMessage, error) {
		return json.RawMessage(`{"name":"` + doc.Name + `"}`), nil
	}
	r, _, err := b.Start(b.ctx, req)
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"hello"}`, string(r.Input))

	req.InputOf = func(*dsl.Document) (json.RawMessage, error) { return json.RawMessage(`{"name":7}`), nil }
	_, _, err = b.Start(b.ctx, req)
	requireError(t, err, apperror.Invalid, apperror.InvalidInput, "/name")
	req.InputHidden = true
	for _, input := range []string{`{"name":7654321}`, `{"n":1e7654321}`} {
		req.InputOf = func(*dsl.Document) (json.RawMessage, error) { return json.RawMessage(input), nil }
		_, _, err = b.Start(b.ctx, req)
		f, _ := apperror.From(err)
		require.Equal(t, apperror.InvalidInput, f.Reason)
		require.NotContains(t, f.Message+f.Fields[0].Message, "7654321", "no part of a hidden input is quoted")
	}
	req.InputOf = func(*dsl.Document) (json.RawMessage, error) { return nil, errors.New("the event is gone") }
	_, _, err = b.Start(b.ctx, req)
	require.EqualError(t, err, "the event is gone")
	require.Len(t, b.rows(t), 1)
}
