package storetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/payload"
	"github.com/signalbox-dev/signalbox/internal/payload/payloadtest"
)

// runPayloads runs the suite of stores of payloads.
func runPayloads(t *testing.T, newDatabase func(t testing.TB) Opener) {
	t.Helper()
	payloadtest.Run(t, func(t *testing.T) payloadtest.Open {
		open := newDatabase(t)
		return func() payload.Store { return open(t).Payloads() }
	})
}

func testPayloadsWithoutARun(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	insert(t, s, newRun("with-row", 1))
	for i := range 45 {
		for _, id := range []string{"gone", "with-row"} {
			require.NoError(t, s.Payloads().Put(ctx, id, fmt.Sprint(i), []byte("value")))
		}
	}
	without, err := s.RunsWithoutRow(ctx, []string{"with-row", "gone", "never"})
	require.NoError(t, err)
	require.Equal(t, []string{"gone", "never"}, without)
	without, err = s.RunsWithoutRow(ctx, nil)
	require.NoError(t, err)
	require.Empty(t, without)

	for id, want := range map[string]int64{"gone": 45, "with-row": 0} {
		deleted, err := s.Payloads().DeleteRun(ctx, id)
		require.NoError(t, err)
		require.Equal(t, want, deleted, "a run that has a row keeps its values: %s", id)
	}
	_, found, err := s.Payloads().Get(ctx, "with-row", "44")
	require.NoError(t, err)
	require.True(t, found)
}
