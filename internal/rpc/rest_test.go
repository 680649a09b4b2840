package rpc_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func TestRESTFromDocumentToRun(t *testing.T) {
	t.Parallel()
	p := start(t, nil)

	version := p.do("GET", "/v1/version", "").ok()
	require.Equal(t, "1.2.3", version["version"])
	require.Equal(t, "7", version["interpreter"].(interface{ String() string }).String())

	checked := p.do("POST", "/v1/projects/default/workflows:validate", `{"source":`+quoted(greeting)+`}`).ok()
	require.Equal(t, true, checked["valid"])
	require.Equal(t, "demo/hello", checked["workflow"])
	require.Empty(t, checked["violations"])

	saved := p.do("POST", "/v1/projects/default/workflows:save", `{"source":`+quoted(greeting)+`}`).ok()
	require.Equal(t, "draft", saved["workflow"].(map[string]any)["state"])

	published := p.do("POST", "/v1/projects/default/workflows:publish", `{"workflow":"hello"}`).ok()
	require.Equal(t, true, published["created"])
	require.Equal(t, "1.0.0", published["version"].(map[string]any)["version"])
	again := p.do("POST", "/v1/projects/default/workflows:publish", `{"source":`+quoted(greeting)+`}`).ok()
	require.Equal(t, false, again["created"])

	got := p.do("GET", "/v1/projects/default/workflows/demo/hello", "").ok()
	require.Equal(t, greeting, got["version"].(map[string]any)["source"])
	require.Equal(t, "object", got["version"].(map[string]any)["inputSchema"].(map[string]any)["type"])
	escaped := p.do("GET", "/v1/projects/default/workflows/demo%2Fhello?version=1.0.0", "").ok()
	delete(got["workflow"].(map[string]any), "stats") // their window ends at the time of the call
	delete(escaped["workflow"].(map[string]any), "stats")
	require.Equal(t, got, escaped, "generated clients escape the slash")
	require.Len(t, p.do("GET", "/v1/projects/default/workflows/hello:versions", "").ok()["versions"], 1)
	require.Len(t, p.do("GET", "/v1/projects/default/workflows?text=ell&states=published", "").ok()["workflows"], 1)

	started := p.do("POST", "/v1/projects/default/runs",
		`{"workflow":"hello","input":{"name":"Ada","n":12345678901234567890,"x":1.10},"requestId":"r1"}`)
	run := started.ok()["run"].(map[string]any)
	require.Contains(t, started.body, `"input":{"name":"Ada","n":12345678901234567890,"x":1.10}`)
	require.Equal(t, "queued", run["status"])
	require.Equal(t, "worker", run["queuedReason"])
	require.Equal(t, "local", run["actor"])
	id := run["id"].(string)
	require.Equal(t, id, run["temporal"].(map[string]any)["workflowId"])

	require.Equal(t, "r1", p.do("GET", "/v1/projects/default/runs/"+id, "").ok()["run"].(map[string]any)["requestId"])
	listed := p.do("GET", "/v1/projects/default/runs?statuses=queued&statuses=running&pageSize=10", "").ok()
	require.Len(t, listed["runs"], 1)
	require.Empty(t, p.do("GET", "/v1/projects/default/runs/"+id+"/steps", "").ok()["steps"])

	canceled := p.do("POST", "/v1/projects/default/runs/"+id+":cancel", `{"reason":"no longer needed"}`).ok()
	require.Equal(t, true, canceled["run"].(map[string]any)["cancelRequested"])

	audit := p.do("GET", "/v1/projects/default/audit", "").ok()["entries"].([]any)
	require.Equal(t, "run.cancel", audit[0].(map[string]any)["action"])
	require.Equal(t, "no longer needed", audit[0].(map[string]any)["reason"])

	paused := p.do("POST", "/v1/projects/default/workflows/demo/hello:pause", `{"reason":"night"}`).ok()
	require.Equal(t, "paused", paused["workflow"].(map[string]any)["state"])
	p.do("POST", "/v1/projects/default/runs", `{"workflow":"hello"}`).fails(http.StatusBadRequest, "WORKFLOW_PAUSED")
	p.do("POST", "/v1/projects/default/workflows/demo/hello:unpause", `{}`).ok()
}

