package rpc_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// startQuotas starts a server over the real quota service.
func startQuotas(t *testing.T) *platform {
	t.Helper()
	var late struct{ *quota.Service }
	p := start(t, func(o *rpc.Options) { o.Quotas = &late })
	late.Service = quota.NewService(p.store.Quotas(), quota.Options{
		Now: time.Now, Admit: func(string) {}, Engine: p.engine, Runs: resuming{p},
	})
	return p
}

// resuming adapts the run controls to quotas.
type resuming struct{ *platform }

func (r resuming) Get(ctx context.Context, project, id string) (run.Run, error) {
	return r.store.GetRun(ctx, project, id)
}

func (r resuming) ResumeQuota(ctx context.Context, project, id, _ string) (run.Run, error) {
	return r.Get(ctx, project, id)
}

func TestResumeRunThatWaitsForSteps(t *testing.T) {
	t.Parallel()
	p := startQuotas(t)
	const path = "/v1/projects/default/quota"
	p.do("PUT", path, `{"quota": {"steps": 20, "periodSeconds": 2592000}}`).ok()
	p.do("POST", "/v1/projects/default/workflows:publish", `{"source": `+quoted(greeting)+`}`).ok()
	id := p.do("POST", "/v1/projects/default/runs",
		`{"workflow": "hello", "input": {"name": "Ada"}}`).ok()["run"].(map[string]any)["id"].(string)
	require.NotContains(t, p.do("GET", "/v1/projects/default/runs/"+id, "").ok()["run"], "quota")
	require.JSONEq(t, `{"resumed": 0}`, p.do("POST", path+":resume", `{}`).body)
	_, err := p.store.ApplyUpdates(t.Context(), []run.Update{{
		RunID: id, ExecutionID: "execution-" +
			id, Position: 5, State: &run.State{Status: run.Waiting, WaitingKind: run.WaitingQuota, Since: noon, StepsTotal: 1},
	}})
	require.NoError(t, err)
	_, err = p.store.Quotas().GrantSteps(t.Context(), quota.Request{Project: "default", RunID: id})
	require.NoError(t, err)
	shown := p.do("GET", "/v1/projects/default/runs/"+id, "").ok()["run"].(map[string]any)["quota"].(map[string]any)
	require.Equal(t, "1 20", fmt.Sprint(shown["used"], " ", shown["limit"]))
	require.NotEmpty(t, shown["resetTime"])
	require.JSONEq(t, `{"resumed": 1}`, p.do("POST", path+":resume", `{"runIds": ["`+id+`"], "reason": "closing"}`).body)
	require.Equal(t, "1", fmt.Sprint(p.do("GET", path, "").ok()["waitingRuns"]))
	p.do("POST", path+":resume", `{"runIds": ["none"]}`).fails(http.StatusNotFound, "RUN_NOT_FOUND")
	p.do("POST", "/v1/projects/none/quota:resume", `{}`).fails(http.StatusNotFound, "PROJECT_NOT_FOUND")
}

func TestQuotaMethods(t *testing.T) {
	t.Parallel()
	p := startQuotas(t)
	const path = "/v1/projects/default/quota"
	require.JSONEq(t, `{"quota": {"concurrentRuns": 0, "steps": 0, "periodSeconds": 0}, "admittedRuns": 0, "queuedRuns": 0, "usedSteps": 0,
		"waitingRuns": 0}`, p.do("GET", path, "").body)
	a := p.do("PUT", path, `{"quota": {"concurrentRuns": 1}}`)
	require.JSONEq(t, `{"quota": {"concurrentRuns": 1, "steps": 0, "periodSeconds": 0}}`, a.body)

	p.do("POST", "/v1/projects/default/workflows:publish", `{"source": `+quoted(greeting)+`}`).ok()
	for range 2 {
		p.do("POST", "/v1/projects/default/runs", `{"workflow": "hello", "input": {"name": "Ada"}}`).ok()
	}
	a = p.do("GET", path, "")
	require.JSONEq(t, `{"quota": {"concurrentRuns": 1, "steps": 0, "periodSeconds": 0}, "admittedRuns": 1, "queuedRuns": 1, "usedSteps": 0,
		"waitingRuns": 0}`, a.body)
	a = p.do("POST", "/v1/projects/default/runs", `{"workflow": "hello", "input": {"name": "Ada"}}`)
	started := a.ok()["run"].(map[string]any)
	require.Equal(t, "queued admission 2",
		fmt.Sprint(started["status"], " ", started["queuedReason"], " ", started["queuePosition"]))

	a = p.do("PUT", path, `{"quota": {"concurrentRuns": -1, "steps": 5}}`)
	require.Contains(t, a.fails(http.StatusBadRequest, "INVALID_ARGUMENT"), "quota/concurrentRuns -1 is not between 0")
	require.Contains(t, a.body, "quota/periodSeconds")
	for _, seconds := range []string{"9000000000000000000", "-9000000000000000000"} {
		a = p.do("PUT", path, `{"quota": {"steps": 5, "periodSeconds": `+seconds+`}}`)
		a.fails(http.StatusBadRequest, "INVALID_ARGUMENT")
	}
	for _, method := range []string{"GET", "PUT"} {
		body := ""
		if method == "PUT" {
			body = `{"quota": {}}`
		}
		p.do(method, "/v1/projects/none/quota", body).fails(http.StatusNotFound, "PROJECT_NOT_FOUND")
	}
	entries := p.do("GET", "/v1/projects/default/audit?action=quota.set", "").ok()["entries"].([]any)
	require.Len(t, entries, 1)
}
