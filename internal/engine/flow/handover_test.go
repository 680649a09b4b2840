package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

const oneGet = `do: [{g: {call: http, with: {method: get, endpoint: 'http://x'}}}]`

// handsOver leaves the requests of local activities in flight.
func handsOver(_ context.Context, r flow.HTTPRequest) (flow.HTTPResponse, error) {
	if r.Local {
		return flow.HTTPResponse{Continued: &flow.Continued{Queue: "calls-1", ID: "x1"}}, nil
	}
	return answer("again")
}

func TestCallThatIsHandedOverIsSentOnce(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, oneGet, ``)
	b.origin = handsOver
	sent := flow.Attempt{StartedAt: time.Date(2026, 3, 1, 12, 0, 1, 0, time.UTC),
		EndedAt: time.Date(2026, 3, 1, 12, 0, 5, 0, time.UTC), Status: 200}
	b.attached = func(context.Context, flow.AttachRequest) (flow.HTTPResponse, error) {
		return flow.HTTPResponse{StatusCode: 200, Content: json.RawMessage(`"slow"`), Attempts: []flow.Attempt{sent}}, nil
	}
	b.completes(`"slow"`)
	require.Len(t, b.requests, 1)
	require.Equal(t, []flow.AttachRequest{{ID: "x1"}}, b.attaches)
	require.Equal(t, []interp.AttemptRecord{
		{Number: 1, StartedAt: sent.StartedAt, EndedAt: &sent.EndedAt, Outcome: interp.OutcomeAnswered, HTTPStatus: 200,
			Method: "GET", Host: "x"},
	}, b.recorder.steps[1].Attempts)
}

func TestCallOfALostProcessIsRepeatedAndRecorded(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"no heartbeat": temporal.NewHeartbeatTimeoutError(),
		"not there":    flow.Interrupted("the request is not in flight in this process"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestRun(t, oneGet, ``)
			b.origin = handsOver
			b.attached = func(context.Context, flow.AttachRequest) (flow.HTTPResponse, error) { return flow.HTTPResponse{}, err }
			b.completes(`"again"`)
			require.Len(t, b.requests, 2)
			require.False(t, b.requests[1].Local)
			attempts := b.recorder.steps[1].Attempts
			require.Equal(t, interp.OutcomeUnknown, attempts[0].Outcome)
		})
	}
}

func TestPostponedCallIsAnActivity(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, oneGet, ``)
	b.origin = func(_ context.Context, r flow.HTTPRequest) (flow.HTTPResponse, error) {
		if r.Local {
			return flow.HTTPResponse{Postponed: true}, nil
		}
		return answer("done")
	}
	b.completes(`"done"`)
	require.Len(t, b.requests, 2)
	require.Len(t, b.recorder.steps[1].Attempts, 1)
}

// away returns the failure of an activity because the database of large payloads is unavailable.
func away(way string) error { return errors.New(way + " payload aa of run \"r\": the store is away") }

// TestCallWithAnUnreadableRequestIsDelayed fails more often than a call may be sent: nothing was sent.
func TestCallWithAnUnreadableRequestIsDelayed(t *testing.T) {
	t.Parallel()
	for _, metadata := range []string{"", ", metadata: {signalbox.repeat: never}"} {
		b := newTestRun(t, `do: [{g: {call: http, with: {method: post, endpoint: 'http://x'}`+metadata+`}}]`, ``)
		b.origin = func(context.Context, flow.HTTPRequest) (flow.HTTPResponse, error) {
			if len(b.requests) <= 10 {
				return flow.HTTPResponse{}, away(contract.PayloadsUnread)
			}
			return answer("done")
		}
		b.completes(`"done"`)
		require.Len(t, b.requests, 11)
		require.Len(t, b.recorder.steps[1].Attempts, 1)
	}
}

