package freeport

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPortIsGivenOnce(t *testing.T) {
	t.Parallel()
	port, release, err := Claim(t.Context())
	require.NoError(t, err)
	_, err = claim(t.Context(), port)
	require.Error(t, err, "it was given twice")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	require.NoError(t, err, "whoever has claimed it can listen")
	require.NoError(t, listener.Close())
	release()
	again, err := claim(t.Context(), port)
	require.NoError(t, err, "it can be given again")
	again()
}

func TestAPortThatIsInUseIsNotGiven(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	require.NoError(t, err)
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	for range 2 { // the first failure leaves nothing behind
		_, err = claim(t.Context(), port)
		require.ErrorContains(t, err, "tcp")
	}
}
