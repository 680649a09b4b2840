// Package connlimit bounds the open connections of a listener so that connections without a request keep no caller out.
//
//	limited := connlimit.New(listener, connlimit.Options{Max: 4096, Log: log})
//	server := &http.Server{ConnState: limited.ConnState, …}
//	err := server.Serve(limited)
//
// A connection is idle while no request is in flight on it: it sends nothing, half a header or half a TLS handshake, it waits between
// two requests, or it is one of HTTP/2 without streams. Over the limit, a new connection closes the one that has been idle longest. While
// every connection has a request in flight, one new connection waits accepted and the others in the kernel.
//
// A process that has run out of file descriptors closes an idle connection in the same way before it accepts another one.
//
// The package sets no deadlines: how long a header or an idle connection may take is the server's setting.
package connlimit

import (
	"container/list"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// logEvery is how often closed connections are logged at most.
const logEvery = time.Minute

// Options bound a listener.
type Options struct {
	// Max is the most open connections, at least 1.
	Max int
	Log *slog.Logger
	Now func() time.Time
}

// Listener accepts bounded connections. Its ConnState must be the server's hook of that name.
type Listener struct {
	net.Listener

	opts Options

	mu     sync.Mutex
	room   sync.Cond // signaled when a connection ends or becomes idle, and when the listener closes
	conns  map[*conn]struct{}
	idle   *list.List // of *conn, the one that has been idle longest first
	closed bool
	logged time.Time
	count  int // connections that were closed since the last log line
}

// conn is an open connection.
type conn struct {
	net.Conn

	listener *Listener
	idle     *list.Element // nil while a request is in flight
}

// New wraps a listener.
func New(inner net.Listener, opts Options) *Listener {
	opts.Max = max(opts.Max, 1)
	l := &Listener{Listener: inner, opts: opts, conns: map[*conn]struct{}{}, idle: list.New()}
	l.room.L = &l.mu
	return l
}

// Accept returns the next connection, after it has closed an idle one where the limit asks for that.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err == nil {
			return l.admit(accepted)
		}
		outOfFiles := errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
		if !outOfFiles || !l.evict() {
			return nil, err
		}
	}
}

// Close closes the listener; open connections stay open.
func (l *Listener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.room.Broadcast()
	return l.Listener.Close()
}

// admit makes room for a connection, and waits while there is none.
func (l *Listener) admit(accepted net.Conn) (net.Conn, error) {
	l.mu.Lock()
	for len(l.conns) >= l.opts.Max && l.idle.Len() == 0 && !l.closed {
		l.room.Wait()
	}
	if l.closed {
		l.mu.Unlock()
		return nil, errors.Join(net.ErrClosed, accepted.Close())
	}
	var oldest *conn
	if len(l.conns) >= l.opts.Max {
		oldest = l.takeOldest()
	}
	c := &conn{Conn: accepted, listener: l}
	l.conns[c] = struct{}{}
	c.idle = l.idle.PushBack(c)
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Conn.Close() // the close itself notifies its peer
	}
	return c, nil
}

// evict closes the connection that has been idle longest; false where none is idle.
func (l *Listener) evict() bool {
	l.mu.Lock()
	oldest := l.takeOldest()
	l.mu.Unlock()
	return oldest != nil && oldest.Conn.Close() == nil
}

// takeOldest forgets the connection that has been idle longest. The caller holds the mutex and closes the connection without it.
func (l *Listener) takeOldest() *conn {
	front := l.idle.Front()
	if front == nil {
		return nil
	}
	c, _ := front.Value.(*conn)
	l.forget(c)
	l.count++
	if now := l.opts.Now(); now.Sub(l.logged) >= logEvery {
		l.opts.Log.Warn("The oldest idle connections were closed to make room for new ones",
			"closed", l.count, "limit", l.opts.Max, "setting", "api.max_connections")
		l.logged, l.count = now, 0
	}
	return c
}

// forget takes a connection out of the books. The caller holds the mutex.
func (l *Listener) forget(c *conn) {
	if c.idle != nil {
		l.idle.Remove(c.idle)
		c.idle = nil
	}
	delete(l.conns, c)
}

// ConnState is the hook of [http.Server] that reports whether a request is in flight. The server calls it with the state idle after the
// last byte of an answer was written, so that no answer is cut off.
func (l *Listener) ConnState(server net.Conn, state http.ConnState) {
	if encrypted, ok := server.(*tls.Conn); ok {
		server = encrypted.NetConn()
	}
	c, ok := server.(*conn)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.conns[c]; !open {
		return
	}
	switch state {
	case http.StateActive:
		if c.idle != nil {
			l.idle.Remove(c.idle)
			c.idle = nil
		}
	case http.StateIdle:
		if c.idle == nil {
			c.idle = l.idle.PushBack(c)
		}
		l.room.Signal()
	case http.StateNew, http.StateHijacked, http.StateClosed: // Accept counts new ones, and Close those that end
	}
}

// Close closes the connection and makes room for another one.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	c.listener.forget(c)
	c.listener.mu.Unlock()
	c.listener.room.Signal()
	return c.Conn.Close()
}
