package redislease_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/lease"
	"github.com/signalbox-dev/signalbox/lease/redislease"
)

const key = "dispatcher:shop:orders"

func acquire(t *testing.T, store lease.Store, holder string, terms lease.Lifetime) lease.Entry {
	t.Helper()
	got, _, err := store.Acquire(t.Context(), key, holder, nil, terms)
	require.NoError(t, err)
	return got
}

// keep acquires the key and keeps the lease with short intervals.
func keep(t *testing.T, store lease.Store) *lease.Hold {
	t.Helper()
	sent := time.Now()
	return lease.Keep(t.Context(), store, acquire(t, store, "a", quick.Lifetime), sent, quick)
}

// renewed waits for the next renewal.
func renewed(t *testing.T, held *lease.Hold) {
	t.Helper()
	revision := held.Entry().Revision
	require.Eventually(t, func() bool { return held.Entry().Revision > revision }, limit, tick)
	require.True(t, held.Valid())
}

// ended waits for the end of a hold.
func ended(t *testing.T, held *lease.Hold) {
	t.Helper()
	select {
	case <-held.Done():
	case <-time.After(limit):
		require.Fail(t, "the lease has not ended")
	}
}

// TestLostAnswerToAcquisition makes an acquisition whose answer is lost. The caller recognises its lease by the token.
func TestLostAnswerToAcquisition(t *testing.T) {
	t.Parallel()
	server := start(t)
	way := newProxy(t, server.addr)
	store := open(t, redislease.Options{URL: "redis://" + way.addr})
	direct := open(t, redislease.Options{URL: server.url()})
	// Now there is a connection, and the server has cached the script.
	require.NoError(t, store.Resign(t.Context(), key, acquire(t, store, "a", long).Token))

	way.set(hold, 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // cancels the request once the acquisition was made
		defer cancel()
		for ctx.Err() == nil {
			if e, err := direct.Get(ctx, key); err != nil || e.State == lease.Held {
				return
			}
		}
	}()
	tried, before, err := store.Acquire(ctx, key, "a", nil, long)
	require.Error(t, err)
	require.NotErrorIs(t, err, lease.ErrHeld)
	require.Nil(t, before)
	require.NotEmpty(t, tried.Token)
	way.set(pass, 0)

	sent := time.Now()
	_, _, err = store.Acquire(t.Context(), key, "a", nil, long)
	var held *lease.HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, "a", held.Entry.Holder)
	require.Equal(t, tried.Token, held.Entry.Token, "the caller's own lease")
	own := lease.Keep(t.Context(), store, held.Entry, sent,
		lease.KeepOptions{Interval: 10 * time.Millisecond, Lifetime: long})
	renewed(t, own)
	require.NoError(t, own.Resign(t.Context()))
}

// TestRepeatedRequestCountsOnce loses answers, so that the Redis client repeats its requests.
func TestRepeatedRequestCountsOnce(t *testing.T) {
	t.Parallel()
	server := start(t)
	way := newProxy(t, server.addr)
	store := open(t, redislease.Options{URL: "redis://" + way.addr})
	first, _, err := store.Acquire(t.Context(), key, "a", []byte("first"), long)
	require.NoError(t, err)
	require.NoError(t, store.Resign(t.Context(), key, first.Token))
	resigned, err := store.Get(t.Context(), key)
	require.NoError(t, err)

	way.set(cut, 1)
	got, before, err := store.Acquire(t.Context(), key, "b", nil, long)
	require.NoError(t, err)
	require.Equal(t, lease.Held, got.State)
	require.NotNil(t, before)
	resigned.ReadAt = got.AcquiredAt
	require.Equal(t, resigned, *before, "the predecessor is stored for a repeated request")

	way.set(cut, 1)
	again, err := store.Renew(t.Context(), key, got.Token, nil, long)
	require.NoError(t, err)
	require.Greater(t, again.Revision, got.Revision)
	noted, err := server.client(t).HExists(t.Context(), "signalbox:"+key, "before.token").Result()
	require.NoError(t, err)
	require.False(t, noted, "the first renewal removes the predecessor")

	way.set(cut, 1)
	require.ErrorIs(t, store.Resign(t.Context(), key, got.Token), lease.ErrLost,
		"the first of the two requests has resigned it")
	e, err := store.Get(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, lease.Resigned, e.State)
}

