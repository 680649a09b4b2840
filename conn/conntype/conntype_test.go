package conntype_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/conntype"
)

func TestRequestsMayBeSentWhileUp(t *testing.T) {
	t.Parallel()
	for state, want := range map[conntype.State]bool{
		conntype.Connecting: false, conntype.Connected: true, conntype.Degraded: true, conntype.Down: false, conntype.Closed: false,
	} {
		require.Equal(t, want, state.Up(), state)
	}
}
