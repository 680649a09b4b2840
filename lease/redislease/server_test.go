package redislease_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/freeport"
	"github.com/signalbox-dev/signalbox/lease"
)

// limit is the time limit for what must happen.
const limit = time.Minute

const tick = 5 * time.Millisecond

var (
	long = lease.Lifetime{TTL: 5 * time.Minute, Retention: 10 * time.Minute}
	// quick is renewed every 200 ms, and trusted for longer than a busy machine delays a renewal.
	quick = lease.KeepOptions{
		Interval: 200 * time.Millisecond, Margin: time.Second,
		Lifetime: lease.Lifetime{TTL: 11 * time.Second, Retention: time.Minute}}
)

// server is a Redis server of one test.
type server struct {
	addr string
	dir  string
	args []string
	cmd  *exec.Cmd
}

// start starts a Redis server for one test, without persistence, and stops it at the end of the test.
func start(t *testing.T, args ...string) *server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("there is no redis-server to start; scripts/services.sh install installs it")
	}
	port := freePort(t)
	s := &server{addr: net.JoinHostPort("127.0.0.1", port), dir: t.TempDir()}
	if len(args) == 0 || args[0] != "--sentinel" && args[0] != "--tls" {
		args = append([]string{"--port", port}, args...)
	}
	s.args = slices.Concat(args, []string{"--bind", "127.0.0.1", "--dir", s.dir})
	if args[0] == "--tls" {
		s.args = append([]string{"--port", "0", "--tls-port", port}, s.args[1:]...)
	}
	if args[0] == "--sentinel" {
		s.args = append([]string{args[1], "--sentinel", "--port", port}, s.args[2:]...)
	} else {
		s.args = append(s.args, "--save", "", "--appendonly", "no")
	}
	s.launch(t)
	t.Cleanup(func() { s.kill(t) })
	return s
}

func freePort(t *testing.T) string {
	t.Helper()
	port, release, err := freeport.Claim(t.Context())
	require.NoError(t, err)
	t.Cleanup(release)
	return strconv.Itoa(port)
}

func (s *server) launch(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer log.Close()
	s.cmd = exec.Command("redis-server", s.args...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	require.NoError(t, s.cmd.Start())
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", s.addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, limit, tick, "redis-server %v", s.args)
}

// kill kills the server process.
func (s *server) kill(t *testing.T) {
	t.Helper()
	if s.cmd == nil {
		return
	}
	require.NoError(t, s.cmd.Process.Kill())
	_ = s.cmd.Wait()
	s.cmd = nil
}

func (s *server) url() string { return "redis://" + s.addr }

// client returns a client for accesses that bypass the store.
func (s *server) client(t *testing.T) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.addr})
	t.Cleanup(func() { c.Close() })
	return c
}

// proxy is a TCP proxy in front of a server that can drop answers.
type proxy struct {
	addr string

	mu   sync.Mutex
	mode mode
	free chan struct{} // closed when answers are forwarded again
	cuts int           // how many answers to drop, with their connections
}

type mode int

const (
	pass mode = iota
	hold      // requests arrive, answers do not
	cut       // the connection breaks when the answer comes
)

// newProxy starts a proxy in front of an address.
func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{addr: l.Addr().String(), free: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			stop := context.AfterFunc(ctx, func() { near.Close(); far.Close() })
			all.Go(func() { defer stop(); p.copy(ctx, far, near, false) })
			all.Go(func() { p.copy(ctx, near, far, true) })
		}
	})
	t.Cleanup(func() {
		cancel()
		l.Close()
		all.Wait()
	})
	return p
}

func (p *proxy) copy(ctx context.Context, to, from net.Conn, answers bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil || answers && !p.forward(ctx) {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// forward waits while answers are held, and reports whether to forward an answer.
func (p *proxy) forward(ctx context.Context) bool {
	p.mu.Lock()
	mode, free := p.mode, p.free
	if mode == cut {
		if p.cuts--; p.cuts == 0 {
			p.mode = pass
		}
	}
	p.mu.Unlock()
	if mode == hold {
		select {
		case <-free:
		case <-ctx.Done():
		}
	}
	return mode != cut
}

func (p *proxy) set(m mode, cuts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode == hold {
		close(p.free)
		p.free = make(chan struct{})
	}
	p.mode, p.cuts = m, cuts
}
