package workflowtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// check compares what the run did with the expectations of the case. Of a run that could not go on, only the cause is
// reported.
func (r *runner) check() {
	for _, m := range r.mocks {
		if !m.own {
			r.result.sharedUsed = append(r.result.sharedUsed, m.used)
		}
	}
	if r.stopped {
		return
	}
	e := &r.c.Expect
	if !r.checkStatus(e) {
		return // the rest follows from it
	}
	r.checkOutput(e)
	r.checkError(e)
	r.checkTasks(e)
	r.checkSent(e)
	r.checkLengths(e)
	r.checkUnused()
}

func (r *runner) differ(what, format string, args ...any) {
	r.result.Mismatches = append(r.result.Mismatches, Mismatch{What: what, Message: fmt.Sprintf(format, args...),
		Pos: r.c.Expect.pos(what)})
}

// pos returns the position of an expectation, such as output or error.type.
func (e *Expect) pos(what string) dsl.Pos {
	key, _, _ := strings.Cut(what, ".")
	key, _, _ = strings.Cut(key, "[")
	return cmp.Or(e.keys[key], e.at.pos)
}

func (r *runner) differDiff(what, message string, want, got any) {
	r.result.Mismatches = append(r.result.Mismatches, Mismatch{What: what, Message: message,
		Diff: udiff.Unified("expected", "actual", pretty(want), pretty(got)), Pos: r.c.Expect.pos(what)})
}

// checkStatus compares the status. It returns false if the run ended in another way than expected.
func (r *runner) checkStatus(e *Expect) bool {
	got := string(r.result.Status)
	want := []string{string(interp.StatusCompleted)}
	switch {
	case e.Status != "":
		want = []string{e.Status}
	case e.Error != nil:
		want = []string{string(interp.StatusFailed), string(interp.StatusTimedOut)}
	}
	if slices.Contains(want, got) {
		return true
	}
	switch {
	case r.result.Error != nil:
		r.differ("status", "the run is %s, not %s: %s", got, want[0], r.result.Error.Error())
	case r.result.Status == interp.StatusWaiting:
		r.differ("status", "the run waits and nothing is left that could continue it: %s", r.waits())
	case r.result.Status == interp.StatusCompleted:
		r.differ("status", "the run is completed, not %s; its output is %s", want[0], shortened(compact(r.result.Output)))
	default:
		r.differ("status", "the run is %s, not %s", got, want[0])
	}
	return false
}

// waits describes the open tasks of a run that waits for ever.
func (r *runner) waits() string {
	var parts []string
	for _, l := range r.listeners {
		part := fmt.Sprintf("the task %q listens for an event", l.task.Name)
		if types := l.Spec.Types(); len(types) > 0 {
			part += " of the type " + strings.Join(types, " or ")
		}
		parts = append(parts, part)
	}
	if len(r.queue) > 0 && r.queue[0].Task != "" {
		parts = append(parts, fmt.Sprintf("the next event waits for the task %q", r.queue[0].Task))
	}
	return strings.Join(parts, ", ")
}

func (r *runner) checkOutput(e *Expect) {
	got := r.result.Output
	if e.HasOutput && !eventfilter.Equal(jq.Normalize(e.Output), got) {
		r.differDiff("output", "the output differs", e.Output, got)
	}
	if e.HasContains {
		if at, ok := contains(jq.Normalize(e.Contains), got, ""); !ok {
			r.differDiff("contains", "the output lacks "+at, e.Contains, got)
		}
	}
	for i, source := range e.Holds {
		what := fmt.Sprintf("holds[%d]", i)
		program, err := r.compiler.Compile(bare(source), variables())
		if err != nil {
			r.differ(what, "%s does not compile: %v", source, err)
			continue
		}
		v, err := program.Run(got, r.variables(), jq.NewFuel(jq.DefaultFuel))
		switch {
		case err != nil:
			r.differ(what, "%s: %v; the output is %s", source, err, shortened(compact(got)))
		case v == nil || v == false:
			r.differ(what, "%s is %s; the output is %s", source, compact(v), shortened(compact(got)))
		}
	}
}

// variables are the variables of the expressions of a case.
func (r *runner) variables() map[string]any {
	requests := make([]any, len(r.result.Requests))
	for i := range r.result.Requests {
		requests[i] = r.result.Requests[i].Value()
	}
	events := make([]any, len(r.result.Events))
	for i, e := range r.result.Events {
		events[i] = e
	}
	var runError any
	if r.result.Error != nil {
		runError = r.result.Error.Value()
	}
	return map[string]any{"input": jq.Normalize(r.c.Input), "error": runError, "requests": requests, "events": events}
}

