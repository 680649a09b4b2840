package conntest_test

import (
	"context"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/conn/conntest"
)

func TestStoppedFrontendResetsAndRefuses(t *testing.T) {
	t.Parallel()
	f := conntest.Run(t, conntest.Options{})
	c := connect(t, f)
	awaitAnswer(t, c)
	raw := dial(t, f)
	require.NoError(t, f.Await(within(t, limit), func() bool { return f.Connections() == 2 }))

	f.Stop()
	f.Stop()
	require.ErrorIs(t, readError(t, raw), syscall.ECONNRESET)
	_, err := new(net.Dialer).DialContext(within(t, limit), "tcp", f.Addr())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.Error(t, describe(within(t, unanswered), c, "default"))
	require.Zero(t, f.Connections())

	require.NoError(t, f.Restart())
	require.NoError(t, f.Restart())
	awaitAnswer(t, c)
}

func TestFrontendCanStartStopped(t *testing.T) {
	t.Parallel()
	f := conntest.Run(t, conntest.Options{Stopped: true})
	_, err := new(net.Dialer).DialContext(within(t, limit), "tcp", f.Addr())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	c := connect(t, f)
	require.Error(t, describe(within(t, unanswered), c, "default"))
	require.Zero(t, f.Accepted())
	require.NoError(t, f.Restart())
	awaitAnswer(t, c)
}

func TestStoppedFrontendKeepsItsPort(t *testing.T) {
	t.Parallel()
	f := conntest.Run(t, conntest.Options{Stopped: true})
	for range 2000 {
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		require.NoError(t, err)
		require.NotEqual(t, f.Addr(), l.Addr().String())
		require.NoError(t, l.Close())
	}
	require.NoError(t, f.Restart())
}

func TestFrozenFrontendHangsAndContinues(t *testing.T) {
	t.Parallel()
	f := conntest.Run(t, conntest.Options{})
	c := connect(t, f)
	awaitAnswer(t, c)
	f.Freeze()
	before := f.Calls("DescribeNamespace")
	requireHang(t, c)
	fresh := connect(t, f)
	requireHang(t, fresh)
	require.Equal(t, before, f.Calls("DescribeNamespace"))
	require.Equal(t, 2, f.Connections(), "the kernel accepts connections")

	pent := make(chan error, 1)
	ctx := within(t, limit)
	go func() { pent <- describe(ctx, c, "default") }()
	f.Thaw()
	require.NoError(t, <-pent)
	require.NoError(t, describe(ctx, fresh, "default"))
	require.Equal(t, 2, f.Accepted(), "no connection was lost")
}

func TestFreezeOutlivesRestart(t *testing.T) {
	t.Parallel()
	f := conntest.Run(t, conntest.Options{})
	f.Freeze()
	f.Stop()
	require.NoError(t, f.Restart())
	c := connect(t, f)
	requireHang(t, c)
	f.Thaw()
	awaitAnswer(t, c)
}

func TestBlackhole(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		direction conntest.Direction
		arrives   bool
	}{
		{"to the server", conntest.ToServer, false},
		{"to the client", conntest.ToClient, true},
		{"both", conntest.ToServer | conntest.ToClient, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := conntest.Run(t, conntest.Options{})
			c := connect(t, f)
			awaitAnswer(t, c)
			before := f.Calls("DescribeNamespace")
			f.Blackhole(tt.direction)
			requireHang(t, c)
			if tt.arrives {
				require.NoError(t, f.AwaitCalls(within(t, limit), "DescribeNamespace", before+1))
			} else {
				require.Equal(t, before, f.Calls("DescribeNamespace"))
			}
			fresh := connect(t, f)
			requireHang(t, fresh)
			require.Equal(t, 2, f.Accepted())
			f.Restore()
			require.NoError(t, describe(within(t, limit), c, "default"))
			require.NoError(t, describe(within(t, limit), fresh, "default"))
			require.Equal(t, 2, f.Accepted(), "the connections continued")
		})
	}
}

func TestLostConnectionsStaySilent(t *testing.T) {
	t.Parallel()
	f := conntest.Run(t, conntest.Options{})
	c := connect(t, f)
	awaitAnswer(t, c)
	raw := dial(t, f)
	require.NoError(t, f.Await(within(t, limit), func() bool { return f.Connections() == 2 }))
	f.LoseConnections()
	before := f.Calls("")
	requireHang(t, c)
	other := connect(t, f)
	awaitAnswer(t, other)
	other.Close()
	f.CutConnections()
	f.Stop()
	require.NoError(t, f.Restart())
	requireHang(t, c)
	require.ErrorIs(t, drain(t, raw), os.ErrDeadlineExceeded, "the client receives nothing")
	require.Equal(t, before+1, f.Calls(""), "no call of the first client arrived")
	require.Equal(t, 2, f.Connections())
	require.NoError(t, raw.Close())
	c.Close()
	require.NoError(t, f.Await(within(t, limit), func() bool {
		return f.Connections() == 0
	}), "connections that clients close are not counted")
}

