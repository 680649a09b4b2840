package rpc_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/annotation"
)

func TestBatchPreviewAndExpectedTotal(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	id := p.startRun(`{}`)
	path := "/v1/projects/default/batches"
	dry := p.do("POST", path, `{"action":"cancel","runIds":["`+id+`","none"],"reason":"x","dryRun":true}`).ok()
	require.Equal(t, json.Number("1"), dry["eligible"])
	require.Equal(t, []any{map[string]any{"reason": "RUN_NOT_FOUND", "count": json.Number("1"), "sampleRunIds": []any{}}},
		dry["preview"])
	require.Empty(t, p.do("GET", path, "").ok()["batches"])

	p.do("POST", path, `{"action":"cancel","filter":{},"reason":"x","expectedTotal":2}`).fails(400, "BATCH_TOTAL_CHANGED")
	p.do("POST", path, `{"action":"cancel","filter":{},"reason":"x","expectedTotal":1,"dryRun":true}`).fails(400,
		"INVALID_ARGUMENT")
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

func TestListAnnotations(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	begun := time.Now().Add(-time.Minute)
	require.NoError(t, p.store.Annotations().WriteOutages(t.Context(),
		[]annotation.Outage{{Server: "a", Since: begun, Kind: "hung", SeenAt: time.Now()}}))
	path := "/v1/projects/default/annotations"
	list := p.do("GET", path, "").ok()["annotations"].([]any)
	require.Len(t, list, 2)
	outage, published := list[0].(map[string]any), list[1].(map[string]any)
	require.Equal(t, []any{"outage", "Temporal is unavailable", "hung, seen by 1 server"},
		[]any{outage["kind"], outage["title"], outage["detail"]})
	require.NotContains(t, outage, "end", "it lasts")
	require.Equal(t, []any{"publish", "demo/hello", published["start"]},
		[]any{published["kind"], published["subject"], published["end"]})
	require.Len(t, p.do("GET", path+"?kinds=publish&kinds=owner", "").ok()["annotations"], 1)
	require.Empty(t, p.do("GET", path+"?to="+begun.Add(-time.Hour).UTC().Format(time.RFC3339), "").ok()["annotations"])
	p.do("GET", path+"?kinds=start", "").fails(400, "INVALID_ARGUMENT")
	p.do("GET", path+"?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "").fails(400, "INVALID_ARGUMENT")
	p.do("GET", "/v1/projects/none/annotations", "").fails(404, "PROJECT_NOT_FOUND")
}