func TestRESTDraftsDiffsAndDeletion(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	next := strings.Replace(greeting, "version: 1.0.0\n", "version: 1.1.0\n", 1)
	p.do("POST", "/v1/projects/default/workflows:save", `{"source":`+quoted(next)+`}`).ok()

	draft := p.do("GET", "/v1/projects/default/workflows/hello?draft=true", "").ok()
	require.Equal(t, next, draft["draftSource"])
	require.Equal(t, true, draft["workflow"].(map[string]any)["hasDraft"])
	diff := p.do("GET", "/v1/projects/default/workflows/demo/hello:diff?from=1.0.0&to=draft", "").ok()["unified"].(string)
	require.Contains(t, diff, "-  version: 1.0.0\n+  version: 1.1.0\n")
	require.Contains(t, diff, "--- 1.0.0\n+++ draft\n")
	same := p.do("GET", "/v1/projects/default/workflows/demo/hello:diff?from=1.0.0&to=1.0.0", "").ok()
	require.NotContains(t, same, "unified")

	graph := p.do("GET", "/v1/projects/default/workflows/demo/hello:graph", "").ok()
	require.Equal(t, "1.0.0", graph["version"])
	nodes, edges := graph["nodes"].([]any), graph["edges"].([]any)
	require.Equal(t, "start", nodes[0].(map[string]any)["id"])
	require.Equal(t, map[string]any{"from": "start", "to": nodes[1].(map[string]any)["id"], "kind": "next"}, edges[0])
	require.NotContains(t, p.do("GET", "/v1/projects/default/workflows/hello:graph?draft=true", "").ok(), "version")

	id := p.startRun(`{}`)
	p.do("DELETE", "/v1/projects/default/workflows/demo/hello", "").fails(400, "WORKFLOW_HAS_OPEN_RUNS")
	p.apply(t, id, 5, run.Failed, "")
	p.do("POST", "/v1/projects/default/runs/"+id+":cancel", "").fails(400, "RUN_ENDED")
	p.do("DELETE", "/v1/projects/default/workflows/demo/hello", "").ok()
	p.do("GET", "/v1/projects/default/workflows/demo/hello", "").fails(404, "WORKFLOW_NOT_FOUND")
	p.do("GET", "/v1/projects/default/runs/"+id, "").ok()
}

func TestRESTStepsAndProjects(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	id := p.startRun(`{}`)
	p.apply(t, id, 5, run.Failed, "")
	steps := p.do("GET", "/v1/projects/default/runs/"+id+"/steps?pageSize=1", "").ok()["steps"].([]any)
	require.Len(t, steps, 1)
	require.Equal(t, "/do/0/greet", steps[0].(map[string]any)["pointer"])

	of := "/v1/projects/default/runs/" + id
	shown := p.do("GET", of+"/steps/1", "").ok()["step"].(map[string]any)
	require.Equal(t, "/do/0/greet", shown["pointer"])
	tasks := p.do("GET", of+"/steps:summarize", "").ok()["tasks"].([]any)
	require.Equal(t, "/do/0/greet", tasks[0].(map[string]any)["pointer"])
	require.Equal(t, json.Number("1"), tasks[0].(map[string]any)["statuses"].(map[string]any)[shown["status"].(string)])
	for query, n := range map[string]int{
		"pointer=/do/0/greet": 1, "pointer=/do/1/other": 0, "parentPath=/": 1, "parentPath=/do/0/greet": 0,
		"statuses=waiting": 0, "text=GREET": 1, "text=nothing": 0,
		"view=basic&order=newest": 1,
	} {
		found, _ := p.do("GET", of+"/steps?"+query, "").ok()["steps"].([]any)
		require.Len(t, found, n, query)
	}
	for query, says := range map[string]string{
		"view=wide": "full or basic", "order=up": "oldest or newest", "statuses=happy": "happy",
		"parentPath=do": "/ for the steps", "text=" + strings.Repeat("x", 201): "201 bytes",
	} {
		require.Contains(t, p.do("GET", of+"/steps?"+query, "").fails(400, "INVALID_ARGUMENT"), says)
	}
	require.Contains(t, p.do("GET", of+"/steps/99", "").fails(404, "STEP_NOT_FOUND"), "99")
	p.do("GET", of+"/steps/0", "").fails(400, "INVALID_ARGUMENT")
	p.do("GET", "/v1/projects/default/runs/none/steps/1", "").fails(404, "RUN_NOT_FOUND")
	p.do("GET", "/v1/projects/default/runs/none/steps:summarize", "").fails(404, "RUN_NOT_FOUND")

	made := p.do("POST", "/v1/projects", `{"name":"shop","description":"Orders"}`).ok()["project"].(map[string]any)
	require.Equal(t, contract.TaskQueue("shop"), made["taskQueue"])
	require.Equal(t, made, p.do("GET", "/v1/projects/shop", "").ok()["project"])
	page := p.do("GET", "/v1/projects?pageSize=1", "").ok()
	require.Equal(t, "default", page["projects"].([]any)[0].(map[string]any)["name"])
	page = p.do("GET", "/v1/projects?pageSize=1&pageToken="+page["nextPageToken"].(string), "").ok()
	require.Equal(t, "shop", page["projects"].([]any)[0].(map[string]any)["name"])
	require.NotContains(t, page, "nextPageToken")
}

