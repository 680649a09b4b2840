package telemetry_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/quota"
)

func TestQuotaGauges(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	failure := errors.New("the store is not open yet")
	require.NoError(t, tel.ObserveQuotas(func(context.Context) ([]quota.Held, error) {
		return []quota.Held{{Project: "default"}, {Project: "shop", Queued: 7, Waiting: 2}}, failure
	}))
	require.Empty(t, lines(scrape(t, tel), "signalbox_reading"), "nothing was read")
	failure = nil
	held := []string{
		`signalbox_quota_queued_runs{project="default"} 0`,
		`signalbox_quota_queued_runs{project="shop"} 7`,
		`signalbox_quota_waiting_runs{project="default"} 0`,
		`signalbox_quota_waiting_runs{project="shop"} 2`,
	}
	require.Equal(t, held, lines(scrape(t, tel), "signalbox_quota"))
	failure = errors.New("the store is away")
	page := scrape(t, tel)
	require.Equal(t, held, lines(page, "signalbox_quota"), "the last values stay")
	require.Len(t, lines(page, "signalbox_reading_age_seconds"), 1, "with their age")
}
