package dev_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/devserver/dev"
	"github.com/signalbox-dev/signalbox/internal/config"
)

const (
	startsWithin = 30 * time.Second
	// stopsWithin is the longest acceptable time from Ctrl-C to the end.
	stopsWithin = 5 * time.Second
	tick        = 20 * time.Millisecond
)

// output collects the output of a running command.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// running is one `signalbox dev` in this process.
type running struct {
	out    *output
	cancel context.CancelFunc
	ended  chan error
	api    string
}

// launch runs the command with its arguments until it ends or is stopped.
func launch(t *testing.T, env config.Environment, arguments ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{out: &output{}, cancel: cancel, ended: make(chan error, 1)}
	cmd := dev.Command("test", "./bin/signalbox", env)
	cmd.SetArgs(arguments)
	cmd.SetOut(r.out)
	cmd.SetErr(r.out)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	go func() { r.ended <- cmd.ExecuteContext(ctx) }()
	t.Cleanup(cancel)
	return r
}

// start launches a platform on a free port and waits until it is ready and has executed its flags.
func start(t *testing.T, env config.Environment, arguments ...string) *running {
	t.Helper()
	r := launch(t, env, append([]string{"--listen", "127.0.0.1:0"}, arguments...)...)
	ready := regexp.MustCompile(`API +(http://\S+)(?s:.*)Ctrl-C stops it`)
	require.Eventually(t, func() bool {
		select {
		case err := <-r.ended:
			r.ended <- err
			return true
		default:
			return ready.MatchString(r.out.String())
		}
	}, startsWithin, tick)
	found := ready.FindStringSubmatch(r.out.String())
	if found == nil {
		require.NoError(t, <-r.ended, r.out.String())
		require.FailNow(t, "it ended before it was ready", r.out.String())
	}
	r.api = found[1]
	return r
}

// stop interrupts the command and returns its error.
func (r *running) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	select {
	case err := <-r.ended:
		require.NoError(t, err)
	case <-time.After(stopsWithin):
		require.FailNow(t, "it does not stop", r.out.String())
	}
	require.Contains(t, r.out.String(), "Stopped.")
}

// refused waits for a command that must fail.
func (r *running) refused(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.ended:
		require.Error(t, err, r.out.String())
		return err
	case <-time.After(startsWithin):
		require.FailNow(t, "it does not end", r.out.String())
		return nil
	}
}

// workflow writes a workflow that greets, and returns its file.
func workflow(t *testing.T, name string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".yaml")
	source := "document: {dsl: '1.0.3', namespace: tests, name: " + name +
		", version: '1.0.0'}\ndo: [{greet: {set: {from: " + name + "}}}]\n"
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	return file
}

// Two platforms, each with its own Temporal, run in one process and are isolated from each other. For one of them,
// Temporal's own environment variables name another server; it ignores them.
func TestTwoPlatformsInOneProcess(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "data")
	elsewhere := config.Environment{
		"TEMPORAL_ADDRESS": "127.0.0.1:1", "SIGNALBOX_AUTH_MODE": "none", "SIGNALBOX_REDIS_URL": ""}
	one := start(t, elsewhere, "--publish", workflow(t, "one"), "--run", "one", "--data-dir", folder)
	two := start(t, nil, "--publish", workflow(t, "two"), "--run", "two")
	require.Contains(t, one.out.String(), `{"from":"one"}`)
	require.Regexp(t, `(?m)^  \./bin/signalbox run show \S+ --address 127\.0\.0\.1:\d+$`, one.out.String())
	require.Contains(t, one.out.String(), "Web UI    "+one.api+"/\n")
	require.Contains(t, two.out.String(), `{"from":"two"}`)
	require.FileExists(t, filepath.Join(folder, "signalbox.db"))
	require.Equal(t, []string{"tests/one"}, runs(t, one))
	require.Equal(t, []string{"tests/two"}, runs(t, two))

	// The folder has one owner; a second command's error names it.
	err := launch(t, nil, "--data-dir", folder, "--listen", "127.0.0.1:0").refused(t)
	require.ErrorContains(t, err, folder)
	require.ErrorContains(t, err, strconv.Itoa(os.Getpid()))
	require.ErrorContains(t, err, "--data-dir")

	one.stop(t)
	require.Equal(t, []string{"tests/two"}, runs(t, two), "the other platform goes on")
	again := start(t, nil, "--data-dir", folder)
	require.Equal(t, []string{"tests/one"}, runs(t, again), "the folder keeps what was done")
	again.stop(t)
	two.stop(t)
}

