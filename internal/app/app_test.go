package app_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/app"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/project"
)

// TestMain verifies that no goroutine is left after any start, failed or not.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	// noTemporal is an address that refuses connections.
	noTemporal = "127.0.0.1:1"
	// stopWithin is the upper bound for stopping an idle platform.
	stopWithin = 5 * time.Second
)

// settings returns a valid configuration without Temporal, changed by variables given as name and value.
func settings(t *testing.T, variables ...string) *config.Config {
	t.Helper()
	env := config.Environment{
		"SIGNALBOX_LISTEN":           "127.0.0.1:0",
		"SIGNALBOX_STORE_DSN":        filepath.Join(t.TempDir(), "signalbox.db"),
		"SIGNALBOX_TEMPORAL_ADDRESS": noTemporal,
		"SIGNALBOX_ENCRYPTION_KEYS":  "test=" + keyFile(t),
	}
	for i := 0; i < len(variables); i += 2 {
		env["SIGNALBOX_"+variables[i]] = variables[i+1]
	}
	cfg, err := config.Load(config.Options{Env: env})
	require.NoError(t, err)
	return cfg
}

// keyFile writes a new key file.
func keyFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.key")
	require.NoError(t, os.WriteFile(path, keyring.Generate(), 0o600))
	return path
}

// platform is a running App with clients for it.
type platform struct {
	app       *app.App
	base      string
	http      *http.Client
	workflows signalboxv1connect.WorkflowServiceClient
	runs      signalboxv1connect.RunServiceClient
}

func serve(t *testing.T, cfg *config.Config) *platform {
	t.Helper()
	a, err := app.New(t.Context(), options(cfg))
	require.NoError(t, err)
	require.NoError(t, a.Start(t.Context()))
	p := &platform{app: a, base: "http://" + a.Addr().String(), http: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(func() {
		p.http.CloseIdleConnections()
		p.stop(t)
	})
	p.workflows = signalboxv1connect.NewWorkflowServiceClient(p.http, p.base)
	p.runs = signalboxv1connect.NewRunServiceClient(p.http, p.base)
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(a.Health(t.Context()).Dependencies, func(d health.DependencyState) bool {
			return d.Condition == "connecting"
		})
	}, time.Minute, 10*time.Millisecond, "the first attempt to connect to Temporal ends")
	return p
}

func options(cfg *config.Config) app.Options {
	return app.Options{Config: cfg, Version: "test", Log: slog.New(slog.DiscardHandler)}
}

// stop stops the app, also repeatedly, and requires that it stays within its budget.
func (p *platform) stop(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	require.NoError(t, p.app.Stop(ctx))
	require.NoError(t, ctx.Err(), "the stop took its whole budget")
}

// get requests a path and decodes the response as a health report if it is one.
func (p *platform) get(t *testing.T, path string) (int, health.Report) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.base+path, http.NoBody)
	require.NoError(t, err)
	response, err := p.http.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	var report health.Report
	if response.Header.Get("Content-Type") == "application/json" {
		require.NoError(t, json.Unmarshal(body, &report), string(body))
	}
	return response.StatusCode, report
}

func (p *platform) publish(t *testing.T, name string) {
	t.Helper()
	source := "document: {dsl: '1.0.3', namespace: tests, name: " + name +
		", version: '1.0.0'}\ndo: [{greet: {set: {greeting: hello}}}]\n"
	_, err := p.workflows.PublishWorkflow(t.Context(), connect.NewRequest(&signalboxv1.PublishWorkflowRequest{
		Project: project.Default, Source: source,
	}))
	require.NoError(t, err)
}

func (p *platform) names(t *testing.T) []string {
	t.Helper()
	list, err := p.workflows.ListWorkflows(t.Context(),
		connect.NewRequest(&signalboxv1.ListWorkflowsRequest{Project: project.Default}))
	require.NoError(t, err)
	var names []string
	for _, w := range list.Msg.GetWorkflows() {
		names = append(names, w.GetName())
	}
	return names
}

// Two platforms in one process share no registry, port, store, health or lifecycle.
func TestTwoPlatformsInOneProcess(t *testing.T) {
	t.Parallel()
	one, two := serve(t, settings(t)), serve(t, settings(t))
	require.NotEqual(t, one.base, two.base)
	for name, p := range map[string]*platform{"one": one, "two": two} {
		p.publish(t, name)
		require.Len(t, p.names(t), 1, "a platform lists only its own workflows")
		status, _ := p.get(t, "/metrics")
		require.Equal(t, http.StatusOK, status)
	}
	one.stop(t)
	one.http.CloseIdleConnections() // so that new requests open a connection, which is refused
	_, err := one.workflows.ListWorkflows(t.Context(),
		connect.NewRequest(&signalboxv1.ListWorkflowsRequest{Project: project.Default}))
	require.Equal(t, connect.CodeUnavailable, connect.CodeOf(err))
	require.Len(t, two.names(t), 1, "the other platform keeps running")
}

