package workflowtest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/httpmessage"
	data "github.com/signalbox-dev/signalbox/dsl/internal/value" // value is a function here
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// maxRetryAfter is the longest delay of a retry that a response may ask for: the platform's default.
const maxRetryAfter = 10 * time.Minute

// mock is a mock during one run.
type mock struct {
	*Mock

	when *jq.Program // nil: always
	used int         // number of requests that it has answered
	own  bool        // of the case, not of its file
}

func (r *runner) addMocks(own, shared []Mock) {
	for i, list := range [][]Mock{own, shared} {
		for j := range list {
			m := &mock{Mock: &list[j], own: i == 0}
			if m.When != "" {
				var err error
				if m.when, err = r.compiler.Compile(bare(m.When), variables()); err != nil {
					r.stop(Mismatch{What: "mock", Message: fmt.Sprintf("when does not compile: %v", err), Pos: m.at.pos})
				}
			}
			r.mocks = append(r.mocks, m)
		}
	}
}

// answer returns the response to a request: that of the first mock that matches it; nil if there is none.
func (r *runner) answer(task *dsl.Task, request map[string]any, fits func(*Response) bool) *Response {
	for _, m := range r.mocks {
		if m.Task != "" && !isNamed(task, m.Task) || len(m.Respond) == 0 {
			continue
		}
		response := &m.Respond[min(m.used, len(m.Respond)-1)]
		if !fits(response) {
			continue
		}
		if m.when != nil {
			v, err := m.when.Run(request, r.variables(), jq.NewFuel(jq.DefaultFuel))
			if err != nil {
				r.stop(Mismatch{What: "mock", Message: fmt.Sprintf("when cannot be evaluated on the request of the task %q: %v",
					task.Name, err), Pos: m.at.pos})
				return nil
			}
			if v == nil || v == false {
				continue
			}
		}
		m.used++
		return response
	}
	return nil
}

// call answers the request of a call.
func (r *runner) call(ctx context.Context, e interp.Call) {
	task := r.machine.TaskOf(e.ID)
	if task == nil {
		return // it was canceled in the same turn
	}
	given, missing := r.insertSecrets(e.HTTP)
	if missing != "" {
		r.stop(Mismatch{What: "secrets", Pos: r.c.at.pos, Message: missing})
		return
	}
	if err := r.checkCredentials(given.Authentication); err != nil {
		unusable := httpmessage.Shorten(httpmessage.NotAuthenticated(e.HTTP.Method, e.HTTP.URL, err))
		r.finishCall(e.ID, 0, interp.Result{Error: &unusable})
		return
	}
	sent, err := build(e, given)
	if err != nil {
		invalid := httpmessage.Shorten(httpmessage.InvalidRequest(e.HTTP.Method, e.HTTP.URL, err))
		r.finishCall(e.ID, 0, interp.Result{Error: &invalid})
		return
	}
	request := Request{
		Task: task.Name, Pointer: task.Pointer, Method: sent.Method, URL: sent.URL.String(), Path: sent.URL.Path,
		Query: queryOf(sent), Headers: httpmessage.Flatten(sent.Header), Body: given.Body, HasBody: given.HasBody,
		At: r.now.Sub(r.began),
	}
	r.result.Requests = append(r.result.Requests, request)
	response := r.answer(task, request.Value(), func(m *Response) bool { return !m.HasOutput })
	if response == nil && !r.stopped && r.c.Live != nil {
		if response, err = r.send(ctx, task.Name, sent); err != nil {
			r.stop(Mismatch{What: "requests", Message: fmt.Sprintf("the request of the task %q was sent: %s %s: %v", task.Name,
				sent.Method, sent.URL.Redacted(), err)})
		}
	}
	switch {
	case r.stopped:
	case response == nil:
		r.stop(unmocked(&request))
	default:
		at := &r.result.Requests[len(r.result.Requests)-1]
		delay, result, status := r.respond(e, sent, response)
		at.Status, at.Response = status, response
		r.finishCall(e.ID, delay, result)
	}
}