func TestMutePortAcceptsAndSendsNothing(t *testing.T) {
	t.Parallel()
	f := conntest.Run(t, conntest.Options{})
	old := connect(t, f)
	awaitAnswer(t, old)
	f.Mute()
	raw := dial(t, f)
	_, err := raw.Write([]byte("hello"))
	require.NoError(t, err)
	require.ErrorIs(t, drain(t, raw), os.ErrDeadlineExceeded)
	requireHang(t, connect(t, f))
	require.NoError(t, describe(within(t, limit), old, "default"), "open connections are not affected")
	f.Unmute()
	awaitAnswer(t, connect(t, f))
	require.ErrorIs(t, drain(t, raw), os.ErrDeadlineExceeded, "the connection stays silent")
}

func TestClientsReconnectAfterCut(t *testing.T) {
	t.Parallel()
	f := conntest.Run(t, conntest.Options{})
	c := connect(t, f)
	awaitAnswer(t, c)
	raw := dial(t, f)
	require.NoError(t, f.Await(within(t, limit), func() bool { return f.Connections() == 2 }))
	f.CutConnections()
	require.ErrorIs(t, readError(t, raw), syscall.ECONNRESET)
	awaitAnswer(t, c)
	require.Equal(t, 3, f.Accepted())
}

func TestGoAwayLetsCallsFinish(t *testing.T) {
	t.Parallel()
	f := conntest.Run(t, conntest.Options{})
	c := connect(t, f)
	awaitAnswer(t, c)
	f.Slow(time.Hour)
	before := f.Calls("DescribeNamespace")
	flying := make(chan error, 1)
	ctx := within(t, limit)
	go func() { flying <- describe(ctx, c, "default") }()
	require.NoError(t, f.AwaitCalls(ctx, "DescribeNamespace", before+1))
	f.GoAway()
	// New calls use a new connection, while the old one still has a call in flight.
	for f.Accepted() < 2 {
		_ = describe(within(t, unanswered), c, "default")
	}
	require.NoError(t, f.Await(ctx, func() bool { return f.Connections() == 2 }))
	f.Slow(0)
	require.NoError(t, <-flying)
	require.NoError(t, f.Await(ctx, func() bool { return f.Connections() == 1 }))
	awaitAnswer(t, c)
	require.Equal(t, 2, f.Accepted())
}

func TestFlap(t *testing.T) {
	t.Parallel()
	f := conntest.Run(t, conntest.Options{})
	c := connect(t, f, func(o *client.Options) { o.Identity = "flapped" })
	awaitAnswer(t, c)
	done := make(chan error, 1)
	ctx := within(t, limit)
	go func() { done <- f.Flap(ctx, 50*time.Millisecond, 50*time.Millisecond, 4) }()
	for len(done) == 0 {
		awaitAnswer(t, c)
	}
	require.NoError(t, <-done)
	awaitAnswer(t, c)
	require.Greater(t, f.Accepted(), 1)

	ended, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, f.Flap(ended, time.Hour, time.Hour, 2), context.Canceled)
	awaitAnswer(t, c)
}

func TestCloseEndsHangingConnections(t *testing.T) {
	t.Parallel()
	f, err := conntest.New(conntest.Options{})
	require.NoError(t, err)
	c := connect(t, f)
	awaitAnswer(t, c)
	f.LoseConnections()
	awaitAnswer(t, connect(t, f))
	f.Mute()
	silenced := dial(t, f)
	require.NoError(t, f.Await(within(t, limit), func() bool { return f.Connections() == 3 }))
	f.Unmute()
	f.Freeze()
	f.GoAway()
	requireHang(t, connect(t, f))
	f.Slow(time.Hour)
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	require.Error(t, readError(t, silenced))
	require.Zero(t, f.Connections())
	require.ErrorIs(t, f.Restart(), net.ErrClosed)
	require.ErrorContains(t, f.AwaitCalls(t.Context(), "Nothing", 1), "closed")
	f.GoAway()
	f.Stop()
}

// readError reads until the connection ends and returns the error.
func readError(t *testing.T, raw net.Conn) error {
	t.Helper()
	require.NoError(t, raw.SetReadDeadline(time.Now().Add(limit)))
	buffer := make([]byte, 1024)
	for {
		if _, err := raw.Read(buffer); err != nil {
			return err
		}
	}
}

// drain reads for a while and returns the error at the end.
func drain(t *testing.T, raw net.Conn) error {
	t.Helper()
	require.NoError(t, raw.SetReadDeadline(time.Now().Add(unanswered)))
	buffer := make([]byte, 1024)
	for {
		if _, err := raw.Read(buffer); err != nil {
			return err
		}
	}
}
