package wire_test

import (
	"context"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/conn/conntest/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	limit      = time.Minute
	unanswered = 100 * time.Millisecond
)

func open(t *testing.T) *wire.Port {
	t.Helper()
	p, err := wire.Open(func() {})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	require.NoError(t, p.Listen())
	return p
}

// pair makes a connection and returns both ends.
func pair(t *testing.T, p *wire.Port, l net.Listener) (client *net.TCPConn, server net.Conn) {
	t.Helper()
	client = dial(t, p)
	server, err := l.Accept()
	require.NoError(t, err)
	return client, server
}

func dial(t *testing.T, p *wire.Port) *net.TCPConn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", p.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = raw.Close() })
	return raw.(*net.TCPConn)
}

// receive reads up to n bytes within d.
func receive(t *testing.T, c net.Conn, n int, d time.Duration) (string, error) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(d)))
	buffer := make([]byte, n)
	n, err := io.ReadFull(c, buffer)
	return string(buffer[:n]), err
}

func TestBlockedBytesArriveLater(t *testing.T) {
	t.Parallel()
	p := open(t)
	client, server := pair(t, p, p.Listener())
	arrived := make(chan string)
	go func() {
		defer close(arrived)
		buffer := make([]byte, 16)
		for {
			n, err := server.Read(buffer)
			if err != nil {
				return
			}
			arrived <- string(buffer[:n])
		}
	}()
	_, err := client.Write([]byte("one"))
	require.NoError(t, err)
	require.Equal(t, "one", <-arrived)

	p.Block(wire.ToServer)
	_, err = client.Write([]byte("two"))
	require.NoError(t, err)
	select {
	case text := <-arrived:
		require.Fail(t, "blocked bytes arrived", text)
	case <-time.After(unanswered):
	}
	_, err = server.Write([]byte("answer"))
	require.NoError(t, err)
	text, err := receive(t, client, 6, limit)
	require.NoError(t, err)
	require.Equal(t, "answer", text, "the other direction is open")
	p.Freeze(true)
	p.Unblock(wire.ToServer)
	select {
	case text := <-arrived:
		require.Fail(t, "blocked bytes arrived", text)
	case <-time.After(unanswered):
	}
	p.Freeze(false)
	require.Equal(t, "two", <-arrived)

	p.Block(wire.ToClient)
	written := make(chan error, 1)
	go func() {
		_, err := server.Write([]byte("late"))
		written <- err
	}()
	_, err = receive(t, client, 1, unanswered)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	p.Unblock(wire.ToClient)
	require.NoError(t, <-written)
	text, err = receive(t, client, 4, limit)
	require.NoError(t, err)
	require.Equal(t, "late", text)
	require.NoError(t, client.Close())
	_, open := <-arrived
	require.False(t, open)
	require.NoError(t, server.Close())
	require.Zero(t, p.Connections())
}

func TestLostConnectionsSendNothing(t *testing.T) {
	t.Parallel()
	p := open(t)
	l := p.Listener()
	client, server := pair(t, p, l)
	p.Lose()
	n, err := server.Write([]byte("hello"))
	require.NoError(t, err, "the write succeeds")
	require.Equal(t, 5, n)
	_, err = receive(t, client, 1, unanswered)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, server.Close())
	_, err = server.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	p.Cut()
	p.Stop()
	_, err = receive(t, client, 1, unanswered)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Equal(t, 1, p.Connections())
	_, err = client.Write([]byte("still there?"))
	require.NoError(t, err)
	require.NoError(t, client.Close())
	require.Eventually(t, func() bool { return p.Connections() == 0 }, limit, time.Millisecond)
}

func TestMutePortAcceptsNothingForTheServer(t *testing.T) {
	t.Parallel()
	p := open(t)
	p.Mute(true)
	silenced := dial(t, p)
	require.Eventually(t, func() bool { return p.Accepted() == 1 }, limit, time.Millisecond)
	p.Cut()
	_, err := receive(t, silenced, 1, unanswered)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	p.Mute(false)
	client, server := pair(t, p, p.Listener())
	require.Equal(t, client.LocalAddr().String(), server.RemoteAddr().String(),
		"the first connection that the server accepts")
	require.Equal(t, 2, p.Connections())
	require.NoError(t, silenced.Close())
	require.Eventually(t, func() bool {
		return p.Connections() == 1
	}, limit, time.Millisecond, "a connection that its client closes is not counted")
}

func TestListenersTakeTurns(t *testing.T) {
	t.Parallel()
	p := open(t)
	first, second := p.Listener(), p.Listener()
	client, server := pair(t, p, first)
	require.NoError(t, first.Close())
	require.NoError(t, first.Close())
	_, err := first.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	require.Equal(t, p.Addr(), second.Addr())
	_, err = server.Write([]byte("x"))
	require.NoError(t, err)
	_, err = receive(t, client, 1, limit)
	require.NoError(t, err, "open connections are not affected")

	pair(t, p, second)
	require.NoError(t, p.Close())
	_, err = second.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = receive(t, client, 1, limit)
	require.ErrorIs(t, err, syscall.ECONNRESET)
}
