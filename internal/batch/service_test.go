package batch_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// fieldsOf returns the paths of the fields at fault.
func fieldsOf(t *testing.T, err error) (paths []string) {
	t.Helper()
	f, ok := apperror.From(err)
	require.True(t, ok, "%v", err)
	for _, field := range f.Fields {
		paths = append(paths, field.Path)
	}
	return paths
}

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
		"runs and filter":     {func(r *batch.StartRequest) { r.Filter = &run.Filter{} }, "filter"},
		"too many runs":       {func(r *batch.StartRequest) { r.RunIDs = names(batch.MaxIDs + 1) }, "runIds"},
		"empty ID":            {func(r *batch.StartRequest) { r.RunIDs = []string{"r1", ""} }, "runIds[1]"},
		"long ID":             {func(r *batch.StartRequest) { r.RunIDs = []string{strings.Repeat("x", 201)} }, "runIds[0]"},
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
			r.RunIDs, r.Filter = nil, &run.Filter{Statuses: []run.Status{"open"}}
		}, "filter.statuses"},
		"unknown problem": {func(r *batch.StartRequest) {
			r.RunIDs, r.Filter = nil, &run.Filter{Stuck: []string{run.AnyCode, "SLOW"}}
		}, "filter.stuck"},
		"unknown trigger": {func(r *batch.StartRequest) {
			r.RunIDs, r.Filter = nil, &run.Filter{Trigger: "chance"}
		}, "filter.trigger"},
		"no failure group": {func(r *batch.StartRequest) {
			r.RunIDs, r.Filter = nil, &run.Filter{FailureGroup: "503"}
		}, "filter.failure_group"},
		"no label": {func(r *batch.StartRequest) {
			r.RunIDs, r.Filter = nil, &run.Filter{Labels: map[string]string{"a b": "1"}}
		}, "filter.labels.a b"},
		"version of any workflow": {func(r *batch.StartRequest) {
			r.RunIDs, r.Filter = nil, &run.Filter{Version: "1.0.0"}
		}, "filter.workflow"},
		"expected with IDs": {func(r *batch.StartRequest) { r.ExpectedTotal = new(int64(1)) }, "expectedTotal"},
		"expected below zero": {func(r *batch.StartRequest) {
			r.RunIDs, r.Filter, r.ExpectedTotal = nil, &run.Filter{}, new(int64(-1))
		}, "expectedTotal"},
		"time the wrong way round": {func(r *batch.StartRequest) {
			r.RunIDs, r.Filter = nil, &run.Filter{Since: time.Unix(2, 0), Until: time.Unix(1, 0)}
		}, "filter.until"},
		"end the wrong way round": {func(r *batch.StartRequest) {
			r.RunIDs, r.Filter = nil, &run.Filter{EndedSince: time.Unix(2, 0), EndedUntil: time.Unix(2, 0)}
		}, "filter.ended_until"},
		"long type of an error": {func(r *batch.StartRequest) {
			r.RunIDs, r.Filter = nil, &run.Filter{ErrorType: strings.Repeat("x", 1001)}
		}, "filter.error_type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := batch.StartRequest{Project: here, Action: batch.Cancel, RunIDs: []string{"r1"}, Reason: "stale"}
			test.change(&req)
			_, _, started := p.Start(p.ctx, req)
			_, previewed := p.Preview(p.ctx, req)
			for _, err := range []error{started, previewed} {
				f, ok := apperror.From(err)
				require.True(t, ok, "%v", err)
				require.Equal(t, apperror.Invalid, f.Class)
				require.Equal(t, test.field, f.Fields[0].Path)
			}
		})
	}
	_, _, err := p.Start(p.ctx, batch.StartRequest{Project: here, Action: batch.Cancel, Filter: &run.Filter{}})
	require.Equal(t, []string{"reason"}, fieldsOf(t, err))
	preview, err := p.Preview(p.ctx, batch.StartRequest{Project: here, Action: batch.Cancel, Filter: &run.Filter{}})
	require.NoError(t, err, "a dry run needs no reason")
	require.Empty(t, preview.Batch.Reason)
	_, _, err = p.Start(p.ctx,
		batch.StartRequest{Project: here, Action: batch.Cancel, Filter: &run.Filter{Workflow: "no/such"}, Reason: "x"})
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
	req := batch.StartRequest{
		Project: here, Action: batch.Cancel, RunIDs: []string{"r1", "r2", "r1"}, Reason: "stale", RequestID: "q"}
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
		func(r *batch.StartRequest) { r.RunIDs, r.Filter = nil, &run.Filter{} },
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

