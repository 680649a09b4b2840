package rpc_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/rpc"
)

// A list in a request is bounded in every protocol, also that of a stream.
func TestRepeatedFieldsAreBounded(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	message := p.do("GET", "/v1/projects/default/runs?"+strings.Repeat("statuses=failed&", 51)+"pageSize=1", "").
		fails(http.StatusBadRequest, apperror.InvalidArgument)
	require.Equal(t, "filter.statuses has 51 elements: at most 50 are allowed", message)
	p.do("GET", "/v1/projects/default/runs?"+strings.Repeat("statuses=failed&", 50)+"pageSize=1", "").ok()
	many := make([]string, 10_000)
	for _, options := range [][]connect.ClientOption{nil, {connect.WithGRPC()}, {connect.WithGRPCWeb()}} {
		_, err := signalboxv1connect.NewRunServiceClient(h2c(), p.base, options...).CountRuns(t.Context(),
			connect.NewRequest(&signalboxv1.CountRunsRequest{Filter: &signalboxv1.RunFilter{Statuses: many}}))
		requireReason(t, err, connect.CodeInvalidArgument, apperror.InvalidArgument)
		export, err := signalboxv1connect.NewRunServiceClient(h2c(), p.base, options...).ExportRuns(t.Context(),
			connect.NewRequest(&signalboxv1.ExportRunsRequest{Filter: &signalboxv1.RunFilter{Statuses: many}}))
		require.NoError(t, err)
		require.False(t, export.Receive())
		requireReason(t, export.Err(), connect.CodeInvalidArgument, apperror.InvalidArgument)
		require.NoError(t, export.Close())
	}
}

// The texts of errors in the readiness contain addresses: only viewers of all projects see them.
func TestReadinessWithoutTokenNamesNoAddress(t *testing.T) {
	t.Parallel()
	h := health.New(time.Now, []health.Dependency{{
		Name: "temporal", Required: []string{"worker"}, Used: []string{"api"},
		Condition: func() health.Condition {
			return health.Condition{State: "down", Kind: "unreachable", Since: time.Now(),
				Err: errors.New("temporal at 10.1.2.3:7233 does not answer")}
		},
	}}, "api", "worker")
	g := startGuarded(t, func(o *rpc.Options) { o.Readyz = http.HandlerFunc(h.Readyz) })
	_, everywhere := g.token(map[string]auth.Role{auth.Everywhere: auth.Viewer})
	_, shop := g.token(map[string]auth.Role{"shop": auth.Admin})
	for name, tt := range map[string]struct {
		header []string
		shown  bool
	}{
		"no token": {nil, false}, "a wrong token": {[]string{"Authorization", "Bearer wrong"}, false},
		"a token of one project":   {shop, false},
		"a viewer of all projects": {everywhere, true},
	} {
		a := g.do("GET", "/readyz", "", tt.header...)
		require.Equal(t, http.StatusOK, a.status, name)
		require.Equal(t, tt.shown, strings.Contains(a.body, "10.1.2.3"), "%s: %s", name, a.body)
		var report health.Report
		require.NoError(t, json.Unmarshal([]byte(a.body), &report), name)
		require.Equal(t, health.Down, report.Dependencies[0].State, name)
		require.Equal(t, []string{"temporal"}, report.Roles[0].Because, name)
	}
}
