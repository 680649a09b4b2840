package start_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
)

// An actor cannot find a hidden input of another one by repeating its request ID: the answer to the right input is that
// to a wrong one.
func TestRepeatOfAnotherActorDependsOnNoHiddenValue(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		b.publish(t, "examples/hello", "1.0.0")
		req := request()
		req.RequestID, req.Input = "once", json.RawMessage(redactedInput)
		first, _, err := b.Start(b.ctx, req)
		require.NoError(t, err)

		eve := auth.WithActor(b.ctx, auth.Actor{Kind: auth.KindToken, ID: "eve", Name: "eve"})
		wrong := req
		wrong.Input = json.RawMessage(`{"name":"Ada","password":"guess"}`)
		_, _, errWrong := b.Start(eve, wrong)
		_, _, errRight := b.Start(eve, req)
		requireError(t, errRight, apperror.Exists, apperror.RequestIDReused, first.ID)
		require.Equal(t, errWrong, errRight)

		again, created, err := b.Start(b.ctx, req)
		require.NoError(t, err, "the actor of the run repeats its request")
		require.False(t, created)
		require.Equal(t, first.ID, again.ID)
	})
}

// Inputs without hidden values can be read by every reader of the run, and are compared for all of them.
func TestRepeatOfAnotherActorReturnsARunWithoutHiddenValues(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	req := request()
	req.RequestID = "once"
	first, _, err := b.Start(b.ctx, req)
	require.NoError(t, err)
	again, created, err := b.Start(auth.WithActor(b.ctx, auth.Actor{Kind: auth.KindToken, ID: "bob", Name: "bob"}), req)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, first.ID, again.ID)
}

func TestRefusedRepeatsAreLimitedPerActor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	req := request()
	req.RequestID = "once"
	_, _, err := b.Start(b.ctx, req)
	require.NoError(t, err)

	eve := auth.WithActor(b.ctx, auth.Actor{Kind: auth.KindToken, ID: "eve", Name: "eve"})
	limited := 0
	for range 200 {
		other := req
		other.Input = json.RawMessage(`{"name":"Bob"}`)
		_, _, err := b.Start(eve, other)
		if apperror.Is(err, apperror.RateLimited) {
			limited++
		} else {
			requireError(t, err, apperror.Exists, apperror.RequestIDReused, "once")
		}
	}
	require.Greater(t, limited, 100)
	require.Less(t, len(b.audited(t)), 100)
	_, _, err = b.Start(b.ctx, req)
	require.NoError(t, err, "other actors are not limited")
}
