package workflowcmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"connectrpc.com/connect"
	"go.yaml.in/yaml/v3"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/dsl/taskindex"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// fillIn stands in a case for a value that a run does not show.
const fillIn = "FILL-IN"

// exportedRun is the part of an export of a run that a case needs. Values keep the digits of their numbers.
type exportedRun struct {
	Format string
	Run    struct {
		ID, Workflow, Version, Status string
		StartTime                     time.Time
		Input, Output                 json.RawMessage
		Redacted                      bool
		Error                         *exportedError
	}
	Version *struct{ Source string }
	Steps   []exportedStep
	Events  []struct{ Event map[string]any }
	Summary json.RawMessage `json:"stepSummary"`
}

type exportedError struct {
	Type, Title, Detail, Instance string
	Status                        int
}

type exportedStep struct {
	Pointer, Task, Kind, Status string
	Output                      json.RawMessage
	OutputShortened             json.RawMessage
	Error                       *exportedError
	Attempts                    []struct{ HTTPStatus int }
}

// recordedFile is a test file that is written.
type recordedFile struct {
	Secrets map[string]any `yaml:"secrets,omitempty"`
	Cases   []recordedCase `yaml:"cases"`
}

type recordedCase struct {
	Name   string          `yaml:"name"`
	Now    string          `yaml:"now"`
	Input  any             `yaml:"input"`
	Mocks  []*recordedMock `yaml:"mocks,omitempty"`
	Events []recordedEvent `yaml:"events,omitempty"`
	Expect map[string]any  `yaml:"expect"`
}

type recordedMock struct {
	Task    string           `yaml:"task"`
	Respond []map[string]any `yaml:"respond"`
}

type recordedEvent struct {
	Event map[string]any `yaml:"event"`
}

// testFromRun prints a test file with a case that does what a run did.
func testFromRun(ctx context.Context, s *invocation.Invocation, source string) error {
	text, err := exportOf(ctx, s, source)
	if err != nil {
		return err
	}
	var run exportedRun
	if err := json.Unmarshal(text, &run); err != nil || run.Format != "signalbox.run/1" {
		return exit.Errorf(exit.Failed, "--from-run: %q is no export of a run: make it by signalbox run export ID", source)
	}
	file, notes, err := recordCase(&run)
	if err != nil {
		return exit.Errorf(exit.Failed, "write a test of run %q: %w", run.Run.ID, err)
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2) //nolint:mnd // as workflow format does
	if err := encoder.Encode(file); err != nil {
		return fmt.Errorf("write a test of run %q: %w", run.Run.ID, err)
	}
	for _, note := range notes {
		s.Note("%s", note)
	}
	_, err = s.Out.Write(out.Bytes())
	return err
}

// exportOf returns the export of a run: a file, or what the server exports.
func exportOf(ctx context.Context, s *invocation.Invocation, source string) ([]byte, error) {
	if info, err := os.Stat(source); err == nil && info.Mode().IsRegular() {
		text, err := os.ReadFile(source)
		if err != nil {
			return nil, exit.Errorf(exit.Failed, "--from-run: %w", err)
		}
		return text, nil
	}
	id, err := s.RunID(ctx, source)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("export run %q", id)
	patience, stop := s.Patience(ctx)
	defer stop()
	stream, err := s.Runs().ExportRun(patience,
		connect.NewRequest(&signalboxv1.ExportRunRequest{Project: s.Project(), Id: id}))
	if err != nil {
		return nil, s.Failed(err, "%s", what)
	}
	var text bytes.Buffer
	err = s.Copy(stream, &text, what)
	return text.Bytes(), err
}

// recordCase returns a case that does what a run did, and what its author must add or know.
func recordCase(run *exportedRun) (*recordedFile, []string, error) {
	if run.Version == nil {
		return nil, nil, fmt.Errorf("its version %s was deleted, or published again with other content", run.Run.Version)
	}
	doc, violations := structure([]byte(run.Version.Source))
	if doc == nil {
		return nil, nil, fmt.Errorf("its version has errors: %w", violations)
	}
	input, err := decoded(run.Run.Input)
	if err != nil {
		return nil, nil, err
	}
	r := &recorder{doc: doc, run: run, tasks: map[string]*dsl.Task{}, mocks: map[string]*recordedMock{}}
	for _, t := range taskindex.List(doc) {
		r.tasks[t.Pointer] = t
	}
	r.record.Name = fmt.Sprintf("run %s of %s %s", run.Run.ID, run.Run.Workflow, run.Run.Version)
	r.record.Now, r.record.Input = run.Run.StartTime.UTC().Format(time.RFC3339Nano), input
	if r.record.Expect, err = r.expectation(); err != nil {
		return nil, nil, err
	}
	for i := range run.Steps {
		if err := r.step(&run.Steps[i]); err != nil {
			return nil, nil, err
		}
	}
	r.events()
	file := &recordedFile{Secrets: r.secrets(), Cases: []recordedCase{r.record}}
	r.remarks(file)
	return file, r.notes, nil
}