func TestRESTShowsWhyStepsAndRunsFailed(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	id := p.startRun(`{}`)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	later := now.Add(time.Second)
	failure := &run.Error{Type: "https://example.com/errors/timeout", Status: 408, Title: "Timeout",
		Instance: "/do/0/greet"}
	_, err := p.store.ApplyUpdates(t.Context(), []run.Update{{
		RunID: id, ExecutionID: "e", Position: 5,
		State: &run.State{Status: run.Failed, Since: later, StartedAt: now, EndedAt: later, Error: failure},
		Steps: []run.Step{{
			Number: 1, Path: "/do/0/greet", Pointer: "/do/0/greet", Task: "greet", Kind: "call", Status: "failed",
			StartedAt: now, EndedAt: later, Error: failure, Position: 5,
			Attempts: []run.Attempt{{Number: 1, StartedAt: now, EndedAt: &later, Error: failure}, {Number: 2, StartedAt: later}},
		}, {
			Number: 2, Path: "/do/1/again", Pointer: "/do/1/again", Task: "again", Kind: "try", Status: "waiting",
			WaitingKind: "retry", WaitUntil: later,
			StartedAt: now, Position: 5,
			Attempts: []run.Attempt{{
				Number: 1, StartedAt: now, EndedAt: &later, Method: "GET", Host: "x:1", RetryAfter: 7 * time.Second}},
		}},
	}})
	require.NoError(t, err)
	want := map[string]any{"type": failure.Type, "status": json.Number("408"), "title": "Timeout",
		"instance": "/do/0/greet"}
	got := p.do("GET", "/v1/projects/default/runs/"+id, "").ok()["run"].(map[string]any)
	require.Equal(t, want, got["error"])
	require.Equal(t, "2026-01-02T03:04:06Z", got["endTime"])
	require.Equal(t, map[string]any{
		"number": json.Number("1"), "path": "/do/0/greet", "pointer": "/do/0/greet", "task": "greet",
		"attempts": json.Number("2"),
	}, got["failedStep"])
	step := p.do("GET", "/v1/projects/default/runs/"+id+"/steps", "").ok()["steps"].([]any)[0].(map[string]any)
	require.Equal(t, want, step["error"])
	require.Equal(t, []any{
		map[string]any{"number": json.Number("1"), "startTime": "2026-01-02T03:04:05Z", "endTime": "2026-01-02T03:04:06Z",
			"error": want},
		map[string]any{"number": json.Number("2"), "startTime": "2026-01-02T03:04:06Z"},
	}, step["attempts"])
	retrying := p.do("GET", "/v1/projects/default/runs/"+id+"/steps/2", "").ok()["step"].(map[string]any)
	require.Equal(t, []any{map[string]any{
		"number": json.Number("1"), "startTime": "2026-01-02T03:04:05Z", "endTime": "2026-01-02T03:04:06Z", "method": "GET",
		"host": "x:1", "nextTime": "2026-01-02T03:04:06Z", "retryAfter": "7s",
	}}, retrying["attempts"])
}

