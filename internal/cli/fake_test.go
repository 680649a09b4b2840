package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/cli"
	"github.com/signalbox-dev/signalbox/internal/config"
)

// api is the whole API in memory, reduced but with the server's rules: unknown objects are not found, a request ID
// creates one run, a watch sends the changes after a sequence and ends with the run.
type api struct {
	signalboxv1connect.UnimplementedRunServiceHandler

	mu       sync.Mutex
	runs     []*signalboxv1.Run
	steps    map[string][]*signalboxv1.Step
	changed  chan struct{}
	seq      int64
	requests []proto.Message

	refuse   error                  // answer of StartRun
	queued   func(*signalboxv1.Run) // what becomes of a new run instead of running
	platform platform
	events   events
	dispatch dispatchers
	batches  batches
	quotas   quotas
	drop     chan struct{} // closed: watches end without the run
}

func newAPI() *api {
	a := &api{steps: map[string][]*signalboxv1.Step{}, changed: make(chan struct{}), drop: make(chan struct{})}
	a.events.api, a.dispatch.api, a.batches.api, a.quotas.api = a, a, a, a
	return a
}

// refusal returns an error in the form of the server.
func refusal(code connect.Code, reason, message string, details ...proto.Message) *connect.Error {
	err := connect.NewError(code, errors.New(message))
	for _, d := range append([]proto.Message{&errdetails.ErrorInfo{Reason: reason, Domain: "signalbox"}}, details...) {
		detail, detailErr := connect.NewErrorDetail(d)
		if detailErr == nil {
			err.AddDetail(detail)
		}
	}
	return err
}

func (a *api) note(request proto.Message) {
	a.requests = append(a.requests, request)
}

// last returns the newest request of the type.
func last[M proto.Message](t *testing.T, a *api) M {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, sent := range slices.Backward(a.requests) {
		if request, ok := sent.(M); ok {
			return request
		}
	}
	var none M
	require.Failf(t, "no request", "%T was never sent", none)
	return none
}

func (a *api) find(id string) (*signalboxv1.Run, error) {
	for _, run := range a.runs {
		if run.GetId() == id {
			return run, nil
		}
	}
	return nil, refusal(connect.CodeNotFound, "RUN_NOT_FOUND",
		fmt.Sprintf("project \"default\" has no run %q; list them with \"signalbox run list\"", id))
}

func (a *api) wake() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// put adds a step, or replaces the one with its number.
func (a *api) put(id string, step *signalboxv1.Step) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seq++
	step.Sequence = a.seq
	defer a.wake()
	for i, old := range a.steps[id] {
		if old.GetNumber() == step.GetNumber() {
			a.steps[id][i] = step
			return
		}
	}
	a.steps[id] = append(a.steps[id], step)
}

// end sets the final status of a run.
func (a *api) end(t *testing.T, id, status string, change func(*signalboxv1.Run)) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	run, err := a.find(id)
	require.NoError(t, err)
	a.seq++
	run.Status, run.Sequence, run.StartTime, run.EndTime = status, a.seq, run.GetCreateTime(),
		timestamppb.New(run.GetCreateTime().AsTime().Add(1500*time.Millisecond))
	if change != nil {
		change(run)
	}
	a.wake()
}

func (a *api) CountRuns(_ context.Context,
	request *connect.Request[signalboxv1.CountRunsRequest]) (*connect.Response[signalboxv1.CountRunsResponse], error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(request.Msg)
	response := &signalboxv1.CountRunsResponse{Statuses: map[string]int64{}}
	for _, run := range a.runs {
		response.Statuses[run.GetStatus()]++
	}
	if length := request.Msg.GetBucket().AsDuration(); length > 0 {
		for start := request.Msg.GetFilter().GetSince().
			AsTime(); start.Before(request.Msg.GetFilter().GetUntil().AsTime()); start = start.Add(length) {
			response.Buckets = append(response.Buckets, &signalboxv1.RunBucket{Start: timestamppb.New(start)})
		}
		response.Buckets[0].Statuses = response.GetStatuses()
	}
	return connect.NewResponse(response), nil
}

