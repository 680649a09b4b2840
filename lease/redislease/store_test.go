package redislease_test

import (
	"testing"

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