func decoded(text json.RawMessage) (any, error) {
	if len(text) == 0 {
		return nil, nil
	}
	return jq.DecodeJSON(text)
}

// recorder turns a run into a case.
type recorder struct {
	doc    *dsl.Document
	run    *exportedRun
	tasks  map[string]*dsl.Task // by pointer
	mocks  map[string]*recordedMock
	record recordedCase
	notes  []string
}

// expectation returns what the case expects: that the run ends as it did.
func (r *recorder) expectation() (map[string]any, error) {
	switch run := &r.run.Run; run.Status {
	case "completed":
		value, err := decoded(run.Output)
		return map[string]any{"output": value}, err
	case "failed", "timed_out":
		expected := map[string]any{}
		if e := run.Error; e != nil {
			for name, value := range map[string]string{"type": e.Type, "title": e.Title, "instance": e.Instance} {
				if value != "" {
					expected[name] = value
				}
			}
			if e.Status != 0 {
				expected["status"] = e.Status
			}
		}
		return map[string]any{"status": run.Status, "error": expected}, nil
	default:
		return nil, fmt.Errorf("it is %s: a case is written of a run that has completed, failed or timed out", run.Status)
	}
}

// step adds the response to the request of a step, if it has one.
func (r *recorder) step(step *exportedStep) error {
	task := r.tasks[step.Pointer]
	if step.Status == "skipped" {
		return nil
	}
	if task == nil {
		if step.Kind == string(dsl.KindCall) || step.Kind == string(dsl.KindRun) {
			r.notes = append(r.notes, fmt.Sprintf(
				"the task %q is in a function outside of the document: add a mock for it", step.Task))
		}
		return nil
	}
	var response map[string]any
	var err error
	switch body := task.Body.(type) {
	case *dsl.HTTPCall:
		response, err = r.call(step, task, body)
	case *dsl.RunWorkflow:
		if body.Await {
			response, err = r.other(step, task)
		}
	case *dsl.RunProgram:
		if body.Await {
			response, err = r.other(step, task)
		}
	}
	if response == nil || err != nil {
		return err
	}
	mock := r.mocks[step.Pointer]
	if mock == nil {
		mock = &recordedMock{Task: r.name(task)}
		r.mocks[step.Pointer] = mock
		r.record.Mocks = append(r.record.Mocks, mock)
	}
	mock.Respond = append(mock.Respond, response)
	return nil
}

// name returns the name of a task, or its pointer if others have its name.
func (r *recorder) name(task *dsl.Task) string {
	for _, other := range r.tasks {
		if other != task && other.Name == task.Name {
			return task.Pointer
		}
	}
	return task.Name
}

// call returns the response to a call.
func (r *recorder) call(step *exportedStep, task *dsl.Task, call *dsl.HTTPCall) (map[string]any, error) {
	status := 0
	if n := len(step.Attempts); n > 0 {
		status = step.Attempts[n-1].HTTPStatus
	}
	switch {
	case step.Status == "canceled" || step.Status == "running":
		return map[string]any{"delay": map[string]any{"days": 1}}, nil // it was canceled before the response
	case step.Error != nil && status == 0:
		return failureOf(step.Error), nil
	case step.Error != nil:
		return r.refused(step.Error, task, status), nil
	}
	value, err := r.output(step, task)
	if err != nil {
		return nil, err
	}
	response := map[string]any{}
	if call.Output == dsl.OutputResponse {
		exchange, _ := value.(map[string]any)
		whole, _ := exchange["response"].(map[string]any)
		if headers, ok := whole["headers"]; ok {
			response["headers"] = headers
		}
		value = exchange["content"]
	}
	response["body"] = value
	if status != 0 && status != 200 { //nolint:mnd // the default of a mock
		response["status"] = status
	}
	return response, nil
}

