package database_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/database"
	"github.com/signalbox-dev/signalbox/test/platform"
)

func TestRedisRestartsWithoutData(t *testing.T) {
	t.Parallel()
	r := database.StartRedis(t, t.Skip)
	put := func() { require.NoError(t, r.Client.Set(t.Context(), "key", "value", 0).Err()) }
	gone := func() { require.ErrorIs(t, r.Client.Get(t.Context(), "key").Err(), redis.Nil) }
	put()
	r.Flush(t)
	gone()
	put()
	r.Kill()
	require.Error(t, r.Client.Ping(t.Context()).Err())
	r.Restart(t)
	gone()
}

func TestProxyDelaysAndCutsConnections(t *testing.T) {
	t.Parallel()
	r := database.StartRedis(t, t.Skip)
	proxy := platform.NewProxy(t, r.Address)
	c := redis.NewClient(&redis.Options{Addr: proxy.Address, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	require.NoError(t, c.Ping(t.Context()).Err())
	proxy.Slow(50 * time.Millisecond)
	began := time.Now()
	require.NoError(t, c.Ping(t.Context()).Err())
	require.GreaterOrEqual(t, time.Since(began), 100*time.Millisecond)
	proxy.Cut()
	require.Error(t, c.Ping(t.Context()).Err())
	proxy.Mend()
	require.NoError(t, c.Ping(t.Context()).Err())
}
