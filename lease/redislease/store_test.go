package redislease_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/lease"
	"github.com/signalbox-dev/signalbox/lease/leasetest"
	"github.com/signalbox-dev/signalbox/lease/redislease"
)

func TestRedisKeepsThePromises(t *testing.T) {
	t.Parallel()
	url := shared(t)
	leasetest.Run(t, func(t *testing.T) lease.Store {
		t.Helper()
		return open(t, redislease.Options{URL: url, Prefix: prefix()})
	})
}

// open makes a store that is closed with the test.
func open(t *testing.T, o redislease.Options) *redislease.Store {
	t.Helper()
	store, err := redislease.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// onClient makes a store on a client of the test's.
func onClient(t *testing.T) (*redislease.Store, *redis.Client, string) {
	t.Helper()
	o, err := redis.ParseURL(shared(t))
	require.NoError(t, err)
	o.ContextTimeoutEnabled = true
	client := redis.NewClient(o)
	t.Cleanup(func() { require.NoError(t, client.Close(), "it is the test's") })
	name := prefix()
	store, err := redislease.New(client, name)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store, client, name
}

// TestTheLayout is what operators and other programs may rely on.
func TestTheLayout(t *testing.T) {
	t.Parallel()
	store, client, name := onClient(t)
	terms := lease.Terms{TTL: 15 * time.Second, Retention: 10 * time.Minute}
	got, _, err := store.Acquire(t.Context(), key, "server-1", []byte(`{"epoch":3}`), terms)
	require.NoError(t, err)
	got, err = store.Renew(t.Context(), key, got.Token, nil, terms)
	require.NoError(t, err)
	stored, err := client.HGetAll(t.Context(), name+key).Result()
	require.NoError(t, err)
	micro := func(at time.Time) string { return fmt.Sprint(at.UnixMicro()) }
	require.Equal(t, map[string]string{
		"holder": "server-1", "token": got.Token, "value": `{"epoch":3}`, "revision": fmt.Sprint(got.Revision), "resigned": "0",
		"acquired": micro(got.AcquiredAt), "renewed": micro(got.RenewedAt), "expires": micro(got.ExpiresAt), "retention": "600000",
	}, stored)
	require.Equal(t, got.RenewedAt.UnixMicro(), got.Revision)
	ttl, err := client.PTTL(t.Context(), name+key).Result()
	require.NoError(t, err)
	require.InDelta(t, terms.Retention, ttl, float64(time.Minute))
	require.GreaterOrEqual(t, len(got.Token)*5, 128, "random bits, in letters of 5")

	// The clock was put back since the last write.
	ahead := got.Revision + time.Hour.Microseconds()
	require.NoError(t, client.HSet(t.Context(), name+key, "revision", ahead).Err())
	got, err = store.Renew(t.Context(), key, got.Token, nil, terms)
	require.NoError(t, err)
	require.Equal(t, ahead+1, got.Revision)
}

// counted counts the round trips of a client, and may change what a pipeline does.
type counted struct {
	trips    atomic.Int64
	pipeline func(ctx context.Context, commands []redis.Cmder, next redis.ProcessPipelineHook) error
}

func (*counted) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counted) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		c.trips.Add(1)
		return next(ctx, command)
	}
}

func (c *counted) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		c.trips.Add(1)
		if c.pipeline != nil {
			return c.pipeline(ctx, commands, next)
		}
		return next(ctx, commands)
	}
}

// TestManyEntriesAreListedInFewRoundTrips, among as many keys of others.
func TestManyEntriesAreListedInFewRoundTrips(t *testing.T) {
	t.Parallel()
	server := start(t)
	client := redis.NewClient(&redis.Options{Addr: server.addr})
	defer client.Close()
	store, err := redislease.New(client, "signalbox:")
	require.NoError(t, err)
	const many, writers = 10000, 20
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			pipe := client.Pipeline()
			for i := w; i < many; i += writers {
				_, _, err := store.Acquire(t.Context(), fmt.Sprintf("dispatcher:%d", i), "a", nil, long)
				require.NoError(t, err)
				pipe.Set(t.Context(), fmt.Sprintf("others:%d", i), i, 0)
			}
			_, err := pipe.Exec(t.Context())
			require.NoError(t, err)
		})
	}
	all.Wait()

	hook := &counted{}
	client.AddHook(hook)
	seen := map[string]bool{}
	begun := time.Now()
	for e, err := range store.List(t.Context(), "dispatcher:") {
		require.NoError(t, err)
		seen[e.Key] = true
	}
	t.Logf("%d entries in %s and %d round trips", len(seen), time.Since(begun), hook.trips.Load())
	require.Len(t, seen, many)
	require.LessOrEqual(t, hook.trips.Load(), int64(50))
	require.Less(t, time.Since(begun), limit)
}

// movedError is what a node of a cluster says of a key that it has no more.
type movedError struct{}

func (movedError) Error() string { return "MOVED 1 127.0.0.1:1" }
func (movedError) RedisError()   {}

// TestKeysThatMoveAreListed: between the scan and the reading, a node gives away the first key, and so never sees the script.
func TestKeysThatMoveAreListed(t *testing.T) {
	t.Parallel()
	server := start(t)
	client := redis.NewClient(&redis.Options{Addr: server.addr})
	defer client.Close()
	store, err := redislease.New(client, "signalbox:")
	require.NoError(t, err)
	const many = 10
	for i := range many {
		_, _, err := store.Acquire(t.Context(), fmt.Sprint(i), "a", nil, long)
		require.NoError(t, err)
	}
	require.NoError(t, client.ScriptFlush(t.Context()).Err())
	client.AddHook(&counted{pipeline: func(ctx context.Context, commands []redis.Cmder, next redis.ProcessPipelineHook) error {
		commands[0].SetErr(movedError{})
		return next(ctx, commands[1:])
	}})
	listed := 0
	for _, err := range store.List(t.Context(), "") {
		require.NoError(t, err)
		listed++
	}
	require.Equal(t, many, listed)
}

func TestAServerThatIsAwayIsNamed(t *testing.T) {
	t.Parallel()
	server := start(t)
	server.kill(t)
	store := open(t, redislease.Options{URL: server.url(), Timeout: 100 * time.Millisecond})
	tried, _, err := store.Acquire(t.Context(), key, "a", nil, long)
	require.ErrorContains(t, err, `acquire lease "dispatcher:shop:orders": `)
	require.ErrorContains(t, err, server.addr)
	require.NotEmpty(t, tried.Token)
	_, err = store.Renew(t.Context(), key, "t", nil, long)
	require.ErrorContains(t, err, `renew lease "dispatcher:shop:orders": `)
	require.ErrorContains(t, store.Resign(t.Context(), key, "t"), `resign lease "dispatcher:shop:orders": `)
	require.ErrorContains(t, store.Delete(t.Context(), key, "t", 1), `delete lease entry "dispatcher:shop:orders": `)
	_, err = store.Get(t.Context(), key)
	require.ErrorContains(t, err, `read lease entry "dispatcher:shop:orders": `)
	var errs []error
	for _, err := range store.List(t.Context(), "dispatcher:") {
		errs = append(errs, err)
	}
	require.Regexp(t, `level=DEBUG msg="[^"]*dial tcp `+server.addr+`.*component=redis`, written.String())
	require.Len(t, errs, 1)
	require.ErrorContains(t, errs[0], `list lease entries "dispatcher:": `)
}
