package wire

import (
	"io"
	"net"
	"sync"
)

// conn is a connection as the server sees it.
type conn struct {
	net.Conn // deadlines and addresses are those of the raw connection

	port *Port
	raw  *net.TCPConn
	once sync.Once
	done chan struct{} // closed when the server's side has ended
	lost bool          // guarded by the port's lock
}

// Read implements [net.Conn]. What arrives while it may not pass is kept back here, or thrown away when the connection is lost.
func (c *conn) Read(p []byte) (int, error) {
	if err := c.pass(ToServer); err != nil {
		return 0, err
	}
	n, err := c.raw.Read(p)
	if held := c.pass(ToServer); held != nil {
		return 0, held
	}
	return n, err
}

// Write implements [net.Conn]. What is written to a lost connection seems to be sent.
func (c *conn) Write(p []byte) (int, error) {
	if err := c.pass(ToClient); err != nil {
		return 0, err
	}
	if c.isLost() {
		return len(p), nil
	}
	return c.raw.Write(p)
}

// Close implements [net.Conn]. The client of a lost connection does not learn of it.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.done) })
	if c.isLost() {
		return nil
	}
	defer c.port.remove(c)
	return c.raw.Close()
}

// reset ends a connection at once, and its client learns of it as from a process that died.
func (c *conn) reset() {
	_ = c.raw.SetLinger(0) // a failure means that the client was faster
	_ = c.raw.Close()
	c.once.Do(func() { close(c.done) })
	c.port.remove(c)
}

// swallow throws away what the client of a lost connection sends until it has left.
func (c *conn) swallow() {
	_, _ = io.Copy(io.Discard, c.raw)
	_ = c.raw.Close()
	c.port.remove(c)
}

// pass waits until bytes may pass in a direction. Nothing more is read from a lost connection: its reader waits for its own end.
func (c *conn) pass(d Direction) error {
	for {
		c.port.mu.Lock()
		held, moved := c.port.frozen || c.port.held&d != 0, c.port.moved
		if c.lost {
			held = d == ToServer
		}
		c.port.mu.Unlock()
		if !held {
			return nil
		}
		select {
		case <-moved:
		case <-c.done:
			return net.ErrClosed
		case <-c.port.ended:
			return net.ErrClosed
		}
	}
}

func (c *conn) isLost() bool {
	c.port.mu.Lock()
	defer c.port.mu.Unlock()
	return c.lost
}
