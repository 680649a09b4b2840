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
