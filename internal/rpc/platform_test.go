package rpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/annotation"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/function"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/rpc/handler"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
	"github.com/signalbox-dev/signalbox/internal/run/livelist"
	"github.com/signalbox-dev/signalbox/internal/run/read"
	runstart "github.com/signalbox-dev/signalbox/internal/run/start"
	"github.com/signalbox-dev/signalbox/internal/run/statistics"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// fakeEngine replaces Temporal: it accepts runs, or returns what a test sets.
type fakeEngine struct {
	mu     sync.Mutex
	check  func(ctx context.Context) error
	start  func(ctx context.Context) error
	cancel error
}

func (e *fakeEngine) Check(ctx context.Context) error {
	e.mu.Lock()
	check := e.check
	e.mu.Unlock()
	if check == nil {
		return nil
	}
	return check(ctx)
}

func (e *fakeEngine) failWith(err error) { e.checkWith(func(context.Context) error { return err }) }

func (e *fakeEngine) checkWith(check func(context.Context) error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.check = check
}

func (e *fakeEngine) Start(ctx context.Context, r run.Run) (string, error) {
	e.mu.Lock()
	start := e.start
	e.mu.Unlock()
	if start != nil {
		if err := start(ctx); err != nil {
			return "", err
		}
	}
	return "execution-" + r.ID, nil
}

func (e *fakeEngine) Cancel(context.Context, run.Run, string) error { return e.cancel }

func (e *fakeEngine) Terminate(context.Context, run.Run, string) error { return nil }

func (e *fakeEngine) Control(context.Context, run.Run, string, string) error { return nil }

func (e *fakeEngine) Inspect(context.Context, run.Run) (run.Execution, error) {
	return run.Execution{}, run.ErrNotKnown
}

// runService starts, controls and reads runs.
type runService struct {
	*control.Service
	*read.Reader
}

// platform is a server over the real services and a real SQLite file.
type platform struct {
	t       testing.TB
	server  *rpc.Server
	engine  *fakeEngine
	system  *fakeSystem
	store   *storetest.Plain
	runs    runService
	changes *pubsub.Notifier
	log     *lockedBuffer
	client  *http.Client
	base    string
	// running are the logs of programs that run; runningErr is why they are unknown.
	running    []run.AttemptLog
	runningErr error
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

const greeting = `document:
  dsl: 1.0.0
  namespace: demo
  name: hello
  version: 1.0.0
  title: Greets
input:
  schema:
    document:
      type: object
      properties:
        name: {type: string}
do:
  - greet:
      set:
        message: ${ "Hello " + .name }
`

func start(t testing.TB, change func(*rpc.Options)) *platform {
	t.Helper()
	ctx := t.Context()
	p := &platform{t: t, engine: &fakeEngine{}, system: newFakeSystem(), changes: pubsub.NewNotifier(),
		log: &lockedBuffer{}}

	st, err := storetest.Open(ctx, t,
		store.Options{Driver: sqldb.SQLite, DSN: storetest.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute})
	require.NoError(t, err)
	require.NoError(t, st.Start(ctx))
	p.store = st

	metrics, err := telemetry.New(t.Context(),
		telemetry.Options{ServiceName: "signalbox", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	limits := dsl.DefaultLimits()
	projects := project.NewService(st, time.Now)
	workflows := workflow.NewService(st, st, limits, time.Now)
	options := runstart.Options{
		MaxInputBytes: 512 << 10, StartTimeout: 5 * time.Second, Interpreter: 1, Now: time.Now, Metrics: metrics.Runs,
	}
	starts := runstart.New(st, p.engine, workflows, engine.NewDocuments(st, limits), p.changes, options)
	p.runs = runService{
		control.New(starts, st, p.engine, p.changes, control.Options{
			MaxInputBytes: options.MaxInputBytes, StartTimeout: options.StartTimeout, Now: time.Now, Metrics: metrics.Runs,
		}),
		read.New(st, p.engine, workflows, p.changes, read.Options{Now: time.Now}),
	}
	opts := rpc.Options{
		Address: "127.0.0.1:0", Services: handler.Services{
			Batches: batch.NewService(st.Batches(), workflows, func() {}, time.Now), Workflows: workflows,
			Functions: function.NewService(st, st, limits, time.Now),
			Runs:      p.runs,
			Logs: read.NewLogReader(read.LogOptions{
				Store: st, Runs: p.runs,
				Running: func(context.Context, string) ([]run.AttemptLog, error) { return p.running, p.runningErr },
				Redact: func(_ context.Context, _, text string) (string, error) {
					return strings.ReplaceAll(text, "secret", "mark"), nil
				},
			}),
			RunLists: livelist.New(st, p.changes), Projects: projects, Audit: st,
			Annotations: annotation.NewService(annotation.Options{
				Outages: st.Annotations(), Publications: st.Annotations(), Owners: st.Events(), Projects: st,
				TaskQueue: contract.TaskQueue, Now: time.Now,
			}),
			System:            handler.SystemInfo{Version: "1.2.3", Interpreter: 7, ServerID: "server-1"},
			Platform:          p.system.service(st),
			TemporalNamespace: "default", TaskQueue: contract.TaskQueue, Statistics: statistics.NewService(statistics.Options{
				Store: st.Statistics(), Runs: st, Workflows: workflows, Documents: engine.NewDocuments(st, limits), Now: time.Now,
			}),
		},
		Livez: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "alive") }),
	}
	if change != nil {
		change(&opts)
	}
	p.server, err = rpc.NewServer(opts)
	require.NoError(t, err)
	log := slog.New(slog.NewTextHandler(p.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	require.NoError(t, p.server.Start(logger.WithContext(ctx, log)))
	p.base = "http://" + p.server.Addr().String()
	transport := &http.Transport{}
	p.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		stopCtx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, p.server.Stop(stopCtx))
		require.NoError(t, st.Stop(stopCtx))
	})
	return p
}

