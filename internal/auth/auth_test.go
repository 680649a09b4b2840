package auth_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/auth"
)

func TestActorTravelsInTheContext(t *testing.T) {
	t.Parallel()
	_, ok := auth.ActorFrom(t.Context())
	require.False(t, ok, "nobody acts in a bare context")

	ada := auth.Actor{Kind: auth.KindLocal, Name: "ada"}
	ctx := auth.WithActor(t.Context(), ada)
	derived, cancel := context.WithCancel(ctx)
	cancel()
	for _, c := range []context.Context{ctx, derived, context.WithoutCancel(derived)} {
		got, ok := auth.ActorFrom(c)
		require.True(t, ok)
		require.Equal(t, ada, got)
	}

	got, _ := auth.ActorFrom(auth.WithActor(ctx, auth.System()))
	require.Equal(t, auth.Actor{Kind: "system", Name: "signalbox"}, got, "the innermost one acts")
	got, _ = auth.ActorFrom(ctx)
	require.Equal(t, ada, got)
}
