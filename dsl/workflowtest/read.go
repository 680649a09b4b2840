package workflowtest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/internal/suggest"
	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/dsl/taskindex"
)

// Parse reads a file of test cases in YAML or JSON. It returns all violations, sorted by position; the file is nil if
// there are any. File.Check compares the cases with their document.
func Parse(source []byte) (*File, dsl.Violations) {
	limits := dsl.DefaultLimits()
	root, found := tree.Parse(source, tree.Limits{
		Bytes: limits.MaxBytes, Depth: limits.MaxDepth, Aliases: limits.MaxAliases, Nodes: limits.MaxNodes,
	})
	r := &reader{compiler: jq.NewCompiler()}
	for _, f := range found {
		r.report(codeOf(f.Kind), location{f.Pointer, dsl.Pos(f.Pos)}, f.Suggestion, "%s", f.Message)
	}
	if root == nil {
		return nil, r.violations
	}
	file := &File{}
	if top := (value{root, ""}); r.is(top, tree.Object, "a test file") {
		r.object(top, "a test file", r.fileFields(file))
	}
	r.checkNames(file)
	if len(r.violations) > 0 {
		slices.SortStableFunc(r.violations, byPosition)
		return nil, r.violations
	}
	return file, nil
}

func byPosition(a, b dsl.Violation) int {
	return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
}

func codeOf(kind tree.ViolationKind) dsl.Code {
	switch kind {
	case tree.Limit:
		return dsl.CodeLimit
	case tree.DuplicateKey:
		return dsl.CodeDuplicateKey
	case tree.NotJSON:
		return dsl.CodeType
	case tree.Syntax, tree.TrailingComma:
	}
	return dsl.CodeSyntax
}

// checkNames reports cases of one name: a failure could not be found by it.
func (r *reader) checkNames(f *File) {
	seen := map[string]bool{}
	for _, c := range f.Cases {
		if seen[c.Name] {
			r.report(dsl.CodeDuplicateName, c.at, "rename one of them", "there are two cases with the name %q", c.Name)
		}
		seen[c.Name] = true
	}
}

// The shapes that several fields have.
var (
	textShape       = shape{form: text}
	anyShape        = shape{form: anything}
	lengthShape     = shape{form: length}
	expressionShape = shape{form: expression}
)

func objects(fs func(*reader) fields) shape {
	return shape{form: list, item: &shape{form: object, fields: fs}}
}

func (r *reader) fileFields(f *File) fields {
	return fields{
		{"workflow", false, textShape, "Path of the document, relative to this file. Default: the document of the same " +
			"name beside this file.", func(v value) { f.Workflow = v.text() }},
		{"resources", false, shape{form: mapping, item: &textShape},
			"Files, relative to this one, with copies of the texts that the document refers to, by their addresses.",
			func(v value) {
				f.Resources = make(map[string]string, len(v.node.Members))
				for uri, path := range v.members() {
					f.Resources[uri] = path.text()
				}
			}},
		{"now", false, shape{form: moment}, "Time at which the runs of all cases start.", func(v value) { f.Now = v.time() }},
		{"secrets", false, shape{form: mapping, item: &anyShape},
			"Secrets of all cases, by name: texts, or objects of texts.",
			func(v value) { f.Secrets = v.any().(map[string]any) }},
		{"mocks", false, objects(mockShape), "Mocks of all cases, after those of a case.",
			func(v value) { f.Mocks = r.mocks(v) }},
		{"cases", true, objects(caseShape), "The cases.", func(v value) {
			for _, item := range v.items() {
				c := Case{at: item.at()}
				r.object(item, "a case", r.caseFields(&c))
				if c.Expect.given || c.Name == "" {
					f.Cases = append(f.Cases, c)
					continue
				}
				r.report(dsl.CodeMissingKey, c.at, "add expect, at least {status: completed}",
					"the case %q has no expectation, so it cannot fail", c.Name)
			}
		}},
	}
}

