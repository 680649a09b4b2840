package freeport

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPortIsClaimedOnce(t *testing.T) {
	t.Parallel()
	port, release, err := Claim(t.Context())
	require.NoError(t, err)
	_, err = claim(t.Context(), port)
	require.Error(t, err, "the port was claimed twice")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	require.NoError(t, err, "the claimed port is free")
	require.NoError(t, listener.Close())
	release()
	again, err := claim(t.Context(), port)
	require.NoError(t, err, "it can be claimed again")
	again()
}

func TestPortInUseIsNotClaimed(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	require.NoError(t, err)
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	for range 2 { // the first failure leaves no listener
		_, err = claim(t.Context(), port)
		require.ErrorContains(t, err, "tcp")
	}
}
