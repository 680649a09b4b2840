package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/config"
)

func TestRetentionIsValidated(t *testing.T) {
	t.Parallel()
	require.Empty(t, config.Default().Retention.Validate())
	r := config.Retention{
		Interval: time.Millisecond, Runs: config.RetentionLimits{MaxAge: time.Minute},
		Events: config.RetentionLimits{MaxAge: -time.Hour},
		Audit:  config.RetentionLimits{MaxCount: -1}, Batches: config.RetentionLimits{MaxAge: 720 * time.Hour, MaxCount: 10},
	}
	violations := r.Validate()
	require.Len(t, violations, 4, "all at once: %v", violations)
	require.ErrorContains(t, violations, "interval")
	require.ErrorContains(t, violations, "runs.max_age")
	require.ErrorContains(t, violations, "1m0s is too short; give at least 1h0m0s")
	require.ErrorContains(t, violations, "events.max_age")
	require.ErrorContains(t, violations, "audit.max_count")
}
