package integration_test

import (
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// stopAim is the time within which Ctrl-C must stop all processes.
const stopAim = 5 * time.Second

// requireStops stops a process with Ctrl-C, which must exit with 0 or with one of the other codes given.
func requireStops(t *testing.T, p *platform.Process, others ...int) {
	t.Helper()
	began := time.Now()
	p.Interrupt()
	code, ended := p.WaitFor(promise.Limit(stopAim))
	took := time.Since(began)
	require.True(t, ended, "still there %s after Ctrl-C:\n%s", took, p.Output())
	require.NotContains(t, p.Output(), "panic")
	if took >= stopAim-time.Second && !promise.Full() {
		return // a busy machine needs more time than the limit, and processes still running then are left behind
	}
	require.Contains(t, append(others, platform.ExitOK, 130), code, p.Output())
}

func TestDevPublishesAndRuns(t *testing.T) {
	t.Parallel()
	// As make dev does. Beside each example is a file of tests, which is no workflow.
	folder, err := filepath.Abs("../../examples/workflows")
	require.NoError(t, err)
	s := platform.StartDev(t, "--publish", folder, "--run", "hello")
	platform.Eventually(t, soon, func() string {
		if strings.Contains(s.Output(), "Hello, world!") {
			return ""
		}
		return "dev has not printed the run's output:\n" + s.Output()
	})
	require.Contains(t, s.Output(), s.Address, "it prints the address")
	require.Equal(t, platform.ExitOK, s.CLI(t, "run", "start", "hello", "--wait").Code)
	requireStops(t, s.Process)
}

func TestDevKeepsItsDataFolder(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "data")
	s := platform.StartDev(t, "--data-dir", folder)
	name := s.Publish(t, platform.Document("kept", hello))
	done := s.Start(t, name, "").GetId()
	s.Await(t, done, soon, "completed")
	open := s.Start(t, s.Publish(t, platform.Document("open", waits(3)+hello)), "").GetId()
	s.Await(t, open, soon, "waiting")
	requireStops(t, s.Process)

	s = platform.StartDev(t, "--data-dir", folder)
	require.Equal(t, "completed", s.Run(t, done).GetStatus())
	require.Len(t, s.Steps(t, done), 1)
	s.Await(t, open, soon, "completed")
	s.Await(t, s.Start(t, name, "").GetId(), soon, "completed")

	s.Kill() // and after a crash
	s = platform.StartDev(t, "--data-dir", folder)
	require.Len(t, s.AllRuns(t, name, 50), 2)
	s.Await(t, s.Start(t, name, "").GetId(), soon, "completed")
	requireStops(t, s.Process)
}

func TestSecondDevOnTheSameFolderIsRefused(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "data")
	first := platform.StartDev(t, "--data-dir", folder)
	second := platform.LaunchDev(t, "--data-dir", folder)
	code, ended := second.WaitFor(soon)
	require.True(t, ended)
	require.NotEqual(t, platform.ExitOK, code)
	last := lastLine(second.Stderr.String())
	require.Contains(t, last, folder, second.Output())
	require.Contains(t, last, strconv.Itoa(first.PID()), "it names the process that holds the folder")
	// The first process is not affected.
	first.Await(t, first.Start(t, first.Publish(t, platform.Document("first", hello)), "").GetId(), soon, "completed")
}

func TestTemporalPortInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	require.NoError(t, err)
	p := platform.LaunchDev(t, "--temporal-port", port)
	code, ended := p.WaitFor(soon)
	require.True(t, ended, p.Output())
	require.NotEqual(t, platform.ExitOK, code)
	last := lastLine(p.Stderr.String())
	require.Contains(t, last, port, p.Output())
	require.Contains(t, last, "--temporal-port", p.Output())
	require.NotContains(t, p.Output(), "goroutine ")
}

func TestDevPortInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	p := platform.LaunchDev(t, "--listen", taken.Addr().String())
	code, ended := p.WaitFor(soon)
	require.True(t, ended, p.Output())
	require.NotEqual(t, platform.ExitOK, code)
	require.Contains(t, lastLine(p.Stderr.String()), taken.Addr().String(), p.Output())
}

// Ctrl-C at any moment of the start stops it, and it can be started again.
func TestInterruptDuringStart(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "data")
	for _, after := range []time.Duration{
		50 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 700 * time.Millisecond} {
		p := platform.LaunchDev(t, "--data-dir", folder)
		select {
		case <-time.After(after):
		case <-p.Done():
			t.Fatalf("ended by itself: %s", p.Output())
		}
		requireStops(t, p.Process, -1) // in its first moments the program has no handler yet: the signal itself ends it
	}
	s := platform.StartDev(t, "--data-dir", folder)
	s.Await(t, s.Start(t, s.Publish(t, platform.Document("after", hello)), "").GetId(), soon, "completed")
}

func TestDevStopsWithOpenWatches(t *testing.T) {
	t.Parallel()
	s := platform.StartDev(t)
	id := s.Start(t, s.Publish(t, platform.Document("open", waits(600))), "").GetId()
	s.Await(t, id, soon, "waiting")
	watch := platform.StartProcess(t, "watch", platform.Binary(t), s.ClientEnv(), []string{"run", "watch", id})
	platform.Eventually(t, soon, func() string {
		if watch.Output() == "" {
			return "watch has shown nothing yet"
		}
		return ""
	})
	requireStops(t, s.Process)
	watch.Interrupt()
	_, ended := watch.WaitFor(promise.Limit(stopAim))
	require.True(t, ended)
}

func TestLeanBinaryHasNoDev(t *testing.T) {
	t.Parallel()
	r := platform.Run(t, platform.Command{Binary: platform.ServerBinary(t), Args: []string{"dev"}})
	requireOneLine(t, r, platform.ExitUsage, "dev")
	for _, binary := range []string{platform.Binary(t), platform.ServerBinary(t)} {
		v := platform.Run(t, platform.Command{Binary: binary, Args: []string{"version"}})
		require.Equal(t, platform.ExitOK, v.Code, v.String())
		require.NotEmpty(t, v.Stdout)
	}
}
