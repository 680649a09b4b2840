package runcase

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/signalbox-dev/signalbox/dsl"
)

// recorder turns a run into a case.
type recorder struct {
	doc            *dsl.Document
	run            *exportedRun
	tasks          map[string]*dsl.Task // by pointer
	mocks          map[string]*Mock
	record         recordedCase
	missing, notes []string
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
	case "waiting":
		if run.WaitingKind == "event" {
			return map[string]any{"status": run.Status}, nil
		}
	}
	return nil, fmt.Errorf("it is %s: a case is written of a run that has completed, failed or timed out, or waits for events",
		r.run.Run.Status)
}

// step adds the response to the request of a step, if it has one.
func (r *recorder) step(step *exportedStep) error {
	task := r.tasks[step.Pointer]
	if step.Status == "skipped" {
		return nil
	}
	if task == nil {
		if step.Kind == string(dsl.KindCall) || step.Kind == string(dsl.KindRun) {
			r.missing = append(r.missing, fmt.Sprintf(
				"the task %q is in a function outside of the document: add a mock for it", step.Task))
		}
		return nil
	}
	if !awaits(task.Body) {
		return nil
	}
	response, err := r.response(step, task)
	if response.Members == nil || err != nil {
		return err
	}
	mock := r.mocks[step.Pointer]
	if mock == nil {
		mock = &Mock{Task: r.name(task)}
		r.mocks[step.Pointer] = mock
		r.record.Mocks = append(r.record.Mocks, mock)
	}
	mock.Respond = append(mock.Respond, response)
	return nil
}

// awaits reports whether a task sends a request that a mock answers.
func awaits(body dsl.Body) bool {
	switch body := body.(type) {
	case *dsl.HTTPCall, *dsl.OpenAPICall, *dsl.GoCall, *dsl.RunProgram:
		return true
	case *dsl.RunWorkflow:
		return body.Await
	default:
		return false
	}
}

// response returns what a task received; nothing where it failed before it sent a request.
func (r *recorder) response(step *exportedStep, task *dsl.Task) (Response, error) {
	part, isCall := outputOfCall(task.Body)
	switch {
	case step.Status == "canceled" || step.Status == "running" || step.Status == "waiting" || timedOut(step, task):
		late := map[string]any{"delay": map[string]any{"days": 1}} // it ended before the response
		if !isCall {
			late["output"] = ""
		}
		return Response{Members: late}, nil
	case step.Error != nil && len(step.Attempts) == 0:
		return Response{}, nil
	case isCall:
		return r.call(step, task, part)
	case step.Error != nil:
		return failureOf(withoutRun(step.Error)), nil
	}
	program, isProgram := task.Body.(*dsl.RunProgram)
	changed := isProgram && task.Output != nil && task.Output.As != nil
	if changed && program.Language == dsl.JavaScript {
		return Response{}, nil // the test executes it
	}
	value, err := r.output(step, task)
	if err != nil {
		return Response{}, err
	}
	switch body := task.Body.(type) {
	case *dsl.RunWorkflow:
		value = outputOfRun(body.Return, value)
	case *dsl.RunProgram:
		switch {
		case changed:
			value = fillIn
		case !body.Await:
			value = "" // the task makes nothing of it
		default:
			value = resultOfProgram(body.Return, value)
		}
	}
	return Response{Members: map[string]any{"output": value}}, nil
}

// outputOfRun returns the output of a run from what the task that awaited it made of it.
func outputOfRun(part dsl.Return, made any) any {
	switch part {
	case dsl.ReturnAll:
		whole, _ := made.(map[string]any)
		return whole["stdout"]
	case dsl.ReturnNone, dsl.ReturnCode, dsl.ReturnStderr:
		return nil // the task makes nothing of it
	case dsl.ReturnStdout:
	}
	return made
}

// resultOfProgram returns the result of a program from what the task that awaited it made of it.
func resultOfProgram(part dsl.Return, made any) any {
	switch part {
	case dsl.ReturnCode, dsl.ReturnStderr:
		return map[string]any{string(part): made}
	case dsl.ReturnNone:
		return "" // the task makes nothing of it
	case dsl.ReturnAll, dsl.ReturnStdout:
	}
	return made
}

// outputOfCall returns which part of a response a call is to return; false for other tasks.
func outputOfCall(body dsl.Body) (part dsl.HTTPOutput, isCall bool) {
	switch body := body.(type) {
	case *dsl.HTTPCall:
		return body.Output, true
	case *dsl.OpenAPICall:
		return body.Output, true
	default:
		return "", false
	}
}