func caseShape(r *reader) fields     { return r.caseFields(&Case{}) }
func mockShape(r *reader) fields     { return r.mockFields(&Mock{}) }
func responseShape(r *reader) fields { return r.responseFields(&Response{}) }
func failureShape(r *reader) fields  { return r.failureFields(&Failure{}) }
func eventShape(r *reader) fields    { return r.eventFields(&Event{}) }
func expectShape(r *reader) fields   { return r.expectFields(&Expect{}) }

func (r *reader) caseFields(c *Case) fields {
	return fields{
		{"name", true, textShape, "Name of the case.", func(v value) { c.Name = v.text() }},
		{"input", false, anyShape, "Input of the run.", func(v value) { c.Input = v.any() }},
		{"now", false, shape{form: moment}, "Time at which the run starts.", func(v value) { c.Now = v.time() }},
		{"secrets", false, shape{form: mapping, item: &anyShape}, "Secrets by name: texts, or objects of texts.",
			func(v value) { c.Secrets = v.any().(map[string]any) }},
		{"mocks", false, objects(mockShape), "What services and other runs answer. The first mock that matches a request " +
			"answers it.", func(v value) { c.Mocks = r.mocks(v) }},
		{"events", false, objects(eventShape), "Events that are published while the run is open.", func(v value) {
			for _, item := range v.items() {
				e := Event{at: item.at()}
				r.object(item, "an event", r.eventFields(&e))
				if e.HasAt && e.Task != "" {
					r.report(dsl.CodeValue, e.at, "remove one of them", "an event has a time (at) or a task that waits for it (task)")
				}
				c.Events = append(c.Events, e)
			}
		}},
		{"expect", false, shape{form: object, fields: expectShape}, "What the run must do.", func(v value) {
			c.Expect.at, c.Expect.keys = v.at(), map[string]dsl.Pos{}
			for _, m := range v.node.Members {
				c.Expect.keys[m.Key] = dsl.Pos(m.Pos)
			}
			r.object(v, "expect", r.expectFields(&c.Expect))
			c.Expect.given = true
			if len(v.node.Members) == 0 {
				r.report(dsl.CodeValue, c.Expect.at, "write at least status: completed", "an empty expect expects nothing")
			}
		}},
	}
}

func (r *reader) mocks(v value) []Mock {
	var mocks []Mock
	for _, item := range v.items() {
		m := Mock{at: item.at()}
		r.object(item, "a mock", r.mockFields(&m))
		mocks = append(mocks, m)
	}
	return mocks
}

func (r *reader) mockFields(m *Mock) fields {
	return fields{
		{"task", false, textShape, "Name or JSON pointer of the task whose requests the mock answers. Default: any.",
			func(v value) { m.Task = v.text() }},
		{"when", false, expressionShape, "Expression that holds for the requests that the mock answers, on an object with " +
			"task, method, url, path, query, headers and body; for a run task with task, workflow, version and input.",
			func(v value) { m.When = v.text() }},
		{"respond", true, shape{form: some, item: &shape{form: object, fields: responseShape}},
			"The response, or a list of the responses to one request after another. The last one answers all further requests.",
			func(v value) {
				if len(v.items()) == 0 {
					r.report(dsl.CodeValue, v.at(), "write {} for an empty response with the status 200", "respond has no response")
				}
				for _, item := range v.items() {
					response := Response{at: item.at()}
					r.object(item, "a response", r.responseFields(&response))
					r.checkResponse(&response)
					m.Respond = append(m.Respond, response)
				}
			}},
	}
}

// checkResponse reports members that exclude each other.
func (r *reader) checkResponse(m *Response) {
	message := m.Status != 0 || len(m.Headers) > 0 || m.HasBody
	switch {
	case m.Fail != nil && (message || m.HasOutput):
		r.report(dsl.CodeValue, m.at, "remove the other members",
			"a response that fails has no status, headers, body or output")
	case m.HasOutput && message:
		r.report(dsl.CodeValue, m.at, "use body for calls and output for run tasks",
			"output is the result of another run, which has no status, headers or body")
	case m.Status != 0 && (m.Status < 200 || m.Status > 599):
		r.report(dsl.CodeValue, m.at, "", "the status %d of a response is not between 200 and 599", m.Status)
	}
}

