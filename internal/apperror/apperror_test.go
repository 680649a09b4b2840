package apperror_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

func TestErrorFields(t *testing.T) {
	t.Parallel()
	cause := errors.New("connection refused")
	f := apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal at %s does not answer", "host:7233").
		WithField("input", "is %d bytes too long", 3).WithField("version", "is unknown").
		WithFact("kind", "hung").WithFact("state", "down").
		WithRetry(5 * time.Second).WithCause(cause)
	require.Equal(t, &apperror.Error{
		Class: apperror.Unavailable, Reason: "ENGINE_UNAVAILABLE", Message: "temporal at host:7233 does not answer",
		Fields: []apperror.Field{
			{Path: "input", Message: "is 3 bytes too long"}, {Path: "version", Message: "is unknown"}},
		Facts:      map[string]string{"kind": "hung", "state": "down"},
		RetryAfter: 5 * time.Second, Cause: cause,
	}, f)
	require.Equal(t, "temporal at host:7233 does not answer", f.Error(), "the cause is for the log")
	require.ErrorIs(t, f, cause)
}

func TestFromFindsErrorInChain(t *testing.T) {
	t.Parallel()
	f := apperror.New(apperror.NotFound, apperror.RunNotFound, "no such run")
	tests := []struct {
		name  string
		err   error
		found bool
	}{
		{"itself", f, true},
		{"wrapped", fmt.Errorf("get: %w", fmt.Errorf("read: %w", f)), true},
		{"joined", errors.Join(errors.New("other"), f), true},
		{"another error", errors.New("no such run"), false},
		{"nothing", nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := apperror.From(tt.err)
			require.Equal(t, tt.found, ok)
			require.Equal(t, tt.found, apperror.Is(tt.err, apperror.RunNotFound))
			require.False(t, apperror.Is(tt.err, apperror.WorkflowNotFound))
			if tt.found {
				require.Same(t, f, got)
			}
		})
	}
}

func TestTemporary(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err  error
		want bool
	}{
		"nothing":     {nil, false},
		"no Error":    {errors.New("connection refused"), false},
		"unavailable": {apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "away"), true},
		"wrapped": {fmt.Errorf("start: %w",
			apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "away")), true},
		"over its limits": {apperror.New(apperror.Exhausted, apperror.EngineRefused, "limits").WithRetry(time.Second),
			true},
		"too large":           {apperror.New(apperror.Exhausted, apperror.InputTooLarge, "large"), false},
		"another release":     {apperror.New(apperror.Refused, apperror.ContractMismatch, "mismatch"), true},
		"refused by Temporal": {apperror.New(apperror.Refused, apperror.EngineRefused, "refused"), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, apperror.Temporary(tt.err))
		})
	}
}

func TestOuterErrorWins(t *testing.T) {
	t.Parallel()
	inner := apperror.New(apperror.Unavailable, apperror.StoreUnavailable, "the store is unavailable")
	outer := apperror.New(apperror.Refused, apperror.EngineRefused, "refused").WithCause(inner)
	got, ok := apperror.From(fmt.Errorf("start: %w", outer))
	require.True(t, ok)
	require.Same(t, outer, got)
	require.False(t, apperror.Is(outer, apperror.StoreUnavailable))
}
