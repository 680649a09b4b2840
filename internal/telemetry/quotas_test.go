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
	var failure error
	require.NoError(t, tel.ObserveQuotas(func(context.Context) ([]quota.Held, error) {
		return []quota.Held{{Project: "default"}, {Project: "shop", Queued: 7, Waiting: 2}}, failure
	}))
	require.Equal(t, []string{
		`signalbox_quota_queued_runs{project="default"} 0`,
		`signalbox_quota_queued_runs{project="shop"} 7`,
		`signalbox_quota_waiting_runs{project="default"} 0`,
		`signalbox_quota_waiting_runs{project="shop"} 2`,
	}, lines(scrape(t, tel), "signalbox_quota"))
	failure = errors.New("the store is away")
	require.Empty(t, lines(scrape(t, tel), "signalbox_quota"))
}