func (r *reader) responseFields(m *Response) fields {
	return fields{
		{"status", false, shape{form: integer}, "HTTP status. Default: 200.", func(v value) { m.Status = v.integer() }},
		{"headers", false, shape{form: mapping, item: &textShape}, "Headers. Content-Type is application/json by default.",
			func(v value) { m.Headers = v.textMap() }},
		{"body", false, anyShape, "Body: JSON, or the text of a response with another Content-Type.",
			func(v value) { m.Body, m.HasBody = v.any(), true }},
		{"output", false, anyShape, "Output of the run that a run task awaits.",
			func(v value) { m.Output, m.HasOutput = v.any(), true }},
		{"fail", false, shape{form: object, fields: failureShape}, "Error of a call without a response, or of another run.",
			func(v value) {
				m.Fail = &Failure{}
				r.object(v, "fail", r.failureFields(m.Fail))
			}},
		{"delay", false, lengthShape, "Time from the request to the response.", func(v value) { m.Delay = v.duration() }},
	}
}

func (r *reader) failureFields(f *Failure) fields {
	return fields{
		{"type", true, textShape, "Name of a standard error, such as communication or timeout, or the URI of any error.",
			func(v value) {
				if f.Type = v.text(); !strings.Contains(f.Type, ":") && !slices.Contains(standardNames(), f.Type) {
					r.report(dsl.CodeValue, v.at(), suggest.Name(f.Type, standardNames()),
						"%q is neither the name of a standard error nor a URI", f.Type)
				}
			}},
		{"status", false, shape{form: integer}, "Status of the error. Default: that of the type.",
			func(v value) { f.Status = v.integer() }},
		{"title", false, textShape, "Title of the error.", func(v value) { f.Title = v.text() }},
		{"detail", false, textShape, "Detail of the error.", func(v value) { f.Detail = v.text() }},
	}
}

func (r *reader) eventFields(e *Event) fields {
	return fields{
		{"at", false, lengthShape, "Time after the start of the run.", func(v value) { e.At, e.HasAt = v.duration(), true }},
		{"task", false, textShape, "Name or JSON pointer of the listen task that must wait before the event is published. " +
			"Default: any.", func(v value) { e.Task = v.text() }},
		{"event", true, shape{form: mapping, item: &anyShape}, "The event: type, source, subject, data and other " +
			"attributes. specversion, id, source and time are added where they are missing.",
			func(v value) { e.Event = v.any().(map[string]any) }},
	}
}

// statuses are the values of Expect.Status.
func statuses() []string {
	return []string{string(interp.StatusCompleted), string(interp.StatusFailed), string(interp.StatusTimedOut),
		string(interp.StatusCanceled), string(interp.StatusWaiting)}
}