func (a *api) StartRun(_ context.Context,
	request *connect.Request[signalboxv1.StartRunRequest]) (*connect.Response[signalboxv1.StartRunResponse], error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(request.Msg)
	if a.refuse != nil {
		return nil, a.refuse
	}
	for _, run := range a.runs {
		if run.GetRequestId() == request.Msg.GetRequestId() {
			return connect.NewResponse(&signalboxv1.StartRunResponse{Run: proto.CloneOf(run)}), nil
		}
	}
	a.seq++
	run := &signalboxv1.Run{
		Id: fmt.Sprintf("run-%d", len(a.runs)+1), Project: request.Msg.GetProject(), Workflow: "demo/" +
			request.Msg.GetWorkflow(), Version: "1.0.0",
		Status: "running", RequestId: request.Msg.GetRequestId(), Input: request.Msg.GetInput(),
		Labels: request.Msg.GetLabels(), Sequence: a.seq,
		CreateTime: timestamppb.New(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)), Actor: "local", Trigger: "api",
	}
	if a.queued != nil {
		a.queued(run)
	}
	a.runs = append(a.runs, run)
	a.wake()
	return connect.NewResponse(&signalboxv1.StartRunResponse{Run: proto.CloneOf(run), Created: true}), nil
}

func (a *api) GetRun(_ context.Context,
	request *connect.Request[signalboxv1.GetRunRequest]) (*connect.Response[signalboxv1.GetRunResponse], error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	run, err := a.find(request.Msg.GetId())
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&signalboxv1.GetRunResponse{Run: proto.CloneOf(run)}), nil
}

func (a *api) ListRuns(_ context.Context,
	request *connect.Request[signalboxv1.ListRunsRequest]) (*connect.Response[signalboxv1.ListRunsResponse], error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(proto.CloneOf(request.Msg))
	from := 0
	if token := request.Msg.GetPageToken(); token != "" {
		if _, err := fmt.Sscanf(token, "from-%d", &from); err != nil {
			return nil, refusal(connect.CodeInvalidArgument, "INVALID_PAGE_TOKEN", "wrong token")
		}
	}
	size := min(int(request.Msg.GetPageSize()), 2) // small, so that lists have pages
	to := min(from+size, len(a.runs))
	response := &signalboxv1.ListRunsResponse{}
	for _, run := range a.runs[from:to] {
		response.Runs = append(response.Runs, proto.CloneOf(run))
	}
	if to < len(a.runs) {
		response.NextPageToken = fmt.Sprintf("from-%d", to)
	}
	return connect.NewResponse(response), nil
}

func (a *api) ListSteps(_ context.Context,
	request *connect.Request[signalboxv1.ListStepsRequest]) (*connect.Response[signalboxv1.ListStepsResponse], error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.find(request.Msg.GetId()); err != nil {
		return nil, err
	}
	a.note(proto.CloneOf(request.Msg))
	response := &signalboxv1.ListStepsResponse{}
	for _, step := range a.steps[request.Msg.GetId()] {
		response.Steps = append(response.Steps, proto.CloneOf(step))
	}
	return connect.NewResponse(response), nil
}

func (a *api) GetStep(_ context.Context,
	request *connect.Request[signalboxv1.GetStepRequest]) (*connect.Response[signalboxv1.GetStepResponse], error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(proto.CloneOf(request.Msg))
	for _, step := range a.steps[request.Msg.GetId()] {
		if step.GetNumber() == request.Msg.GetNumber() {
			return connect.NewResponse(&signalboxv1.GetStepResponse{Step: proto.CloneOf(step)}), nil
		}
	}
	return nil, refusal(connect.CodeNotFound, "STEP_NOT_FOUND", "the run has no such step")
}

func (a *api) ListWaits(_ context.Context,
	request *connect.Request[signalboxv1.ListWaitsRequest]) (*connect.Response[signalboxv1.ListWaitsResponse], error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.find(request.Msg.GetId()); err != nil {
		return nil, err
	}
	if request.Msg.GetPageToken() == "" {
		return connect.NewResponse(
			&signalboxv1.ListWaitsResponse{
				Waits: []*signalboxv1.Wait{{Kind: "paused", What: "unpause: the run is paused"}}, NextPageToken: "next"}), nil
	}
	return connect.NewResponse(
		&signalboxv1.ListWaitsResponse{
			Waits: []*signalboxv1.Wait{{Kind: "timer", What: "timer", Step: 7, Task: "nap", DeadlineUnknown: true}}}), nil
}