func TestConflictingSettingsAreRefused(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"SIGNALBOX_AUTH_MODE": "tokens", "SIGNALBOX_LISTEN": "127.0.0.1:1", "SIGNALBOX_ROLES": "api",
		"SIGNALBOX_PROJECTS": "other",
		"SIGNALBOX_CONFIG":   "/does/not/exist.yaml", "SIGNALBOX_STORE_DRIVER": "postgres",
		"SIGNALBOX_TEMPORAL_ADDRESS":     "127.0.0.1:1",
		"SIGNALBOX_TEMPORAL_TLS_CA_FILE": "/does/not/exist.pem", "SIGNALBOX_REDIS_URL": "redis://127.0.0.1:1",
		"SIGNALBOX_LISTEN_TLS_CERT_FILE": "/does/not/exist.pem",
	} {
		err := launch(t, config.Environment{name: value}, "--listen", "127.0.0.1:0").refused(t)
		require.ErrorContains(t, err, name+" cannot be set for \"signalbox dev\"")
	}
}

// runs lists the workflows of all completed runs.
func runs(t *testing.T, r *running) []string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	list, err := signalboxv1connect.NewRunServiceClient(client, r.api).
		ListRuns(t.Context(), connect.NewRequest(&signalboxv1.ListRunsRequest{Project: "default"}))
	require.NoError(t, err)
	var names []string
	for _, run := range list.Msg.GetRuns() {
		require.Equal(t, "completed", run.GetStatus())
		names = append(names, run.GetWorkflow())
	}
	return names
}

func taken(t *testing.T) (string, string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return listener.Addr().String(), port
}

// An invalid command line is reported before anything starts, or at least leaves nothing running.
func TestInvalidCommandLines(t *testing.T) {
	t.Parallel()
	address, port := taken(t)
	empty, file := t.TempDir(), filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	require.NoError(t, os.WriteFile(broken, []byte("document: {}\n"), 0o600))
	tests := map[string]struct {
		arguments []string
		says      []string
		ready     bool // what is wrong shows only when everything runs
	}{
		"port of the API taken":  {[]string{"--listen", address}, []string{address, "--listen"}, false},
		"port of Temporal taken": {[]string{"--temporal-port", port}, []string{port, "--temporal-port"}, false},
		"nothing at the place": {
			[]string{"--publish", "does/not/exist"}, []string{"does/not/exist", "--publish"}, false},
		"no workflows in the folder":  {[]string{"--publish", empty}, []string{empty, ".yaml"}, false},
		"no workflow":                 {[]string{"--publish", broken}, []string{broken}, true},
		"no such workflow to run":     {[]string{"--run", "missing"}, []string{"missing"}, true},
		"the data folder is a file":   {[]string{"--data-dir", file}, []string{file, "--data-dir"}, false},
		"not loopback":                {[]string{"--listen", "0.0.0.0:0"}, []string{"0.0.0.0:0", "--listen"}, false},
		"an unknown level of logging": {[]string{"--log-level", "loud"}, []string{"loud"}, false},
		"a verb that is none":         {[]string{"tempral"}, []string{"tempral", "temporal"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := launch(t, nil, append([]string{"--listen", "127.0.0.1:0"}, tt.arguments...)...)
			err := r.refused(t)
			for _, text := range tt.says {
				require.ErrorContains(t, err, text)
			}
			require.Equal(t, tt.ready, r.out.String() != "", r.out.String())
		})
	}
}

// The embedded Temporal alone keeps its data file, and answers at the address that it prints.
func TestDevTemporal(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "temporal.db")
	for range 2 {
		r := launch(t, nil, "temporal", "--port", "0", "--data", file)
		ready := regexp.MustCompile(`Temporal is ready on (\S+)`)
		require.Eventually(t, func() bool { return ready.MatchString(r.out.String()) }, startsWithin, tick)
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", ready.FindStringSubmatch(r.out.String())[1])
		require.NoError(t, err)
		require.NoError(t, connection.Close())
		r.cancel()
		require.NoError(t, <-r.ended)
		require.FileExists(t, file)
	}
}
