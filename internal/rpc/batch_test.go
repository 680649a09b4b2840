package rpc_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBatchPreviewAndExpectedTotal(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	id := p.startRun(`{}`)
	path := "/v1/projects/default/batches"
	dry := p.do("POST", path, `{"action":"cancel","runIds":["`+id+`","none"],"reason":"x","dryRun":true}`).ok()
	require.Equal(t, json.Number("1"), dry["eligible"])
	require.Equal(t, []any{map[string]any{"reason": "RUN_NOT_FOUND", "count": json.Number("1"), "sampleRunIds": []any{}}}, dry["preview"])
	require.Empty(t, p.do("GET", path, "").ok()["batches"])

	p.do("POST", path, `{"action":"cancel","filter":{},"reason":"x","expectedTotal":2}`).fails(400, "BATCH_TOTAL_CHANGED")
	p.do("POST", path, `{"action":"cancel","filter":{},"reason":"x","expectedTotal":1,"dryRun":true}`).fails(400, "INVALID_ARGUMENT")
	p.do("POST", path, `{"action":"cancel","filter":{},"reason":"x","expectedTotal":1}`).ok()
	require.Len(t, p.do("GET", path+"?statuses=running&statuses=paused", "").ok()["batches"], 1)
	require.Empty(t, p.do("GET", path+"?statuses=completed", "").ok()["batches"])
	p.do("GET", path+"?statuses=open", "").fails(400, "INVALID_ARGUMENT")
}

func TestStopWorkflow(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	id := p.startRun(`{}`)
	path := "/v1/projects/default/workflows/demo/hello:stop"
	dry := p.do("POST", path, `{"dryRun":true}`).ok()
	require.Equal(t, map[string]any{"queued": json.Number("1")}, dry["open"])
	require.Equal(t, json.Number("1"), dry["eligible"])
	require.NotContains(t, dry, "startedBy", "only requests start runs of it")
	require.Equal(t, "published", dry["workflow"].(map[string]any)["state"])
	p.do("POST", path, `{"dryRun":true,"expectedOpen":1}`).fails(400, "INVALID_ARGUMENT")
	p.do("POST", path, `{}`).fails(400, "INVALID_ARGUMENT")
	p.do("POST", path, `{"reason":"x","expectedOpen":0}`).fails(400, "BATCH_TOTAL_CHANGED")
	p.do("POST", "/v1/projects/default/workflows/none:stop", `{"reason":"x"}`).fails(404, "WORKFLOW_NOT_FOUND")

	done := p.do("POST", path, `{"reason":"wrong prices","requestId":"q","expectedOpen":1}`).ok()
	require.Equal(t, []any{true, true}, []any{done["created"], done["paused"]})
	require.Equal(t, "wrong prices", done["workflow"].(map[string]any)["pauseReason"])
	made := done["batch"].(map[string]any)
	items := p.do("GET", "/v1/projects/default/batches/"+made["id"].(string)+"/items", "").ok()["items"].([]any)
	require.Equal(t, id, items[0].(map[string]any)["runId"])
	p.do("POST", "/v1/projects/default/runs", `{"workflow":"hello"}`).fails(400, "WORKFLOW_PAUSED")
	again := p.do("POST", path, `{"reason":"wrong prices","requestId":"q"}`).ok()
	require.Equal(t, []any{false, false}, []any{again["created"], again["paused"]})
	require.Equal(t, made["id"], again["batch"].(map[string]any)["id"])
}
