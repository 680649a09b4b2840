package platform

import (
	"io"
	"net"
	"sync"
	"time"
)

// Link is a TCP connection's way to a server, which a test can make slow or cut.
type Link struct {
	Address string

	upstream string
	listener net.Listener
	group    sync.WaitGroup

	mu    sync.Mutex
	delay time.Duration
	cut   bool
	open  map[net.Conn]bool
}

// NewLink opens a way to the server at an address. It ends with t.
func NewLink(t T, upstream string) *Link {
	t.Helper()
	listener, err := net.Listen("tcp", Address(0))
	if err != nil {
		t.Fatalf("open a way to %s: %v", upstream, err)
	}
	l := &Link{Address: listener.Addr().String(), upstream: upstream, listener: listener, open: map[net.Conn]bool{}}
	l.group.Go(l.accept)
	t.Cleanup(func() {
		_ = listener.Close() // it only stops accepting
		l.Cut()
		l.group.Wait()
	})
	return l
}

// Slow makes everything that is sent, in either direction, take so much longer.
func (l *Link) Slow(delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = delay
}

// Cut ends all connections, and new ones at once, until Mend.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for conn := range l.open {
		_ = conn.Close() // that is the purpose
	}
}

// Mend lets connections be made again.
func (l *Link) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
}

func (l *Link) accept() {
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
		if !l.keep(down, up) {
			continue
		}
		l.group.Go(func() { l.carry(up, down) })
		l.group.Go(func() { l.carry(down, up) })
	}
}

// keep holds a pair of connections for Cut.
func (l *Link) keep(pair ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range pair {
		if l.cut {
			_ = conn.Close() // as if nobody were there
			continue
		}
		l.open[conn] = true
	}
	return !l.cut
}

// carry hands bytes on until one side ends, and then ends both.
func (l *Link) carry(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			l.pause()
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

func (l *Link) pause() {
	l.mu.Lock()
	delay := l.delay
	l.mu.Unlock()
	if delay > 0 {
		<-time.After(delay)
	}
}
