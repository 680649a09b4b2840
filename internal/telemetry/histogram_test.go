package telemetry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/signalbox-dev/signalbox/internal/telemetry"
)

func TestHistogramsExistAtZero(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	tel.Runs.BeginSteps(t.Context(), "completed", "failed")
	tel.Runs.BeginSteps(t.Context(), "completed", "failed")
	tel.Dispatch().WithTags(map[string]string{"project": "shop"}).Timer("dispatcher_takeover_seconds")
	page := scrape(t, tel)
	for _, sample := range []string{
		`signalbox_run_start_seconds_count`, `signalbox_run_start_seconds_sum`,
		`signalbox_run_start_seconds_bucket{le="0.001"}`, `signalbox_run_start_seconds_bucket{le="+Inf"}`,
		`signalbox_run_queue_wait_seconds_count`, `signalbox_projection_lag_seconds_count`,
		`signalbox_timer_lateness_seconds_count`, `dispatcher_takeover_seconds_count`,
		`signalbox_steps_total{status="completed"}`, `signalbox_steps_total{status="failed"}`,
	} {
		require.Zero(t, value(t, page, sample), sample)
	}
	empty := len(lines(page, "signalbox_run_start", "dispatcher_takeover_seconds"))

	tel.Runs.Started(t.Context(), time.Second)
	tel.Dispatch().WithTags(map[string]string{"project": "shop"}).Timer("dispatcher_takeover_seconds").Record(time.Second)
	page = scrape(t, tel)
	require.InDelta(t, 1, value(t, page, `signalbox_run_start_seconds_count`), 0)
	require.InDelta(t, 1, value(t, page, `dispatcher_takeover_seconds_count`), 0)
	require.Len(t, lines(page, "signalbox_run_start", "dispatcher_takeover_seconds"), empty, "the same series")
}

// A series that begins while it is measured and scraped is exported once.
func TestHistogramSeriesAreUnique(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	var work errgroup.Group
	for range 20 {
		work.Go(func() error {
			tel.Dispatch().Timer("dispatcher_takeover_seconds").Record(time.Second)
			if n := len(lines(scrape(t, tel), `dispatcher_takeover_seconds_count`)); n > 1 {
				return errors.New("duplicate series")
			}
			return nil
		})
	}
	require.NoError(t, work.Wait())
}

func TestHealthIsOneSeriesPerState(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	states := telemetry.HealthStates{
		Dependencies: []string{"up", "impaired", "down"}, Roles: []string{"ready", "unavailable"}}
	require.NoError(t, tel.ObserveHealth(states, func(context.Context) telemetry.Health {
		return telemetry.Health{Dependencies: map[string]string{"store": "impaired"},
			Roles: map[string]string{"api": "ready"}}
	}))
	require.Equal(t, []string{
		`signalbox_dependency_state{dependency="store",state="down"} 0`,
		`signalbox_dependency_state{dependency="store",state="impaired"} 1`,
		`signalbox_dependency_state{dependency="store",state="up"} 0`,
		`signalbox_role_status{role="api",status="ready"} 1`,
		`signalbox_role_status{role="api",status="unavailable"} 0`,
	}, lines(scrape(t, tel), "signalbox_dependency", "signalbox_role"))
}

func TestStoreMetricsFollowOpenTelemetry(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	store, err := tel.Store("sqlite", "read", "write")
	require.NoError(t, err)
	store.Called(t.Context(), "read", "", time.Millisecond)
	store.Called(t.Context(), "read", "unavailable", time.Millisecond)
	labels := func(failure, operation string) string {
		return `db_client_operation_duration_seconds_count{db_operation_name="` + operation +
			`",db_system_name="sqlite",error_type="` + failure + `"} `
	}
	require.Equal(t, []string{labels("", "read") + "1", labels("unavailable", "read") + "1", labels("", "write") + "0"},
		lines(scrape(t, tel), "db_client_operation_duration_seconds_count"))
}
