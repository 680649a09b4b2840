package container_test

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/sandbox/container"
	"github.com/signalbox-dev/signalbox/internal/sandbox/handover"
	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
	"github.com/signalbox-dev/signalbox/internal/sandbox/proxy"
	"github.com/signalbox-dev/signalbox/internal/sandbox/proxy/proxytest"
)

func TestMain(m *testing.M) {
	handover.Begin()
	os.Exit(m.Run())
}

// guarded are options for containers with a guarded network, whose sockets are in a folder of their own.
func guarded(t *testing.T, socket string, p *proxy.Proxy) container.Options {
	t.Helper()
	executable, err := elf.Open("/proc/self/exe")
	require.NoError(t, err)
	for _, segment := range executable.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Skip("this program is linked dynamically, as with the race detector, and does not begin in any container")
		}
	}
	require.NoError(t, executable.Close())
	o := options(socket)
	o.Network, o.Proxy = "guarded", p
	folder, err := os.MkdirTemp("", "sockets") // a path of a socket has at most 107 characters
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, os.Remove(folder), "sockets are left")
	})
	o.SocketFolder = folder
	return o
}

// networks makes the attempts of the test of bubblewrap: a container with a guarded network reaches what the guard
// permits, through the proxy, and nothing directly.
func networks(t *testing.T, socket string) {
	servers := proxytest.Start(t)
	open, closed := container.New(guarded(t, socket, servers.Open)), container.New(guarded(t, socket, servers.Closed))
	fetch := func(url string) string {
		// The end of the input of nc would cancel the request.
		return fmt.Sprintf(`mkfifo /tmp/in; nc 127.0.0.1 3128 </tmp/in & exec 3>/tmp/in
			printf 'GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' >&3; wait`, url)
	}
	connect := func(address, text string) string {
		return fmt.Sprintf(`printf 'CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n%s' | nc 127.0.0.1 3128`, address, text)
	}
	direct := func(host, port string) string { return fmt.Sprintf("nc -w 5 %s %s </dev/null 2>&1", host, port) }
	port, sitePort := proxytest.Port(t, servers.Platform), proxytest.Port(t, servers.Site)
	const refuses = "the proxy of the runner refuses the connection"
	for name, c := range map[string]struct {
		engine        *container.Engine
		code, printed string // a part
	}{
		"permitted":            {open, fetch("http://" + servers.Site + "/a"), "answer to GET /a"},
		"permitted by name":    {open, fetch("http://localhost:" + sitePort + "/b"), "answer to GET /b"},
		"tunnel":               {open, connect(servers.Echo, "hello"), "echo hello"},
		"directly":             {open, direct("127.0.0.1", sitePort), "Connection refused"},
		"directly outside":     {open, direct("1.1.1.1", "80"), "unreachable"},
		"a name directly":      {open, direct("example.com", "80"), "bad address"},
		"Temporal":             {open, fetch("http://" + servers.Platform), refuses},
		"Temporal by a tunnel": {open, connect("localhost:"+port, ""), "403 Forbidden"},
		"private":              {closed, fetch("http://" + servers.Site), refuses + ": the address 127.0.0.1 is not public"},
		"private by name":      {closed, connect("localhost:"+sitePort, ""), "403 Forbidden"},
		"metadata": {closed, fetch("http://169.254.169.254/latest/meta-data/"),
			refuses + ": the address 169.254.169.254 is not public"},
		"metadata by a tunnel":  {closed, connect("169.254.169.254:80", ""), "403 Forbidden"},
		"a network":             {closed, connect("10.0.0.1:443", ""), "403 Forbidden"},
		"mapped":                {closed, connect("[::ffff:127.0.0.1]:80", ""), "403 Forbidden"},
		"unspecified":           {closed, connect("0.0.0.0:80", ""), "403 Forbidden"},
		"no request to a proxy": {closed, fetch("/"), "400 Bad Request"},
		"interfaces":            {open, `ls /sys/class/net`, "lo\n"},
		"capabilities": {open, `grep -E 'Cap(Prm|Eff|Bnd|Amb)|NoNewPrivs' /proc/self/status | tr '\t\n' '  '`,
			"CapPrm: 0000000000000000 CapEff: 0000000000000000 CapBnd: 0000000000000000 CapAmb: 0000000000000000 NoNewPrivs: 1"},
		"descriptors": {open, `ls /proc/self/fd | tr '\n' ' '`, "0 1 2 3 "},
		"namespace":   {open, `unshare -U true 2>&1`, "not permitted"},
		"groups":      {open, `id -G`, "65534\n"},
		"a listener in its own host": {open,
			`nc -l -p 8080 -e echo own & until nc 127.0.0.1 8080 2>/dev/null; do :; done`, "own"},
		"processes": {open, `ls /proc | grep '^[0-9]' | head -1; cat /proc/1/comm; :`, "1\nsh\n"},
		"variables": {open, `env | grep -i proxy | grep -c 3128`, "6\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := run(t.Context(), c.engine, shell(c.code))
			require.NoError(t, err)
			require.Contains(t, r.Stdout, c.printed, r.Stderr)
		})
	}
}

