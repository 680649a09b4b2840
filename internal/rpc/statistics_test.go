package rpc_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWorkflowStatistics(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	path := "/v1/projects/default/workflows"
	stats := func(path string) map[string]any {
		t.Helper()
		a := p.do("GET", path, "").ok()
		w, one := a["workflow"].(map[string]any)
		if !one {
			w = a["workflows"].([]any)[0].(map[string]any)
		}
		s, _ := w["stats"].(map[string]any)
		return s
	}
	require.Nil(t, stats(path), "statistics are not read unless they are requested")
	idle := stats(path + "?stats=true")
	require.NotContains(t, idle, "successRate", "without ended runs the rate is not known")
	require.NotContains(t, idle, "p50")
	require.Empty(t, idle["statuses"])

	id := p.startRun(`{}`)
	for _, path := range []string{path + "?stats=true&statsWindow=3600s", path + "/demo/hello"} {
		s := stats(path)
		require.Equal(t, map[string]any{"queued": json.Number("1")}, s["statuses"])
		require.Equal(t, json.Number("1"), s["open"])
		require.Equal(t, id, s["lastRuns"].([]any)[0].(map[string]any)["id"])
		require.NotContains(t, s["lastRuns"].([]any)[0], "duration")
	}
	for _, bad := range []string{
		"?stats=true&statsWindow=1s", "?stats=true&statsWindow=0s", "?stats=true&statsWindow=9999999999s",
		"?statsWindow=3600s", "?stats=true&pageSize=51", "/demo/hello?statsWindow=-5s"} {
		p.do("GET", path+bad, "").fails(400, "INVALID_ARGUMENT")
	}
}

func TestWorkflowGrid(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	path := "/v1/projects/default/workflows/demo/hello:grid"
	g := p.do("GET", path, "").ok()
	require.Equal(t, []any{map[string]any{"pointer": "/do/0/greet", "task": "greet", "kind": "set"}}, g["tasks"])
	require.Empty(t, g["runs"])
	id := p.startRun(`{}`)
	g = p.do("GET", path+"?runs=1&version=1.0.0", "").ok()
	require.Equal(t, id, g["runs"].([]any)[0].(map[string]any)["id"])
	require.NotContains(t, g["runs"].([]any)[0], "duration", "the run is open")
	p.do("GET", path+"?runs=51", "").fails(400, "INVALID_ARGUMENT")
	p.do("GET", path+"?version=2.0.0", "").fails(404, "VERSION_NOT_FOUND")
	p.do("GET", "/v1/projects/default/workflows/none:grid", "").fails(404, "WORKFLOW_NOT_FOUND")
}