func TestHoldEndsInTimeWhileRedisHangs(t *testing.T) {
	t.Parallel()
	server := start(t)
	way := newProxy(t, server.addr)
	store := open(t, redislease.Options{URL: "redis://" + way.addr, Timeout: time.Second})
	// Trusted for 4 s after each request, and in force for longer, so that this test can read the entry in between.
	terms := lease.Lifetime{TTL: 34 * time.Second, Retention: time.Minute}
	sent := time.Now()
	held := lease.Keep(t.Context(), store, acquire(t, store, "a", terms), sent,
		lease.KeepOptions{Interval: 200 * time.Millisecond, Margin: 30 * time.Second, Lifetime: terms})
	renewed(t, held)
	way.set(hold, 0)
	ended(t, held)
	e, err := open(t, redislease.Options{URL: server.url()}).Get(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, lease.Held, e.State, "the hold ends before another holder can acquire")
	require.ErrorIs(t, held.Err(), lease.ErrUntrusted)

	way.set(pass, 0)
	require.NoError(t, held.Resign(t.Context()))
}

func TestHoldSurvivesShortPauseOfRedis(t *testing.T) {
	t.Parallel()
	server := start(t)
	way := newProxy(t, server.addr)
	store := open(t, redislease.Options{URL: "redis://" + way.addr})
	held := keep(t, store)
	renewed(t, held)
	way.set(cut, 3)
	renewed(t, held)
	renewed(t, held)
	require.NoError(t, held.Resign(t.Context()))
}

func TestLeaseIsGrantedAgainAfterDataLoss(t *testing.T) {
	t.Parallel()
	server := start(t)
	for name, forget := range map[string]func(t *testing.T){
		"restart": func(t *testing.T) { server.kill(t); server.launch(t) },
		"flush":   func(t *testing.T) { require.NoError(t, server.client(t).FlushAll(t.Context()).Err()) },
	} {
		store := open(t, redislease.Options{URL: server.url()})
		held := keep(t, store)
		renewed(t, held)
		forget(t)
		other := open(t, redislease.Options{URL: server.url()})
		next := acquire(t, other, "b", long)
		require.Greater(t, next.Revision, held.Entry().Revision, "%s: revisions continue to grow", name)
		ended(t, held)
		require.ErrorIs(t, held.Err(), lease.ErrLost, name)
		require.NoError(t, held.Resign(t.Context()))
		e, err := other.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, next.Token, e.Token, name)
		require.Equal(t, lease.Held, e.State, name)
		require.NoError(t, other.Resign(t.Context(), key, next.Token))
	}
}

func TestScriptsAreSentAgainAfterFlush(t *testing.T) {
	t.Parallel()
	server := start(t)
	store := open(t, redislease.Options{URL: server.url()})
	got := acquire(t, store, "a", long)
	require.NoError(t, server.client(t).ScriptFlush(t.Context()).Err())
	_, err := store.Renew(t.Context(), key, got.Token, nil, long)
	require.NoError(t, err)
}

// TestWatchContinuesAfterRestart watches before Redis is started, and restarts it.
func TestWatchContinuesAfterRestart(t *testing.T) {
	t.Parallel()
	server := start(t)
	server.kill(t)
	store := open(t, redislease.Options{URL: server.url(), Timeout: 100 * time.Millisecond})
	keys, err := store.Watch(t.Context())
	require.NoError(t, err)
	for range 2 {
		server.launch(t)
		writer := server.client(t)
		require.Eventually(t, func() bool {
			require.NoError(t, writer.Publish(t.Context(), "signalbox:changes", key).Err())
			select {
			case got := <-keys:
				return got == key
			case <-time.After(tick):
				return false
			}
		}, limit, tick)
		server.kill(t)
	}
}

