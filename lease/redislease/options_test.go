package redislease_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/lease"
	"github.com/signalbox-dev/signalbox/lease/redislease"
)

func TestInvalidOptions(t *testing.T) {
	t.Parallel()
	one, two := []string{"127.0.0.1:1"}, []string{"127.0.0.1:1", "127.0.0.1:2"}
	for name, tt := range map[string]struct {
		options redislease.Options
		want    []string
	}{
		"nothing": {redislease.Options{}, []string{"neither a URL nor addresses"}},
		"both": {
			redislease.Options{URL: "redis://127.0.0.1:1", Addresses: one}, []string{"give one of them"}},
		"another scheme": {
			redislease.Options{URL: "http://user:secret@127.0.0.1:1"}, []string{"begins neither with redis://"}},
		"a socket": {redislease.Options{URL: "unix:///run/redis"}, []string{"begins neither with redis://"}},
		"parameters": {
			redislease.Options{URL: "redis://:secret@127.0.0.1:1?read_timeout=1s"}, []string{"has parameters"}},
		"no port": {
			redislease.Options{URL: "redis://:secret@127.0.0.1:port"}, []string{"read the URL of Redis: invalid port"}},
		"no database": {
			redislease.Options{URL: "redis://:secret@127.0.0.1:1/one"}, []string{`invalid database number: "one"`}},
		"two servers": {redislease.Options{Addresses: two}, []string{"2 addresses are given"}},
		"a sentinel by URL": {
			redislease.Options{URL: "redis://127.0.0.1:1", MasterName: "m"}, []string{`master name "m" requires addresses`}},
		"sentinels and faults": {
			redislease.Options{Addresses: two, MasterName: "m", Cluster: true, Timeout: -1},
			[]string{`master name "m" requires`, "the timeout of -1ns"}},
		"an unprintable key": {redislease.Options{Addresses: one, Prefix: "a\nb"}, []string{"is not printable text"}},
	} {
		_, err := redislease.Open(tt.options)
		for _, want := range tt.want {
			require.ErrorContains(t, err, want, name)
		}
		require.NotContains(t, err.Error(), "secret", name)
	}
}

func TestNewRefusesInvalidClients(t *testing.T) {
	t.Parallel()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer ring.Close()
	_, err := redislease.New(ring, "signalbox:")
	require.ErrorContains(t, err, "it grants a lease again")

	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	_, err = redislease.New(client, "")
	require.ErrorIs(t, err, lease.ErrInvalid)
}

func TestDatabaseOfURL(t *testing.T) {
	t.Parallel()
	server := start(t)
	store := open(t, redislease.Options{URL: server.url() + "/3", Prefix: "p:", Timeout: time.Second})
	acquire(t, store, "a", long)
	other := redis.NewClient(&redis.Options{Addr: server.addr, DB: 3})
	defer other.Close()
	require.Equal(t, int64(1), other.Exists(t.Context(), "p:"+key).Val())
	_, err := open(t, redislease.Options{URL: server.url(), Prefix: "p:"}).Get(t.Context(), key)
	require.ErrorIs(t, err, lease.ErrNotFound)
}