func (a *api) SummarizeSteps(_ context.Context,
	request *connect.Request[signalboxv1.SummarizeStepsRequest]) (*connect.Response[signalboxv1.SummarizeStepsResponse],
	error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.find(request.Msg.GetId()); err != nil {
		return nil, err
	}
	return connect.NewResponse(&signalboxv1.SummarizeStepsResponse{Tasks: []*signalboxv1.TaskTotals{
		{Pointer: "/do/0/x", Task: "x", Kind: "call", Statuses: map[string]int64{"failed": 2, "completed": 3},
			Attempts: new(int64(9)), FirstFailed: 4,
			Total: durationpb.New(3 * time.Second), Longest: durationpb.New(time.Second)},
		{Pointer: "/do/1/y", Task: "y", Kind: "set", Statuses: map[string]int64{"completed": 7}, NotListed: 2,
			Total: durationpb.New(0), Longest: durationpb.New(0)},
	}}), nil
}

func (a *api) CancelRun(_ context.Context,
	request *connect.Request[signalboxv1.CancelRunRequest]) (*connect.Response[signalboxv1.CancelRunResponse], error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	run, err := a.find(request.Msg.GetId())
	if err != nil {
		return nil, err
	}
	if run.GetEndTime() != nil {
		return nil, refusal(connect.CodeFailedPrecondition, "RUN_ENDED", "the run has ended: completed")
	}
	run.CancelRequested, run.CancelReason = true, request.Msg.GetReason()
	return connect.NewResponse(&signalboxv1.CancelRunResponse{Run: proto.CloneOf(run)}), nil
}

func (a *api) WatchRun(ctx context.Context, request *connect.Request[signalboxv1.WatchRunRequest],
	stream *connect.ServerStream[signalboxv1.WatchRunResponse]) error {
	a.mu.Lock()
	a.note(proto.CloneOf(request.Msg))
	drop := a.drop
	a.mu.Unlock()
	after := request.Msg.GetAfterSequence()
	for {
		a.mu.Lock()
		run, err := a.find(request.Msg.GetId())
		if err != nil {
			a.mu.Unlock()
			return err
		}
		message := &signalboxv1.WatchRunResponse{Run: proto.CloneOf(run)}
		for _, step := range a.steps[run.GetId()] {
			if step.GetSequence() > after {
				message.Steps = append(message.Steps, proto.CloneOf(step))
			}
		}
		after, err = a.seq, stream.Send(message)
		changed := a.changed
		over := run.GetEndTime() != nil
		a.mu.Unlock()
		if over || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-drop:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (a *api) CreateProject(_ context.Context,
	request *connect.Request[signalboxv1.CreateProjectRequest]) (*connect.Response[signalboxv1.CreateProjectResponse],
	error) {
	if request.Msg.GetName() == "default" {
		return nil, refusal(connect.CodeAlreadyExists, "PROJECT_EXISTS", "project \"default\" exists; choose another name")
	}
	return connect.NewResponse(
		&signalboxv1.CreateProjectResponse{
			Project: &signalboxv1.Project{Name: request.Msg.GetName(), Description: request.Msg.GetDescription()}}), nil
}

func (a *api) ListProjects(context.Context,
	*connect.Request[signalboxv1.ListProjectsRequest]) (*connect.Response[signalboxv1.ListProjectsResponse], error) {
	return connect.NewResponse(
		&signalboxv1.ListProjectsResponse{
			Projects: []*signalboxv1.Project{
				{Name: "default", TaskQueue: "signalbox-default", Roles: []string{"operator", "publisher"}}}}), nil
}

func (a *api) GetProject(_ context.Context,
	request *connect.Request[signalboxv1.GetProjectRequest]) (*connect.Response[signalboxv1.GetProjectResponse], error) {
	if request.Msg.GetName() != "default" {
		return nil, refusal(connect.CodeNotFound, "PROJECT_NOT_FOUND", "there is no project \""+request.Msg.GetName()+"\"")
	}
	return connect.NewResponse(&signalboxv1.GetProjectResponse{Project: &signalboxv1.Project{Name: "default"}}), nil
}

func (a *api) UpdateProject(
	_ context.Context, request *connect.Request[signalboxv1.UpdateProjectRequest],
) (*connect.Response[signalboxv1.UpdateProjectResponse], error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(request.Msg)
	if request.Msg.GetName() != "default" {
		return nil, refusal(connect.CodeNotFound, "PROJECT_NOT_FOUND", "there is no project \""+request.Msg.GetName()+"\"")
	}
	return connect.NewResponse(&signalboxv1.UpdateProjectResponse{Project: &signalboxv1.Project{
		Name: "default", Settings: &signalboxv1.ProjectSettings{
			MaxSteps: request.Msg.GetMaxSteps(), EndPoison: request.Msg.GetEndPoison(),
			Runners: request.Msg.GetRunners().GetKinds()},
	}}), nil
}

func (a *api) ListAudit(_ context.Context,
	request *connect.Request[signalboxv1.ListAuditRequest]) (*connect.Response[signalboxv1.ListAuditResponse], error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(request.Msg)
	return connect.NewResponse(&signalboxv1.ListAuditResponse{Entries: []*signalboxv1.AuditEntry{{
		Id: 7, Time: timestamppb.New(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)), ActorKind: "local", Actor: "local",
		Action: "run.cancel", Subject: "run-1", Reason: "wrong customer",
	}}}), nil
}

func (a *api) GetVersion(context.Context,
	*connect.Request[signalboxv1.GetVersionRequest]) (*connect.Response[signalboxv1.GetVersionResponse], error) {
	return connect.NewResponse(&signalboxv1.GetVersionResponse{Version: "9.9.9", Interpreter: 1, ServerId: "host-1-abc"}),
		nil
}

func (a *api) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(signalboxv1connect.NewRunServiceHandler(a))
	mux.Handle(signalboxv1connect.NewWatchServiceHandler(watches{a}))
	mux.Handle(signalboxv1connect.NewWorkflowServiceHandler(&workflows{api: a}))
	mux.Handle(signalboxv1connect.NewProjectServiceHandler(a))
	mux.Handle(signalboxv1connect.NewAuditServiceHandler(a))
	mux.Handle(signalboxv1connect.NewSystemServiceHandler(a))
	mux.Handle(signalboxv1connect.NewEventServiceHandler(&a.events))
	mux.Handle(signalboxv1connect.NewBatchServiceHandler(&a.batches))
	mux.Handle(signalboxv1connect.NewDispatcherServiceHandler(&a.dispatch))
	mux.Handle(signalboxv1connect.NewQuotaServiceHandler(&a.quotas))
	mux.Handle(signalboxv1connect.NewProblemServiceHandler(&problems{api: a}))
	mux.Handle(signalboxv1connect.NewWorkerServiceHandler(&a.dispatch))
	mux.Handle(signalboxv1connect.NewViewServiceHandler(&views{api: a}))
	return mux
}

