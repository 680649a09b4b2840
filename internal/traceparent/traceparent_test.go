package traceparent_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/signalbox-dev/signalbox/internal/traceparent"
)

func TestFollow(t *testing.T) {
	t.Parallel()
	const first, second = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319d-b7ad6b7169203332-00"
	ctx := traceparent.Follow(t.Context(), second)
	require.Equal(t, second, traceparent.Of(ctx))
	require.True(t, trace.SpanContextFromContext(ctx).IsRemote())
	require.Empty(t, traceparent.Links(ctx))

	ctx = traceparent.Follow(ctx, first, "", second)
	require.Equal(t, second, traceparent.Of(ctx))
	links := traceparent.Links(ctx)
	require.Len(t, links, 1)
	require.Equal(t, "b7ad6b7169203331", links[0].SpanContext.SpanID().String())
	require.Empty(t, traceparent.Links(traceparent.Follow(ctx, first)), "those of other work")
}

func TestWithoutSpan(t *testing.T) {
	t.Parallel()
	require.Empty(t, traceparent.Of(t.Context()))
	for _, text := range []string{"", "x", "00-00000000000000000000000000000000-b7ad6b7169203331-01"} {
		require.False(t, traceparent.Read(t.Context(), text).IsValid(), text)
		require.Equal(t, t.Context(), traceparent.Follow(t.Context(), text), text)
	}
}
