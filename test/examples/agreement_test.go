package examples_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/workflowtest"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// longest is the length of the runs that are compared: the platform does not skip time.
const longest = 10 * time.Second

// origin is the service of one run on the platform: it answers the requests as the mocks of the case did.
type origin struct {
	mu        sync.Mutex
	responses map[string][]*workflowtest.Response // by method and address
	received  []string
}

func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // an incomplete body differs from the expected one
	key := r.Method + " " + r.URL.RequestURI()
	o.mu.Lock()
	o.received = append(o.received, key+" "+string(body))
	responses := o.responses[key]
	if len(responses) > 0 {
		o.responses[key] = responses[1:]
	}
	o.mu.Unlock()
	if len(responses) == 0 {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	answer := responses[0]
	select {
	case <-r.Context().Done():
		return
	case <-time.After(answer.Delay):
	}
	w.Header().Set("Content-Type", "application/json")
	for name, value := range answer.Headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(max(answer.Status, http.StatusOK))
	if answer.HasBody {
		_ = json.NewEncoder(w).Encode(answer.Body) // it fails only if the caller has disconnected
	}
}

// The runs of the tests of the examples are the same on the platform as under test: status, output, error, tasks,
// requests and events.
func TestTestsAgreeWithThePlatform(t *testing.T) {
	t.Parallel()
	var server *platform.Server
	compared := 0
	for _, path := range files(t) {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		resources, files := dsl.NewResources(), map[string]string{}
		_, _ = dsl.Parse(source, dsl.WithResources(resources)) // it lists the files that are missing
		for _, missing := range resources.Missing() {
			content, err := os.ReadFile(filepath.Join(filepath.Dir(path), missing.URI))
			require.NoError(t, err)
			resources.Add(missing.URI, content)
			files[missing.URI] = string(content)
		}
		doc, violations := dsl.Parse(source, dsl.WithResources(resources))
		require.False(t, violations.HasErrors())
		tests, err := os.ReadFile(strings.TrimSuffix(path, ".yaml") + ".test.yaml")
		require.NoError(t, err)
		cases, violations := workflowtest.Parse(tests)
		require.Empty(t, violations)
		for i := range cases.Cases {
			c := cases.Case(i)
			o := &origin{responses: map[string][]*workflowtest.Response{}}
			service := httptest.NewServer(o)
			t.Cleanup(service.Close)
			c.Input = atOrigin(doc, c.Input, service.URL)
			result := workflowtest.Execute(t.Context(), doc, c)
			if !comparable(&c, result) {
				continue
			}
			if server == nil { // of its own: the events of other tests would reach the runs
				server = platform.StartDev(t)
			}
			for _, q := range result.Requests {
				key := q.Method + " " + strings.TrimPrefix(q.URL, service.URL)
				o.responses[key] = append(o.responses[key], q.Response)
			}
			compared++
			name := filepath.Base(path) + " " + c.Name
			compare(t, server, server.PublishWith(t, string(source), files), &c, result, o, name)
		}
	}
	require.Greater(t, compared, 18)
}

// comparable reports whether the platform can repeat a run: it is short, its services respond, and no mock takes the
// place of a program or of another run.
func comparable(c *workflowtest.Case, result *workflowtest.Result) bool {
	return result.Duration <= longest && len(result.Children) == 0 &&
		!slices.ContainsFunc(c.Mocks, func(m workflowtest.Mock) bool {
			return slices.ContainsFunc(m.Respond, func(r workflowtest.Response) bool { return r.HasOutput })
		}) &&
		!slices.ContainsFunc(result.Requests, func(q workflowtest.Request) bool {
			return q.Response == nil || q.Response.Fail != nil
		}) && !slices.ContainsFunc(c.Events, func(e workflowtest.Event) bool { return e.HasAt })
}

// atOrigin sets the address of the services in an input.
func atOrigin(doc *dsl.Document, input any, address string) any {
	if !strings.Contains(string(doc.Canonical()), `"base"`) {
		return input
	}
	out := map[string]any{"base": address}
	given, _ := input.(map[string]any)
	for name, value := range given {
		out[name] = value
	}
	return out
}

func compare(t *testing.T, s *platform.Server, workflow string, c *workflowtest.Case, result *workflowtest.Result,
	o *origin, name string) {
	t.Helper()
	input, err := json.Marshal(c.Input)
	require.NoError(t, err)
	run, err := s.TryStart(t.Context(), workflow, string(input))
	if err != nil { // the platform refuses an input that its schema refuses before a run exists
		require.NotNil(t, result.Error, "%s: %v", name, err)
		require.Equal(t, dsl.ErrorTypeValidation, result.Error.Type, name)
		require.Empty(t, result.Steps, name)
		return
	}
	for _, e := range c.Events {
		require.Equal(t, "event", s.Await(t, run.GetId(), limit, "waiting").GetWaitingKind(), name)
		data, err := json.Marshal(e.Event["data"])
		require.NoError(t, err)
		event{fmt.Sprint(e.Event["type"]), string(data)}.send(t, s)
	}
	run = s.Await(t, run.GetId(), limit, string(result.Status))
	if result.Error == nil {
		want, err := json.Marshal(result.Output)
		require.NoError(t, err)
		require.JSONEq(t, withoutTimes(string(want)),
			withoutTimes(strings.ReplaceAll(run.GetOutput().GetJson(), run.GetId(), "test")), name)
	} else {
		got := run.GetError()
		require.Equal(t, *result.Error, dsl.Error{Type: got.GetType(), Status: int(got.GetStatus()), Title: got.GetTitle(),
			Detail: got.GetDetail(), Instance: got.GetInstance()}, name)
	}
	var want []string
	for _, step := range result.Steps {
		want = append(want, step.Path+":"+string(step.Status))
	}
	var got []string
	steps := s.Steps(t, run.GetId())
	slices.SortFunc(steps, func(a, b *signalboxv1.Step) int { return int(a.GetNumber() - b.GetNumber()) })
	for _, step := range steps {
		got = append(got, step.GetPath()+":"+step.GetStatus())
	}
	require.Equal(t, want, got, name)
	compareRequests(t, result, o, name)
	compareEvents(t, s, run, result, name)
}

// withoutTimes replaces the times in a text: events have the time of the run.
func withoutTimes(text string) string {
	return regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`).ReplaceAllString(text, "TIME")
}

// compareRequests compares the requests. Branches of a fork send theirs in any order.
func compareRequests(t *testing.T, result *workflowtest.Result, o *origin, name string) {
	t.Helper()
	var want []string
	for _, q := range result.Requests {
		body := ""
		if q.HasBody {
			text, err := json.Marshal(q.Body)
			require.NoError(t, err)
			body = string(text)
		}
		_, address, _ := strings.Cut(strings.TrimPrefix(q.URL, "http://"), "/")
		want = append(want, q.Method+" /"+address+" "+body)
	}
	got := slices.Clone(o.received)
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got, name)
}

// compareEvents compares the events that the run emitted.
func compareEvents(t *testing.T, s *platform.Server, run *signalboxv1.Run, result *workflowtest.Result, name string) {
	t.Helper()
	listed := s.CLI(t, "event", "list", "-o", "json")
	require.Zero(t, listed.Code, listed.Stderr)
	own := 0 // those whose source is the run, because the document names none
	for _, e := range result.Events {
		require.Contains(t, listed.Stdout, fmt.Sprint(e["type"]), name)
		if strings.HasSuffix(fmt.Sprint(e["source"]), "/runs/test") {
			own++
		}
	}
	require.Equal(t, own, strings.Count(listed.Stdout, "/runs/"+run.GetId()+`"`), name)
}