func (r *runner) finishCall(id interp.EffectID, delay time.Duration, result interp.Result) {
	r.schedule(occurrence{at: r.now.Add(delay), effect: id, act: func() { r.machine.Complete(id, result, r.now) }})
}

// build returns the message of a request, or the reason why it cannot be sent.
func build(e interp.Call, given *interp.HTTPRequest) (*http.Request, error) {
	target, err := httpmessage.Target(given.URL, given.Query)
	if err != nil {
		return nil, err
	}
	headers, host, err := httpmessage.Headers(given.Headers)
	if err != nil {
		return nil, err
	}
	var encoded []byte
	if given.HasBody {
		if encoded, err = jq.EncodeJSON(given.Body); err != nil {
			return nil, err
		}
	}
	body, err := httpmessage.Body(encoded, headers)
	if err != nil {
		return nil, err
	}
	sent, err := http.NewRequest(given.Method, target.String(), body) //nolint:noctx // it is never sent
	if err != nil {
		return nil, err
	}
	sent.Header, sent.Host = headers, cmp.Or(host, sent.Host)
	httpmessage.SetDefault(headers, "Accept", httpmessage.Accept)
	httpmessage.SetDefault(headers, "User-Agent", "signalbox/test")
	switch given.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
	default:
		httpmessage.SetDefault(headers, "Idempotency-Key", e.Key)
	}
	return sent, nil
}

func queryOf(sent *http.Request) map[string]string {
	out := map[string]string{}
	for name, values := range sent.URL.Query() {
		out[name] = strings.Join(values, ",")
	}
	return out
}

// respond returns the result of a request, its delay and the status of the response.
func (r *runner) respond(e interp.Call, sent *http.Request, m *Response) (time.Duration, interp.Result, int) {
	if e.Deadline.IsZero() && m.Delay >= httpmessage.Timeout {
		late := httpmessage.NoAnswer(e.HTTP.Method, e.HTTP.URL, httpmessage.Timeout)
		return httpmessage.Timeout, interp.Result{
			Error: &late, Unanswered: true, Attempts: r.attempts(httpmessage.Timeout, 0, 0),
		}, 0
	}
	if m.Fail != nil {
		failed := m.Fail.error(httpmessage.Subject(e.HTTP.Method, e.HTTP.URL))
		return m.Delay, interp.Result{
			Error: &failed, Unanswered: dsl.SameErrorType(failed.Type, dsl.ErrorTypeCommunication),
			Attempts: r.attempts(m.Delay, 0, 0),
		}, 0
	}
	headers := http.Header{}
	for name, value := range m.Headers {
		headers.Set(name, value)
	}
	body, err := bodyOf(m, headers)
	if err != nil {
		r.stop(Mismatch{What: "mock", Message: err.Error(), Pos: m.at.pos})
		return 0, interp.Result{}, 0
	}
	status, contentType := cmp.Or(m.Status, http.StatusOK), headers.Get("Content-Type")
	retryAfter := httpmessage.RetryAfter(status, headers, r.now.Add(m.Delay), maxRetryAfter)
	result := interp.Result{Attempts: r.attempts(m.Delay, status, retryAfter)}
	var runError dsl.Error
	switch {
	case !httpmessage.Acceptable(status, e.HTTP.Redirect):
		same := func(s string) string { return s }
		runError = httpmessage.StatusError(e.HTTP.Method, e.HTTP.URL, status, contentType, body, same)
	default:
		result.Value, err = httpmessage.Content(e.HTTP.Output == dsl.OutputRaw, contentType, body)
		if err != nil {
			runError = httpmessage.NotJSON(e.HTTP.Method, e.HTTP.URL, err)
		} else if e.HTTP.Output == dsl.OutputResponse {
			result.Value = httpmessage.Exchange{
				Method: sent.Method, URI: sent.URL.Redacted(), Sent: httpmessage.Sent(sent.Header),
				Headers: httpmessage.Flatten(headers), Status: status, Content: result.Value,
			}.Value()
		}
	}
	if runError.Type != "" {
		runError = httpmessage.Shorten(runError)
		result.Value, result.Error = nil, &runError
	}
	return m.Delay, result, status
}

