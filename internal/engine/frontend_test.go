package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// frontend serves Temporal's protocol on loopback and returns the responses of a test. It is for responses that a real
// Temporal returns only on errors; the tests of the whole platform use a real one.
type frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer

	address string

	mu        sync.Mutex
	namespace func(context.Context) error
	start     func(*workflowservice.StartWorkflowExecutionRequest) (*workflowservice.StartWorkflowExecutionResponse, error)
	cancel    func(*workflowservice.RequestCancelWorkflowExecutionRequest) error
	signal    func(*workflowservice.SignalWorkflowExecutionRequest) error
	info      map[string]*workflowpb.WorkflowExecutionInfo // by workflow ID
	histories map[string]*historypb.History                // by run ID
	withhold  bool                                         // withholds histories except their first pages
	calls     []string
}

// set changes responses while the server runs.
func (f *frontend) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *frontend) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
}

// called returns the calls since its last call.
func (f *frontend) called() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := slices.Clone(f.calls)
	f.calls = nil
	return calls
}

func sent(err error) error {
	if err == nil {
		return nil
	}
	return serviceerror.ToStatus(err).Err()
}

func (f *frontend) GetSystemInfo(context.Context,
	*workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{}, nil
}

func (f *frontend) DescribeNamespace(ctx context.Context,
	_ *workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	f.mu.Lock()
	answer := f.namespace
	f.mu.Unlock()
	if answer == nil {
		return &workflowservice.DescribeNamespaceResponse{}, nil
	}
	return &workflowservice.DescribeNamespaceResponse{}, sent(answer(ctx))
}

func (f *frontend) StartWorkflowExecution(_ context.Context,
	r *workflowservice.StartWorkflowExecutionRequest) (*workflowservice.StartWorkflowExecutionResponse, error) {
	f.note("start %s", r.GetWorkflowId())
	f.mu.Lock()
	answer := f.start
	f.mu.Unlock()
	if answer == nil {
		return &workflowservice.StartWorkflowExecutionResponse{RunId: "execution-1"}, nil
	}
	response, err := answer(r)
	return response, sent(err)
}

func (f *frontend) RequestCancelWorkflowExecution(_ context.Context,
	r *workflowservice.RequestCancelWorkflowExecutionRequest) (*workflowservice.RequestCancelWorkflowExecutionResponse,
	error) {
	f.note("cancel %s %s", r.GetWorkflowExecution().GetWorkflowId(), r.GetReason())
	f.mu.Lock()
	answer := f.cancel
	f.mu.Unlock()
	if answer == nil {
		return &workflowservice.RequestCancelWorkflowExecutionResponse{}, nil
	}
	return &workflowservice.RequestCancelWorkflowExecutionResponse{}, sent(answer(r))
}

func (f *frontend) SignalWorkflowExecution(_ context.Context,
	r *workflowservice.SignalWorkflowExecutionRequest) (*workflowservice.SignalWorkflowExecutionResponse, error) {
	f.note("signal %s %s", r.GetWorkflowExecution().GetWorkflowId(), r.GetSignalName())
	f.mu.Lock()
	answer := f.signal
	f.mu.Unlock()
	return &workflowservice.SignalWorkflowExecutionResponse{}, sent(answer(r))
}

func (f *frontend) DescribeWorkflowExecution(_ context.Context,
	r *workflowservice.DescribeWorkflowExecutionRequest) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	f.note("describe")
	f.mu.Lock()
	defer f.mu.Unlock()
	info := f.info[r.GetExecution().GetWorkflowId()]
	if info == nil {
		return nil, sent(serviceerror.NewNotFound("no such execution"))
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}, nil
}

// GetWorkflowExecutionHistory returns a history in pages of ten events.
func (f *frontend) GetWorkflowExecutionHistory(_ context.Context,
	r *workflowservice.GetWorkflowExecutionHistoryRequest) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	const page = 10
	from := 0
	switch {
	case len(r.GetNextPageToken()) > 0:
		from = int(r.GetNextPageToken()[0]) * page
	case r.GetMaximumPageSize() != 1 && f.withheld():
		return nil, sent(serviceerror.NewDeadlineExceeded("no history now"))
	default:
		f.note("history")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	execution := r.GetExecution().GetRunId()
	if execution == "" {
		execution = f.info[r.GetExecution().GetWorkflowId()].GetExecution().GetRunId()
	}
	history := f.histories[execution]
	if history == nil {
		return nil, sent(serviceerror.NewNotFound("no such history"))
	}
	to := min(from+page, len(history.GetEvents()))
	response := &workflowservice.GetWorkflowExecutionHistoryResponse{
		History: &historypb.History{Events: history.GetEvents()[from:to]}}
	if to < len(history.GetEvents()) {
		response.NextPageToken = []byte{byte(from/page + 1)}
	}
	return response, nil
}

func (f *frontend) withheld() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.withhold
}

// serve starts a frontend on a free port.
func serve(t *testing.T) *frontend {
	t.Helper()
	f := &frontend{info: map[string]*workflowpb.WorkflowExecutionInfo{}, histories: map[string]*historypb.History{}}
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f.address = listener.Addr().String()
	server := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(server, f)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-served)
	})
	return f
}

// clock is a clock that the test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// connect returns an engine over a frontend's address after it has connected.
func connect(
	t *testing.T, address string, docs engine.DocumentSource, with ...func(*engine.Options),
) (*engine.Engine, *clock) {
	t.Helper()
	e, c, m := reach(t, address, docs, with...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, m.Await(ctx))
	return e, c
}

// testKeys returns the keys of every engine of the tests, with which the frontend's side opens sealed values.
func testKeys(t *testing.T) *keyring.Ring {
	t.Helper()
	ring, err := keyring.New("test", map[string][]byte{"test": bytes.Repeat([]byte("k"), keyring.KeySize)})
	require.NoError(t, err)
	return ring
}

// reach returns an engine over an address, where no server may listen.
func reach(
	t *testing.T, address string, docs engine.DocumentSource, with ...func(*engine.Options),
) (*engine.Engine, *clock, *conn.Manager) {
	t.Helper()
	c := &clock{now: noon()}
	log := slog.New(slog.DiscardHandler)
	opts := engine.Options{
		Connection: conn.Options{
			Client: client.Options{HostPort: address, Namespace: "ns"}, Logger: log, CheckTimeout: 2 * time.Second,
			DrainTimeout: time.Second,
		},
		Address: address, Namespace: "ns", ServerID: "server-1", Keys: testKeys(t),
		Documents: engine.NewDocuments(docs, dsl.DefaultLimits()), Log: log, Now: c.read,
	}
	for _, set := range with {
		set(&opts)
	}
	e, err := engine.New(opts)
	require.NoError(t, err)
	m := e.Manager()
	require.NoError(t, m.Start(t.Context()))
	ctx := t.Context()
	t.Cleanup(func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		require.NoError(t, m.Stop(stopping))
	})
	return e, c, m
}

func openStore(t *testing.T) *storetest.Plain {
	t.Helper()
	s, err := storetest.Open(t.Context(), t, store.Options{
		Driver: store.SQLite, DSN: storetest.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute,
	})
	require.NoError(t, err)
	ctx := t.Context()
	t.Cleanup(func() { require.NoError(t, s.Stop(context.WithoutCancel(ctx))) })
	require.NoError(t, s.Start(ctx))
	return s
}
