package rpc_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func TestRESTErrors(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	const runs, projects = "/v1/projects/default/runs", "/v1/projects"
	tests := map[string]struct {
		method, path, body string
		headers            []string
		status             int
		reason             string
		says               string
	}{
		"malformed JSON": {
			"POST", runs, `{"workflow":`, nil, 400, apperror.InvalidArgument, "ends before it is complete"},
		"not an object":         {"POST", projects, `[1]`, nil, 400, apperror.InvalidArgument, "unexpected token ["},
		"text after the object": {"POST", projects, `{} {}`, nil, 400, apperror.InvalidArgument, "after top-level value"},
		"unknown field": {
			"POST", runs, `{"workfow":"hello"}`, nil, 400, apperror.InvalidArgument, `(line 1:2): unknown field "workfow"`},
		"wrong type": {
			"POST", runs, "{\"input\":{\"a\":1},\n \"workflow\":5}", nil, 400, apperror.InvalidArgument,
			"(line 2:13): invalid value for string field workflow"},
		"field given twice": {
			"POST", runs, `{"workflow":"a","workflow":"b"}`, nil, 400, apperror.InvalidArgument, "duplicate field"},
		"not UTF-8":         {"POST", runs, "{\"workflow\":\"\xff\"}", nil, 400, apperror.InvalidArgument, "UTF-8"},
		"empty body":        {"POST", projects, ``, nil, 400, apperror.InvalidArgument, "project name"},
		"unknown parameter": {"GET", runs + "?colour=red", ``, nil, 400, apperror.InvalidArgument, "colour"},
		"wrong parameter": {
			"GET", runs + "?pageSize=many", ``, nil, 400, apperror.InvalidArgument, `"pageSize" is "many": give a whole number`},
		"wrong time":  {"GET", runs + "?since=yesterday", ``, nil, 400, apperror.InvalidArgument, "since"},
		"body on GET": {"GET", runs, `{}`, nil, 400, apperror.InvalidArgument, "no body"},
		"form": {
			"POST", runs, `workflow=hello`, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415,
			apperror.InvalidArgument, "Content-Type: application/json"},
		"other charset": {
			"POST", runs, `{}`, []string{"Content-Type", "application/json; charset=latin1"}, 415, apperror.InvalidArgument,
			"latin1"},
		"unknown encoding": {
			"POST", runs, `{}`, []string{"Content-Encoding", "br"}, 400, apperror.InvalidArgument, "br"},
		"not gzip": {
			"POST", runs, `{}`, []string{"Content-Encoding", "gzip"}, 400, apperror.InvalidArgument, "gzip"},
		"unknown path":           {"GET", "/v1/nothing", ``, nil, 404, "UNIMPLEMENTED", "/v1/nothing"},
		"unknown path elsewhere": {"GET", "/api/runs", ``, nil, 404, "UNIMPLEMENTED", "GET /"},
		"unknown verb": {
			"POST", "/v1/projects/default/workflows/hello:explode", `{}`, nil, 404, "UNIMPLEMENTED", "explode"},
		"wrong method": {"DELETE", runs, ``, nil, 405, "UNIMPLEMENTED", "GET"},
		"wrong timeout": {
			"GET", runs, ``, []string{"X-Server-Timeout", "soon"}, 400, apperror.InvalidArgument, "soon"},
		"negative timeout": {
			"GET", runs, ``, []string{"X-Server-Timeout", "-1"}, 400, apperror.InvalidArgument, "not a timeout"},
		"timeout of nothing": {
			"GET", runs, ``, []string{"X-Server-Timeout", "0"}, 400, apperror.InvalidArgument, "not a timeout"},
		"infinite timeout": {
			"GET", runs, ``, []string{"X-Server-Timeout", "Inf"}, 400, apperror.InvalidArgument, "not a timeout"},
		"timeout in hexadecimal": {
			"GET", runs, ``, []string{"X-Server-Timeout", "0x1p4"}, 400, apperror.InvalidArgument, "not a timeout"},
		"timeout of a download": {
			"GET", runs + ":export", ``, []string{"X-Server-Timeout", "-1"}, 400, apperror.InvalidArgument, "not a timeout"},
		"request ID with a tab": {
			"POST", runs, `{"workflow":"hello","requestId":"a\tb"}`, nil, 400, apperror.InvalidArgument, "U+0009"},
		"request ID that reorders": {
			"POST", runs, `{"workflow":"hello","requestId":"a\u202eb"}`, nil, 400, apperror.InvalidArgument, "U+202E"},
		"long request ID": {
			"POST", runs, `{"workflow":"hello","requestId":"` + strings.Repeat("x", 201) +
				`"}`, nil, 400, apperror.InvalidArgument, "201 bytes"},
		"path variable as query": {
			"DELETE", "/v1/projects/default/workflows/t/del1?workflow=t/del2", ``, nil, 400, apperror.InvalidArgument,
			`"workflow"`},
		"path variable in body": {
			"POST", runs, `{"project":"pb","workflow":"hello"}`, nil, 400, apperror.InvalidArgument, `"project"`},
		"page size": {"GET", runs + "?pageSize=501", ``, nil, 400, apperror.InvalidArgument, "1 to 500"},
		"order": {
			"GET", runs + "?order=random", ``, nil, 400, apperror.InvalidArgument, "newest, oldest or longest"},
		"status": {"GET", runs + "?statuses=happy", ``, nil, 400, apperror.InvalidArgument, "happy"},
		"page token": {
			"GET", runs + "?pageToken=nonsense", ``, nil, 400, apperror.InvalidPageToken, "start again without one"},
		"project": {"GET", "/v1/projects/nowhere/runs", ``, nil, 404, apperror.ProjectNotFound, "nowhere"},
		"project of a check": {
			"POST", "/v1/projects/nowhere/workflows:validate", `{"source":"a"}`, nil, 404, apperror.ProjectNotFound, "nowhere"},
		"project of audit": {"GET", "/v1/projects/nowhere/audit", ``, nil, 404, apperror.ProjectNotFound, "nowhere"},
		"project name":     {"POST", projects, `{"name":"No!"}`, nil, 400, apperror.InvalidArgument, "No!"},
		"project exists":   {"POST", projects, `{"name":"default"}`, nil, 409, apperror.ProjectExists, "default"},
		"workflow":         {"POST", runs, `{"workflow":"bye"}`, nil, 404, apperror.WorkflowNotFound, "bye"},
		"no workflow":      {"POST", runs, `{}`, nil, 400, apperror.InvalidArgument, "NAME"},
		"version": {
			"POST", runs, `{"workflow":"hello","version":"9.9.9"}`, nil, 404, apperror.VersionNotFound, "9.9.9"},
		"input": {
			"POST", runs, `{"workflow":"hello","input":{"name":5}}`, nil, 400, apperror.InvalidInput, "name"},
		"input too large": {
			"POST", runs, `{"workflow":"hello","input":"` + strings.Repeat("x", 600<<10) +
				`"}`, nil, 413, apperror.InputTooLarge, "limit"},
		"run": {"GET", runs + "/none", ``, nil, 404, apperror.RunNotFound, "none"},
		"version of any workflow": {
			"GET", runs + "?version=1.0.0", ``, nil, 400, apperror.InvalidArgument, "without a workflow"},
		"nothing to publish": {
			"POST", "/v1/projects/default/workflows:publish", `{}`, nil, 400, apperror.InvalidArgument, "nothing to publish"},
		"two things to publish": {
			"POST", "/v1/projects/default/workflows:publish", `{"source":"a","workflow":"b"}`, nil, 400,
			apperror.InvalidArgument, "both"},
		"nothing to save": {
			"POST", "/v1/projects/default/workflows:save", `{}`, nil, 400, apperror.InvalidArgument, "no document"},
		"draft": {
			"GET", "/v1/projects/default/workflows/hello?draft=true", ``, nil, 404, apperror.DraftNotFound, "hello"},
		"draft and version": {
			"GET", "/v1/projects/default/workflows/hello?draft=true&version=1.0.0", ``, nil, 400, apperror.InvalidArgument,
			"both"},
		"graph of both": {
			"GET", "/v1/projects/default/workflows/hello:graph?draft=true&version=1.0.0", ``, nil, 400, apperror.InvalidArgument,
			"both"},
		"diff of nothing": {
			"GET", "/v1/projects/default/workflows/hello:diff?from=1.0.0", ``, nil, 400, apperror.InvalidArgument, `"to"`},
		"version with new content": {
			"POST", "/v1/projects/default/workflows:publish", `{"source":` + quoted(greeting+"  - more:\n      set: {a: 1}\n") +
				`}`, nil, 409, apperror.VersionTaken, "1.0.0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := p.do(test.method, test.path, test.body, test.headers...)
			a.t = t
			require.Contains(t, a.fails(test.status, test.reason), test.says)
		})
	}
}