func TestShortenedValuesHaveTheirSizes(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	id := p.startRun(`{}`)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	_, err := p.store.ApplyUpdates(t.Context(), []run.Update{{
		RunID: id, ExecutionID: "e", Position: 5, State: &run.State{Status: run.Running, Since: now, StartedAt: now},
		Steps: []run.Step{{
			Number: 1, Path: "/do/0/greet", Pointer: "/do/0/greet", Task: "greet", Kind: "set", Status: "completed",
			StartedAt: now, EndedAt: now, Position: 5,
			Input: json.RawMessage(`{"name":"Ada"}`), Output: json.RawMessage(`[{"id":1}]`), OutputSize: 573_034,
		}},
	}})
	require.NoError(t, err)
	path := "/v1/projects/default/runs/" + id
	listed := p.do("GET", path+"/steps", "").ok()["steps"].([]any)[0]
	for name, shown := range map[string]any{
		"list": listed, "step": p.do("GET", path+"/steps/1", "").ok()["step"],
		"export": p.do("GET", path+":export", "").ok()["steps"].([]any)[0],
	} {
		step := shown.(map[string]any)
		require.Equal(t, map[string]any{"size": json.Number("573034")}, step["outputShortened"], name)
		require.Equal(t, []any{map[string]any{"id": json.Number("1")}}, step["output"], name)
		require.NotContains(t, step, "inputShortened", name)
	}
}

func TestRunsAreLinkedToTemporalUI(t *testing.T) {
	t.Parallel()
	p := start(t, func(o *rpc.Options) { o.TemporalNamespace, o.TemporalUI = "team a/b", "http://localhost:8233/ui/" })
	p.publish()
	id := p.startRun(`{}`)
	shown := func() map[string]any {
		return p.do("GET", "/v1/projects/default/runs/"+id, "").ok()["run"].(map[string]any)["temporal"].(map[string]any)
	}
	execution := shown()["runId"].(string)
	require.NotEmpty(t, execution)
	require.Equal(t, "http://localhost:8233/ui/namespaces/team%20a%2Fb/workflows/"+id+"/"+execution, shown()["url"])
	require.NotContains(t, start(t, nil).do("GET", "/v1/projects/default/runs", "").body, "8233")
}

func TestRESTLabels(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	start := func(labels string) map[string]any {
		return p.do("POST", "/v1/projects/default/runs",
			`{"workflow":"hello","input":{},"labels":`+labels+`}`).ok()["run"].(map[string]any)
	}
	first := start(`{"order":"4711","text":"a=b & <i>"}`)
	second := start(`{"order":"4711"}`)
	start(`{"order":"4712"}`)
	require.Equal(t, map[string]any{"order": "4711", "text": "a=b & <i>"}, first["labels"])
	list := func(query string) []string {
		var ids []string
		for _, r := range p.do("GET", "/v1/projects/default/runs?"+query, "").ok()["runs"].([]any) {
			ids = append(ids, r.(map[string]any)["id"].(string))
		}
		return ids
	}
	require.Equal(t, []string{second["id"].(string), first["id"].(string)}, list("labels=order%3D4711"))
	require.Equal(t, []string{first["id"].(string)}, list("labels=order=4711&labels=text%3Da%3Db%20%26%20%3Ci%3E"))
	require.Empty(t, list("labels=order%3D4713"))
	require.Equal(t, map[string]any{"queued": json.Number("2")},
		p.do("GET", "/v1/projects/default/runs:count?labels=order%3D4711", "").ok()["statuses"])
	for _, format := range []string{"csv", "json"} {
		exported := p.do("GET", "/v1/projects/default/runs:export?labels=order%3D4711&format="+format, "").body
		require.Contains(t, exported, first["id"])
		require.Contains(t, exported, "4711")
		require.NotContains(t, exported, "4712")
	}
	replayed := p.do("POST", "/v1/projects/default/runs/"+first["id"].(string)+":replay",
		`{"reason":"test","labels":{"order":"4713"}}`).ok()["run"].(map[string]any)
	require.Equal(t, map[string]any{"order": "4713", "text": "a=b & <i>"}, replayed["labels"])
	preview := p.do("POST", "/v1/projects/default/batches",
		`{"action":"cancel","reason":"test","dryRun":true,"filter":{"labels":["order=4711"]}}`).ok()
	require.Equal(t, json.Number("2"), preview["batch"].(map[string]any)["total"])
	require.Equal(t, []any{"order=4711"}, preview["batch"].(map[string]any)["filter"].(map[string]any)["labels"])
	refused := p.do("POST", "/v1/projects/default/batches",
		`{"action":"cancel","reason":"test","dryRun":true,"filter":{"labels":["order"]}}`)
	require.Equal(t, 400, refused.status, refused.body)
	require.Contains(t, refused.body, "filter.labels")

	for body, field := range map[string]string{`{"a b":"x"}`: "labels.a b", `{"order":""}`: "labels.order"} {
		refused := p.do("POST", "/v1/projects/default/runs", `{"workflow":"hello","input":{},"labels":`+body+`}`)
		require.Equal(t, 400, refused.status, refused.body)
		require.Contains(t, refused.body, field)
	}
	for _, query := range []string{"labels=order", "labels=order%3D1&labels=order%3D2", "labels=a%20b%3Dx"} {
		refused := p.do("GET", "/v1/projects/default/runs?"+query, "")
		require.Equal(t, 400, refused.status, refused.body)
		require.Contains(t, refused.body, "labels")
	}
}

