package resource_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/httpcall"
	"github.com/signalbox-dev/signalbox/internal/engine/resource"
)

// nameServer answers each query for IPv4 addresses with the next of its lists, and from then on with the last one.
type nameServer struct {
	conn  net.PacketConn
	mu    sync.Mutex
	lists [][]string
	asked int
}

func newNameServer(t *testing.T, lists ...[]string) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &nameServer{conn: conn, lists: lists}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.serve()
	}()
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		<-ended
	})
	return s
}

func (s *nameServer) serve() {
	packet := make([]byte, 1<<10)
	for {
		n, from, err := s.conn.ReadFrom(packet)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(packet[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		if m.Questions[0].Type == dnsmessage.TypeA {
			for _, address := range s.next() {
				m.Answers = append(m.Answers, dnsmessage.Resource{
					Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Class: dnsmessage.ClassINET},
					Body:   &dnsmessage.AResource{A: netip.MustParseAddr(address).As4()},
				})
			}
		}
		if answer, err := m.Pack(); err == nil {
			_, _ = s.conn.WriteTo(answer, from)
		}
	}
}

func (s *nameServer) next() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.lists[min(s.asked, len(s.lists)-1)]
	s.asked++
	return list
}

// resolver asks the server.
func (s *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", s.conn.LocalAddr().String())
	}}
}

// TestNamesThatChangeTheirAddress: a name that resolved to a permitted address is refused once it resolves to another
// one. The origin is at all addresses of this machine, of which one counts as public.
func TestNamesThatChangeTheirAddress(t *testing.T) {
	t.Parallel()
	const public, private = "127.0.0.1", "127.0.0.2"
	for name, c := range map[string]struct {
		lists        [][]string
		path         string
		again        bool // two requests, of which the second is refused
		passes       bool
		requests     int
		askedAtLeast int
	}{
		"between two requests": {
			lists: [][]string{{public}, {private}}, path: "/f.yaml", again: true, requests: 1, askedAtLeast: 2},
		"between redirects": {lists: [][]string{{public}, {private}}, path: "/moved", requests: 1, askedAtLeast: 2},
		"at once":           {lists: [][]string{{private}}, path: "/f.yaml", askedAtLeast: 1},
		"metadata":          {lists: [][]string{{"169.254.169.254"}}, path: "/f.yaml", askedAtLeast: 1},
		"a public one beside it": {
			lists: [][]string{{private, public}}, path: "/f.yaml", passes: true, requests: 1, askedAtLeast: 1},
		"never": {lists: [][]string{{public}}, path: "/moved", passes: true, requests: 2, askedAtLeast: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var reached []string
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
				mu.Lock()
				reached = append(reached, netip.MustParseAddrPort(at.String()).Addr().Unmap().String())
				mu.Unlock()
				w.Header().Set("Connection", "close") // each request resolves the name
				if r.URL.Path == "/moved" {
					http.Redirect(w, r, "/f.yaml", http.StatusFound)
				}
			}))
			require.NoError(t, server.Listener.Close())
			var err error
			server.Listener, err = net.Listen("tcp4", "0.0.0.0:0")
			require.NoError(t, err)
			server.Start()
			t.Cleanup(server.Close)
			_, port, err := net.SplitHostPort(server.Listener.Addr().String())
			require.NoError(t, err)
			url := "http://rebinding.example:" + port + c.path

			for kind, send := range map[string]func(*httpcall.Caller) error{
				"call": func(caller *httpcall.Caller) error {
					_, err := caller.Call(t.Context(), flow.HTTPRequest{
						Method: "GET", URL: url, Output: flow.OutputRaw, Redirect: true, Timeout: time.Minute, MaxResponseBytes: 1 << 10,
					})
					return err
				},
				"loader": func(caller *httpcall.Caller) error {
					_, err := resource.New(caller).Load(t.Context(), "shop", dsl.Reference{URI: url})
					return err
				},
			} {
				names := newNameServer(t, c.lists...)
				caller := httpcall.New(httpcall.Options{
					AllowPrivate: []netip.Prefix{netip.MustParsePrefix(public + "/32")}, Resolver: names.resolver(), Secrets: secrets{},
				})
				t.Cleanup(caller.Close)
				reached = nil
				if c.again {
					require.NoError(t, send(caller), kind)
				}
				if err := send(caller); c.passes {
					require.NoError(t, err, kind)
				} else {
					require.ErrorContains(t, err, "is not public", kind)
				}
				require.Len(t, reached, c.requests, kind)
				require.NotContains(t, reached, private, kind)
				require.GreaterOrEqual(t, names.asked, c.askedAtLeast, kind)
			}
		})
	}
}
