package cli_test

import (
	"context"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

// quotas is the fake API's QuotaService.
type quotas struct {
	api   *api
	usage *signalboxv1.GetQuotaResponse
}

func (q *quotas) GetQuota(_ context.Context,
	request *connect.Request[signalboxv1.GetQuotaRequest]) (*connect.Response[signalboxv1.GetQuotaResponse], error) {
	q.api.mu.Lock()
	defer q.api.mu.Unlock()
	if request.Msg.GetProject() == "none" {
		return nil, refusal(connect.CodeNotFound, "PROJECT_NOT_FOUND", "project \"none\" does not exist")
	}
	return connect.NewResponse(proto.CloneOf(q.usage)), nil
}

func (q *quotas) SetQuota(_ context.Context,
	request *connect.Request[signalboxv1.SetQuotaRequest]) (*connect.Response[signalboxv1.SetQuotaResponse], error) {
	q.api.mu.Lock()
	defer q.api.mu.Unlock()
	q.api.note(request.Msg)
	q.usage.Quota = proto.CloneOf(request.Msg.GetQuota())
	return connect.NewResponse(&signalboxv1.SetQuotaResponse{Quota: request.Msg.GetQuota()}), nil
}

func (q *quotas) ResumeQuota(_ context.Context,
	request *connect.Request[signalboxv1.ResumeQuotaRequest]) (*connect.Response[signalboxv1.ResumeQuotaResponse], error) {
	q.api.mu.Lock()
	defer q.api.mu.Unlock()
	q.api.note(request.Msg)
	return connect.NewResponse(&signalboxv1.ResumeQuotaResponse{Resumed: q.usage.GetWaitingRuns()}), nil
}

func withQuotas(t *testing.T) (*api, *shell) {
	t.Helper()
	a := newAPI()
	a.quotas.usage = &signalboxv1.GetQuotaResponse{Quota: &signalboxv1.Quota{}}
	address, _ := serve(t, a, "")
	return a, newShell(t, address)
}

func TestQuotaShow(t *testing.T) {
	t.Parallel()
	a, s := withQuotas(t)
	c := s.run(t, "quota", "show")
	require.Equal(t, exit.OK, c.code, c.err.String())
	require.Equal(t, "project  default\nruns     0, no limit\nsteps    no limit\n", c.out.String())

	a.quotas.usage = &signalboxv1.GetQuotaResponse{
		Quota:        &signalboxv1.Quota{ConcurrentRuns: 3, Steps: 1000, PeriodSeconds: 5400},
		AdmittedRuns: 3, QueuedRuns: 17, UsedSteps: 812, ResetTime: before(-time.Hour), WaitingRuns: 2,
	}
	c = s.run(t, "quota", "show", "--project", "shop")
	require.Equal(t, exit.OK, c.code, c.err.String())
	for _, part := range []string{"shop", "3 of 3 at a time", "17 runs", "812 of 1000 per 1h30m", "resets"} {
		require.Contains(t, c.out.String(), part)
	}
	c = s.run(t, "quota", "show", "-o", "json")
	require.JSONEq(t, `{"quota": {"concurrentRuns": 3, "steps": 1000, "periodSeconds": 5400}, "admittedRuns": 3, "queuedRuns": 17,
		"usedSteps": 812, "resetTime": "`+before(-time.Hour).AsTime().Format(time.RFC3339Nano)+`", "waitingRuns": 2}`, c.out.String())
	requireRefusal(t, s.run(t, "quota", "show", "--project", "none"), exit.NotFound, `show the quota of project "none"`)
}

func TestQuotaSet(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want *signalboxv1.Quota
	}{
		{[]string{"--concurrent-runs", "5"}, &signalboxv1.Quota{ConcurrentRuns: 5, Steps: 100, PeriodSeconds: 60}},
		{[]string{"--concurrent-runs", "none"}, &signalboxv1.Quota{Steps: 100, PeriodSeconds: 60}},
		{[]string{"--steps", "7"}, &signalboxv1.Quota{ConcurrentRuns: 2, Steps: 7, PeriodSeconds: 60}},
		{[]string{"--steps", "0"}, &signalboxv1.Quota{ConcurrentRuns: 2}},
		{[]string{"--period", "1h"}, &signalboxv1.Quota{ConcurrentRuns: 2, Steps: 100, PeriodSeconds: 3600}},
	} {
		t.Run(tt.args[0]+" "+tt.args[1], func(t *testing.T) {
			t.Parallel()
			a, s := withQuotas(t)
			a.quotas.usage.Quota = &signalboxv1.Quota{ConcurrentRuns: 2, Steps: 100, PeriodSeconds: 60}
			c := s.run(t, append([]string{"quota", "set"}, tt.args...)...)
			require.Equal(t, exit.OK, c.code, c.err.String())
			sent := last[*signalboxv1.SetQuotaRequest](t, a)
			require.True(t, proto.Equal(&signalboxv1.SetQuotaRequest{Project: "default", Quota: tt.want}, sent), "%v", sent)
			require.Contains(t, c.out.String(), "project")
		})
	}
	_, s := withQuotas(t)
	for _, tt := range []struct {
		args []string
		says string
	}{
		{nil, "nothing to set"},
		{[]string{"--concurrent-runs", "many"}, `--concurrent-runs "many"`},
		{[]string{"--steps", "-1"}, `--steps "-1"`},
		{[]string{"--period", "500ms"}, "--period 500ms"},
		{[]string{"--period", "1.5s"}, "--period 1.5s"},
	} {
		requireRefusal(t, s.run(t, append([]string{"quota", "set"}, tt.args...)...), exit.Usage, tt.says)
	}
	requireRefusal(t, s.run(t, "quota", "set", "--project", "none", "--steps", "1"), exit.NotFound,
		`set the quota of project "none"`)
}

func TestQuotaResume(t *testing.T) {
	t.Parallel()
	a, s := withQuotas(t)
	a.quotas.usage.WaitingRuns = 2
	c := s.run(t, "quota", "resume", "run-1", "run-2", "--reason", "closing")
	require.Equal(t, exit.OK, c.code, c.err.String())
	require.Equal(t, "resumed  2 runs\n", c.out.String())
	want := &signalboxv1.ResumeQuotaRequest{Project: "default", RunIds: []string{"run-1", "run-2"}, Reason: "closing"}
	require.True(t, proto.Equal(want, last[*signalboxv1.ResumeQuotaRequest](t, a)))
	c = s.run(t, "quota", "resume", "--project", "shop", "-o", "json")
	require.JSONEq(t, `{"resumed": 2}`, c.out.String())
	require.True(t, proto.Equal(&signalboxv1.ResumeQuotaRequest{Project: "shop"},
		last[*signalboxv1.ResumeQuotaRequest](t, a)))
}