func TestDocumentErrorsNameAllViolations(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	wrong := strings.ReplaceAll(greeting, "title:", "titel:") + "  - odd:\n      sett: {a: 1}\n"
	body := `{"source":` + quoted(wrong) + `}`

	a := p.do("POST", "/v1/projects/default/workflows:publish", body)
	a.fails(400, apperror.InvalidDocument)
	violations := a.object()["details"].([]any)[1].(map[string]any)["fieldViolations"].([]any)
	require.Len(t, violations, 2, a.body)
	require.Contains(t, violations[0].(map[string]any)["description"], "6:3")

	checked := p.do("POST", "/v1/projects/default/workflows:validate", body).ok()
	require.Equal(t, false, checked["valid"])
	violations = checked["violations"].([]any)
	require.Len(t, violations, 2)
	require.Equal(t, "error", violations[0].(map[string]any)["severity"])
	require.Equal(t, "6", violations[0].(map[string]any)["line"].(interface{ String() string }).String())

	saved := p.do("POST", "/v1/projects/default/workflows:save", body).ok()
	require.Len(t, saved["violations"], 2, "a draft may be wrong")
}

func TestUnavailableHasRetryDelay(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	p.engine.failWith(apperror.New(apperror.Unavailable, apperror.EngineUnavailable,
		"temporal cannot be reached").WithRetry(2500 * time.Millisecond))
	a := p.do("POST", "/v1/projects/default/runs", `{"workflow":"hello","input":{}}`)
	a.fails(503, apperror.EngineUnavailable)
	require.Equal(t, "3", a.header.Get("Retry-After"))
	require.Contains(t, a.body, `"retryDelay":"2.500s"`)
	require.Empty(t, p.do("GET", "/v1/projects/default/runs", "").ok()["runs"])
	a = p.do("POST", "/signalbox.v1.RunService/StartRun", `{"workflow":"hello","input":{}}`)
	a.connectFails(503, "unavailable", apperror.EngineUnavailable)
	require.Equal(t, "3", a.header.Get("Retry-After"))

	p.engine.failWith(apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal cannot be reached"))
	require.Equal(t, "1", p.do("POST", "/v1/projects/default/runs",
		`{"workflow":"hello","input":{}}`).header.Get("Retry-After"))
}

// TestUnconfirmedStartHasRetryDelay: Temporal's answer to a start is lost, and then Temporal is over its limits.
func TestUnconfirmedStartHasRetryDelay(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	startWith := func(err error) {
		p.engine.mu.Lock()
		defer p.engine.mu.Unlock()
		p.engine.start = func(context.Context) error { return err }
	}
	startWith(run.ErrUnknownOutcome)
	for _, path := range []string{"/v1/projects/default/runs", "/signalbox.v1.RunService/StartRun"} {
		a := p.do("POST", path, `{"workflow":"hello","input":{}}`)
		started := a.ok()["run"].(map[string]any)
		require.Equal(t, "starting", started["queuedReason"])
		require.Equal(t, "5", a.header.Get("Retry-After"))
		again := p.do("POST", "/v1/projects/default/runs/"+started["id"].(string)+":replay", `{"reason":"again"}`)
		again.ok()
		require.Equal(t, "5", again.header.Get("Retry-After"))
	}
	startWith(nil)
	a := p.do("POST", "/v1/projects/default/runs", `{"workflow":"hello","input":{}}`)
	a.ok()
	require.Empty(t, a.header.Get("Retry-After"))

	startWith(apperror.New(apperror.Exhausted, apperror.EngineRefused, "over its limits").WithRetry(5 * time.Second))
	a = p.do("POST", "/v1/projects/default/runs", `{"workflow":"hello","input":{}}`)
	a.fails(429, apperror.EngineRefused)
	require.Equal(t, "5", a.header.Get("Retry-After"))
}

func TestInternalErrorsAreLoggedAndNotReturned(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()

	p.engine.failWith(errors.New("password=hunter2 refused"))
	a := p.do("POST", "/v1/projects/default/runs", `{"workflow":"hello","input":{}}`)
	_, reference, _ := strings.Cut(a.fails(500, "INTERNAL"), "under the reference ")
	require.NotEmpty(t, reference)
	require.NotContains(t, a.body, "hunter2")
	require.Contains(t, p.log.String(), "hunter2")
	require.Contains(t, p.log.String(), "reference="+reference)
	require.Contains(t, p.log.String(), "procedure=signalbox.v1.RunService/StartRun")

	p.engine.checkWith(func(context.Context) error { panic("broken") })
	a = p.do("POST", "/v1/projects/default/runs", `{"workflow":"hello","input":{}}`)
	a.fails(500, "INTERNAL")
	require.NotContains(t, a.body, "plot")
	require.Contains(t, p.log.String(), "broken")
}

func TestCallerInputIsNotLogged(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	p.do("POST", "/v1/projects/default/workflows:publish", `{"source":`+quoted(
		"document: {dsl: 1.0.3, namespace: examples, name: strict, version: 1.0.0}\n"+
			"input: {schema: {document: {properties: {password: {pattern: '^[0-9]+$'}}}}}\ndo: [{a: {set: {n: 1}}}]\n")+`}`).ok()
	a := p.do("POST", "/v1/projects/default/runs", `{"workflow":"strict","input":{"password":"hunter2"}}`)
	a.fails(400, "INVALID_INPUT")
	require.Contains(t, a.body, "hunter2", "the caller may see its own input")
	require.NotContains(t, p.log.String(), "hunter2")
	require.Contains(t, p.log.String(), "code=invalid_argument reason=INVALID_INPUT")
}

func TestCallsHaveADeadline(t *testing.T) {
	t.Parallel()
	p := start(t, func(o *rpc.Options) { o.CallTimeout = time.Hour })
	p.publish()
	left := make(chan time.Duration, 1)
	p.engine.checkWith(func(ctx context.Context) error {
		deadline, ok := ctx.Deadline()
		if !ok {
			return errors.New("no deadline")
		}
		left <- time.Until(deadline)
		return context.DeadlineExceeded
	})
	const path, body = "/v1/projects/default/runs", `{"workflow":"hello","input":{}}`
	p.do("POST", path, body).fails(504, "DEADLINE_EXCEEDED")
	require.InDelta(t, time.Hour, <-left, float64(time.Minute), "the server's own")
	p.do("POST", path, body, "X-Server-Timeout", "600").fails(504, "DEADLINE_EXCEEDED")
	require.InDelta(t, 10*time.Minute, <-left, float64(time.Minute), "the caller's")
	p.do("POST", "/signalbox.v1.RunService/StartRun", body, "Connect-Timeout-Ms", "600000").connectFails(504,
		"deadline_exceeded", "DEADLINE_EXCEEDED")
	require.InDelta(t, 10*time.Minute, <-left, float64(time.Minute), "the caller's")
}

func TestRequestsAreLimitedBeforeAndAfterDecompression(t *testing.T) {
	t.Parallel()
	p := start(t, func(o *rpc.Options) { o.MaxRequestBytes = 10_000 })
	large := `{"name":"` + strings.Repeat("x", 10_000) + `"}`
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, err := zip.Write([]byte(large))
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	require.Less(t, packed.Len(), 1000)

	p.do("POST", "/v1/projects", large).fails(413, apperror.RequestTooLarge)
	p.do("POST", "/v1/projects", packed.String(), "Content-Encoding", "gzip").fails(413, apperror.RequestTooLarge)

	const connectPath = "/signalbox.v1.ProjectService/CreateProject"
	for _, body := range [][]string{{large}, {packed.String(), "Content-Encoding", "gzip"}} {
		a := p.do("POST", connectPath, body[0], body[1:]...)
		require.Contains(t, a.connectFails(429, "resource_exhausted", apperror.RequestTooLarge), "10000")
	}
}

func TestUnreadableRequestCallsNoMethod(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.do("POST", "/v1/projects", `{"name":"a","nonsense":1}`).fails(400, apperror.InvalidArgument)
	require.NotContains(t, p.log.String(), "ProjectService", "no method was called")
	require.Len(t, p.do("GET", "/v1/projects", "").ok()["projects"], 1)
}

func TestForeignPagesAreRefused(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	port := p.base[strings.LastIndex(p.base, ":"):]
	tests := map[string]struct {
		headers []string
		reason  string
	}{
		"rebound name":           {[]string{"Host", "evil.example" + port}, "FOREIGN_HOST"},
		"other address":          {[]string{"Host", "192.168.1.10" + port}, "FOREIGN_HOST"},
		"name like ours":         {[]string{"Host", "localhost.evil.example"}, "FOREIGN_HOST"},
		"other origin":           {[]string{"Origin", "https://evil.example"}, "CROSS_ORIGIN"},
		"opaque origin":          {[]string{"Origin", "null"}, "CROSS_ORIGIN"},
		"other port":             {[]string{"Origin", "http://127.0.0.1:1"}, "CROSS_ORIGIN"},
		"cross-site by metadata": {[]string{"Sec-Fetch-Site", "cross-site"}, "CROSS_ORIGIN"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := p.do("POST", "/v1/projects", `{"name":"stolen"}`, test.headers...)
			a.t = t
			a.fails(403, test.reason)
			a = p.do("POST", "/signalbox.v1.ProjectService/CreateProject", `{"name":"stolen"}`, test.headers...)
			a.t = t
			a.connectFails(403, "permission_denied", test.reason)
		})
	}
	for _, host := range []string{"localhost", "LOCALHOST" + port, "127.0.0.1", "[::1]" + port, "127.8.8.8"} {
		require.Equal(t, http.StatusOK, p.do("GET", "/v1/version", "", "Host", host).status, host)
	}
	p.do("GET", "/v1/version", "", "Origin", p.base).ok()
}
