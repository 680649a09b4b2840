package redislease_test

import (
	"context"
	"errors"
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

func TestRedisConforms(t *testing.T) {
	t.Parallel()
	url := shared(t)
	leasetest.Run(t, func(t *testing.T) lease.Store {
		t.Helper()
		return open(t, redislease.Options{URL: url, Prefix: prefix()})
	})
}

// open returns a store that is closed at the end of the test.
func open(t *testing.T, o redislease.Options) *redislease.Store {
	t.Helper()
	store, err := redislease.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// onClient returns a store on the test's own client.
func onClient(t *testing.T) (*redislease.Store, *redis.Client, string) {
	t.Helper()
	o, err := redis.ParseURL(shared(t))
	require.NoError(t, err)
	o.ContextTimeoutEnabled = true
	client := redis.NewClient(o)
	t.Cleanup(func() { require.NoError(t, client.Close(), "the store has not closed it") })
	name := prefix()
	store, err := redislease.New(client, name)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store, client, name
}

// TestLayout checks the documented layout of an entry, which operators and other programs may rely on.
func TestLayout(t *testing.T) {
	t.Parallel()
	store, client, name := onClient(t)
	terms := lease.Lifetime{TTL: 15 * time.Second, Retention: 10 * time.Minute}
	got, _, err := store.Acquire(t.Context(), key, "server-1", []byte(`{"epoch":3}`), terms)
	require.NoError(t, err)
	got, err = store.Renew(t.Context(), key, got.Token, nil, terms)
	require.NoError(t, err)
	stored, err := client.HGetAll(t.Context(), name+key).Result()
	require.NoError(t, err)
	micro := func(at time.Time) string { return fmt.Sprint(at.UnixMicro()) }
	require.Equal(t, map[string]string{
		"holder": "server-1", "token": got.Token, "value": `{"epoch":3}`, "revision": fmt.Sprint(got.Revision),
		"resigned": "0",
		"acquired": micro(got.AcquiredAt), "renewed": micro(got.RenewedAt), "expires": micro(got.ExpiresAt),
		"retention": "600000",
	}, stored)
	require.Equal(t, got.RenewedAt.UnixMicro(), got.Revision)
	ttl, err := client.PTTL(t.Context(), name+key).Result()
	require.NoError(t, err)
	require.InDelta(t, terms.Retention, ttl, float64(time.Minute))
	require.GreaterOrEqual(t, len(got.Token)*5, 128, "random bits, 5 in each letter")

	// The server's clock was put back after the last write.
	ahead := got.Revision + time.Hour.Microseconds()
	require.NoError(t, client.HSet(t.Context(), name+key, "revision", ahead).Err())
	got, err = store.Renew(t.Context(), key, got.Token, nil, terms)
	require.NoError(t, err)
	require.Equal(t, ahead+1, got.Revision)
}

// counted is a hook that counts the round trips of a client, and can replace the execution of a pipeline.
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

// TestManyEntriesAreListedInFewRoundTrips lists entries among as many keys of other programs.
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

// movedError is the answer of a cluster node for a key that has moved to another node.
type movedError struct{}

func (movedError) Error() string { return "MOVED 1 127.0.0.1:1" }
func (movedError) RedisError()   {}

// TestMovedKeysAreListed moves the first key to another node between SCAN and the read, so that the node does not cache
// the script.
func TestMovedKeysAreListed(t *testing.T) {
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
	client.AddHook(&counted{pipeline: func(ctx context.Context, commands []redis.Cmder,
		next redis.ProcessPipelineHook) error {
		var rest []redis.Cmder
		for i, command := range commands {
			if command.Name() == "hmget" || i == 0 && command.Name() == "eval" {
				command.SetErr(movedError{})
			} else {
				rest = append(rest, command)
			}
		}
		return next(ctx, rest)
	}})
	listed := 0
	for _, err := range store.List(t.Context(), "") {
		require.NoError(t, err)
		listed++
	}
	require.Equal(t, many, listed)
}

// TestListReturnsWhatGetReturns lists entries without a script, and compares them with Get. Entries that are malformed,
// or written during the listing, are listed as the script reads them.
func TestListReturnsWhatGetReturns(t *testing.T) {
	t.Parallel()
	server := start(t)
	client := server.client(t)
	store, err := redislease.New(client, "signalbox:")
	require.NoError(t, err)
	short := lease.Lifetime{TTL: time.Millisecond, Retention: time.Hour}
	for name, terms := range map[string]lease.Lifetime{
		"held": long, "renewed": long, "resigned": long, "expired": short, "ahead": long} {
		got, _, err := store.Acquire(t.Context(), name, "a", []byte("value of "+name), terms)
		require.NoError(t, err)
		switch name {
		case "renewed":
			_, err = store.Renew(t.Context(), name, got.Token, nil, terms)
		case "resigned":
			err = store.Resign(t.Context(), name, got.Token)
		case "ahead": // written before the clock was put back
			err = client.HSet(t.Context(), "signalbox:"+name, "revision", got.Revision+time.Hour.Microseconds()).Err()
		}
		require.NoError(t, err)
	}
	_, _, err = store.Acquire(t.Context(), "empty", "a", nil, long)
	require.NoError(t, err)
	for name, change := range map[string][2]string{
		"no-holder": {"holder", ""}, "no-token": {"token", ""}, "signed": {"renewed", "+5"}, "word": {"expires", "soon"},
		"large": {"acquired", "4503599627370497"}, "fraction": {"retention", "1.5"}, "negative": {"resigned", "-1"},
	} {
		_, _, err := store.Acquire(t.Context(), name, "a", nil, long)
		require.NoError(t, err)
		require.NoError(t, client.HSet(t.Context(), "signalbox:"+name, change[0], change[1]).Err())
	}
	require.NoError(t, client.HSet(t.Context(), "signalbox:foreign", "field", "value").Err())
	require.NoError(t, client.Set(t.Context(), "signalbox:text", "value", 0).Err())
	require.Eventually(t, func() bool {
		e, err := store.Get(t.Context(), "expired")
		return err == nil && e.State == lease.Expired
	}, limit, tick)

	compare := func() {
		listed := 0
		for e, err := range store.List(t.Context(), "") {
			listed++
			key := e.Key
			if malformed, ok := errors.AsType[*lease.MalformedError](err); ok {
				key = malformed.Key
			}
			read, readErr := store.Get(t.Context(), key)
			require.Equal(t, readErr, err, key)
			require.False(t, e.ReadAt.After(read.ReadAt), key)
			e.ReadAt = read.ReadAt
			require.Equal(t, read, e, key)
		}
		require.Equal(t, 15, listed)
	}
	compare()

	// Every entry that can be renewed is renewed between the reading of the clock and that of the entries.
	var once sync.Once
	renew := func() {
		for _, name := range []string{"held", "renewed", "empty"} {
			e, err := store.Get(t.Context(), name)
			require.NoError(t, err)
			_, err = store.Renew(t.Context(), name, e.Token, []byte("new"), long)
			require.NoError(t, err)
		}
	}
	scripts := 0
	client.AddHook(&counted{pipeline: func(ctx context.Context, commands []redis.Cmder,
		next redis.ProcessPipelineHook) error {
		if commands[0].Name() != "time" {
			scripts += len(commands)
			return next(ctx, commands)
		}
		if err := next(ctx, commands[:1]); err != nil {
			return err
		}
		once.Do(renew)
		_ = next(ctx, commands[1:]) // Redis refuses values that are no hash
		return nil
	}})
	compare()
	require.Equal(t, 9+1+3, scripts, "malformed entries, the one that is ahead, and renewed ones")
}

func TestErrorsWithoutServer(t *testing.T) {
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