func TestRESTCountsAndOrdersRunsOfAFilter(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	first, second := p.startRun(`{}`), p.startRun(`{}`)
	replay := p.do("POST", "/v1/projects/default/runs/"+first+":replay",
		`{"reason":"test"}`).ok()["run"].(map[string]any)["id"].(string)
	p.do("POST", "/v1/projects/default/runs/"+second+":terminate", `{"reason":"test"}`).ok()
	list := func(query string) []string {
		var ids []string
		token := ""
		for {
			page := p.do("GET", "/v1/projects/default/runs?pageSize=1&"+query+"&pageToken="+token, "").ok()
			for _, r := range page["runs"].([]any) {
				ids = append(ids, r.(map[string]any)["id"].(string))
			}
			if token, _ = page["nextPageToken"].(string); token == "" {
				return ids
			}
		}
	}
	require.Equal(t, []string{replay}, list("replayOf="+first))
	require.Empty(t, list("parentRunId="+first))
	require.Empty(t, list("batchId=none"))
	require.Equal(t, []string{first, replay}, list("order=oldest&statuses=queued"))
	require.Equal(t, []string{replay, first}, list("order=longest&statuses=queued"),
		"none has started, and of the same length the newest is first")

	dry := p.do("POST", "/v1/projects/default/runs/"+first+":replay", `{"dryRun":true}`).ok()["run"].(map[string]any)
	require.Equal(t, []any{first, "queued", nil, nil}, []any{dry["replayOf"], dry["status"], dry["id"], dry["input"]})
	p.do("POST", "/v1/projects/default/runs", `{"workflow":"none","dryRun":true}`).fails(404, apperror.WorkflowNotFound)
	require.Equal(t, []string{first, replay}, list("order=oldest&statuses=queued"), "a dry run starts nothing")

	count := func(query string) map[string]any {
		return p.do("GET", "/v1/projects/default/runs:count?"+query, "").ok()
	}
	require.Equal(t, map[string]any{"queued": json.Number("1")}, count("replayOf=" + first)["statuses"])
	require.Equal(t, map[string]any{"terminated": json.Number("1")},
		count("statuses=terminated&statuses=failed")["statuses"])
	require.Equal(t, map[string]any{"queued": json.Number("1")}, count("trigger=replay")["statuses"])
	require.Equal(t, map[string]any{"queued": json.Number("1")}, count("text=" + first)["statuses"])
	require.Equal(t, map[string]any{"queued": json.Number("1"), "terminated": json.Number("1")},
		count("notReplayed=true")["statuses"])
	since := time.Now().Add(-30 * time.Minute).UTC()
	path := "since=" + since.Format(time.RFC3339Nano) + "&bucket=3600s"
	buckets := count(path)["buckets"].([]any)
	require.Len(t, buckets, 1)
	require.Equal(t, map[string]any{"queued": json.Number("2"), "terminated": json.Number("1")},
		buckets[0].(map[string]any)["statuses"])
	require.Len(t, count("since=" + since.Add(-3*time.Hour).Format(time.RFC3339Nano) + "&bucket=3600s")["buckets"], 4,
		"empty ones are included")
	for query, want := range map[string]string{
		"bucket=60s":                         "buckets without since",
		path + "&until=2020-01-01T00:00:00Z": "until must be after since",
		"since=2020-01-01T00:00:00Z&until=2021-01-01T00:00:00Z&bucket=60s": "more than 200 buckets",
		"since=0001-01-01T00:00:01Z&bucket=1s":                             "more than 200 buckets",
		"since=2020-01-01T00:00:00Z&bucket=0.5s":                           "at least 1s",
		"since=2020-01-01T00:00:00Z&bucket=-5s":                            "positive",
		"version=1.0.0":                                                    "name the workflow",
		"statuses=lost":                                                    "unknown run status",
	} {
		require.Contains(t, p.do("GET", "/v1/projects/default/runs:count?"+query, "").fails(400, apperror.InvalidArgument),
			want)
	}
	require.Contains(t, p.do("GET", "/v1/projects/default/runs?order=shortest", "").fails(400, apperror.InvalidArgument),
		"newest, oldest or longest")
}