// timedOut reports whether the timeout of a task itself ended its step.
func timedOut(step *exportedStep, task *dsl.Task) bool {
	return task.Timeout != nil && step.Error != nil && dsl.SameErrorType(step.Error.Type, dsl.ErrorTypeTimeout)
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
func (r *recorder) call(step *exportedStep, task *dsl.Task, part dsl.HTTPOutput) (Response, error) {
	status := 0
	if n := len(step.Attempts); n > 0 {
		status = step.Attempts[n-1].HTTPStatus
	}
	switch {
	case step.Error != nil && dsl.SameErrorType(step.Error.Type, dsl.ErrorTypeConfiguration) && len(r.doc.Use.Secrets) == 0:
		return Response{}, nil // nothing was sent, and the test finds the same reason: it needs no secret for that
	case step.Error != nil && status == 0:
		return failureOf(step.Error), nil
	case step.Error != nil:
		return r.refused(step.Error, task, status), nil
	}
	value, err := r.output(step, task)
	if err != nil {
		return Response{}, err
	}
	response := map[string]any{}
	switch part {
	case dsl.OutputResponse:
		exchange, _ := value.(map[string]any)
		if headers, ok := exchange["headers"]; ok {
			response["headers"] = headers
		}
		value = exchange["content"]
	case dsl.OutputRaw:
		encoded, _ := value.(string)
		content, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || !utf8.Valid(content) {
			r.missing = append(r.missing, fmt.Sprintf("the body of the response to the task %q is no text: write one", task.Name))
		}
		response["headers"] = map[string]any{"Content-Type": "text/plain"}
		value = strings.ToValidUTF8(string(content), "\uFFFD")
	case dsl.OutputContent:
	}
	response["body"] = value
	if status != 0 && status != 200 { //nolint:mnd // the default of a mock
		response["status"] = status
	}
	return Response{Members: response}, nil
}

// refused returns a response with an error status. A run does not keep its body: the response has what the error shows
// of it, so that the task gets the same error.
func (r *recorder) refused(e *exportedError, task *dsl.Task, status int) Response {
	response := map[string]any{"status": status}
	_, text, shown := strings.Cut(e.Detail, fmt.Sprintf(" answered %d: ", status))
	comment := "the body of the response was not kept"
	switch {
	case e.Title != "" && e.Title != cmp.Or(http.StatusText(status), fmt.Sprintf("HTTP status %d", status)):
		problem := map[string]any{"title": e.Title}
		if shown {
			problem["detail"] = text
		}
		response["headers"], response["body"] = map[string]any{"Content-Type": "application/problem+json"}, problem
		comment += ": this is what the error shows of it"
	case shown:
		response["headers"], response["body"] = map[string]any{"Content-Type": "text/plain"}, text
		comment += ": this is what the error shows of it"
	default:
		comment += ", and the error shows nothing of it"
	}
	r.notes = append(r.notes, fmt.Sprintf("the response to the task %q with the status %d has of its body what the error shows",
		task.Name, status))
	return Response{Members: response, Comment: comment}
}

// output returns the output of a step, and notes where that is not what the step received.
func (r *recorder) output(step *exportedStep, task *dsl.Task) (any, error) {
	switch {
	case len(step.OutputShortened) > 0:
		r.missing = append(r.missing, fmt.Sprintf(
			"the response to the task %q is larger than what is shown of it: complete its body", task.Name))
	case task.Output != nil && task.Output.As != nil:
		r.missing = append(r.missing, fmt.Sprintf("the response to the task %q is what output.as made of it: correct its body",
			task.Name))
	}
	return decoded(step.Output)
}

// withoutRun returns the error that another run failed with, or the error itself where there was none.
func withoutRun(e *exportedError) *exportedError {
	if id, text, found := strings.Cut(strings.TrimPrefix(e.Detail, "run "), ": "); found && uuid.Validate(id) == nil {
		own := *e
		own.Detail = text
		return &own
	}
	return e
}

func failureOf(e *exportedError) Response {
	fail := map[string]any{"type": e.Type}
	for name, value := range map[string]string{"title": e.Title, "detail": e.Detail} {
		if value != "" {
			fail[name] = value
		}
	}
	if e.Status != 0 {
		fail["status"] = e.Status
	}
	return Response{Members: map[string]any{"fail": fail}}
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
		if own := e.Event["actor"] == "run "+r.run.Run.ID; own || started[fmt.Sprint(e.Event["source"], " ", e.Event["id"])] {
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
