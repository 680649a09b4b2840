package permission

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// logEvery is the minimum interval between log lines about closed connections.
const logEvery = time.Minute

// ListenerOptions bound a listener.
type ListenerOptions struct {
	// Max is the maximum number of open connections, at least 1.
	Max int
	Log *slog.Logger
	Now func() time.Time
}

// Listener bounds its open connections, so that connections without a request cannot lock out other callers. Its
// ConnState must be the server's hook of that name.
//
//	limited := permission.NewListener(listener, permission.ListenerOptions{Max: 4096, Log: log})
//	server := &http.Server{ConnState: limited.ConnState, ConnContext: limited.ConnContext, …}
//	err := server.Serve(limited)
//
// A connection is idle while no request is in flight on it: it has sent nothing, a partial header or a partial TLS
// handshake, it is between two requests, or it is an HTTP/2 connection without streams. It is that of a stranger until
// a request on it was authenticated.
//
// Over the limit, a new connection closes another one: first that of a stranger, also while it sends a request, and
// among them the one that has not changed between idle and active for the longest time; then the one that has been idle
// longest. While every connection has an authenticated request in flight, one new connection waits accepted and the
// others in the kernel.
//
// A process that has run out of file descriptors closes an idle connection in the same way before it accepts another
// one.
//
// A listener sets no deadlines: the server's settings limit the time for a header and for an idle connection.
type Listener struct {
	net.Listener

	opts ListenerOptions

	mu    sync.Mutex
	room  sync.Cond // signaled when a connection ends or becomes idle, and when the listener closes
	conns map[*conn]struct{}
	// strangers and idle are the connections that may be closed, of *conn, the one that has been in its list for the
	// longest time first: those without an authenticated request so far, and those with one that are idle.
	strangers *list.List
	idle      *list.List
	closed    bool
	logged    time.Time
	count     int // connections that were closed since the last log line
}

// conn is an open connection.
type conn struct {
	net.Conn

	listener *Listener
	known    bool          // a request was authenticated
	in       *list.List    // the list that it is in; nil for none
	element  *list.Element // in that list
}

// NewListener wraps a listener.
func NewListener(inner net.Listener, opts ListenerOptions) *Listener {
	opts.Max = max(opts.Max, 1)
	l := &Listener{Listener: inner, opts: opts, conns: map[*conn]struct{}{}, strangers: list.New(), idle: list.New()}
	l.room.L = &l.mu
	return l
}

// Accept returns the next connection, after closing another one if the limit requires that.
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

// admit reserves a slot for a connection, and waits while there is none.
func (l *Listener) admit(accepted net.Conn) (net.Conn, error) {
	l.mu.Lock()
	for len(l.conns) >= l.opts.Max && l.strangers.Len()+l.idle.Len() == 0 && !l.closed {
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
	c.enter(l.strangers)
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Conn.Close() // the close itself notifies its peer
	}
	return c, nil
}

// evict closes the connection that takeOldest returns; it returns false if there is none.
func (l *Listener) evict() bool {
	l.mu.Lock()
	oldest := l.takeOldest()
	l.mu.Unlock()
	return oldest != nil && oldest.Conn.Close() == nil
}

// takeOldest removes the connection that makes room for another one; nil if none may be closed. The caller holds the
// mutex and closes the connection after releasing it.
func (l *Listener) takeOldest() *conn {
	front := l.strangers.Front()
	if front == nil {
		front = l.idle.Front()
	}
	if front == nil {
		return nil
	}
	c, _ := front.Value.(*conn)
	l.forget(c)
	l.count++
	if now := l.opts.Now(); now.Sub(l.logged) >= logEvery {
		l.opts.Log.Warn("The oldest connections without a valid token, or without a request, were closed to make room for "+
			"new ones",
			"closed", l.count, "limit", l.opts.Max, "setting", "api.max_connections")
		l.logged, l.count = now, 0
	}
	return c
}

// forget removes a connection from the bookkeeping. The caller holds the mutex.
func (l *Listener) forget(c *conn) {
	c.enter(nil)
	delete(l.conns, c)
}

// enter moves a connection to the end of a list; nil: to none. The caller holds the mutex.
func (c *conn) enter(to *list.List) {
	if c.in != nil {
		c.in.Remove(c.element)
	}
	c.in, c.element = to, nil
	if to != nil {
		c.element = to.PushBack(c)
	}
}

type connKey struct{}

// ConnContext is the hook of [http.Server] that adds the connection to the context of its requests.
func (l *Listener) ConnContext(ctx context.Context, server net.Conn) context.Context {
	if c := l.connOf(server); c != nil {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// authenticated records that a request on the connection of ctx was authenticated.
func authenticated(ctx context.Context) {
	c, ok := ctx.Value(connKey{}).(*conn)
	if !ok {
		return
	}
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if _, open := c.listener.conns[c]; open && !c.known {
		c.known = true
		c.enter(nil) // a request is in flight
	}
}

// connOf returns the connection of this listener that a server uses, perhaps through TLS; nil if it is another one.
func (l *Listener) connOf(server net.Conn) *conn {
	if encrypted, ok := server.(*tls.Conn); ok {
		server = encrypted.NetConn()
	}
	c, _ := server.(*conn)
	return c
}

// ConnState is the hook of [http.Server] that reports whether a request is in flight. The server calls it with the
// state idle after it has written the last byte of a response, so no response to an authenticated request is cut off.
func (l *Listener) ConnState(server net.Conn, state http.ConnState) {
	c := l.connOf(server)
	if c == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.conns[c]; !open {
		return
	}
	switch {
	case state != http.StateActive && state != http.StateIdle: // Accept counts new ones, and Close those that end
	case !c.known:
		c.enter(l.strangers)
	case state == http.StateActive:
		c.enter(nil)
	case c.in == nil:
		c.enter(l.idle)
	}
	if state == http.StateIdle {
		l.room.Signal()
	}
}

// Close closes the connection and frees its slot.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	c.listener.forget(c)
	c.listener.mu.Unlock()
	c.listener.room.Signal()
	return c.Conn.Close()
}