// TestCallWhoseResponseCannotBeStored repeats a call as often as after the loss of its worker, and records each
// request.
func TestCallWhoseResponseCannotBeStored(t *testing.T) {
	t.Parallel()
	for _, lost := range []int{1, 2, 3} {
		b := newTestRun(t, `do: [{g: {call: http, with: {method: post, endpoint: 'http://x'}}}]`, ``)
		b.origin = func(context.Context, flow.HTTPRequest) (flow.HTTPResponse, error) {
			if len(b.requests) <= lost {
				return flow.HTTPResponse{}, away(contract.PayloadsUnkept)
			}
			return answer("done")
		}
		_, err := b.run()
		attempts := b.recorder.steps[1].Attempts
		require.Len(t, attempts, min(lost+1, 3))
		for i, a := range attempts[:lost] {
			require.Equal(t, interp.OutcomeUnknown, a.Outcome, i)
		}
		require.Len(t, b.requests, len(attempts))
		if lost == 3 {
			_, runError := flow.Failed(err)
			require.Equal(t, []any{504, "No answer"}, []any{runError.Status, runError.Title})
			require.Contains(t, runError.Detail, "could not be kept")
			continue
		}
		require.NoError(t, err)
	}
	once := newTestRun(t, `do: [{g: {call: http, with: {method: post, endpoint: 'http://x'}, metadata: {signalbox.repeat: never}}}]`, ``)
	once.origin = func(context.Context, flow.HTTPRequest) (flow.HTTPResponse, error) {
		return flow.HTTPResponse{}, away(contract.PayloadsUnkept)
	}
	_, err := once.run()
	_, runError := flow.Failed(err)
	require.Equal(t, []any{504, "Outcome unknown"}, []any{runError.Status, runError.Title})
	require.Len(t, once.requests, 1)
	require.Equal(t, interp.OutcomeUnknown, once.recorder.steps[1].Attempts[0].Outcome)
}

// TestCallOfARepeatedWorkflowTaskCountsItsRequests has a request that an earlier try of the workflow task may have
// sent, and loses one more.
func TestCallOfARepeatedWorkflowTaskCountsItsRequests(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, oneGet, ``)
	before := flow.Attempt{EndedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Unknown: true}
	b.origin = func(_ context.Context, r flow.HTTPRequest) (flow.HTTPResponse, error) {
		switch {
		case r.Local:
			return flow.HTTPResponse{Postponed: true, Attempts: []flow.Attempt{before}}, nil
		case len(b.requests) == 2:
			return flow.HTTPResponse{}, temporal.NewHeartbeatTimeoutError()
		default:
			return answer("done")
		}
	}
	b.completes(`"done"`)
	require.Len(t, b.requests, 3)
	attempts := b.recorder.steps[1].Attempts
	require.Len(t, attempts, 3)
	require.Equal(t, []any{interp.OutcomeUnknown, interp.OutcomeUnknown}, []any{attempts[0].Outcome, attempts[1].Outcome})

	b = newTestRun(t, oneGet, ``)
	b.origin = func(_ context.Context, r flow.HTTPRequest) (flow.HTTPResponse, error) {
		if r.Local {
			return flow.HTTPResponse{Postponed: true, Attempts: []flow.Attempt{before}}, nil
		}
		return flow.HTTPResponse{}, temporal.NewHeartbeatTimeoutError()
	}
	_, err := b.run()
	require.Error(t, err)
	require.Len(t, b.requests, 3, "the local activity, which sent nothing, and two that may follow the first")
	require.Len(t, b.recorder.steps[1].Attempts, 3)
}

func TestCallWithoutRepetitionIsMadeOnce(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"get", "post"} {
		b := newTestRun(t, `do: [{g: {call: http, with: {method: `+method+
			`, endpoint: 'http://x'}, metadata: {signalbox.repeat: never}}}]`, ``)
		b.origin = func(context.Context, flow.HTTPRequest) (flow.HTTPResponse, error) {
			return flow.HTTPResponse{}, temporal.NewHeartbeatTimeoutError()
		}
		_, err := b.run()
		_, runError := flow.Failed(err)
		require.Equal(t, []any{504, "Outcome unknown"}, []any{runError.Status, runError.Title})
		require.Contains(t, runError.Detail, "signalbox.repeat: never")
		require.Len(t, b.requests, 1)
		require.Equal(t, []bool{false, true}, []bool{b.requests[0].Local, b.requests[0].Once})
		require.Len(t, b.recorder.steps[1].Attempts, 1)
		require.Equal(t, interp.OutcomeUnknown, b.recorder.steps[1].Attempts[0].Outcome)
	}
}

// TestRoomForResults makes every call of a wide fork a local activity. Each gets a share of the room for results that
// is small enough for all.
func TestRoomForResults(t *testing.T) {
	t.Parallel()
	const calls = 200
	var branches strings.Builder
	for i := range calls {
		fmt.Fprintf(&branches, "  - c%d: {call: http, with: {method: get, endpoint: 'http://x'}}\n", i)
	}
	b := newTestRun(t, "do:\n- f:\n   fork:\n    branches:\n"+strings.ReplaceAll(branches.String(), "  - c", "    - c"),
		``)
	b.origin = func(context.Context, flow.HTTPRequest) (flow.HTTPResponse, error) { return answer(1) }
	_, err := b.run()
	require.NoError(t, err)
	require.Len(t, b.requests, calls)
	var room int64
	for _, r := range b.requests {
		require.True(t, r.Local)
		room += r.Inline
	}
	require.LessOrEqual(t, room, b.limits.LocalRoom)
}
