// Package proxy connects programs to the addresses that they may reach. A program that has no other network sends its
// requests to a proxy for HTTP, which refuses addresses that are not public, and those of the platform's own services.
//
//	p := proxy.New(proxy.Options{Guard: netguard.New(allowed), Refused: []string{"temporal:7233"}})
//	stop := p.Serve(ctx, listener)
//	defer stop()
//
// CONNECT makes a connection to any port, other methods forward a request for an http address. The guard checks the
// address of each connection itself, after the resolution of the name by this process: a name cannot resolve to another
// address afterwards.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/signalbox-dev/signalbox/internal/netguard"
)

const (
	// dialTimeout bounds the time until a connection is made.
	dialTimeout = 15 * time.Second
	// headerTimeout bounds the time in which a program sends the head of a request, maxHeader its size.
	headerTimeout = 15 * time.Second
	maxHeader     = 64 << 10
	// maxConnections bounds the connections of one program to the proxy.
	maxConnections = 64
)

// Options configure a proxy.
type Options struct {
	// Guard decides which addresses are reached.
	Guard netguard.Guard
	// Refused are services, as host:port, that are never reached, even if the guard permits their addresses.
	Refused []string
}

// Proxy forwards the connections of programs. It is safe for concurrent use.
type Proxy struct {
	opts      Options
	dialer    *net.Dialer
	forwarder *httputil.ReverseProxy
}

// New returns a proxy.
func New(o Options) *Proxy {
	p := &Proxy{opts: o}
	p.dialer = &net.Dialer{Timeout: dialTimeout, ControlContext: p.control}
	p.forwarder = &httputil.ReverseProxy{
		Rewrite:      func(*httputil.ProxyRequest) {}, // the request has the address already
		Transport:    &http.Transport{DialContext: p.dialer.DialContext, DisableKeepAlives: true, DisableCompression: true},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { refuse(w, err) },
		ErrorLog:     log.New(io.Discard, "", 0), // the program has the error
	}
	return p
}

// control checks the address of a connection.
func (p *Proxy) control(ctx context.Context, network, address string, c syscall.RawConn) error {
	if err := p.opts.Guard.Control(ctx, network, address, c); err != nil {
		return err
	}
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	for _, service := range p.opts.Refused {
		is, err := resolvesTo(ctx, service, target)
		if err != nil {
			return fmt.Errorf("the address %s cannot be checked: %w", target, err)
		}
		if is {
			return &netguard.BlockedError{What: fmt.Sprintf("the address %s is one of the platform itself", target)}
		}
	}
	return nil
}

// resolvesTo reports whether a service has an address.
func resolvesTo(ctx context.Context, service string, target netip.AddrPort) (bool, error) {
	host, port, err := net.SplitHostPort(service)
	if err != nil {
		return false, err
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err != nil || number != int(target.Port()) {
		return false, err
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return false, err
	}
	for _, a := range addresses {
		if a.Unmap() == target.Addr().Unmap() || a.IsUnspecified() {
			return true, nil
		}
	}
	return false, nil
}

// Serve serves the connections of a listener, which it takes over, until stop is called. stop closes all connections, as
// the end of ctx closes those of CONNECT.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var tunnels sync.WaitGroup
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodConnect {
				tunnels.Add(1)
				defer tunnels.Done()
				p.tunnel(ctx, w, r)
				return
			}
			p.forward(w, r)
		}),
		ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeader, ErrorLog: log.New(io.Discard, "", 0),
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(&bounded{listener, make(chan struct{}, maxConnections)}) }) // stop ends it
	return func() {
		cancel()
		_ = server.Close()
		serving.Wait()
		tunnels.Wait()
	}
}

// forward sends a request for an http address.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request) {
	if r.URL.Scheme != "http" || r.URL.Host == "" {
		http.Error(w, "this is a proxy: send requests with a full http address, and CONNECT for others", http.StatusBadRequest)
		return
	}
	p.forwarder.ServeHTTP(w, r)
}

// tunnel connects a program with an address, until one of them closes the connection or ctx ends.
func (p *Proxy) tunnel(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	target, err := p.dialer.DialContext(ctx, "tcp", r.Host)
	if err != nil {
		refuse(w, err)
		return
	}
	defer func() { _ = target.Close() }()
	program, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // the program has closed the connection
	}
	defer func() { _ = program.Close() }()
	stop := context.AfterFunc(ctx, func() { _, _ = target.Close(), program.Close() })
	defer stop()
	if _, err := io.WriteString(program, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var copying sync.WaitGroup
	copying.Go(func() { pass(target, buffered) })
	pass(program, target)
	copying.Wait()
}

// pass copies what one side sends to the other one, and then its end.
func pass(to net.Conn, from io.Reader) {
	_, err := io.Copy(to, from)
	half, is := to.(interface{ CloseWrite() error })
	if err != nil || !is {
		_ = to.Close()
		return
	}
	_ = half.CloseWrite() // the other side has gone
}

// refuse answers a request whose connection was not made.
func refuse(w http.ResponseWriter, err error) {
	if blocked, is := errors.AsType[*netguard.BlockedError](err); is {
		http.Error(w, "the proxy of the runner refuses the connection: "+blocked.Error(), http.StatusForbidden)
		return
	}
	http.Error(w, "the proxy of the runner did not get a connection: "+err.Error(), http.StatusBadGateway)
}

// bounded is a listener that accepts a connection only while fewer than the most are open.
type bounded struct {
	net.Listener
	slots chan struct{}
}

// Accept implements [net.Listener]. A closed listener returns from it: the slots of closed connections become free.
func (b *bounded) Accept() (net.Conn, error) {
	accepted, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	select {
	case b.slots <- struct{}{}:
		return &counted{Conn: accepted, release: sync.OnceFunc(func() { <-b.slots })}, nil
	default:
		_ = accepted.Close() // the program has too many
		return b.Accept()
	}
}

// counted is a connection that has a slot.
type counted struct {
	net.Conn
	release func()
}

// Close implements [net.Conn].
func (c *counted) Close() error {
	c.release()
	return c.Conn.Close()
}

// CloseWrite ends what is sent.
func (c *counted) CloseWrite() error {
	half, is := c.Conn.(interface{ CloseWrite() error })
	if !is {
		return c.Close()
	}
	return half.CloseWrite()
}
