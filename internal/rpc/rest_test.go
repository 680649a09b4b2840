package rpc_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
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
	require.Empty(t, checked["findings"])

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
