package batch_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

func publishHello(t *testing.T, p *platform) {
	t.Helper()
	_, _, err := p.store.Publish(p.ctx, workflow.Version{
		Project: here, Workflow: "examples/hello", Version: "1.0.0", Hash: "h", Source: "s", Canonical: []byte("{}"),
		PublishedAt: time.Unix(1, 0),
	}, workflow.Newer, audit.NewEntry(p.ctx, time.Unix(1, 0), audit.WorkflowPublish, here, "examples/hello", ""))
	require.NoError(t, err)
}

func TestStopPausesAndCancels(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	publishHello(t, p)
	insertRun(t, p, "r1")
	insertRun(t, p, "r2")
	p.run(t)

	dry, err := p.PreviewStop(p.ctx, batch.StopRequest{Project: here, Workflow: "hello"})
	require.NoError(t, err)
	require.Equal(t, map[run.Status]int64{run.Queued: 2}, dry.Open)
	require.Equal(t, []int64{2, 2, 0}, []int64{dry.Batch.Total, dry.Eligible, dry.Unchanged})
	require.Empty(t, dry.Batch.ID)
	require.Empty(t, dry.Batch.Reason)

	req := batch.StopRequest{
		Project: here, Workflow: "hello", Reason: "wrong prices", RequestID: "q", ExpectedOpen: new(int64(2))}
	first, err := p.Stop(p.ctx, req)
	require.NoError(t, err)
	require.True(t, first.Created)
	require.True(t, first.Paused)
	require.Equal(t, workflow.StatePaused, first.Workflow.State)
	require.Equal(t, dry.Open, first.Open)
	p.await(t, first.Batch.ID, completed)
	for _, c := range p.controls.done() {
		require.Equal(t, "cancel", c.action)
		require.Contains(t, c.reason, "wrong prices")
	}
	require.Len(t, p.controls.done(), 2)

	req.ExpectedOpen = nil
	again, err := p.Stop(p.ctx, req)
	require.NoError(t, err)
	require.False(t, again.Created)
	require.Equal(t, first.Batch.ID, again.Batch.ID)

	for subject, want := range map[string]string{
		"examples/hello": `{"batch":"` + first.Batch.ID + `","cause":"workflow.stop"}`,
		first.Batch.ID:   `{"action":"cancel","cause":"workflow.stop","filter":{"statuses":["queued","running","waiting"],"workflow":"examples/hello"},"rate":50,"requestId":"q"}`,
	} {
		entries, err := p.store.ListAudit(p.ctx, audit.Filter{Subject: subject, Limit: 1})
		require.NoError(t, err)
		require.Equal(t, []string{"wrong prices", "ada"}, []string{entries[0].Reason, entries[0].Actor.Name})
		require.JSONEq(t, want, string(entries[0].Detail))
	}
}

func TestStopRefusals(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	publishHello(t, p)
	insertRun(t, p, "r1")
	stop := func(change func(*batch.StopRequest)) error {
		req := batch.StopRequest{Project: here, Workflow: "hello", Reason: "x", RequestID: "q"}
		change(&req)
		_, err := p.Stop(p.ctx, req)
		return err
	}
	requireReason := func(err error, reason string, field string) {
		t.Helper()
		f, ok := apperror.From(err)
		require.True(t, ok, "%v", err)
		require.Equal(t, reason, f.Reason)
		if field != "" {
			require.Equal(t, field, f.Fields[0].Path)
		}
	}
	requireReason(stop(func(r *batch.StopRequest) { r.Reason = " " }), apperror.InvalidArgument, "reason")
	requireReason(stop(func(r *batch.StopRequest) {
		r.ExpectedOpen = new(int64(-1))
	}), apperror.InvalidArgument, "expectedOpen")
	requireReason(stop(func(r *batch.StopRequest) { r.Workflow = "no/such" }), apperror.WorkflowNotFound, "")
	requireReason(stop(func(r *batch.StopRequest) { r.ExpectedOpen = new(int64(0)) }), apperror.BatchTotalChanged, "")
	_, err := p.PreviewStop(p.ctx, batch.StopRequest{Project: here, Workflow: "hello", ExpectedOpen: new(int64(1))})
	requireReason(err, apperror.InvalidArgument, "expectedOpen")

	// The request ID of a batch over the same runs, and the other way round.
	same := &run.Filter{Workflow: "examples/hello", Statuses: []run.Status{run.Queued, run.Running, run.Waiting}}
	p.start(t, batch.StartRequest{Action: batch.Cancel, Filter: same, RequestID: "q"})
	requireReason(stop(func(*batch.StopRequest) {}), apperror.RequestIDReused, "requestId")
	w, err := p.store.GetWorkflow(p.ctx, here, "examples/hello")
	require.NoError(t, err)
	require.Equal(t, workflow.StatePublished, w.State)
	require.NoError(t, stop(func(r *batch.StopRequest) { r.RequestID = "stop" }))
	_, _, err = p.Start(p.ctx,
		batch.StartRequest{Project: here, Action: batch.Cancel, Filter: same, Reason: "x", RequestID: "stop"})
	requireReason(err, apperror.RequestIDReused, "requestId")
}
