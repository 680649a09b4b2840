package rpc_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/server"
)

// noDispatchers is a platform without dispatchers that measures nothing.
type noDispatchers struct{}

func (noDispatchers) List(context.Context) ([]dispatcher.Dispatcher, error) { return nil, nil }

func (noDispatchers) Acknowledged(context.Context, string, time.Duration) {}

func TestProblemsOverREST(t *testing.T) {
	t.Parallel()
	var late struct{ *problem.Service }
	p := start(t, func(o *rpc.Options) { o.Problems = &late })
	late.Service = problem.NewService(problem.Options{
		LostServers: func(context.Context) ([]server.Server, bool, error) { return nil, true, nil },
		Source:      p.store.Problems(), Store: p.store.Problems(), Projects: p.store, Dispatchers: noDispatchers{},
		Metrics:    noDispatchers{},
		Connection: func() conntype.Status { return conntype.Status{State: conntype.Down, Kind: conntype.Hung, Since: noon} },
		Health: func(context.Context) health.Report {
			return health.Report{}
		}, TaskQueue: func(string) string { return "q" }, Now: time.Now,
	})
	a := p.do(http.MethodGet, "/v1/problems?kinds=platform&states=open", "")
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Contains(t, a.body, `"id":"platform..TEMPORAL_NOT_CONNECTED"`)
	require.NotContains(t, a.body, `"count"`, "nothing is counted")
	a = p.do(http.MethodGet, "/v1/problems:count", "")
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Contains(t, a.body, `"open":1`)
	a = p.do(http.MethodPost, "/v1/problems/platform..TEMPORAL_NOT_CONNECTED:acknowledge", `{"note":"known"}`)
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Contains(t, a.body, `"state":"acknowledged"`)
	require.Contains(t, a.body, `"revision":1`)
	a = p.do(http.MethodPost, "/v1/problems/platform..TEMPORAL_NOT_CONNECTED:reopen", `{}`)
	require.Equal(t, http.StatusBadRequest, a.status, a.body)
	require.Contains(t, a.body, "PROBLEM_CHANGED")
	a = p.do(http.MethodPatch, "/v1/problems/platform..TEMPORAL_NOT_CONNECTED", `{"revision":1,"owner":"ada"}`)
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Contains(t, a.body, `"owner":"ada"`)
	a = p.do(http.MethodGet, "/v1/problems/platform..TEMPORAL_NOT_CONNECTED", "")
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Contains(t, a.body, `"note":"known"`)
	a = p.do(http.MethodGet, "/v1/problems?kinds=odd", "")
	require.Equal(t, http.StatusBadRequest, a.status, a.body)
	a = p.do(http.MethodGet, "/v1/problems/none", "")
	require.Equal(t, http.StatusNotFound, a.status, a.body)
	a = p.do(http.MethodGet, "/v1/problems?project=none", "")
	require.Equal(t, http.StatusNotFound, a.status, a.body)
}
