package container_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/sandbox/container"
	"github.com/signalbox-dev/signalbox/internal/sandbox/container/enginetest"
	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
	"github.com/signalbox-dev/signalbox/internal/sandbox/output"
	"github.com/signalbox-dev/signalbox/internal/sandbox/proxy"
)

func options(socket string) container.Options {
	return container.Options{
		Socket: socket, Images: []string{"signalbox/test:*"}, MaxImage: 1 << 30, Network: "none", User: "65534:65534",
		Limits: limit.Limits{Memory: 64 << 20, Processes: 24, Processors: 1, Disk: 4 << 20},
	}
}

type result struct {
	Code           int
	Stdout, Stderr string
}

func run(ctx context.Context, e *container.Engine, p container.Program) (result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.Output = output.New(64<<10, cancel)
	if p.Cleanup == "" {
		p.Cleanup = container.CleanupAlways
	}
	if p.Image == "" {
		p.Image = "signalbox/test:1"
	}
	code, err := e.Run(ctx, p)
	stdout, stderr := p.Output.Text()
	return result{code, stdout, stderr}, err
}

func shell(code string, arguments ...string) container.Program {
	return container.Program{Entrypoint: []string{"/bin/sh", "-c", code, "sh"}, Arguments: arguments}
}

// all returns the names and states of all containers.
func all(t *testing.T, socket string) []string {
	t.Helper()
	_, answer := enginetest.Do(t, socket, http.MethodGet, "/containers/json?all=1", nil)
	var list []struct {
		Names []string
		State string
	}
	require.NoError(t, json.Unmarshal([]byte(answer), &list), answer)
	names := []string{}
	for _, c := range list {
		names = append(names, strings.Join(c.Names, ",")+" "+c.State)
	}
	return names
}

// The tests share one engine: it takes seconds to start.
func TestEngine(t *testing.T) {
	t.Parallel()
	socket := enginetest.Start(t)
	for name, test := range map[string]func(*testing.T, string){
		"programs": programs, "isolation": isolation, "bombs": bombs, "refusals": refusals, "cancellation": cancellation,
		"cleanup": cleanup, "killed": killed, "volumes": volumes, "networks": networks, "guarded programs": guardedPrograms,
		"hostile images": hostileImages, "huge images": hugeImages,
	} {
		t.Run(name, func(t *testing.T) { test(t, socket) })
		require.Empty(t, all(t, socket), name)
	}
}

func programs(t *testing.T, socket string) {
	e := container.New(options(socket))
	p := shell(`echo "$1 $2 $A"; cat; echo e >&2; echo x >/tmp/file; cat /tmp/file; exit 7`, "one", "t wo")
	p.Stdin, p.Environment = "in\n", map[string]string{"A": "b"}
	r, err := run(t.Context(), e, p)
	require.NoError(t, err)
	require.Equal(t, result{7, "one t wo b\nin\nx\n", "e\n"}, r)
	r, err = run(t.Context(), e, shell(`sh -c 'kill -9 $$'; exit $?`))
	require.NoError(t, err)
	require.Equal(t, 137, r.Code)
	p = shell(`head -c 10`)
	p.Stdin = strings.Repeat("x", 1<<20)
	r, err = run(t.Context(), e, p)
	require.NoError(t, err, "a program need not read its input")
	require.Equal(t, result{0, "xxxxxxxxxx", ""}, r)
}