func (r *reader) expectFields(e *Expect) fields {
	names := shape{form: list, item: &textShape}
	return fields{
		{"status", false, shape{form: text, oneOf: statuses()}, "Status of the run. Default: completed, or failed if an " +
			"error is expected.", func(v value) { e.Status = v.text() }},
		{"output", false, anyShape, "The whole output.", func(v value) { e.Output, e.HasOutput = v.any(), true }},
		{"contains", false, anyShape, "A part of the output: objects may have more members.", func(v value) {
			if e.Contains, e.HasContains = v.any(), true; v.node.Kind == tree.Object && len(v.node.Members) == 0 {
				r.report(dsl.CodeValue, v.at(), "name members of the output", "every object contains {}: this cannot fail")
			}
		}},
		{"holds", false, shape{form: some, item: &expressionShape}, "Expressions on the output that must hold. $input, " +
			"$error, $requests and $events are defined, too.", func(v value) {
			for _, item := range v.items() {
				if !strings.ContainsAny(item.text(), ".$") {
					r.report(dsl.CodeValue, item.at(), "use . for the output",
						"the condition does not depend on the run, so it cannot fail or always does")
				}
				e.Holds = append(e.Holds, item.text())
			}
		}},
		{"error", false, shape{form: object, fields: errorShape}, "Members of the error.", func(v value) {
			e.Error = &ErrorExpectation{}
			r.object(v, "error", r.errorFields(e.Error))
			if len(v.node.Members) == 0 {
				r.report(dsl.CodeValue, v.at(), "name a member, or write status: failed", "error names no member")
			}
		}},
		{"tasks", false, names, "All tasks that ran, in the order in which the run entered them.",
			func(v value) { e.Tasks, e.HasTasks = v.texts(), true }},
		{"ran", false, names, "Tasks that must have run.", func(v value) { e.Ran = r.named(v, "ran") }},
		{"notRan", false, names, "Tasks that must not have run.", func(v value) { e.NotRan = r.named(v, "notRan") }},
		{"requests", false, objects(requestShape), "All requests of calls, in order.", func(v value) {
			e.HasRequests = true
			for _, item := range v.items() {
				var q RequestExpectation
				r.object(item, "a request", r.requestFields(&q))
				e.Requests = append(e.Requests, q)
			}
		}},
		{"events", false, shape{form: list, item: &shape{form: mapping, item: &anyShape}}, "All events that were emitted, " +
			"in order. An event may have more members.", func(v value) {
			for e.HasEvents = true; len(e.Events) < len(v.node.Items); {
				e.Events = append(e.Events, v.node.Items[len(e.Events)].Value())
			}
		}},
		{"children", false, objects(childShape), "All runs that run tasks started, in order.", func(v value) {
			e.HasChildren = true
			for _, item := range v.items() {
				var c ChildExpectation
				r.object(item, "a child", r.childFields(&c))
				e.Children = append(e.Children, c)
			}
		}},
		{"attempts", false, shape{form: mapping, item: &shape{form: integer}}, "Numbers of the requests of calls and of " +
			"the attempts of tries, by name or pointer of the task.", func(v value) {
			if e.Attempts = map[string]int{}; len(v.node.Members) == 0 {
				r.report(dsl.CodeValue, v.at(), "name a task", "attempts names no task: this cannot fail")
			}
			for name, member := range v.members() {
				e.Attempts[name] = member.integer()
			}
		}},
		{"duration", false, lengthShape, "Length of the run.", func(v value) { d := v.duration(); e.Duration = &d }},
		{"durationAtMost", false, lengthShape, "Limit of the length of the run.",
			func(v value) { d := v.duration(); e.DurationAtMost = &d }},
	}
}

// named reads a list of tasks that must not be empty.
func (r *reader) named(v value, what string) []string {
	if len(v.node.Items) == 0 {
		r.report(dsl.CodeValue, v.at(), "name a task", "%s names no task: this cannot fail", what)
	}
	return v.texts()
}

func errorShape(r *reader) fields   { return r.errorFields(&ErrorExpectation{}) }
func requestShape(r *reader) fields { return r.requestFields(&RequestExpectation{}) }
func childShape(r *reader) fields   { return r.childFields(&ChildExpectation{}) }

func (r *reader) errorFields(e *ErrorExpectation) fields {
	return fields{
		{"type", false, textShape, "Name of a standard error, or a URI.", func(v value) { e.Type = v.text() }},
		{"status", false, shape{form: integer}, "Status.", func(v value) { e.Status = v.integer() }},
		{"title", false, textShape, "Title.", func(v value) { e.Title = v.text() }},
		{"detail", false, textShape, "Detail.", func(v value) { e.Detail = v.text() }},
		{"instance", false, textShape, "JSON pointer of the task that raised the error.",
			func(v value) { e.Instance = v.text() }},
	}
}