func (r *runner) checkError(e *Expect) {
	got := r.result.Error
	if e.Error == nil || got == nil {
		return
	}
	if want := fullType(e.Error.Type); want != "" && !dsl.SameErrorType(want, got.Type) {
		r.differ("error.type", "the type is %s, not %s (%s)", got.Type, want, got.Error())
	}
	if e.Error.Status != 0 && e.Error.Status != got.Status {
		r.differ("error.status", "the status is %d, not %d (%s)", got.Status, e.Error.Status, got.Error())
	}
	for _, part := range []struct{ name, want, got string }{
		{"title", e.Error.Title, got.Title}, {"detail", e.Error.Detail, got.Detail},
		{"instance", e.Error.Instance, got.Instance},
	} {
		if part.want != "" && part.want != part.got {
			r.differ("error."+part.name, "the %s is %q, not %q", part.name, part.got, part.want)
		}
	}
}

func (r *runner) checkTasks(e *Expect) {
	var ran []string
	entered := map[string]bool{}
	for i := range r.result.Steps {
		if s := &r.result.Steps[i]; s.Status != interp.StatusSkipped {
			ran = append(ran, s.Task)
			entered[s.Task], entered[s.Pointer] = true, true
		}
	}
	if e.HasTasks && !r.sameTasks(e.Tasks) {
		r.differDiff("tasks", "the tasks that ran differ", e.Tasks, ran)
	}
	for _, name := range e.Ran {
		if !entered[name] {
			r.differ("ran", "the task %q did not run; these did: %s", name, strings.Join(ran, ", "))
		}
	}
	for _, name := range e.NotRan {
		if entered[name] {
			r.differ("notRan", "the task %q ran", name)
		}
	}
}

// sameTasks reports whether the tasks that ran are the expected ones, each by its name or pointer.
func (r *runner) sameTasks(want []string) bool {
	i := 0
	for j := range r.result.Steps {
		s := &r.result.Steps[j]
		if s.Status == interp.StatusSkipped {
			continue
		}
		if i >= len(want) || want[i] != s.Task && want[i] != s.Pointer {
			return false
		}
		i++
	}
	return i == len(want)
}

// checkSent compares the requests, the events and the runs that were started.
func (r *runner) checkSent(e *Expect) {
	if e.HasRequests && r.sameNumber("requests", len(e.Requests), len(r.result.Requests), r.requestLines()) {
		for i, want := range e.Requests {
			r.checkRequest(fmt.Sprintf("requests[%d]", i), &want, &r.result.Requests[i])
		}
	}
	var types []string
	for _, event := range r.result.Events {
		types = append(types, fmt.Sprint(event["type"]))
	}
	if e.HasEvents && r.sameNumber("events", len(e.Events), len(r.result.Events), types) {
		for i, want := range e.Events {
			if at, ok := contains(jq.Normalize(want), r.result.Events[i], ""); !ok {
				r.differDiff(fmt.Sprintf("events[%d]", i), "the event lacks "+at, want, r.result.Events[i])
			}
		}
	}
	var workflows []string
	for _, c := range r.result.Children {
		workflows = append(workflows, c.Workflow)
	}
	if e.HasChildren && r.sameNumber("children", len(e.Children), len(r.result.Children), workflows) {
		for i, want := range e.Children {
			r.checkChild(fmt.Sprintf("children[%d]", i), &want, &r.result.Children[i])
		}
	}
}

func (r *runner) sameNumber(what string, want, got int, lines []string) bool {
	if want == got {
		return true
	}
	message := fmt.Sprintf("there are %d %s, not %d", got, what, want)
	if len(lines) > 0 {
		message += ":\n  " + strings.Join(lines, "\n  ")
	}
	r.differ(what, "%s", message)
	return false
}

func (r *runner) requestLines() []string {
	lines := make([]string, len(r.result.Requests))
	for i, q := range r.result.Requests {
		lines[i] = q.Method + " " + q.URL
	}
	return lines
}

func (r *runner) checkRequest(what string, want *RequestExpectation, got *Request) {
	for _, part := range []struct{ name, want, got string }{
		{"method", want.Method, got.Method}, {"url", want.URL, got.URL},
	} {
		if part.want != "" && part.want != part.got {
			r.differ(what+"."+part.name, "the %s is %q, not %q", part.name, part.got, part.want)
		}
	}
	if want.Task != "" && want.Task != got.Task && want.Task != got.Pointer {
		r.differ(what+".task", "the request is of the task %q, not %q", got.Task, want.Task)
	}
	for _, name := range slices.Sorted(maps.Keys(want.Headers)) {
		if value := got.Headers[strings.ToLower(name)]; value != want.Headers[name] {
			r.differ(what+".headers", "the header %s is %q, not %q", name, value, want.Headers[name])
		}
	}
	if want.HasBody && (!got.HasBody || !eventfilter.Equal(jq.Normalize(want.Body), got.Body)) {
		r.differDiff(what+".body", "the body differs", want.Body, got.Body)
	}
}

