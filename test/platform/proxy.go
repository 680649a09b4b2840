package platform

import (
	"io"
	"net"
	"sync"
	"time"
)

// Proxy is a TCP proxy in front of a server, which a test can slow down or cut.
type Proxy struct {
	Address string

	upstream string
	listener net.Listener
	group    sync.WaitGroup

	mu    sync.Mutex
	delay time.Duration
	cut   bool
	open  map[net.Conn]bool
}

// NewProxy starts a proxy for the server at an address. It stops when t ends.
func NewProxy(t T, upstream string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", Address(0))
	if err != nil {
		t.Fatalf("start a proxy for %s: %v", upstream, err)
	}
	l := &Proxy{Address: listener.Addr().String(), upstream: upstream, listener: listener, open: map[net.Conn]bool{}}
	l.group.Go(l.accept)
	t.Cleanup(func() {
		_ = listener.Close() // it only stops accepting
		l.Cut()
		l.group.Wait()
	})
	return l
}

// Slow delays every write, in both directions.
func (l *Proxy) Slow(delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = delay
}

// Cut closes all connections, and new ones at once, until Mend is called.
func (l *Proxy) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for conn := range l.open {
		_ = conn.Close() // the peers must see an error
	}
}

// Mend accepts connections again.
func (l *Proxy) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
}

func (l *Proxy) accept() {
	for {
		down, err := l.listener.Accept()
		if err != nil {
			return
		}
		up, err := net.Dial("tcp", l.upstream)
		if err != nil {
			_ = down.Close() // as the server itself would
			continue
		}
		if !l.track(down, up) {
			continue
		}
		l.group.Go(func() { l.copyBytes(up, down) })
		l.group.Go(func() { l.copyBytes(down, up) })
	}
}

// track records a pair of connections for Cut.
func (l *Proxy) track(pair ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range pair {
		if l.cut {
			_ = conn.Close() // as an unreachable server would
			continue
		}
		l.open[conn] = true
	}
	return !l.cut
}

// copyBytes forwards bytes until one side ends, and then closes both.
func (l *Proxy) copyBytes(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			l.waitDelay()
			if _, failed := to.Write(buffer[:n]); failed != nil {
				err = io.ErrClosedPipe
			}
		}
		if err != nil {
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range []net.Conn{to, from} {
		_ = conn.Close() // the other direction may have done so
		delete(l.open, conn)
	}
}

func (l *Proxy) waitDelay() {
	l.mu.Lock()
	delay := l.delay
	l.mu.Unlock()
	if delay > 0 {
		<-time.After(delay)
	}
}
