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

// Read implements [net.Conn]. Bytes that arrive while the direction is blocked are kept until it is open, and dropped
// if the connection is lost.
func (c *conn) Read(p []byte) (int, error) {
	if err := c.awaitOpen(ToServer); err != nil {
		return 0, err
	}
	n, err := c.raw.Read(p)
	if held := c.awaitOpen(ToServer); held != nil {
		return 0, held
	}
	return n, err
}

// Write implements [net.Conn]. A write to a lost connection returns without an error and sends nothing.
func (c *conn) Write(p []byte) (int, error) {
	if err := c.awaitOpen(ToClient); err != nil {
		return 0, err
	}
	if c.isLost() {
		return len(p), nil
	}
	return c.raw.Write(p)
}

// Close implements [net.Conn]. A lost connection stays open towards its client.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.done) })
	if c.isLost() {
		return nil
	}
	defer c.port.remove(c)
	return c.raw.Close()
}

// reset ends a connection at once with a TCP reset, as the kernel does for a process that died.
func (c *conn) reset() {
	_ = c.raw.SetLinger(0) // a failure means that the client was faster
	_ = c.raw.Close()
	c.once.Do(func() { close(c.done) })
	c.port.remove(c)
}

// discard drops what the client of a lost connection sends until the client closes it.
func (c *conn) discard() {
	_, _ = io.Copy(io.Discard, c.raw)
	_ = c.raw.Close()
	c.port.remove(c)
}

// awaitOpen waits until bytes may pass in a direction. Nothing more is read from a lost connection: its reader blocks
// until Close.
func (c *conn) awaitOpen(d Direction) error {
	for {
		c.port.mu.Lock()
		held, moved := c.port.frozen || c.port.blocked&d != 0, c.port.changed
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