// retryLater is a refusal with a retry delay.
func retryLater() error {
	return refusal(connect.CodeUnavailable, "ENGINE_UNAVAILABLE",
		"Temporal at 127.0.0.1:7233 cannot be reached; nothing was started",
		&errdetails.RetryInfo{RetryDelay: durationpb.New(2 * time.Second)})
}

// serve starts the API on a free address, or on the given one, and returns its address and a function that stops it.
func serve(t *testing.T, a *api, address string) (string, func()) {
	t.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(a.handler())
	require.NoError(t, server.Listener.Close())
	server.Listener = listener
	server.Start()
	stop := func() {
		server.CloseClientConnections()
		server.Close()
	}
	t.Cleanup(stop)
	return listener.Addr().String(), stop
}

// buffer is the output of a command; tests read it while the command writes.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// shell runs command lines in their own home directory and environment.
type shell struct {
	env         config.Environment
	stdin       string
	interactive bool // a person can be asked
}

func newShell(t *testing.T, address string) *shell {
	t.Helper()
	return &shell{env: config.Environment{"HOME": t.TempDir(), "SIGNALBOX_ADDRESS": address}}
}

// command is a command line that runs or has ended.
type command struct {
	out, err buffer
	code     int
	done     chan struct{}
}

func (s *shell) start(ctx context.Context, args ...string) *command {
	c := &command{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.code = cli.Run(ctx, cli.Options{
			Version: "1.2.3", Stdin: strings.NewReader(s.stdin), Stdout: &c.out, Stderr: &c.err, Env: s.env,
			Interactive: s.interactive,
		}, args)
	}()
	return c
}

func (s *shell) run(t *testing.T, args ...string) *command {
	t.Helper()
	c := s.start(t.Context(), args...)
	<-c.done
	return c
}

// requireRefusal requires one line on standard error, nothing on standard output, and the exit code.
func requireRefusal(t *testing.T, c *command, code int, parts ...string) {
	t.Helper()
	require.Equal(t, code, c.code, "%s%s", c.err.String(), c.out.String())
	require.Empty(t, c.out.String())
	line := c.err.String()
	require.Equal(t, 1, strings.Count(line, "\n"), "one line: %q", line)
	require.True(t, strings.HasPrefix(line, "error: "), line)
	for _, part := range parts {
		require.Contains(t, line, part)
	}
}

// awaitRun waits until a run was started and watched.
func (a *api) awaitRun(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.runs) > 0
	}, soon, tick)
}
