package process_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/sandbox/handover"
	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
	"github.com/signalbox-dev/signalbox/internal/sandbox/process"
	"github.com/signalbox-dev/signalbox/internal/sandbox/proxy"
	"github.com/signalbox-dev/signalbox/internal/sandbox/proxy/proxytest"
)

func TestMain(m *testing.M) {
	handover.Begin()
	os.Exit(m.Run())
}

func python(code string, arguments ...string) process.Program {
	return process.Program{Command: append([]string{"python3", "-c", code}, arguments...)}
}

const fetch = `
import sys, urllib.request, urllib.error
try: print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())
except urllib.error.HTTPError as e: print(e.code, e.read().decode().strip())
except Exception as e: print(type(e).__name__, e)`

const direct = `
import socket, sys
try: socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5); print("connected")
except OSError as e: print(e.strerror or e)`

// connect asks the proxy for a connection, and prints the answer.
const connect = `
import os, socket, sys, urllib.parse
proxy = urllib.parse.urlparse(os.environ["HTTPS_PROXY"])
s = socket.create_connection((proxy.hostname, proxy.port))
s.sendall(("CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n" % sys.argv[1]).encode())
print(s.recv(4096).decode())
if len(sys.argv) > 2:
    s.sendall(sys.argv[2].encode()); s.shutdown(socket.SHUT_WR); print(s.recv(4096).decode())`

// A program with a guarded network reaches what the guard permits, through the proxy, and nothing directly.
func TestGuardedNetwork(t *testing.T) {
	t.Parallel()
	servers := proxytest.Start(t)
	guarded := func(p *proxy.Proxy) *process.Sandbox {
		o := options(process.Bubblewrap)
		o.Limits.Network, o.Proxy = limit.Guarded, p
		return newSandbox(t, o)
	}
	open, closed := guarded(servers.Open), guarded(servers.Closed)
	site, port := "http://"+servers.Site, proxytest.Port(t, servers.Platform)
	host, sitePort, err := net.SplitHostPort(servers.Site)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		sandbox *process.Sandbox
		program process.Program
		printed string // a part
	}{
		"permitted":                  {open, withoutExceptions(python(fetch, site+"/a")), "answer to GET /a"},
		"permitted by name":          {open, withoutExceptions(python(fetch, "http://localhost:"+sitePort+"/b")), "answer to GET /b"},
		"tunnel":                     {open, python(connect, servers.Echo, "hello"), "echo hello"},
		"directly":                   {open, python(direct, host, sitePort), "Connection refused"},
		"directly outside":           {open, python(direct, "1.1.1.1", "80"), "unreachable"},
		"a name directly":            {open, python(direct, "example.com", "80"), "resol"},
		"Temporal":                   {open, withoutExceptions(python(fetch, "http://"+servers.Platform)), "403 the proxy of the runner refuses the connection"},
		"Temporal by a tunnel":       {open, python(connect, "localhost:"+port), "403 Forbidden"},
		"private":                    {closed, withoutExceptions(python(fetch, site)), "403 the proxy of the runner refuses the connection: the address 127.0.0.1 is not public"},
		"private by name":            {closed, python(connect, "localhost:"+sitePort), "403 Forbidden"},
		"metadata":                   {closed, python(fetch, "http://169.254.169.254/latest/meta-data/"), "the address 169.254.169.254 is not public"},
		"metadata by a tunnel":       {closed, python(connect, "169.254.169.254:80"), "403 Forbidden"},
		"a network":                  {closed, python(connect, "10.0.0.1:443"), "403 Forbidden"},
		"mapped":                     {closed, python(connect, "[::ffff:127.0.0.1]:80"), "403 Forbidden"},
		"unspecified":                {closed, python(connect, "0.0.0.0:80"), "403 Forbidden"},
		"no request to a proxy":      {closed, python(fetch, "http://127.0.0.1:3128/"), "400 this is a proxy"},
		"interfaces":                 {open, process.Program{Command: []string{"sh", "-c", "cut -d: -f1 /proc/net/dev | tail -n +3"}}, "lo"},
		"capabilities":               {open, shell(`grep -E 'Cap(Prm|Eff|Bnd|Amb)' /proc/self/status | tr '\t\n' '  '`), "CapPrm: 0000000000000000 CapEff: 0000000000000000 CapBnd: 0000000000000000 CapAmb: 0000000000000000"},
		"descriptors":                {open, shell(`ls /proc/self/fd | tr '\n' ' '`), "0 1 2 3 "},
		"namespace":                  {open, shell(`unshare -Ur true 2>&1`), "not permitted"},
		"groups":                     {open, shell(`id -G`), "1000"},
		"a listener in its own host": {open, python("import socket; s = socket.create_server(('127.0.0.1', 80 + 8000)); c = socket.create_connection(s.getsockname()); print('own')"), "own"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := run(t.Context(), c.sandbox, c.program)
			require.NoError(t, err)
			require.Contains(t, r.Stdout, c.printed, r.Stderr)
		})
	}
}

// withoutExceptions makes a program send requests for its own host to the proxy.
func withoutExceptions(p process.Program) process.Program {
	p.Environment = map[string]string{"NO_PROXY": "", "no_proxy": ""}
	return p
}

// The limits of a program narrow the network of a sandbox, and do not widen it.
func TestNetworkOfOneProgram(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(site.Close)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(site.URL, "http://"))
	require.NoError(t, err)
	o := options(process.Bubblewrap)
	o.Limits.Network, o.Proxy = limit.Host, proxy.New(proxy.Options{})
	s := newSandbox(t, o)
	for network, printed := range map[limit.Network]string{
		"": "connected\n", limit.Host: "connected\n", limit.Guarded: "Connection refused\n", limit.None: "Connection refused\n",
	} {
		p := python(direct, "127.0.0.1", port)
		p.Limits.Network = network
		r, err := run(t.Context(), s, p)
		require.NoError(t, err)
		require.Equal(t, printed, r.Stdout, fmt.Sprintf("%s: %s", network, r.Stderr))
	}
	p := shell(":")
	p.Limits.Network = limit.Guarded
	_, err = run(t.Context(), newSandbox(t, options(process.None)), p)
	require.ErrorIs(t, err, process.ErrNetwork)
	_, err = run(t.Context(), newSandbox(t, options(process.Bubblewrap)), p)
	require.NoError(t, err, "the sandbox has no network, so that it needs no proxy")
}