func isolation(t *testing.T, socket string) {
	e := container.New(options(socket))
	environment, refused := fmt.Sprintf("/proc/%d/environ", os.Getpid()), "nc: can't connect to remote host "
	for code, printed := range map[string]string{
		`id -u; id -g`: "65534\n65534\n",
		`grep -E 'Cap(Prm|Eff|Bnd)|NoNewPrivs|Seccomp:' /proc/self/status`: "CapPrm:\t0000000000000000\nCapEff:\t" +
			"0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n",
		`touch /x 2>&1 || touch /bin/x 2>&1`: "touch: /x: Read-only file system\ntouch: /bin/x: Read-only file system\n",
		`(echo x >/proc/sys/kernel/core_pattern) 2>&1`: "sh: line 0: can't create /proc/sys/kernel/core_pattern: " +
			"Read-only file system\n",
		`env | grep -vE '^(PATH|HOME|HOSTNAME|SHLVL|PWD)='`:       "",
		`ls /proc | grep '^[0-9]' | head -1; cat /proc/1/comm; :`: "1\nsh\n",
		"cat " + environment + " 2>&1":                            "cat: can't open '" + environment + "': No such file or directory\n",
		`ls /sys/class/net`:                                       "lo\n",
		"nc -w 5 127.0.0.1 " + listens(t) + " 2>&1 </dev/null":    refused + "(127.0.0.1): Connection refused\n",
		`nc -w 5 1.1.1.1 80 2>&1 </dev/null`:                      refused + "(1.1.1.1): Network is unreachable\n",
	} {
		r, err := run(t.Context(), e, shell(code))
		require.NoError(t, err)
		require.Equal(t, printed, r.Stdout, code+r.Stderr)
	}
}

// listens returns a port of the host at which a server listens.
func listens(t *testing.T) (port string) {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	return port
}

func bombs(t *testing.T, socket string) {
	e := container.New(options(socket))
	r, err := run(t.Context(), e, shell(`for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do sleep 100 & done`))
	require.NoError(t, err)
	require.NotZero(t, r.Code)
	require.Contains(t, r.Stderr, "can't fork")
	r, err = run(t.Context(), e, shell(`(trap '' XFSZ; dd if=/dev/zero of=/tmp/a bs=1M); exit 9`))
	require.NoError(t, err)
	require.Equal(t, 9, r.Code, r.Stderr)
	_, err = run(t.Context(), e, shell(`x=xxxxxxxx; while :; do x=$x$x; done`))
	require.ErrorIs(t, err, container.ErrMemory)
	_, err = run(t.Context(), e, shell(`while :; do echo xxxxxxxxxxxxxxxxxxxxxxxx; done`))
	require.ErrorIs(t, err, output.ErrFull)
}

func refusals(t *testing.T, socket string) {
	e := container.New(options(socket))
	for want, change := range map[string]func(*container.Program){
		"the image docker.io/library/alpine:latest is not among runner.containers.images": func(p *container.Program) {
			p.Image = "alpine"
		},
		"is not the name of an image": func(p *container.Program) { p.Image = "signalbox/test:1?x" },
		"does not have the image docker.io/signalbox/test:2, and pullPolicy is never": func(p *container.Program) {
			p.Image, p.Pull = "signalbox/test:2", container.PullNever
		},
		"the image docker.io/signalbox/test:2 cannot be pulled": func(p *container.Program) { p.Image = "signalbox/test:2" },
		"is not in one of runner.containers.volumes":            func(p *container.Program) { p.Volumes = map[string]string{"/etc": "/etc"} },
		"runner.containers.ports of the runner, or the network": func(p *container.Program) { p.Ports = map[string]string{"80": "80"} },
		"has a zero byte":                func(p *container.Program) { p.Arguments = []string{"\x00"} },
		"no such file or directory":      func(p *container.Program) { p.Entrypoint = []string{"/nothing"} },
		"is not the name of a container": func(p *container.Program) { p.Name = "a b" },
	} {
		p := shell(":")
		change(&p)
		_, err := run(t.Context(), e, p)
		refused, is := errors.AsType[*container.Refusal](err)
		require.True(t, is, "%s: %v", want, err)
		require.Contains(t, refused.Reason, want)
	}
	small := options(socket)
	small.MaxImage = 1000
	_, err := run(t.Context(), container.New(small), shell(":"))
	require.ErrorContains(t, err, "has more than 1000 bytes")
	_, err = run(t.Context(), container.New(container.Options{Socket: "/nowhere", Images: []string{"**"}}), shell(":"))
	require.ErrorContains(t, err, "calling the container engine at /nowhere")
}