// answer is an HTTP response.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   string
}

func (p *platform) do(method, path, body string, headers ...string) answer {
	p.t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.base+path, reader)
	require.NoError(p.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := p.client.Do(req)
	require.NoError(p.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(p.t, err)
	got := answer{t: p.t, status: res.StatusCode, header: res.Header, body: string(text)}
	requireDescribed(p.t, method, path, body, got)
	return got
}

// ok expects success and returns the body as a value; numbers keep their digits.
func (a answer) ok() map[string]any {
	a.t.Helper()
	require.Equal(a.t, http.StatusOK, a.status, a.body)
	return a.object()
}

func (a answer) object() map[string]any {
	a.t.Helper()
	decoder := json.NewDecoder(strings.NewReader(a.body))
	decoder.UseNumber()
	var v map[string]any
	require.NoError(a.t, decoder.Decode(&v), a.body)
	return v
}

// fails expects a REST error with this status and reason, and returns its line.
func (a answer) fails(status int, reason string) string {
	a.t.Helper()
	require.Equal(a.t, status, a.status, a.body)
	require.Equal(a.t, "application/json", a.header.Get("Content-Type"))
	var e struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Details []struct {
			Type   string `json:"@type"`
			Reason string `json:"reason"`
			Domain string `json:"domain"`
		} `json:"details"`
	}
	require.NoError(a.t, json.Unmarshal([]byte(a.body), &e), a.body)
	require.NotZero(a.t, e.Code)
	require.NotEmpty(a.t, e.Message)
	require.NotContains(a.t, e.Message, "\n")
	require.NotEmpty(a.t, e.Details, a.body)
	require.Equal(a.t, "type.googleapis.com/google.rpc.ErrorInfo", e.Details[0].Type)
	require.Equal(a.t, reason, e.Details[0].Reason, a.body)
	require.Equal(a.t, "signalbox", e.Details[0].Domain)
	return e.Message
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// publish publishes the greeting.
func (p *platform) publish() {
	p.t.Helper()
	p.do("POST", "/v1/projects/default/workflows:publish", `{"source":`+quoted(greeting)+`}`).ok()
}

// startRun starts a run over REST and returns its ID.
func (p *platform) startRun(input string) string {
	p.t.Helper()
	res := p.do("POST", "/v1/projects/default/runs", `{"workflow":"hello","input":`+input+`}`).ok()
	return res["run"].(map[string]any)["id"].(string)
}
