package conntype_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/conntype"
)

func TestTitlesDiffer(t *testing.T) {
	t.Parallel()
	require.Empty(t, conntype.Status{State: conntype.Connected}.Title())
	titles := map[string]conntype.Status{}
	for _, s := range []conntype.Status{
		{State: conntype.Connecting}, {State: conntype.Down}, {State: conntype.Degraded}, {State: conntype.Closed},
		{State: conntype.Down, Kind: conntype.Unreachable}, {State: conntype.Down, Kind: conntype.Hung},
		{State: conntype.Down, Kind: conntype.NamespaceMissing}, {State: conntype.Down, Kind: conntype.AuthFailed},
		{State: conntype.Down, Kind: conntype.TLSError}, {State: conntype.Degraded, Kind: conntype.Slow},
		{State: conntype.Degraded, Kind: conntype.Limited}, {State: conntype.Degraded, Kind: conntype.NotPolling},
	} {
		require.NotEmpty(t, s.Title(), s)
		require.NotContains(t, titles, s.Title())
		titles[s.Title()] = s
	}
}

func TestRequestsMayBeSentWhileUp(t *testing.T) {
	t.Parallel()
	for state, want := range map[conntype.State]bool{
		conntype.Connecting: false, conntype.Connected: true, conntype.Degraded: true, conntype.Down: false,
		conntype.Closed: false,
	} {
		require.Equal(t, want, state.Up(), state)
	}
}