// bodyOf returns the bytes of a response's body, and completes its headers.
func bodyOf(m *Response, headers http.Header) ([]byte, error) {
	if !m.HasBody {
		return nil, nil
	}
	encoded, err := jq.EncodeJSON(jq.Normalize(m.Body))
	if err != nil {
		return nil, err
	}
	body, err := httpmessage.Body(encoded, headers)
	if err != nil {
		return nil, fmt.Errorf("the response cannot be sent: %w", err)
	}
	var out bytes.Buffer
	_, err = io.Copy(&out, body)
	return out.Bytes(), err
}

func (r *runner) attempts(delay time.Duration, status int, retryAfter time.Duration) []interp.Attempt {
	return []interp.Attempt{{StartedAt: r.now, EndedAt: r.now.Add(delay), Status: status, RetryAfter: retryAfter}}
}

// error returns the error of a call without a response, or of another run.
func (f *Failure) error(subject string) dsl.Error {
	out := dsl.Error{Type: fullType(f.Type), Status: f.Status, Title: f.Title, Detail: f.Detail}
	for _, standard := range standardErrors() {
		if !dsl.SameErrorType(out.Type, dsl.ErrorTypeBase+standard.name) {
			continue
		}
		if out.Status = cmp.Or(out.Status, standard.status); out.Status == standard.status {
			out.Title = cmp.Or(out.Title, standard.title)
		}
	}
	out.Status = cmp.Or(out.Status, http.StatusInternalServerError)
	out.Title = cmp.Or(out.Title, http.StatusText(out.Status))
	out.Detail = cmp.Or(out.Detail, subject+" failed: "+out.Title)
	return out
}

// standardError is an error of the specification by its short name, with what a mock that names only its type means.
type standardError struct {
	name, title string
	status      int
}

func standardErrors() []standardError {
	return []standardError{
		{"configuration", "Invalid request", http.StatusBadRequest}, {"validation", "", http.StatusBadRequest},
		{"expression", "", http.StatusBadRequest}, {"authentication", "Not authenticated", http.StatusUnauthorized},
		{"authorization", "Call refused", http.StatusForbidden}, {"timeout", "", http.StatusRequestTimeout},
		{"communication", "Not reachable", http.StatusServiceUnavailable}, {"runtime", "", http.StatusInternalServerError},
	}
}

func standardNames() []string {
	var names []string
	for _, standard := range standardErrors() {
		names = append(names, standard.name)
	}
	return names
}

// fullType returns the URI of an error type that may be the name of a standard one.
func fullType(name string) string {
	if slices.Contains(standardNames(), name) {
		return dsl.ErrorTypeBase + name
	}
	return name
}

// child answers the start of another run.
func (r *runner) child(e interp.StartChild) {
	task := r.machine.TaskOf(e.ID)
	if task == nil {
		return // it was canceled in the same turn
	}
	c := Child{Task: task.Name, Pointer: task.Pointer, Workflow: e.Workflow, Version: e.Version, Input: e.Input,
		At: r.now.Sub(r.began)}
	r.result.Children = append(r.result.Children, c)
	id := fmt.Sprintf("child-%d", len(r.result.Children))
	r.schedule(occurrence{at: r.now, effect: e.ID, child: e.Key,
		act: func() { r.machine.Complete(e.ID, interp.Result{Value: id}, r.now) }})
	if !e.Awaited {
		return
	}
	response := r.answer(task, c.Value(), func(m *Response) bool { return m.HasOutput || m.Fail != nil })
	switch {
	case r.stopped:
	case response == nil:
		r.stop(unmockedChild(&c))
	default:
		result := interp.Result{Value: jq.Normalize(response.Output)}
		if response.Fail != nil {
			result = interp.Result{Error: interp.ChildError(id, response.Fail.error("the run"))}
		}
		r.schedule(occurrence{at: r.now.Add(response.Delay), child: e.Key,
			act: func() { r.machine.ChildEnded(e.Key, result, r.now) }})
	}
}

