package workflow

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
)

const compiledSource = "document: {dsl: 1.0.3, namespace: a, name: b, version: 1.0.0}\ndo: [{s: {set: {x: 1}}}]\n"

// A caller has one document compiled at a time, and a few that wait; other callers do not wait for it.
func TestCallersCompileOneDocumentAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCompiler(dsl.DefaultLimits())
		busy := auth.WithActor(t.Context(), auth.Actor{ID: "busy"})
		release, err := c.callers.Acquire(busy, "busy")
		require.NoError(t, err)

		done := make(chan error, maxWaiting)
		for range maxWaiting {
			go func() {
				_, err := c.compile(busy, compiledSource, dsl.NewResources())
				done <- err
			}()
		}
		synctest.Wait()
		_, err = c.compile(busy, compiledSource, dsl.NewResources())
		f, ok := apperror.From(err)
		require.True(t, ok, "%v", err)
		require.Equal(t, apperror.Exhausted, f.Class)
		require.Positive(t, f.RetryAfter)

		other, err := c.compile(auth.WithActor(t.Context(), auth.Actor{ID: "other"}), compiledSource, dsl.NewResources())
		require.NoError(t, err)
		require.NotNil(t, other.document)
		release()
		for range maxWaiting {
			require.NoError(t, <-done)
		}
		again, err := c.compile(busy, compiledSource, dsl.NewResources())
		require.NoError(t, err)
		require.Same(t, other.document, again.document, "a document is compiled once")
	})
}

// A caller that is gone neither waits nor compiles.
func TestCompilationEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	c := newCompiler(dsl.DefaultLimits())
	for range maxCompiling {
		release, err := c.all.Acquire(t.Context(), "")
		require.NoError(t, err)
		defer release()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.compile(ctx, compiledSource, dsl.NewResources())
	require.ErrorIs(t, err, context.Canceled)

	c = newCompiler(dsl.DefaultLimits())
	_, err = c.compile(ctx, compiledSource, dsl.NewResources())
	require.ErrorIs(t, err, context.Canceled, "a free slot does not help")
	require.Zero(t, c.cached.Len())
}