func (r *runner) checkChild(what string, want *ChildExpectation, got *Child) {
	for _, part := range []struct{ name, want, got string }{
		{"workflow", want.Workflow, got.Workflow}, {"version", want.Version, got.Version},
	} {
		if part.want != "" && part.want != part.got {
			r.differ(what+"."+part.name, "the %s is %q, not %q", part.name, part.got, part.want)
		}
	}
	if want.Task != "" && want.Task != got.Task && want.Task != got.Pointer {
		r.differ(what+".task", "the run is of the task %q, not %q", got.Task, want.Task)
	}
	if want.HasInput && !eventfilter.Equal(jq.Normalize(want.Input), got.Input) {
		r.differDiff(what+".input", "the input differs", want.Input, got.Input)
	}
}

func (r *runner) checkLengths(e *Expect) {
	for _, name := range slices.Sorted(maps.Keys(e.Attempts)) {
		if got := r.attemptsOf(name); got != e.Attempts[name] {
			r.differ("attempts", "the task %q had %d attempts, not %d", name, got, e.Attempts[name])
		}
	}
	if e.Duration != nil && *e.Duration != r.result.Duration {
		r.differ("duration", "the run took %s, not %s", r.result.Duration, *e.Duration)
	}
	if e.DurationAtMost != nil && r.result.Duration > *e.DurationAtMost {
		r.differ("durationAtMost", "the run took %s, more than %s", r.result.Duration, *e.DurationAtMost)
	}
}

// attemptsOf returns the number of the attempts of a try, or of the requests of any other task.
func (r *runner) attemptsOf(name string) int {
	attempts := 0
	for i := range r.result.Steps {
		if s := &r.result.Steps[i]; s.Kind == string(dsl.KindTry) && (s.Task == name || s.Pointer == name) {
			attempts += s.Attempt
		}
	}
	for i := range r.result.Requests {
		if q := &r.result.Requests[i]; q.Task == name || q.Pointer == name {
			attempts++
		}
	}
	return attempts
}

// checkUnused reports what the case prepared and the run did not use: the run is not the one that its author had in
// mind.
func (r *runner) checkUnused() {
	for _, m := range r.mocks {
		if m.own && m.used < len(m.Respond) {
			r.unused("mocks", m.Mock, m.used)
		}
	}
	for _, e := range r.queue {
		r.result.Mismatches = append(r.result.Mismatches, Mismatch{What: "events", Pos: e.at.pos,
			Message: "the event was not published, because the run ended before a task waited for it; " +
				"remove it, or give it a time (at)"})
	}
	for _, e := range r.c.Events {
		if e.HasAt && r.began.Add(e.At).After(r.now) {
			r.result.Mismatches = append(r.result.Mismatches, Mismatch{What: "events", Pos: e.at.pos,
				Message: fmt.Sprintf("the event was not published, because the run ended before %s; remove it", e.At)})
		}
	}
}

func (r *runner) unused(what string, m *Mock, used int) {
	at := m.Respond[used].at
	message := fmt.Sprintf("the response %d of the mock was not used; remove it", used+1)
	if used == 0 {
		at, message = m.at, "the mock answered no request; remove it, or correct its task or when"
	}
	r.result.Mismatches = append(r.result.Mismatches, Mismatch{What: what, Message: message, Pos: at.pos})
}

// contains reports whether a value has all parts of another one, and the place of the first that it lacks.
func contains(want, got any, at string) (string, bool) {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return place(at), false
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			member, given := object[name]
			if !given {
				return place(at + "." + name), false
			}
			if lacking, ok := contains(want[name], member, at+"."+name); !ok {
				return lacking, false
			}
		}
		return "", true
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return place(at), false
		}
		for i := range want {
			if lacking, ok := contains(want[i], list[i], fmt.Sprintf("%s[%d]", at, i)); !ok {
				return lacking, false
			}
		}
		return "", true
	}
	return place(at), eventfilter.Equal(want, got)
}

func place(at string) string {
	if at == "" {
		return "it"
	}
	return "what is expected at " + at
}

func compact(v any) string {
	encoded, err := jq.EncodeJSON(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(encoded)
}

func pretty(v any) string {
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(compact(jq.Normalize(v))), "", "  "); err != nil {
		return fmt.Sprintln(v)
	}
	out.WriteByte('\n')
	return out.String()
}