// insertSecrets returns a request with its secrets, or what is missing.
func (r *runner) insertSecrets(given *interp.HTTPRequest) (*interp.HTTPRequest, string) {
	if len(given.Secrets) == 0 {
		return given, ""
	}
	pairs := make([]string, 0, 2*len(given.Secrets))
	for _, mark := range slices.Sorted(maps.Keys(given.Secrets)) {
		ref := given.Secrets[mark]
		secret, ok := lookUp(r.c.Secrets[ref.Name], ref.Members)
		if !ok {
			return nil, fmt.Sprintf("a call uses the secret %s, which the case does not give as a text; add\n  secrets: %s",
				strings.Join(append([]string{ref.Name}, ref.Members...), "."), secretExample(ref))
		}
		pairs = append(pairs, mark, secret)
	}
	marks := strings.NewReplacer(pairs...)
	out := *given
	out.URL, out.Body = marks.Replace(given.URL), replaceIn(marks, given.Body)
	out.Headers, out.Query = replaceAll(marks, given.Headers), replaceAll(marks, given.Query)
	if given.Authentication != nil {
		authentication := *given.Authentication
		authentication.Properties = replaceIn(marks, authentication.Properties)
		out.Authentication = &authentication
	}
	return &out, ""
}

// checkCredentials returns why the credentials of a request cannot be used. They are not added to it: those of a secret
// that the case does not give are not checked.
func (r *runner) checkCredentials(a *interp.Authentication) error {
	if a == nil {
		return nil
	}
	properties := a.Properties
	if a.Secret != "" {
		secret, given := r.c.Secrets[a.Secret]
		if !given {
			return nil
		}
		if _, isObject := secret.(map[string]any); !isObject {
			return fmt.Errorf("the secret %q is not a JSON object with the properties of the authentication %s", a.Secret, a.Scheme)
		}
		properties = secret
	}
	encoded, err := jq.EncodeJSON(properties)
	if err != nil {
		return err
	}
	_, err = httpmessage.ParseCredentials(string(a.Scheme), encoded)
	return err
}

// lookUp returns the text of a member of a secret.
func lookUp(secret any, members []string) (string, bool) {
	for _, member := range members {
		object, _ := secret.(map[string]any)
		secret = object[member]
	}
	found, ok := secret.(string)
	return found, ok
}

func secretExample(ref dsl.Secret) string {
	text := "test"
	for _, member := range slices.Backward(ref.Members) {
		text = fmt.Sprintf("{%s: %s}", member, text)
	}
	return fmt.Sprintf("{%s: %s}", ref.Name, text)
}

func replaceAll(marks *strings.Replacer, texts map[string]string) map[string]string {
	out := make(map[string]string, len(texts))
	for name, text := range texts {
		out[name] = marks.Replace(text)
	}
	return out
}

// replaceIn returns a value with the marks in its texts replaced.
func replaceIn(marks *strings.Replacer, v any) any {
	return data.Replace(v, func(leaf any) any {
		if text, is := leaf.(string); is {
			return marks.Replace(text)
		}
		return leaf
	})
}

// unmocked is the mismatch of a request without a mock: it shows the request and the lines that would answer it.
func unmocked(q *Request) Mismatch {
	message := fmt.Sprintf("no mock answers the request of the task %q: %s %s", q.Task, q.Method, q.URL)
	if q.HasBody {
		if body, err := jq.EncodeJSON(q.Body); err == nil {
			message += "\n  with the body " + shortened(string(body))
		}
	}
	return Mismatch{What: "requests", Message: message + fmt.Sprintf(
		"\nadd to the mocks of the case:\n  - task: %s\n    respond: {status: 200, body: {}}", q.Task)}
}

func unmockedChild(c *Child) Mismatch {
	message := fmt.Sprintf("no mock answers the run of %s that the task %q awaits", c.Workflow, c.Task)
	if input, err := jq.EncodeJSON(c.Input); err == nil {
		message += "\n  with the input " + shortened(string(input))
	}
	return Mismatch{What: "children", Message: message + fmt.Sprintf(
		"\nadd to the mocks of the case:\n  - task: %s\n    respond: {output: {}}", c.Task)}
}

// shortened returns the beginning of a long text.
func shortened(text string) string {
	const most = 500
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
