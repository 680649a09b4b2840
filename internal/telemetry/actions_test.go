package telemetry_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestActions(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	require.NoError(t, tel.ObserveActions(func() map[string]int64 { return map[string]int64{"start": 3, "timer": 0} }))
	require.Equal(t, []string{
		`signalbox_temporal_actions_total{kind="start"} 3`,
		`signalbox_temporal_actions_total{kind="timer"} 0`,
	}, lines(scrape(t, tel), "signalbox_temporal_actions"))
}
