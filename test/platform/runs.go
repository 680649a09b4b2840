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

// DefaultProject is the project that every database begins with.
const DefaultProject = "default"

// Document returns a workflow document of version 1.0.0 in a random workflow namespace, so that tests that share a
// server do not interfere. tasks is the list under `do`, indented by two spaces; head are further top-level keys.
func Document(name, tasks string, head ...string) string {
	return fmt.Sprintf("document:\n  dsl: '1.0.3'\n  namespace: t%08x\n  name: %s\n  version: '1.0.0'\n%sdo:\n%s",
		rand.Uint32(), name, strings.Join(head, ""), tasks)
}

// Publish publishes a document and returns the workflow's full name.
func (s *Server) Publish(t T, source string) string {
	t.Helper()
	return s.PublishWith(t, source, nil)
}

// PublishWith publishes a workflow with the files that it refers to, and returns its name.
func (s *Server) PublishWith(t T, source string, files map[string]string) string {
	t.Helper()
	res, err := s.Workflows.PublishWorkflow(t.Context(), connect.NewRequest(&signalboxv1.PublishWorkflowRequest{
		Project: DefaultProject, Source: source, Files: files,
	}))
	if err != nil {
		t.Fatalf("publish: %v\n%s", err, source)
	}
	return res.Msg.GetWorkflow().GetName()
}

// Start starts a run. An empty input means no input.
func (s *Server) Start(t T, workflow, input string) *signalboxv1.Run {
	t.Helper()
	r, err := s.TryStart(t.Context(), workflow, input)
	if err != nil {
		t.Fatalf("start %s: %v", workflow, err)
	}
	return r
}

// TryStart is Start for calls that may be refused.
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

// Read repeats a read for up to half a minute while the server reports that it is unavailable: on a busy machine a
// database may answer later than the server waits. Tests of such errors do not use it.
func Read[Req, Res any](ctx context.Context,
	read func(context.Context, *connect.Request[Req]) (*connect.Response[Res], error), req *Req) (*Res, error) {
	deadline := time.Now().Add(30 * time.Second)
	for {
		res, err := read(ctx, connect.NewRequest(req))
		if err == nil {
			return res.Msg, nil
		}
		if code := connect.CodeOf(err); code != connect.CodeUnavailable && code != connect.CodeDeadlineExceeded ||
			time.Now().After(deadline) {
			return nil, err
		}
		select {
		case <-time.After(longTick):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Ended returns the terminal statuses of a run.
func Ended() []string { return []string{"completed", "failed", "canceled", "terminated", "timed_out"} }

// Await waits until a run has one of the statuses. It fails at once if the run ends with another one.
func (s *Server) Await(t T, id string, limit time.Duration, statuses ...string) *signalboxv1.Run {
	t.Helper()
	var r *signalboxv1.Run
	Eventually(t, limit, func() string {
		res, err := s.Runs.GetRun(t.Context(),
			connect.NewRequest(&signalboxv1.GetRunRequest{Project: DefaultProject, Id: id}))
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

// Watch follows a run by streaming until it ends, and returns its last state.
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

// Follow is Watch of a run that has to be completed in the end.
func (s *Server) Follow(ctx context.Context, id string) error {
	run, err := s.Watch(ctx, id)
	if err == nil && run.GetStatus() != "completed" {
		err = fmt.Errorf("run %s is %s: %v", id, run.GetStatus(), run.GetError())
	}
	return err
}

// Completes starts a run and follows it.
func (s *Server) Completes(ctx context.Context, workflow, input string) error {
	run, err := s.TryStart(ctx, workflow, input)
	if err != nil {
		return err
	}
	return s.Follow(ctx, run.GetId())
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
			Project: DefaultProject, Filter: &signalboxv1.RunFilter{Workflow: workflow}, PageSize: pageSize, PageToken: token,
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

// Statuses returns the steps as "task:status", in order of entry, such as "charge:completed".
func Statuses(steps []*signalboxv1.Step) []string {
	out := make([]string, len(steps))
	for i, step := range steps {
		out[i] = step.GetTask() + ":" + step.GetStatus()
	}
	return out
}

// Reason returns the machine-readable reason and the code of an API error.
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

// Decode decodes JSON of the API for comparisons. Numbers keep their digits.
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
