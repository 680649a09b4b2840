package wire

import (
	"errors"
	"fmt"
	"net"
	"sync"
)

// Direction is a direction of a connection. Directions can be combined with |.
type Direction uint8

const (
	// ToServer is what clients send.
	ToServer Direction = 1 << iota
	// ToClient is what the server sends.
	ToClient
)

// Port is a TCP port of the loopback interface. All methods may be called at any time from any goroutine.
type Port struct {
	reserved reservation
	address  *net.TCPAddr
	notify   func()
	queue    chan *conn
	ended    chan struct{}
	tasks    sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	listener *net.TCPListener // nil while stopped
	conns    map[*conn]struct{}
	accepted int
	mute     bool
	blocked  Direction
	frozen   bool
	changed  chan struct{} // closed and replaced when blocked or frozen changes, or connections are lost
}

// Open reserves a free port. It refuses connections until [Port.Listen]. notify is called after every change of
// [Port.Connections] and [Port.Accepted], without a lock held.
func Open(notify func()) (*Port, error) {
	reserved, address, err := reserve()
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	return &Port{
		reserved: reserved, address: address, notify: notify,
		queue: make(chan *conn), ended: make(chan struct{}),
		conns: map[*conn]struct{}{}, changed: make(chan struct{}),
	}, nil
}

// Addr returns the address of the port, also while it refuses connections.
func (p *Port) Addr() *net.TCPAddr { return p.address }

// Listen accepts connections from now on. It does nothing on a port that already does.
func (p *Port) Listen() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return net.ErrClosed
	}
	if p.listener != nil {
		return nil
	}
	listener, err := net.ListenTCP("tcp4", p.address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", p.address, err)
	}
	p.listener = listener
	p.tasks.Go(func() { p.accept(listener) })
	return nil
}

// Stop refuses connections from now on and resets open ones, except lost ones. The port stays reserved.
func (p *Port) Stop() {
	p.mu.Lock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	p.mu.Unlock()
	p.Cut()
}

// Cut resets all connections, except lost ones.
func (p *Port) Cut() {
	for _, c := range p.openConns() {
		c.reset()
	}
}

// Block lets no byte pass in the given directions, on any connection, until [Port.Unblock].
func (p *Port) Block(d Direction) { p.update(func() { p.blocked |= d }) }

// Unblock ends [Port.Block] in the given directions.
func (p *Port) Unblock(d Direction) { p.update(func() { p.blocked &^= d }) }

// Freeze lets no byte pass in either direction, on any connection; false ends that.
func (p *Port) Freeze(freeze bool) { p.update(func() { p.frozen = freeze }) }

// Mute makes future connections lost ones from their first byte on; false ends that.
func (p *Port) Mute(mute bool) { p.update(func() { p.mute = mute }) }

// Lose makes all open connections lost ones.
func (p *Port) Lose() {
	conns := p.openConns()
	p.update(func() {
		for _, c := range conns {
			p.lose(c)
		}
	})
}

// lose marks a connection as lost and counts it until its client closes it. The lock is held.
func (p *Port) lose(c *conn) {
	if _, open := p.conns[c]; open && !c.lost && !p.closed {
		c.lost = true
		p.tasks.Go(c.discard)
	}
}

// Connections returns the number of open connections. A connection that its client has closed is noticed by reading, so
// not while ToServer is blocked.
func (p *Port) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// Accepted returns the number of connections accepted since Open.
func (p *Port) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Close ends the port, its connections, including lost ones, and its goroutines.
func (p *Port) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	close(p.ended)
	var err error
	if p.listener != nil {
		err = p.listener.Close()
		p.listener = nil
	}
	conns := make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		conns = append(conns, c)
	}
	p.mu.Unlock()
	for _, c := range conns {
		c.reset()
	}
	p.tasks.Wait()
	return errors.Join(err, p.reserved.release())
}

// update changes the state of the port and wakes the goroutines that wait for a change.
func (p *Port) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Port) openConns() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	var conns []*conn
	for c := range p.conns {
		if !c.lost {
			conns = append(conns, c)
		}
	}
	return conns
}

func (p *Port) accept(listener *net.TCPListener) {
	for {
		raw, err := listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the connection ended before it was accepted
		}
		p.admit(listener, raw)
	}
}

// admit registers a connection and passes it to the server, unless the port was stopped meanwhile.
func (p *Port) admit(listener *net.TCPListener, raw *net.TCPConn) {
	c := &conn{Conn: raw, port: p, raw: raw, done: make(chan struct{})}
	p.mu.Lock()
	if p.listener != listener {
		p.mu.Unlock()
		c.reset()
		return
	}
	p.conns[c] = struct{}{}
	p.accepted++
	mute := p.mute
	if mute {
		p.lose(c)
	}
	p.mu.Unlock()
	p.notify()
	if mute {
		return
	}
	select {
	case p.queue <- c:
	case <-c.done:
	case <-p.ended:
	}
}

// remove removes a connection that has ended.
func (p *Port) remove(c *conn) {
	p.mu.Lock()
	_, open := p.conns[c]
	delete(p.conns, c)
	p.mu.Unlock()
	if open {
		p.notify()
	}
}

// Listener returns a listener for a server. Each connection goes to one of the open listeners. Closing a listener does
// not affect the port and its connections, so one server can replace another.
func (p *Port) Listener() net.Listener {
	return &portListener{port: p, done: make(chan struct{})}
}

type portListener struct {
	port *Port
	once sync.Once
	done chan struct{}
}

// Accept implements [net.Listener].
func (b *portListener) Accept() (net.Conn, error) {
	select {
	case c := <-b.port.queue:
		return c, nil
	case <-b.done:
	case <-b.port.ended:
	}
	return nil, net.ErrClosed
}

// Close implements [net.Listener].
func (b *portListener) Close() error {
	b.once.Do(func() { close(b.done) })
	return nil
}

// Addr implements [net.Listener].
func (b *portListener) Addr() net.Addr { return b.port.address }