func TestRESTCompression(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, err := zip.Write([]byte(`{"source":` + quoted(greeting+strings.Repeat("# a long comment\n", 200)) + `}`))
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	p.do("POST", "/v1/projects/default/workflows:publish", packed.String(), "Content-Encoding", "gzip").ok()

	// Setting the header by hand keeps Go's client from unpacking by itself.
	a := p.do("GET", "/v1/projects/default/workflows/hello", "", "Accept-Encoding", "gzip")
	require.Equal(t, "gzip", a.header.Get("Content-Encoding"))
	unpacked, err := gzip.NewReader(strings.NewReader(a.body))
	require.NoError(t, err)
	text, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	require.Contains(t, string(text), "a long comment")
}

func TestProjectSettingsAreShownAndUpdated(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	const path = "/v1/projects/default"
	settings := func(a map[string]any) string {
		text, err := json.Marshal(a["project"].(map[string]any)["settings"])
		require.NoError(t, err)
		return string(text)
	}
	require.JSONEq(t, `{"maxSteps": 0, "maxGeneration": 0, "endPoison": false, "runners": [], "images": []}`, settings(p.do("GET", path, "").ok()))
	require.JSONEq(t, `{"maxSteps": 7, "maxGeneration": 0, "endPoison": false, "runners": [], "images": []}`, settings(p.do("PATCH", path, `{"maxSteps": 7}`).ok()))
	require.JSONEq(t, `{"maxSteps": 7, "maxGeneration": 9, "endPoison": true, "runners": [], "images": []}`,
		settings(p.do("PATCH", path, `{"endPoison": true, "maxGeneration": 9}`).ok()))
	require.JSONEq(t, `{"maxSteps": 0, "maxGeneration": 9, "endPoison": true, "runners": [], "images": []}`,
		settings(p.do("PATCH", path, `{"maxSteps": 0, "description": "d"}`).ok()))
	listed := p.do("GET", "/v1/projects", "").ok()["projects"].([]any)[0].(map[string]any)
	require.Equal(t, "d", listed["description"])
	require.Equal(t, map[string]any{"maxSteps": json.Number("0"), "maxGeneration": json.Number("9"),
		"endPoison": true, "runners": []any{}, "images": []any{}}, listed["settings"])

	p.do("PATCH", path, `{}`).fails(http.StatusBadRequest, "INVALID_ARGUMENT")
	require.Contains(t, p.do("PATCH", path, `{"maxSteps": -1}`).fails(http.StatusBadRequest, "INVALID_ARGUMENT"),
		"max_steps -1")
	require.Contains(t, p.do("PATCH", path, `{"maxGeneration": 1001}`).fails(http.StatusBadRequest, "INVALID_ARGUMENT"),
		"max_generation 1001")
	p.do("PATCH", "/v1/projects/none", `{"endPoison": true}`).fails(http.StatusNotFound, "PROJECT_NOT_FOUND")
}