// refused returns a response with an error status. A run does not keep its body: the response has what the error shows
// of it.
func (r *recorder) refused(e *exportedError, task *dsl.Task, status int) map[string]any {
	response := map[string]any{"status": status}
	_, text, shown := strings.Cut(e.Detail, fmt.Sprintf(" answered %d: ", status))
	switch {
	case e.Title != "" && e.Title != cmp.Or(http.StatusText(status), fmt.Sprintf("HTTP status %d", status)):
		problem := map[string]any{"title": e.Title}
		if shown {
			problem["detail"] = text
		}
		response["headers"], response["body"] = map[string]any{"Content-Type": "application/problem+json"}, problem
	case shown:
		response["headers"], response["body"] = map[string]any{"Content-Type": "text/plain"}, text
	}
	r.notes = append(r.notes, fmt.Sprintf("the response to the task %q with the status %d has of its body what the error shows",
		task.Name, status))
	return response
}

// other returns the result of another run, or of a program.
func (r *recorder) other(step *exportedStep, task *dsl.Task) (map[string]any, error) {
	if step.Error != nil {
		return failureOf(step.Error), nil
	}
	value, err := r.output(step, task)
	return map[string]any{"output": value}, err
}

// output returns the output of a step, and notes where that is not what the step received.
func (r *recorder) output(step *exportedStep, task *dsl.Task) (any, error) {
	switch {
	case len(step.OutputShortened) > 0:
		r.notes = append(r.notes, fmt.Sprintf(
			"the response to the task %q is larger than what is shown of it: complete its body", task.Name))
	case task.Output != nil && task.Output.As != nil:
		r.notes = append(r.notes, fmt.Sprintf("the response to the task %q is what output.as made of it: correct its body",
			task.Name))
	}
	return decoded(step.Output)
}

func failureOf(e *exportedError) map[string]any {
	fail := map[string]any{"type": e.Type}
	for name, value := range map[string]string{"title": e.Title, "detail": e.Detail} {
		if value != "" {
			fail[name] = value
		}
	}
	if e.Status != 0 {
		fail["status"] = e.Status
	}
	return map[string]any{"fail": fail}
}

// events adds the events that the run took, without those that started it and those that it emitted itself.
func (r *recorder) events() {
	started := map[string]bool{}
	if list, ok := r.record.Input.([]any); ok && r.doc.Schedule != nil && r.doc.Schedule.On != nil {
		for _, item := range list {
			event, _ := item.(map[string]any)
			started[fmt.Sprint(event["source"], " ", event["id"])] = true
		}
	}
	for _, e := range r.run.Events {
		source, _ := e.Event["source"].(string)
		own := strings.HasSuffix(source, "/runs/"+r.run.Run.ID)
		if own || started[fmt.Sprint(e.Event["source"], " ", e.Event["id"])] {
			continue
		}
		event := map[string]any{}
		for _, name := range []string{"type", "source", "subject", "id", "time", "data", "dataContentType", "dataSchema"} {
			if value, given := e.Event[name]; given && value != "" {
				event[strings.ToLower(name)] = value
			}
		}
		if extensions, ok := e.Event["extensions"].(map[string]any); ok {
			for name, value := range extensions {
				event[name] = value
			}
		}
		r.record.Events = append(r.record.Events, recordedEvent{event})
	}
}

// secrets returns marks for the secrets that expressions of the document name.
func (r *recorder) secrets() map[string]any {
	out := map[string]any{}
	for _, found := range regexp.MustCompile(`\$secrets((?:\.[A-Za-z_][A-Za-z0-9_]*)+)`).
		FindAllStringSubmatch(r.run.Version.Source, -1) {
		path := strings.Split(found[1], ".")[1:]
		at := out
		for i, name := range path {
			inner, isObject := at[name].(map[string]any)
			switch {
			case i == len(path)-1 && at[name] == nil:
				at[name] = fillIn
			case i < len(path)-1 && !isObject:
				inner = map[string]any{}
				at[name] = inner
			}
			at = inner
		}
	}
	return out
}

// remarks notes what the author must fill in, and what the case cannot show.
func (r *recorder) remarks(file *recordedFile) {
	if len(file.Secrets) > 0 {
		r.notes = append(r.notes, "the secrets are marks: replace "+fillIn+" by values for tests, if their content matters")
	}
	if r.run.Run.Redacted {
		r.notes = append(r.notes, "values of the run are redacted: replace their marks by values for tests")
	}
	if len(r.run.Summary) > 0 && string(r.run.Summary) != "null" {
		r.notes = append(r.notes, "not all steps of the run are kept: the responses to the others are missing")
	}
	r.notes = append(r.notes, fmt.Sprintf("a case with %s and %s is written",
		output.Count(int64(len(r.record.Mocks)), "mock"), output.Count(int64(len(r.record.Events)), "event")))
}