// A container that ignores signals is removed once its context has ended.
func cancellation(t *testing.T, socket string) {
	e := container.New(options(socket))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("canceled by the test")
	done := make(chan error, 1)
	go func() {
		_, err := run(ctx, e, shell(`trap '' TERM; sleep 1000 & while :; do sleep 1000; done`))
		done <- err
	}()
	require.Eventually(t, func() bool { return strings.Contains(strings.Join(all(t, socket), ""), "running") }, time.Minute, 20*time.Millisecond)
	cancel(why)
	require.ErrorIs(t, <-done, why)
}

func cleanup(t *testing.T, socket string) {
	e := container.New(options(socket))
	p := shell("echo kept")
	p.Name, p.Cleanup = "kept", container.CleanupNever
	_, err := run(t.Context(), e, p)
	require.NoError(t, err)
	_, err = run(t.Context(), e, p)
	require.ErrorContains(t, err, "already in use")
	p.Name, p.Cleanup, p.After = "later", container.CleanupEventually, time.Hour
	_, err = run(t.Context(), e, p)
	require.NoError(t, err)
	p.Name, p.After = "now", 0
	_, err = run(t.Context(), e, p)
	require.NoError(t, err)
	require.NoError(t, e.Sweep(t.Context()))
	require.ElementsMatch(t, []string{"/kept exited", "/later exited"}, all(t, socket))
	for _, name := range []string{"kept", "later"} {
		enginetest.Do(t, socket, http.MethodDelete, "/containers/"+name+"?force=1", nil)
	}
}

func volumes(t *testing.T, socket string) {
	o := options(socket)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "file"), []byte("content"), 0o644))
	require.NoError(t, os.Symlink("/etc", filepath.Join(folder, "link")))
	o.Volumes = []string{folder}
	p := shell("cat /data/file")
	p.Volumes = map[string]string{folder: "/data"}
	r, err := run(t.Context(), container.New(o), p)
	require.NoError(t, err)
	require.Equal(t, "content", r.Stdout, r.Stderr)
	p.Volumes = map[string]string{filepath.Join(folder, "link"): "/data"}
	_, err = run(t.Context(), container.New(o), p)
	require.ErrorContains(t, err, "is not in one of")
}

// The containers of a process that was killed are removed by the next one, and those of one that runs are not.
func killed(t *testing.T, socket string) {
	rounds := 20
	if testing.Short() {
		rounds = 2
	}
	o := guarded(t, socket, nil) // its sockets are removed as well
	for range rounds {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestProcessThatIsKilled$")
		cmd.Env = append(os.Environ(), "SIGNALBOX_TEST_SOCKET="+socket, "SIGNALBOX_TEST_SOCKET_FOLDER="+o.SocketFolder)
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool { return len(all(t, socket)) > 0 }, time.Minute, time.Millisecond)
		require.NoError(t, container.New(o).Sweep(t.Context()))
		require.Len(t, all(t, socket), 1, "its process runs")
		sockets, err := os.ReadDir(o.SocketFolder)
		require.NoError(t, err)
		require.Len(t, sockets, 1)
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		require.Eventually(t, func() bool {
			return container.New(o).Sweep(t.Context()) == nil && len(all(t, socket)) == 0
		}, time.Minute, 20*time.Millisecond)
	}
}

func TestProcessThatIsKilled(t *testing.T) {
	socket := os.Getenv("SIGNALBOX_TEST_SOCKET")
	if socket == "" {
		t.Skip("it is a part of the test of an engine")
	}
	o := options(socket)
	o.Network, o.SocketFolder, o.Proxy = "guarded", os.Getenv("SIGNALBOX_TEST_SOCKET_FOLDER"), proxy.New(proxy.Options{})
	_, err := run(t.Context(), container.New(o), shell(`trap '' TERM; while :; do sleep 1000; done`))
	require.NoError(t, err)
}
