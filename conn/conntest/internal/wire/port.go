package wire

import (
	"errors"
	"fmt"
	"net"
	"sync"
)

// Direction is one way of a connection. Directions can be combined with |.
type Direction uint8

const (
	// ToServer is what clients send.
	ToServer Direction = 1 << iota
	// ToClient is what the server answers.
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
	held     Direction
	frozen   bool
	moved    chan struct{} // closed and replaced when held or frozen changes, or connections are lost
}

// Open reserves a free port. It refuses connections until [Port.Listen]. The function is called after every change of what
// [Port.Connections] and [Port.Accepted] tell, without any lock held.
func Open(notify func()) (*Port, error) {
	reserved, address, err := reserve()
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	return &Port{
		reserved: reserved, address: address, notify: notify,
		queue: make(chan *conn), ended: make(chan struct{}),
		conns: map[*conn]struct{}{}, moved: make(chan struct{}),
	}, nil
}

// Addr is the address of the port, also while it refuses connections.
func (p *Port) Addr() *net.TCPAddr { return p.address }

// Listen accepts connections from now on. It does nothing on a port that does so already.
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

// Stop refuses connections from now on and resets those there are, except lost ones. The port stays reserved.
func (p *Port) Stop() {
	p.mu.Lock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	p.mu.Unlock()
	p.Cut()
}

// Cut resets all connections, except lost ones: nothing reaches their clients.
func (p *Port) Cut() {
	for _, c := range p.living() {
		c.reset()
	}
}

// Hold lets nothing pass in the given directions, on no connection, until [Port.Release].
func (p *Port) Hold(d Direction) { p.move(func() { p.held |= d }) }

// Release ends [Port.Hold] in the given directions.
func (p *Port) Release(d Direction) { p.move(func() { p.held &^= d }) }

// Freeze lets nothing pass at all, on no connection; false ends that.
func (p *Port) Freeze(freeze bool) { p.move(func() { p.frozen = freeze }) }

// Mute makes connections to come lost ones from their first byte on; false makes them normal ones again.
func (p *Port) Mute(mute bool) { p.move(func() { p.mute = mute }) }

// Lose makes all connections lost ones.
func (p *Port) Lose() {
	conns := p.living()
	p.move(func() {
		for _, c := range conns {
			p.lose(c)
		}
	})
}

// lose marks a connection and watches for its client to leave, so that it is not counted for ever. The lock is held.
func (p *Port) lose(c *conn) {
	if _, open := p.conns[c]; open && !c.lost && !p.closed {
		c.lost = true
		p.tasks.Go(c.swallow)
	}
}

// Connections counts the connections open now. That a client has left is noticed by reading: not while what clients send is
// held up.
func (p *Port) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// Accepted counts the connections there ever were.
func (p *Port) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Close ends the port, its connections, lost ones as well, and its goroutines.
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

// move changes the state of the port and wakes whoever waits for a change of it.
func (p *Port) move(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.moved)
	p.moved = make(chan struct{})
}

func (p *Port) living() []*conn {
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
			continue // a connection that ended before it was accepted
		}
		p.admit(listener, raw)
	}
}

// admit takes a connection in and hands it to the server, unless the port was stopped meanwhile.
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

// remove forgets a connection that has ended.
func (p *Port) remove(c *conn) {
	p.mu.Lock()
	_, open := p.conns[c]
	delete(p.conns, c)
	p.mu.Unlock()
	if open {
		p.notify()
	}
}

// Listener makes a listener that a server accepts from. Each connection goes to one of the listeners there are; to close one
// leaves the port and its connections as they are, so that one server can take over from another.
func (p *Port) Listener() net.Listener {
	return &branch{port: p, done: make(chan struct{})}
}

type branch struct {
	port *Port
	once sync.Once
	done chan struct{}
}

// Accept implements [net.Listener].
func (b *branch) Accept() (net.Conn, error) {
	select {
	case c := <-b.port.queue:
		return c, nil
	case <-b.done:
	case <-b.port.ended:
	}
	return nil, net.ErrClosed
}

// Close implements [net.Listener].
func (b *branch) Close() error {
	b.once.Do(func() { close(b.done) })
	return nil
}

// Addr implements [net.Listener].
func (b *branch) Addr() net.Addr { return b.port.address }