func (r *reader) requestFields(q *RequestExpectation) fields {
	return fields{
		{"task", false, textShape, "Name or JSON pointer of the task.", func(v value) { q.Task = v.text() }},
		{"method", false, textShape, "Method, in upper case.", func(v value) { q.Method = v.text() }},
		{"url", false, textShape, "Whole URL, with its query.", func(v value) { q.URL = v.text() }},
		{"headers", false, shape{form: mapping, item: &textShape}, "Headers that the request must have.",
			func(v value) { q.Headers = v.textMap() }},
		{"body", false, anyShape, "Body.", func(v value) { q.Body, q.HasBody = v.any(), true }},
	}
}

func (r *reader) childFields(c *ChildExpectation) fields {
	return fields{
		{"task", false, textShape, "Name or JSON pointer of the task.", func(v value) { c.Task = v.text() }},
		{"workflow", false, textShape, "Workflow as namespace/name.", func(v value) { c.Workflow = v.text() }},
		{"version", false, textShape, "Version that the task names.", func(v value) { c.Version = v.text() }},
		{"input", false, anyShape, "Input of the run.", func(v value) { c.Input, c.HasInput = v.any(), true }},
	}
}

// Check compares the cases with their document: it returns the violations of names of tasks and secrets that the
// document does not have, and of parts that cannot have an effect.
func (f *File) Check(doc *dsl.Document) dsl.Violations {
	r := &reader{}
	tasks := taskindex.List(doc)
	for _, m := range f.Mocks {
		r.checkMock(tasks, m)
	}
	r.checkSecrets(doc, f.Secrets, location{path: "/secrets"})
	for i := range f.Cases {
		c := &f.Cases[i]
		for _, m := range c.Mocks {
			r.checkMock(tasks, m)
		}
		r.checkSecrets(doc, c.Secrets, c.at)
		for _, e := range c.Events {
			r.checkTask(tasks, e.Task, e.at, dsl.KindListen)
		}
		for _, name := range c.Expect.taskNames() {
			r.checkTask(tasks, name, c.Expect.at)
		}
	}
	slices.SortStableFunc(r.violations, byPosition)
	return r.violations
}

func (r *reader) checkMock(tasks []*dsl.Task, m Mock) {
	r.checkTask(tasks, m.Task, m.at, dsl.KindCall, dsl.KindRun)
}

func (r *reader) checkSecrets(doc *dsl.Document, given map[string]any, at location) {
	var declared []string
	for _, s := range doc.Use.Secrets {
		declared = append(declared, s.Name)
	}
	for name := range given {
		if !slices.Contains(declared, name) {
			r.report(dsl.CodeUnknownReference, at, suggest.Name(name, declared), "the document uses no secret %q", name)
		}
	}
}

// checkTask reports a name that no task of the document has, and tasks of other kinds than those.
func (r *reader) checkTask(tasks []*dsl.Task, name string, at location, kinds ...dsl.Kind) {
	if name == "" {
		return
	}
	var names []string
	found := false
	for _, t := range tasks {
		if len(kinds) > 0 && !slices.Contains(kinds, t.Body.Kind()) {
			found = found || isNamed(t, name)
			continue
		}
		if isNamed(t, name) {
			return
		}
		names = append(names, t.Name)
	}
	if found {
		r.report(dsl.CodeValue, at, suggest.Name(name, names), "the task %q is of a kind that this does not concern", name)
		return
	}
	r.report(dsl.CodeUnknownReference, at, suggest.Name(name, names), "the document has no task %q", name)
}

// isNamed reports whether a task has a name or a pointer.
func isNamed(t *dsl.Task, name string) bool { return name == t.Name || name == t.Pointer }

// taskNames are all names of tasks in an expectation.
func (e *Expect) taskNames() []string {
	names := slices.Concat(e.Tasks, e.Ran, e.NotRan)
	for name := range e.Attempts {
		names = append(names, name)
	}
	for _, q := range e.Requests {
		names = append(names, q.Task)
	}
	for _, c := range e.Children {
		names = append(names, c.Task)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
