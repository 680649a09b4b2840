package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"google.golang.org/genproto/googleapis/rpc/errdetails"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
)

// DefaultProject is the project every store begins with.
const DefaultProject = "default"

// Document makes a workflow document of version 1.0.0 in a workflow namespace of its own, so that tests which share a
// server do not meet. tasks is the list under `do`, indented by two spaces; head are further top-level keys.
func Document(name, tasks string, head ...string) string {
	return fmt.Sprintf("document:\n  dsl: '1.0.3'\n  namespace: t%08x\n  name: %s\n  version: '1.0.0'\n%sdo:\n%s",
		rand.Uint32(), name, strings.Join(head, ""), tasks)
}

// Publish publishes a document and returns the workflow's full name.
func (s *Server) Publish(t T, source string) string {
	t.Helper()
	res, err := s.Workflows.PublishWorkflow(t.Context(), connect.NewRequest(&signalboxv1.PublishWorkflowRequest{
		Project: DefaultProject, Source: source,
	}))
	if err != nil {
		t.Fatalf("publish: %v\n%s", err, source)
	}
	return res.Msg.GetWorkflow().GetName()
}

// Start starts a run; an empty input is none.
func (s *Server) Start(t T, workflow, input string) *signalboxv1.Run {
	t.Helper()
	r, err := s.TryStart(t.Context(), workflow, input)
	if err != nil {
		t.Fatalf("start %s: %v", workflow, err)
	}
	return r
}

// TryStart is Start for those that expect a refusal.
func (s *Server) TryStart(ctx context.Context, workflow, input string) (*signalboxv1.Run, error) {
	req := &signalboxv1.StartRunRequest{Project: DefaultProject, Workflow: workflow}
	if input != "" {
		req.Input = &signalboxv1.JsonValue{Json: input}
	}
	res, err := s.Runs.StartRun(ctx, connect.NewRequest(req))
	if err != nil {
		return nil, err
	}
	return res.Msg.GetRun(), nil
}

// Run reads a run.
func (s *Server) Run(t T, id string) *signalboxv1.Run {
	t.Helper()
	res, err := Read(t.Context(), s.Runs.GetRun, &signalboxv1.GetRunRequest{Project: DefaultProject, Id: id})
	if err != nil {
		t.Fatalf("read run %s: %v", id, err)
	}
	return res.GetRun()
}

// Read asks again, for half a minute, while a server answers that it cannot read at the moment: on a busy machine a database may need longer
// for an answer than the server waits for it. Tests of what a server answers then do not use it.
func Read[Req, Res any](ctx context.Context, read func(context.Context, *connect.Request[Req]) (*connect.Response[Res], error), req *Req) (*Res, error) {
	deadline := time.Now().Add(30 * time.Second)
	for {
		res, err := read(ctx, connect.NewRequest(req))
		if err == nil {
			return res.Msg, nil
		}
		if code := connect.CodeOf(err); code != connect.CodeUnavailable && code != connect.CodeDeadlineExceeded || time.Now().After(deadline) {
			return nil, err
		}
		select {
		case <-time.After(longTick):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Ended are the statuses a run ends with.
func Ended() []string { return []string{"completed", "failed", "canceled", "terminated", "timed_out"} }

// Await waits until a run has one of the statuses. A run that has ended with another one fails at once.
func (s *Server) Await(t T, id string, limit time.Duration, statuses ...string) *signalboxv1.Run {
	t.Helper()
	var r *signalboxv1.Run
	Eventually(t, limit, func() string {
		res, err := s.Runs.GetRun(t.Context(), connect.NewRequest(&signalboxv1.GetRunRequest{Project: DefaultProject, Id: id}))
		if err != nil {
			return err.Error()
		}
		r = res.Msg.GetRun()
		switch {
		case slices.Contains(statuses, r.GetStatus()):
			return ""
		case slices.Contains(Ended(), r.GetStatus()):
			t.Fatalf("run %s is %s instead of %s: %v", id, r.GetStatus(), statuses, r.GetError())
		}
		return fmt.Sprintf("run %s is %s, not %s", id, r.GetStatus(), statuses)
	})
	return r
}

// Watch follows a run to its end by streaming, and returns it as it then is.
func (s *Server) Watch(ctx context.Context, id string) (*signalboxv1.Run, error) {
	stream, err := s.Runs.WatchRun(ctx, connect.NewRequest(&signalboxv1.WatchRunRequest{Project: DefaultProject, Id: id}))
	if err != nil {
		return nil, err
	}
	var last *signalboxv1.Run
	for stream.Receive() {
		last = stream.Msg().GetRun()
	}
	if err := errors.Join(stream.Err(), stream.Close()); err != nil {
		return nil, err
	}
	return last, nil
}

// Steps reads all steps of a run.
func (s *Server) Steps(t T, id string) []*signalboxv1.Step {
	t.Helper()
	var steps []*signalboxv1.Step
	token := ""
	for {
		res, err := Read(t.Context(), s.Runs.ListSteps, &signalboxv1.ListStepsRequest{
			Project: DefaultProject, Id: id, PageSize: 1000, PageToken: token,
		})
		if err != nil {
			t.Fatalf("list the steps of %s: %v", id, err)
		}
		steps = append(steps, res.GetSteps()...)
		if token = res.GetNextPageToken(); token == "" {
			return steps
		}
	}
}

// AllRuns reads every run of a workflow, newest first, page by page.
func (s *Server) AllRuns(t T, workflow string, pageSize int32) []*signalboxv1.Run {
	t.Helper()
	var runs []*signalboxv1.Run
	token := ""
	for {
		res, err := Read(t.Context(), s.Runs.ListRuns, &signalboxv1.ListRunsRequest{
			Project: DefaultProject, Workflow: workflow, PageSize: pageSize, PageToken: token,
		})
		if err != nil {
			t.Fatalf("list the runs of %s: %v", workflow, err)
		}
		runs = append(runs, res.GetRuns()...)
		if token = res.GetNextPageToken(); token == "" {
			return runs
		}
	}
}

// Statuses of steps by task, in order of entry: "charge:completed".
func Statuses(steps []*signalboxv1.Step) []string {
	out := make([]string, len(steps))
	for i, step := range steps {
		out[i] = step.GetTask() + ":" + step.GetStatus()
	}
	return out
}

// Reason reads the machine-readable reason and the code of an API error.
func Reason(err error) (string, connect.Code) {
	var ce *connect.Error
	if !errors.As(err, &ce) {
		return "", connect.CodeUnknown
	}
	for _, detail := range ce.Details() {
		value, err := detail.Value()
		if err != nil {
			continue
		}
		if info, ok := value.(*errdetails.ErrorInfo); ok {
			return info.GetReason(), ce.Code()
		}
	}
	return "", ce.Code()
}

// Decode decodes JSON of the API into a plain value, for comparing; numbers stay as they are written.
func Decode(t T, v *signalboxv1.JsonValue) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(v.GetJson()))
	dec.UseNumber()
	var out any
	if err := dec.Decode(&out); err != nil {
		t.Fatalf("the value %q is not JSON: %v", v.GetJson(), err)
	}
	return out
}