// Programs in a guarded network begin, end and fail as others.
func guardedPrograms(t *testing.T, socket string) {
	o := guarded(t, socket, proxy.New(proxy.Options{}))
	e := container.New(o)
	p := shell(`echo "$1 $2 $A"; cat; echo e >&2; exit 7`, "one", "t wo")
	p.Stdin, p.Environment = "in\n", map[string]string{"A": "b"}
	r, err := run(t.Context(), e, p)
	require.NoError(t, err)
	require.Equal(t, result{7, "one t wo b\nin\n", "e\n"}, r)

	p = shell(`ulimit -n`)
	p.Entrypoint[0] = "sh" // it is found in PATH
	r, err = run(t.Context(), e, p)
	require.NoError(t, err)
	require.Equal(t, result{0, "1024\n", ""}, r)

	for want, change := range map[string]func(*container.Program){
		"/nothing: no such file":     func(p *container.Program) { p.Entrypoint = []string{"/nothing"} },
		"executable file not found":  func(p *container.Program) { p.Entrypoint = []string{"nothing"} },
		"signalbox/test:1 has no co": func(p *container.Program) { p.Entrypoint = nil },
		"16 processes at least":      func(p *container.Program) { p.Limits.Processes = 4 },
		"does not allow to publish":  func(p *container.Program) { p.Ports = map[string]string{"80": "80"} },
	} {
		p := shell(":")
		change(&p)
		_, err := run(t.Context(), e, p)
		refused, is := errors.AsType[*container.Refusal](err)
		require.True(t, is, "%s: %v", want, err)
		require.Contains(t, refused.Reason, want)
	}

	small := shell("echo small")
	small.Limits = limit.Limits{Memory: 16 << 20, Processes: 16, Processors: .1}
	r, err = run(t.Context(), e, small)
	require.NoError(t, err)
	require.Equal(t, "small\n", r.Stdout)
	_, err = run(t.Context(), e, shell(`x=xxxxxxxx; while :; do x=$x$x; done`))
	require.ErrorIs(t, err, container.ErrMemory)

	// A program narrows the network of the engine, and does not widen it.
	for network, printed := range map[limit.Network]string{limit.Host: "400 Bad Request", limit.None: "Connection refused"} {
		p := shell(`echo | nc 127.0.0.1 3128 2>&1`)
		p.Limits.Network = network
		r, err := run(t.Context(), e, p)
		require.NoError(t, err)
		require.Contains(t, r.Stdout, printed, "%s: %s", network, r.Stderr)
	}
	o.Network = "bridge"
	p = shell(`echo | nc 127.0.0.1 3128 2>&1`)
	p.Limits.Network = limit.Guarded
	r, err = run(t.Context(), container.New(o), p)
	require.NoError(t, err)
	require.Contains(t, r.Stdout, "400 Bad Request")

	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("canceled by the test")
	done := make(chan error, 1)
	go func() {
		_, err := run(ctx, e, shell(`trap '' TERM; while :; do sleep 1000; done`))
		done <- err
	}()
	require.Eventually(t, func() bool { return strings.Contains(strings.Join(all(t, socket), ""), "running") }, time.Minute,
		20*time.Millisecond)
	cancel(why)
	require.ErrorIs(t, <-done, why)
}

// The sockets of a process that was killed are removed by the next one, and those of one that runs are not.
func TestLeftSockets(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	left, others := filepath.Join(folder, "signalbox-program-1-1-A"), filepath.Join(folder, "another")
	for _, f := range []string{left, others} {
		require.NoError(t, os.Mkdir(f, 0o700))
	}
	e := container.New(container.Options{Socket: "/nowhere", SocketFolder: folder})
	require.Error(t, e.Sweep(t.Context()), "there is no engine")
	require.NoDirExists(t, left)
	require.DirExists(t, others)
}
