package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/dsl/workflowtest"
	"github.com/signalbox-dev/signalbox/test/agreement"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// ended is a run of the platform whose test is compared with it.
type ended struct {
	t               platform.T
	project, source string
	run             *signalboxv1.Run
	exchanges       []agreement.Exchange
	alone           bool            // no other run emits events in the project
	published       map[string]bool // the sources of events that the test published
	input           any             // nil: it has that of the export
}

// agrees returns what the run of the platform and that of its test differ in: once with all that the services answered,
// and once with what the export shows, where that is all.
func (s *stack) agrees(ctx context.Context, e ended) error {
	doc, err := s.document(e.source)
	if err != nil {
		return err
	}
	s.awaitSteps(ctx, e)
	export, err := s.export(ctx, e.project, e.run.GetId())
	if err != nil {
		return err
	}
	run := agreement.Run{Export: export, Document: doc, Input: e.input, Exchanges: e.exchanges}
	if e.alone {
		if run.Events, err = s.emitted(ctx, e); err != nil {
			return err
		}
	}
	if run.Correct, err = s.outputsOfChildren(ctx, e); err != nil {
		return err
	}
	if err := agreement.Compare(ctx, run); err != nil {
		return fmt.Errorf("the test of the run differs: %w", err)
	}
	run.Input, run.Exchanges, run.Correct = nil, nil, nil
	switch err := agreement.Compare(ctx, run); {
	case errors.Is(err, agreement.ErrIncomplete):
		s.incomplete.Add(1)
	case err != nil:
		return fmt.Errorf("the test that is made of the run alone differs: %w", err)
	default:
		s.complete.Add(1)
	}
	return nil
}

// count logs how many runs showed all that their tests need.
func (s *stack) count(t *testing.T) {
	t.Helper()
	t.Logf("so far the cases of %d runs are complete as workflow test --from-run writes them, those of %d with what services answered",
		s.complete.Load(), s.incomplete.Load())
}

// outputsOfChildren returns what gives a case the outputs of the runs that a run awaited: the export shows what the
// output.as of their tasks made of them. nil: there were none.
func (s *stack) outputsOfChildren(ctx context.Context, e ended) (func(*workflowtest.Case), error) {
	listed, err := s.Runs.ListRuns(ctx, connect.NewRequest(&signalboxv1.ListRunsRequest{
		Project: e.project, Filter: &signalboxv1.RunFilter{ParentRunId: e.run.GetId()}}))
	if err != nil {
		return nil, fmt.Errorf("list the children: %w", err)
	}
	outputs := map[string]any{} // by name of the task
	for _, child := range listed.Msg.GetRuns() {
		got, err := s.Runs.GetRun(ctx, connect.NewRequest(&signalboxv1.GetRunRequest{Project: e.project, Id: child.GetId()}))
		if err != nil {
			return nil, fmt.Errorf("read a child: %w", err)
		}
		if run := got.Msg.GetRun(); run.GetOutput() != nil {
			if outputs[path.Base(run.GetParentPath())], err = jq.DecodeJSON([]byte(run.GetOutput().GetJson())); err != nil {
				return nil, fmt.Errorf("read the output of a child: %w", err)
			}
		}
	}
	return func(c *workflowtest.Case) {
		for i, m := range c.Mocks {
			if output, ok := outputs[m.Task]; ok {
				c.Mocks[i].Respond = []workflowtest.Response{{Output: output, HasOutput: true}}
			}
		}
	}, nil
}

// document parses a document with what it refers to at the stand-ins.
func (s *stack) document(source string) (*dsl.Document, error) {
	resources := dsl.NewResources()
	for {
		doc, violations := dsl.Parse([]byte(source), dsl.WithResources(resources))
		missing := resources.Missing()
		if len(missing) == 0 {
			if violations.HasErrors() {
				return nil, violations
			}
			return doc, nil
		}
		for _, reference := range missing {
			answer := httptest.NewRecorder()
			s.services.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, reference.URI, nil))
			resources.Add(reference.URI, answer.Body.Bytes())
		}
	}
}

// awaitSteps waits until all steps of a run are stored as they ended: those of an earlier workflow task may follow the run.
func (s *stack) awaitSteps(ctx context.Context, e ended) {
	platform.Eventually(e.t, platform.Patience, func() string {
		listed, err := s.Runs.ListSteps(ctx, connect.NewRequest(&signalboxv1.ListStepsRequest{
			Project: e.project, Id: e.run.GetId(), PageSize: 1000}))
		if err != nil {
			return err.Error()
		}
		done := int64(0)
		for _, step := range listed.Msg.GetSteps() {
			if step.GetEndTime() != nil {
				done++
			}
		}
		if done < e.run.GetStepsDone() {
			return fmt.Sprintf("%d of %d steps have ended", done, e.run.GetStepsDone())
		}
		return ""
	})
}

// export returns the export of a run.
func (s *stack) export(ctx context.Context, project, id string) ([]byte, error) {
	stream, err := s.Runs.ExportRun(ctx, connect.NewRequest(&signalboxv1.ExportRunRequest{Project: project, Id: id}))
	if err != nil {
		return nil, fmt.Errorf("export the run: %w", err)
	}
	defer func() { _ = stream.Close() }() // it is read to its end
	var out bytes.Buffer
	for stream.Receive() {
		out.Write(stream.Msg().GetData())
	}
	if err := stream.Err(); err != nil {
		return nil, fmt.Errorf("export the run: %w", err)
	}
	return out.Bytes(), nil
}

// emitted returns the events that a run emitted.
func (s *stack) emitted(ctx context.Context, e ended) ([]map[string]any, error) {
	listed, err := s.Events.ListEvents(ctx, connect.NewRequest(&signalboxv1.ListEventsRequest{
		Project: e.project, PageSize: 500, Since: e.run.GetCreateTime()}))
	if err != nil {
		return nil, fmt.Errorf("list the events: %w", err)
	}
	out := []map[string]any{}
	for _, listed := range listed.Msg.GetEvents() {
		if e.published[listed.GetSource()] || strings.HasPrefix(listed.GetType(), "io.signalbox.") {
			continue
		}
		got, err := s.Events.GetEvent(ctx, connect.NewRequest(&signalboxv1.GetEventRequest{
			Project: e.project, Position: listed.GetPosition()}))
		if err != nil {
			return nil, fmt.Errorf("read an event: %w", err)
		}
		event := got.Msg.GetEvent()
		one := map[string]any{"specversion": "1.0", "type": event.GetType(), "source": event.GetSource()}
		for name, value := range map[string]string{"subject": event.GetSubject(),
			"datacontenttype": event.GetDataContentType(), "dataschema": event.GetDataSchema()} {
			if value != "" {
				one[name] = value
			}
		}
		if text := event.GetExtensions().GetJson(); text != "" {
			if err := json.Unmarshal([]byte(text), &one); err != nil {
				return nil, fmt.Errorf("read the extensions of an event: %w", err)
			}
		}
		if text := event.GetData().GetJson(); text != "" {
			var data any
			if err := json.Unmarshal([]byte(text), &data); err != nil {
				return nil, fmt.Errorf("read the data of an event: %w", err)
			}
			one["data"] = data
		}
		out = append(out, one)
	}
	return out, nil
}