func TestPreview(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	insertRun(t, p, "r1")
	insertRun(t, p, "r2")
	_, err := p.store.FinishMissing(p.ctx, "r2", run.Failed, nil, time.Unix(3, 0),
		audit.Entry{Project: here, Action: "test", Subject: "r2", Time: time.Unix(3, 0)})
	require.NoError(t, err)
	got, err := p.Preview(p.ctx,
		batch.StartRequest{Project: here, Action: batch.Cancel, Filter: &run.Filter{Workflow: "hello"}, Reason: "x"})
	require.NoError(t, err)
	require.Empty(t, got.Batch.ID)
	require.EqualValues(t, 2, got.Batch.Total)
	require.Equal(t, "examples/hello", got.Batch.Filter.Workflow)
	require.EqualValues(t, 1, got.Eligible)
	require.Equal(t, []batch.Ineligible{{Reason: apperror.RunEnded, Count: 1, Sample: []string{"r2"}}}, got.Ineligible)

	got, err = p.Preview(p.ctx,
		batch.StartRequest{Project: here, Action: batch.Replay, RunIDs: []string{"r1", "r2", "none", "r1"}, Reason: "x"})
	require.NoError(t, err)
	require.EqualValues(t, 2, got.Batch.Total)
	require.EqualValues(t, 2, got.Eligible)
	require.Equal(t, []batch.Ineligible{{Reason: apperror.RunNotFound, Count: 1}}, got.Ineligible)

	list, err := p.List(p.ctx, batch.ListFilter{Project: here, Limit: 1})
	require.NoError(t, err)
	require.Empty(t, list, "a preview starts nothing")
}

func TestChangedTotalIsRefused(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	insertRun(t, p, "r1")
	req := batch.StartRequest{
		Project: here, Action: batch.Cancel, Filter: &run.Filter{}, Reason: "x", RequestID: "q", ExpectedTotal: new(int64(2))}
	_, _, err := p.Start(p.ctx, req)
	f, ok := apperror.From(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, apperror.Refused, f.Class)
	require.Equal(t, apperror.BatchTotalChanged, f.Reason)
	require.Contains(t, f.Message, "selects 1 runs now, not the expected 2")
	list, err := p.List(p.ctx, batch.ListFilter{Project: here, Limit: 1})
	require.NoError(t, err)
	require.Empty(t, list)

	req.ExpectedTotal = new(int64(1))
	first := p.start(t, req)
	insertRun(t, p, "r2")
	again, created, err := p.Start(p.ctx, req)
	require.NoError(t, err, "the request ID has its batch, whatever the filter selects now")
	require.False(t, created)
	require.Equal(t, first.ID, again.ID)
}

func insertRun(t *testing.T, p *platform, id string) {
	t.Helper()
	_, _, err := p.store.InsertRun(p.ctx, run.Run{
		ID: id, Project: here, Workflow: "examples/hello", Version: "1.0.0", DocumentHash: "h", Status: run.Queued,
		QueuedReason: run.QueuedWorker,
		StatusAt:     time.Unix(1, 0), CreatedAt: time.Unix(1, 0), RequestID: "request-" +
			id, Trigger: run.TriggerAPI, Interpreter: 1,
	}, audit.Entry{Project: here, Action: "test", Subject: id, Time: time.Unix(1, 0)})
	require.NoError(t, err)
}

func TestListByStatus(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	running := p.start(t, batch.StartRequest{Project: here, Action: batch.Cancel, RunIDs: []string{"r1"}, Reason: "x"})
	paused := p.start(t, batch.StartRequest{Project: here, Action: batch.Cancel, RunIDs: []string{"r1"}, Reason: "x"})
	_, err := p.Pause(p.ctx, here, paused.ID)
	require.NoError(t, err)
	ended := p.start(t, batch.StartRequest{Project: here, Action: batch.Cancel, Filter: &run.Filter{}, Reason: "x"})
	for _, tt := range []struct {
		statuses []batch.Status
		want     []string
	}{
		{nil, []string{ended.ID, paused.ID, running.ID}},
		{[]batch.Status{batch.Running}, []string{running.ID}},
		{[]batch.Status{batch.Paused, batch.Completed}, []string{ended.ID, paused.ID}},
		{[]batch.Status{batch.Selecting}, nil},
	} {
		list, err := p.List(p.ctx, batch.ListFilter{Project: here, Statuses: tt.statuses, Limit: 10})
		require.NoError(t, err)
		var ids []string
		for _, b := range list {
			require.True(t, len(tt.statuses) == 0 || slices.Contains(tt.statuses, b.Status))
			ids = append(ids, b.ID)
		}
		require.Equal(t, tt.want, ids)
	}
	_, err = p.List(p.ctx, batch.ListFilter{Project: here, Statuses: []batch.Status{"open"}, Limit: 1})
	require.True(t, apperror.Is(err, apperror.InvalidArgument))
}
