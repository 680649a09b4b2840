package rpc_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Logs of attempts that have ended are listed page by page, and those of programs that run on the last page.
func TestLogsArePaged(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	id := p.startRun(`{"name":"Ada"}`)
	p.apply(t, id, 3, run.Running, "")
	u := run.Update{RunID: id, ExecutionID: "execution-" + id, Position: 4}
	for n := range 3 {
		u.Logs = append(u.Logs, run.AttemptLog{Step: 1, Task: "greet", Attempt: n + 1,
			Stdout: run.LogStream{Text: "hello", SkippedBytes: 7, SkippedLines: 2}})
	}
	_, err := p.store.ApplyUpdates(t.Context(), []run.Update{u})
	require.NoError(t, err)
	p.running = []run.AttemptLog{{Step: 2, Task: "talk", Attempt: 1, Stderr: run.LogStream{Text: "a secret"}}}

	number := func(text string) json.Number { return json.Number(text) }
	path := "/v1/projects/default/runs/" + id + "/logs"
	first := p.do("GET", path+"?page_size=2", "").ok()
	require.Len(t, first["logs"], 2)
	require.Equal(t, map[string]any{"number": number("1"), "task": "greet", "attempt": number("1"), "running": false,
		"stdout": map[string]any{"text": "hello", "skippedBytes": number("7"), "skippedLines": number("2")},
		"stderr": map[string]any{"skippedBytes": number("0"), "skippedLines": number("0")}}, first["logs"].([]any)[0])
	next := p.do("GET", path+"?page_size=2&page_token="+first["nextPageToken"].(string), "").ok()
	require.Len(t, next["logs"], 2)
	talk := next["logs"].([]any)[1].(map[string]any)
	require.Equal(t, true, talk["running"])
	require.Equal(t, "a mark", talk["stderr"].(map[string]any)["text"])
	require.Len(t, p.do("GET", path+"?running=true", "").ok()["logs"], 1)
	require.Len(t, p.do("GET", path+"?number=1", "").ok()["logs"], 3)

	p.runningErr = apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal is away")
	away := p.do("GET", path, "").ok()
	require.Len(t, away["logs"], 3)
	require.Equal(t, "temporal is away", away["runningError"])
	p.do("GET", path+"?number=-1", "").fails(http.StatusBadRequest, apperror.InvalidArgument)
	p.do("GET", path+"?page_size=21", "").fails(http.StatusBadRequest, apperror.InvalidArgument)
	p.do("GET", "/v1/projects/default/runs/none/logs", "").fails(http.StatusNotFound, apperror.RunNotFound)

	p.apply(t, id, 5, run.Completed, `{}`)
	bundle := p.do("GET", "/v1/projects/default/runs/"+id+":export", "").ok()
	require.Len(t, bundle["logs"], 3)
}
