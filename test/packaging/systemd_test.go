package packaging_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

const units = root + "/deploy/systemd"

// analyze runs systemd-analyze on copies of the units that name the binary of this build.
func analyze(t *testing.T, args ...string) {
	t.Helper()
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is missing: the units of systemd are not checked")
	}
	folder := t.TempDir()
	for name, text := range contents(t, units) {
		const installed = "/usr/local/bin/signalbox-server"
		require.Contains(t, text, "ExecStart="+installed)
		text = strings.ReplaceAll(text, installed, platform.ServerBinary(t))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
		cmd := exec.CommandContext(t.Context(), program, append(args, filepath.Join(folder, name))...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", cmd, out)
	}
}

func TestUnitsAreValid(t *testing.T) {
	t.Parallel()
	analyze(t, "verify", "--man=no")
}

// The exposure is in tenths, from 0 to 100: a setting that is lost raises it.
func TestUnitsAreConfined(t *testing.T) {
	t.Parallel()
	analyze(t, "security", "--offline=true", "--no-pager", "--threshold=12")
}

// The template differs from the unit in the roles only.
func TestTemplateIsTheUnit(t *testing.T) {
	t.Parallel()
	_, unit, _ := strings.Cut(read(t, units+"/signalbox.service"), "[Unit]")
	_, template, _ := strings.Cut(read(t, units+"/signalbox@.service"), "[Unit]")
	require.Equal(t, unit, strings.NewReplacer(" (%i)", "", " SIGNALBOX_ROLES=%i", "").Replace(template))
}

// A server reports to systemd that it is ready, alive and stopping, as Type=notify and WatchdogSec expect.
func TestServerReportsToSystemd(t *testing.T) {
	t.Parallel()
	socket, err := net.ListenUnixgram("unixgram",
		&net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = socket.Close() }) // nothing more is read
	receive := func() string {
		t.Helper()
		require.NoError(t, socket.SetReadDeadline(time.Now().Add(soon)))
		text := make([]byte, 1<<10)
		n, err := socket.Read(text)
		require.NoError(t, err)
		return string(text[:n])
	}
	server := platform.LaunchServer(t, platform.ServerOptions{
		Temporal: "127.0.0.1:1", Store: platform.SQLite(t),
		Env: []string{"NOTIFY_SOCKET=" + socket.LocalAddr().String(), "WATCHDOG_USEC=200000"},
	})
	require.Equal(t, "READY=1", receive())
	server.AwaitAPI(t)
	for range 3 {
		require.Equal(t, "WATCHDOG=1", receive())
	}
	server.Terminate()
	platform.Eventually(t, soon, func() string {
		if got := receive(); got != "STOPPING=1" {
			return got
		}
		return ""
	})
	code, ended := server.WaitFor(soon)
	require.True(t, ended)
	require.Zero(t, code)
}