// Without Temporal the API refuses starts at once, writes no row, and stays ready for other calls.
func TestStartsAreRefusedWithoutTemporal(t *testing.T) {
	t.Parallel()
	p := serve(t, settings(t))
	p.publish(t, "hello")

	status, report := p.get(t, "/readyz")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, health.Degraded, report.Status)
	require.Equal(t, map[string]string{config.RoleAPI: health.Degraded, config.RoleWorker: health.Unavailable},
		roles(report))
	down := map[string]string{}
	for _, d := range report.Dependencies {
		if d.State == health.Down {
			down[d.Name] = d.LastError
		}
	}
	require.Len(t, down, 2)
	require.Contains(t, down["temporal"], noTemporal)
	require.Contains(t, down, "pollers")
	status, _ = p.get(t, "/readyz?role=worker")
	require.Equal(t, http.StatusServiceUnavailable, status)
	status, _ = p.get(t, "/livez")
	require.Equal(t, http.StatusOK, status)

	_, err := p.runs.StartRun(t.Context(),
		connect.NewRequest(&signalboxv1.StartRunRequest{Project: project.Default, Workflow: "hello"}))
	require.Equal(t, connect.CodeUnavailable, connect.CodeOf(err))
	require.Equal(t, "ENGINE_UNAVAILABLE", reasonOf(t, err))
	list, err := p.runs.ListRuns(t.Context(), connect.NewRequest(&signalboxv1.ListRunsRequest{Project: project.Default}))
	require.NoError(t, err)
	require.Empty(t, list.Msg.GetRuns(), "a refused start leaves no run behind")
}

func TestRolesDecideWhatIsServed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		role, other string
		ready       int
		api         int
	}{
		{config.RoleAPI, config.RoleWorker, http.StatusOK, http.StatusOK},
		{config.RoleWorker, config.RoleAPI, http.StatusServiceUnavailable, http.StatusNotFound},
	}
	for _, tt := range tests {
		t.Run(tt.role, func(t *testing.T) {
			t.Parallel()
			p := serve(t, settings(t, "ROLES", tt.role))
			status, report := p.get(t, "/readyz")
			require.Equal(t, tt.ready, status)
			require.Len(t, report.Roles, 1)
			require.Equal(t, tt.role, report.Roles[0].Role)
			status, _ = p.get(t, "/readyz?role="+tt.other)
			require.Equal(t, http.StatusNotFound, status)
			status, _ = p.get(t, "/livez")
			require.Equal(t, http.StatusOK, status)
			status, _ = p.get(t, "/v1/projects/"+project.Default+"/runs")
			require.Equal(t, tt.api, status)
			status, _ = p.get(t, "/v1/version")
			require.Equal(t, http.StatusOK, status)
		})
	}
}

// A failed start returns the reason and releases its resources: the same store and port work for the next App.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	cfg := settings(t, "LISTEN", address)
	a, err := app.New(t.Context(), options(cfg))
	require.NoError(t, err)
	err = a.Start(t.Context())
	require.ErrorContains(t, err, address)
	require.ErrorContains(t, err, "listen")
	require.NoError(t, a.Stop(t.Context()), "stopping what did not start is no error")
	require.NoError(t, listener.Close())
	serve(t, cfg).publish(t, "hello")
}

func TestUnusableStoreIsReported(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	noDatabase := filepath.Join(folder, "notes.txt")
	require.NoError(t, os.WriteFile(noDatabase, []byte("this is no database, but it is longer than a header of one, "+
		"which has a hundred bytes, so here are more words"), 0o600))
	for name, dsn := range map[string]string{
		"no such folder": filepath.Join(folder, "missing", "signalbox.db"),
		"a folder":       folder,
		"no database":    noDatabase,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := app.New(t.Context(), options(settings(t, "STORE_DSN", dsn)))
			if err == nil {
				err = a.Start(t.Context())
			}
			require.ErrorContains(t, err, dsn, "the error names the file")
		})
	}
}

// Without auto_migrate an empty database is refused, and the error names the command to run.
func TestMissingSchemaIsRefused(t *testing.T) {
	t.Parallel()
	a, err := app.New(t.Context(), options(settings(t, "STORE_AUTO_MIGRATE", "false")))
	require.NoError(t, err)
	require.ErrorContains(t, a.Start(t.Context()), "signalbox migrate up")
}

// Stop closes what New opened even if Start was never called.
func TestStopWithoutStart(t *testing.T) {
	t.Parallel()
	a, err := app.New(t.Context(), options(settings(t)))
	require.NoError(t, err)
	require.NoError(t, a.Stop(t.Context()))
}

// A start that is canceled returns the cause of the cancellation, and all started parts are stopped.
func TestInterruptedStartStopsEverything(t *testing.T) {
	t.Parallel()
	a, err := app.New(t.Context(), options(settings(t)))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, a.Start(ctx), context.Canceled)
}

func roles(report health.Report) map[string]string {
	found := map[string]string{}
	for _, r := range report.Roles {
		found[r.Role] = r.Status
	}
	return found
}

// reasonOf returns the machine-readable reason of an error.
func reasonOf(t *testing.T, err error) string {
	t.Helper()
	var failed *connect.Error
	require.ErrorAs(t, err, &failed)
	for _, d := range failed.Details() {
		value, err := d.Value()
		require.NoError(t, err)
		if info, ok := value.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}
