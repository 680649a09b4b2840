// Package enginetest starts an engine of containers for tests.
//
//	socket := enginetest.Start(t)
//	// containers of the image enginetest.Image can be made at socket
//
// It starts dockerd, which needs root. A test without it is skipped, with the reason. SIGNALBOX_TEST_ENGINE is the
// socket of another engine to use, without containers in it, for example of `podman system service`.
package enginetest

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Image is an image with a shell.
const Image = "docker.io/signalbox/test:1"

// Start starts an engine until the end of a test, and returns its socket.
func Start(t testing.TB) string {
	t.Helper()
	shell, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("busybox is not installed; on Debian: apt-get install busybox-static")
	}
	if socket := os.Getenv("SIGNALBOX_TEST_ENGINE"); socket != "" {
		importImage(t, socket, shell)
		return socket
	}
	daemon, err := exec.LookPath("dockerd")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("no engine of containers: dockerd is not installed, or this is not root; on Debian: apt-get install docker.io")
	}
	// A path of a socket has at most 107 characters.
	folder, err := os.MkdirTemp("", "engine")
	require.NoError(t, err)
	socket := filepath.Join(folder, "engine.sock")
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), daemon, "--iptables=false", "--ip6tables=false",
		"--bridge=none", "--data-root", filepath.Join(folder, "data"), "--exec-root", filepath.Join(folder, "exec"),
		"--pidfile", filepath.Join(folder, "pid"), "--host", "unix://"+socket)
	var log bytes.Buffer
	cmd.Stderr = &log
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		select {
		case <-ended:
		case <-time.After(time.Minute):
			_ = cmd.Process.Kill()
			t.Errorf("dockerd did not stop: %s", log.String())
		}
		_ = os.RemoveAll(folder) // mounts may remain for a moment
	})
	deadline := time.Now().Add(time.Minute)
	for ; ; time.Sleep(50 * time.Millisecond) {
		if status, _ := Do(t, socket, http.MethodGet, "/_ping", nil); status == http.StatusOK {
			break
		}
		select {
		case err := <-ended:
			ended <- err
			t.Skipf("dockerd does not run on this host: %v", lastLine(log.Bytes()))
		default:
		}
		require.True(t, time.Now().Before(deadline), "dockerd did not start within a minute")
	}
	importImage(t, socket, shell)
	return socket
}

func importImage(t testing.TB, socket, shell string) {
	t.Helper()
	const name = "docker.io/signalbox/test"
	status, answer := Do(t, socket, http.MethodPost, "/images/create?fromSrc=-&tag=latest&repo="+name, image(t, shell))
	require.Equal(t, http.StatusOK, status, answer)
	// Podman imports no other tag than the latest.
	status, answer = Do(t, socket, http.MethodPost, "/images/"+name+":latest/tag?tag=1&repo="+name, nil)
	require.Equal(t, http.StatusCreated, status, answer)
}

func lastLine(text []byte) string {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(lines[len(lines)-1])
}

// Do calls the engine at a socket. The status is 0 where nothing answers.
func Do(t testing.TB, socket, method, path string, body io.Reader) (status int, answer string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}}}
	request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, "http://engine"+path, body)
	require.NoError(t, err)
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }() // it was read
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(content)
}

// image returns the file system of an image as a tar archive: a shell and its commands.
func image(t testing.TB, shell string) io.Reader {
	t.Helper()
	binary, err := os.ReadFile(shell)
	require.NoError(t, err)
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	const folder, program = 0o1777, 0o755
	for _, name := range []string{"bin/", "proc/", "dev/", "sys/", "etc/", "tmp/", "data/"} {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: folder}))
	}
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "bin/busybox", Mode: program, Size: int64(len(binary))}))
	_, err = w.Write(binary)
	require.NoError(t, err)
	for _, name := range []string{"sh", "cat", "echo", "sleep", "id", "ls", "dd", "grep", "touch", "head", "nc",
		"tr", "unshare", "env", "mkfifo"} {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "busybox"}))
	}
	require.NoError(t, w.Close())
	return &archive
}
