package redislease_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/lease"
	"github.com/signalbox-dev/signalbox/lease/redislease"
)

// limited is a store whose user can lose rights.
type limited struct {
	*redislease.Store
	t      *testing.T
	server *server
	user   string
}

func newLimited(t *testing.T) *limited {
	t.Helper()
	s := start(t)
	user := createUser(t, s)
	return &limited{
		Store: open(t, redislease.Options{URL: "redis://" + user + ":secret@" + s.addr, Prefix: "leasetest:"}), t: t,
		server: s, user: user,
	}
}

// change adds (+command) and removes (-command) rights.
func (l *limited) change(rules ...string) {
	l.t.Helper()
	command := []any{"ACL", "SETUSER", l.user}
	for _, rule := range rules {
		command = append(command, rule)
	}
	require.NoError(l.t, l.server.client(l.t).Do(l.t.Context(), command...).Err())
}

// fields returns the stored hash of the key, without the fields about the entry that it replaced.
func (l *limited) fields() map[string]string {
	l.t.Helper()
	found, err := l.server.client(l.t).HGetAll(l.t.Context(), "leasetest:"+key).Result()
	require.NoError(l.t, err)
	maps.DeleteFunc(found, func(name, _ string) bool { return strings.HasPrefix(name, "before.") })
	return found
}

func TestCheckNamesRefusedCommands(t *testing.T) {
	t.Parallel()
	l := newLimited(t)
	require.NoError(t, l.Check(t.Context()))
	for _, command := range []string{"time", "type", "hset", "hmget", "hget", "pexpire", "hdel", "del", "scan"} {
		l.change("-" + command)
		require.ErrorContains(t, l.Check(t.Context()), "redis refuses "+command+" on keys of the prefix: ")
		l.change("+" + command)
	}
	l.change("-hset", "-del")
	require.ErrorContains(t, l.Check(t.Context()), "redis refuses hset, del on keys of the prefix: ")
	l.change("+hset", "+del", "-eval", "-evalsha")
	require.ErrorContains(t, l.Check(t.Context()), "NOPERM")
	l.change("+eval", "+evalsha", "resetkeys", "~other:*")
	require.ErrorContains(t, l.Check(t.Context()), "NOPERM this user has no permissions to access one of the keys")
	l.change("resetkeys", "~leasetest:*")
	require.NoError(t, l.Check(t.Context()))
	keys, err := l.server.client(t).Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.Empty(t, keys, "a check leaves nothing")
	require.NoError(t, l.server.client(t).ConfigSet(t.Context(), "maxmemory", "1").Err())
	require.ErrorContains(t, l.Check(t.Context()), "redis refuses hset on keys of the prefix: OOM")
}

// A script that Redis ends at a refused command has changed nothing.
func TestRefusedCommandChangesNoEntry(t *testing.T) {
	t.Parallel()
	l := newLimited(t)
	ctx := t.Context()
	for _, command := range []string{"hset", "hdel", "pexpire"} {
		require.NoError(t, l.server.client(t).FlushAll(ctx).Err())
		l.change("-" + command)
		_, _, err := l.Acquire(ctx, key, "a", nil, long)
		require.ErrorContains(t, err, "can't run this command", command)
		require.Empty(t, l.fields(), "%s: an acquisition without an entry", command)

		l.change("+" + command)
		got := acquire(t, l, "a", long)
		held := l.fields()
		l.change("-" + command)
		_, err = l.Renew(ctx, key, got.Token, []byte("new"), long)
		require.ErrorContains(t, err, "can't run this command", command)
		require.Equal(t, held, l.fields(), "%s: a renewal", command)
		if command != "hdel" {
			require.ErrorContains(t, l.Resign(ctx, key, got.Token), "can't run this command", command)
			require.Equal(t, held, l.fields(), "%s: a resignation", command)
		}

		l.change("+" + command)
		require.NoError(t, l.Resign(ctx, key, got.Token))
		resigned := l.fields()
		l.change("-" + command)
		_, _, err = l.Acquire(ctx, key, "b", nil, long)
		require.ErrorContains(t, err, "can't run this command", command)
		require.Equal(t, resigned, l.fields(), "%s: an acquisition", command)
		l.change("+" + command)
		_, before, err := l.Acquire(ctx, key, "b", nil, long)
		require.NoError(t, err)
		require.Equal(t, lease.Resigned, before.State, command)
	}
}
