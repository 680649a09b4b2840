package storetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// testFacts reads the facts of the database, also while it cannot be read.
func testFacts(t *testing.T, open Opener) {
	s := open(t)
	facts := s.Facts(t.Context())
	require.NoError(t, facts.Err)
	require.Contains(t, []string{"sqlite", "postgres"}, facts.Driver)
	require.NotEmpty(t, facts.Version)
	require.NotEmpty(t, facts.Location)
	require.NotContains(t, facts.Location, `"`)
	require.Positive(t, facts.Required)
	require.Equal(t, facts.Required, facts.Schema)
	require.Positive(t, facts.Bytes)
	require.Positive(t, facts.Latency)
	require.InDelta(t, 0, facts.ClockSkew.Seconds(), 1, "both are on this machine")
	for _, pool := range facts.Pools {
		require.Positive(t, pool.Limit, pool.Name)
	}

	ended, end := context.WithCancel(t.Context())
	end()
	facts = s.Facts(ended)
	require.Error(t, facts.Err)
	require.NotEmpty(t, facts.Pools, "they are known without the database")
	require.Equal(t, []int64{0, 0, 0}, []int64{facts.Schema, facts.Bytes, int64(facts.Latency)})
}