// TestWatchWhileRedisHangs starts to watch while Redis hangs, and expects keys once it continues.
func TestWatchWhileRedisHangs(t *testing.T) {
	t.Parallel()
	server := start(t)
	way := newProxy(t, server.addr)
	way.set(hold, 0)
	keys, err := open(t, redislease.Options{URL: "redis://" + way.addr}).Watch(t.Context())
	require.NoError(t, err)
	way.set(pass, 0)
	writer := open(t, redislease.Options{URL: server.url()})
	require.Eventually(t, func() bool {
		require.NoError(t, writer.Resign(t.Context(), key, acquire(t, writer, "a", long).Token))
		select {
		case got := <-keys:
			return got == key
		case <-time.After(tick):
			return false
		}
	}, limit, tick)
}

// TestMalformedEntries has values under the prefix that the store has not written.
func TestMalformedEntries(t *testing.T) {
	t.Parallel()
	server := start(t)
	raw := server.client(t)
	store := open(t, redislease.Options{URL: server.url()})
	good := map[string]any{"holder": "a", "token": "t", "revision": 1, "acquired": 1, "renewed": 1, "expires": 2,
		"retention": 1, "resigned": 0, "value": ""}
	with := func(field string, value any) func(c redis.Pipeliner, name string) {
		return func(c redis.Pipeliner, name string) {
			c.HSet(t.Context(), name, good)
			if value == nil {
				c.HDel(t.Context(), name, field)
			} else {
				c.HSet(t.Context(), name, field, value)
			}
		}
	}
	cases := map[string]struct {
		write func(c redis.Pipeliner, name string)
		why   string
	}{
		"text": {func(c redis.Pipeliner, name string) {
			c.Set(t.Context(), name, "x", 0)
		}, "it is a string, not a hash"},
		"list":       {func(c redis.Pipeliner, name string) { c.LPush(t.Context(), name, "x") }, "it is a list, not a hash"},
		"no-token":   {with("token", nil), "it has no field token"},
		"no-holder":  {with("holder", ""), "its holder or its token is empty"},
		"no-value":   {with("value", nil), "it has no field value"},
		"letters":    {with("expires", "tomorrow"), "its field expires is not a valid number"},
		"fraction":   {with("renewed", "1.5"), "its field renewed is not a valid number"},
		"negative":   {with("acquired", "-1"), "its field acquired is not a valid number"},
		"exponent":   {with("revision", "1e9"), "its field revision is not a valid number"},
		"huge":       {with("revision", "99999999999999999999999999"), "its field revision is not a valid number"},
		"two\nlines": {with("token", "u"), `invalid lease request: the key "two\nlines" is not printable text`},
		"an entry":   {with("token", "u"), ""},
	}
	_, err := raw.Pipelined(t.Context(), func(c redis.Pipeliner) error {
		for name, each := range cases {
			each.write(c, "signalbox:"+name)
		}
		return nil
	})
	require.NoError(t, err)

	listed := map[string]string{}
	for e, err := range store.List(t.Context(), "") {
		var malformed *lease.MalformedError
		if err == nil {
			listed[e.Key] = ""
			continue
		}
		require.ErrorAs(t, err, &malformed)
		listed[malformed.Key] = malformed.Reason
	}
	require.Len(t, listed, len(cases))
	for name, each := range cases {
		require.Equal(t, each.why, listed[name], name)
		if each.why == "" || name == "two\nlines" {
			continue
		}
		_, err := store.Get(t.Context(), name)
		require.ErrorIs(t, err, lease.ErrMalformed, name)
		require.ErrorContains(t, err, each.why)
		require.ErrorIs(t, store.Delete(t.Context(), name, "t", 1), lease.ErrMalformed)
		require.ErrorIs(t, store.Resign(t.Context(), name, "t"), lease.ErrLost)
		_, err = store.Renew(t.Context(), name, "t", nil, long)
		require.ErrorIs(t, err, lease.ErrLost)
		got, before, err := store.Acquire(t.Context(), name, "b", nil, long)
		require.NoError(t, err, name)
		require.Nil(t, before)
		e, err := store.Get(t.Context(), name)
		require.NoError(t, err, name)
		require.Equal(t, got.Token, e.Token)
	}
}
