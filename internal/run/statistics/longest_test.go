package statistics_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/statistics"
)

func TestLengthIsFromTheStartOfARun(t *testing.T) {
	t.Parallel()
	b := &bench{
		lengths: []statistics.Length{
			{ID: "not started"},
			{ID: "half a minute", StartedAt: now.Add(-time.Minute), EndedAt: now.Add(-30 * time.Second)},
			{ID: "open for 40 s", StartedAt: now.Add(-40 * time.Second)},
			{ID: "started ahead of this clock", StartedAt: now.Add(time.Second)},
		},
		runs: []run.Run{{ID: "open for 40 s"}},
	}
	_, next, err := b.service().Longest(t.Context(), run.Filter{Project: "default"}, nil, 1)
	require.NoError(t, err)
	require.Equal(t, []string{"open for 40 s"}, b.filter.IDs)
	require.Equal(t, 40*time.Second, next.Length)
	_, next, err = b.service().Longest(t.Context(), run.Filter{Project: "default"}, next, 3)
	require.NoError(t, err)
	require.Nil(t, next)
	require.Equal(t, []string{"half a minute", "started ahead of this clock", "not started"}, b.filter.IDs)
}
