package batch_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func TestInvalidRequestsStartNothing(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	for name, test := range map[string]struct {
		change func(*batch.StartRequest)
		field  string
	}{
		"unknown action":      {func(r *batch.StartRequest) { r.Action = "pause" }, "action"},
		"no action":           {func(r *batch.StartRequest) { r.Action = "" }, "action"},
		"no runs, no filter":  {func(r *batch.StartRequest) { r.RunIDs = nil }, "runIds"},
		"runs and filter":     {func(r *batch.StartRequest) { r.Filter = &batch.Filter{} }, "filter"},
		"too many runs":       {func(r *batch.StartRequest) { r.RunIDs = names(batch.MaxIDs + 1) }, "runIds"},
		"empty ID":            {func(r *batch.StartRequest) { r.RunIDs = []string{"r1", ""} }, "runIds[1]"},
		"long ID":             {func(r *batch.StartRequest) { r.RunIDs = []string{strings.Repeat("x", 201)} }, "runIds[0]"},
		"no reason":           {func(r *batch.StartRequest) { r.Reason = "" }, "reason"},
		"long reason":         {func(r *batch.StartRequest) { r.Reason = strings.Repeat("x", 901) }, "reason"},
		"NUL in the reason":   {func(r *batch.StartRequest) { r.Reason = "a\x00" }, "reason"},
		"NUL in an ID":        {func(r *batch.StartRequest) { r.RunIDs = []string{"a\x00"} }, "runIds"},
		"rate below":          {func(r *batch.StartRequest) { r.Rate = 0.05 }, "rate"},
		"rate negative":       {func(r *batch.StartRequest) { r.Rate = -1 }, "rate"},
		"rate above":          {func(r *batch.StartRequest) { r.Rate = 500.5 }, "rate"},
		"rate no number":      {func(r *batch.StartRequest) { r.Rate = math.NaN() }, "rate"},
		"rate infinite":       {func(r *batch.StartRequest) { r.Rate = math.Inf(1) }, "rate"},
		"long request ID":     {func(r *batch.StartRequest) { r.RequestID = strings.Repeat("x", 201) }, "requestId"},
		"blank reason":        {func(r *batch.StartRequest) { r.Reason = " \n" }, "reason"},
		"certain version":     {func(r *batch.StartRequest) { r.Action, r.Version = batch.Replay, "1.0.0" }, "version"},
		"version of a cancel": {func(r *batch.StartRequest) { r.Version = "latest" }, "version"},
		"unknown status": {func(r *batch.StartRequest) {
			r.RunIDs, r.Filter = nil, &batch.Filter{Statuses: []run.Status{"open"}}
		}, "filter.statuses"},
		"unknown problem": {func(r *batch.StartRequest) {
			r.RunIDs, r.Filter = nil, &batch.Filter{Problems: []string{run.AnyProblem, "SLOW"}}
		}, "filter.problems"},
		"unknown trigger": {func(r *batch.StartRequest) {
			r.RunIDs, r.Filter = nil, &batch.Filter{Trigger: "chance"}
		}, "filter.trigger"},
		"no failure group": {func(r *batch.StartRequest) {
			r.RunIDs, r.Filter = nil, &batch.Filter{FailureGroup: "503"}
		}, "filter.failureGroup"},
		"version of any workflow": {func(r *batch.StartRequest) {
			r.RunIDs, r.Filter = nil, &batch.Filter{Version: "1.0.0"}
		}, "filter.workflow"},
		"time the wrong way round": {func(r *batch.StartRequest) {
			r.RunIDs, r.Filter = nil, &batch.Filter{Since: time.Unix(2, 0), Until: time.Unix(1, 0)}
		}, "filter.until"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := batch.StartRequest{Project: here, Action: batch.Cancel, RunIDs: []string{"r1"}, Reason: "stale"}
			test.change(&req)
			for _, dry := range []bool{false, true} {
				req.DryRun = dry
				_, _, err := p.Start(p.ctx, req)
				f, ok := apperror.From(err)
				require.True(t, ok, "%v", err)
				require.Equal(t, apperror.Invalid, f.Class)
				require.Equal(t, test.field, f.Fields[0].Path)
			}
		})
	}
	_, _, err := p.Start(p.ctx, batch.StartRequest{Project: here, Action: batch.Cancel, Filter: &batch.Filter{Workflow: "no/such"}, Reason: "x"})
	require.True(t, apperror.Is(err, apperror.WorkflowNotFound))
	list, err := p.List(p.ctx, batch.ListFilter{Project: here, Limit: 1})
	require.NoError(t, err)
	require.Empty(t, list)
	_, err = p.Items(p.ctx, batch.ItemFilter{Project: here, Batch: "b", Status: "open", Limit: 1})
	require.True(t, apperror.Is(err, apperror.InvalidArgument))
}

func TestSameRequestReturnsSameBatch(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	req := batch.StartRequest{Project: here, Action: batch.Cancel, RunIDs: []string{"r1", "r2", "r1"}, Reason: "stale", RequestID: "q"}
	first := p.start(t, req)
	require.EqualValues(t, 2, first.Total, "a duplicate ID counts once")
	require.InDelta(t, batch.DefaultRate, first.Rate, 0)
	again, created, err := p.Start(p.ctx, req)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, first, again)
	for _, change := range []func(*batch.StartRequest){
		func(r *batch.StartRequest) { r.RunIDs = []string{"r1"} },
		func(r *batch.StartRequest) { r.Action = batch.Replay },
		func(r *batch.StartRequest) { r.RunIDs, r.Filter = nil, &batch.Filter{} },
	} {
		other := req
		change(&other)
		_, _, err = p.Start(p.ctx, other)
		require.True(t, apperror.Is(err, apperror.RequestIDReused), "%v", err)
	}
	entries, err := p.store.ListAudit(p.ctx, audit.Filter{Subject: first.ID, Limit: 10})
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, "ada", entries[0].Actor.Name)
	require.JSONEq(t, `{"action":"cancel","rate":50,"requestId":"q","runs":2}`, string(entries[0].Detail))
	require.Equal(t, "stale", entries[0].Reason)
}

func TestDryRunStartsNothing(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	b, created, err := p.Start(p.ctx, batch.StartRequest{Project: here, Action: batch.Replay, Filter: &batch.Filter{Workflow: "hello"}, Reason: "x", DryRun: true})
	require.NoError(t, err)
	require.False(t, created)
	require.Empty(t, b.ID)
	require.Zero(t, b.Total)
	require.Equal(t, "examples/hello", b.Filter.Workflow)
	list, err := p.List(p.ctx, batch.ListFilter{Project: here, Limit: 1})
	require.NoError(t, err)
	require.Empty(t, list)
}
