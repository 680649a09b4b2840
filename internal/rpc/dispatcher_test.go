package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/lease"
)

// fakeDispatchers replaces leases, Temporal and the inbox.
type fakeDispatchers struct {
	all     []dispatchtype.Dispatcher
	workers []dispatchtype.Worker
	failed  []dispatchtype.PartError
	report  dispatchtype.Report
	refuse  error
}

func (f *fakeDispatchers) List(context.Context) ([]dispatchtype.Dispatcher, error) {
	return f.all, f.refuse
}

func (f *fakeDispatchers) Get(_ context.Context, name inbox.Name) (dispatchtype.Dispatcher, error) {
	for _, d := range f.all {
		if d.Name == name {
			return d, nil
		}
	}
	return named(name.Project, dispatchtype.Missing), nil
}

func (f *fakeDispatchers) Workers(context.Context) ([]dispatchtype.Worker, []dispatchtype.PartError, error) {
	return f.workers, f.failed, f.refuse
}

func (f *fakeDispatchers) RequestHandover(context.Context, inbox.Name, string, string) error {
	return f.refuse
}

func (f *fakeDispatchers) Reconcile(_ context.Context, dryRun bool) (dispatchtype.Report, error) {
	report := f.report
	report.DryRun = dryRun
	return report, f.refuse
}

func (f *fakeDispatchers) OwnerHistory(_ context.Context, name inbox.Name, _ int) ([]dispatchtype.OwnerChange, error) {
	return []dispatchtype.OwnerChange{{
		Name: name, To: inbox.Owner{Epoch: 7, Holder: "host-1"}, From: inbox.Owner{Epoch: 6, Holder: "host-0"},
		Outcome: "takeover",
		RunID:   "x-2", Ended: "x-1", Reason: "host-0 is gone", At: noon,
	}}, nil
}

// startDispatchers starts a server over the real service and audit log.
func startDispatchers(t *testing.T) (*platform, *fakeDispatchers) {
	t.Helper()
	fake := &fakeDispatchers{}
	var late struct{ *dispatcher.Service }
	p := start(t, func(o *rpc.Options) { o.Dispatchers = &late })
	late.Service = fake.service(p.store)
	return p, fake
}

// service is the real service over the real audit log.
func (f *fakeDispatchers) service(log dispatcher.AuditLog) *dispatcher.Service {
	return dispatcher.NewService(dispatcher.Options{
		Overview: f, Operator: f, History: f, Audit: log, Now: func() time.Time { return noon },
		Name: func(project string) inbox.Name {
			return inbox.Name{Project: project, TaskQueue: "signalbox-" + project}
		},
	})
}

func named(project string, status dispatchtype.Status) dispatchtype.Dispatcher {
	name := inbox.Name{Project: project, TaskQueue: "signalbox-" + project}
	return dispatchtype.Dispatcher{Name: name, WorkflowID: name.DispatcherID(), Status: status}
}

func TestGetDispatcher(t *testing.T) {
	t.Parallel()
	p, fake := startDispatchers(t)
	owner := inbox.Owner{Epoch: 7, Holder: "host-1"}
	d := named("default", dispatchtype.Routing)
	d.Others = []dispatchtype.Execution{{WorkflowID: "router-default"}}
	d.Lease = &dispatchtype.Lease{
		State: lease.Held, Owner: owner, AcquiredAt: noon, RenewedAt: noon.Add(time.Second),
		Remaining: 9500 * time.Millisecond}
	d.Execution = &dispatchtype.Execution{RunID: "x-2", StartedAt: noon, Owner: owner, Interpreter: 1, HistoryLength: 42}
	d.Progress = &inbox.Progress{
		Owner: owner, Head: 9, Routed: 8, Pending: 3, Due: true, SinceProgress: 20 * time.Millisecond,
		Oldest: 1500 * time.Millisecond}
	d.State = &dispatchtype.State{Workers: []dispatchtype.RegisteredWorker{
		{ServerID: "host-1", TaskQueue: "signalbox-default", Build: "1.2.3", RegisteredAt: noon, Missed: 1},
	}}
	d.Errors = []dispatchtype.PartError{{Part: dispatchtype.PartInbox, Err: errors.New("dial tcp db.example.com")}}
	fake.all = []dispatchtype.Dispatcher{d}
	const at = "2026-01-31T12:00:00Z"
	a := p.do("GET", "/v1/projects/default/dispatcher", "")
	require.JSONEq(t, `{"dispatcher": {
		"project": "default", "taskQueue": "signalbox-default", "workflowId": "dispatcher-default-signalbox-default", "state": "routing", "detail": "also open under an older ID: \"router-default\"",
		"lease": {"state": "held", "owner": {"serverId": "host-1", "epoch": 7}, "acquireTime": "`+at+`", "renewTime": "2026-01-31T12:00:01Z", "remaining": "9.500s"},
		"execution": {"runId": "x-2", "startTime": "`+at+`", "owner": {"serverId": "host-1", "epoch": 7}, "interpreter": 1, "historyLength": 42},
		"progress": {"owner": {"serverId": "host-1", "epoch": 7}, "head": 9, "routed": 8, "pending": 3, "due": true, "parked": false, "sinceProgress": "0.020s", "lag": "1.500s"},
		"workers": [{"serverId": "host-1", "taskQueue": "signalbox-default", "build": "1.2.3", "registerTime": "`+at+`", "missed": 1}],
		"owners": [{
			"time": "`+at+`", "how": "takeover", "owner": {"serverId": "host-1", "epoch": 7}, "previous": {"serverId": "host-0", "epoch": 6},
			"runId": "x-2", "endedRunId": "x-1", "reason": "host-0 is gone"
		}],
		"errors": ["inbox: the database does not answer; check store.dsn; see the server's log for the cause"]
	}}`, a.body)

	// Missing parts are absent, and durations of events that never happened are absent.
	bare := named("default", dispatchtype.Missing)
	bare.Progress = &inbox.Progress{SinceProgress: -1}
	fake.all = []dispatchtype.Dispatcher{bare}
	a = p.do("GET", "/v1/projects/default/dispatcher", "")
	got := a.ok()["dispatcher"].(map[string]any)
	require.NotContains(t, got, "lease")
	require.NotContains(t, got, "execution")
	require.NotContains(t, got["progress"], "owner")
	require.NotContains(t, got["progress"], "sinceProgress")

	fake.all = nil
	require.Equal(t, "missing",
		p.do("GET", "/v1/projects/default/dispatcher", "").ok()["dispatcher"].(map[string]any)["state"])
	p.do("GET", "/v1/projects/nowhere/dispatcher", "").fails(http.StatusNotFound, apperror.ProjectNotFound)
}

func TestListDispatchersPages(t *testing.T) {
	t.Parallel()
	p, fake := startDispatchers(t)
	for i := range 5 {
		fake.all = append(fake.all,
			named(fmt.Sprint("p", i), []dispatchtype.Status{dispatchtype.Routing, dispatchtype.Parked}[i%2]))
	}
	var seen []any
	token := ""
	for range 3 {
		page := p.do("GET", "/v1/dispatchers?pageSize=2&pageToken="+token, "").ok()
		for _, d := range page["dispatchers"].([]any) {
			seen = append(seen, d.(map[string]any)["project"])
		}
		token, _ = page["nextPageToken"].(string)
	}
	require.Equal(t, []any{"p0", "p1", "p2", "p3", "p4"}, seen)
	require.Empty(t, token)
	require.Len(t, p.do("GET", "/v1/dispatchers?states=parked", "").ok()["dispatchers"], 2)
	require.Contains(t, p.do("GET", "/v1/dispatchers?states=healthy", "").fails(http.StatusBadRequest,
		apperror.InvalidArgument), "routing, parked")
	fake.refuse = apperror.New(apperror.Unavailable, apperror.LeasesUnavailable, "all are away")
	p.do("GET", "/v1/dispatchers", "").fails(http.StatusServiceUnavailable, apperror.LeasesUnavailable)
}

func TestHandOverAndReconcileAreAudited(t *testing.T) {
	t.Parallel()
	p, fake := startDispatchers(t)
	d := named("default", dispatchtype.Routing)
	d.Lease = &dispatchtype.Lease{State: lease.Held, Owner: inbox.Owner{Epoch: 7, Holder: "host-1"}}
	fake.all = []dispatchtype.Dispatcher{d}
	a := p.do("POST", "/v1/projects/default/dispatcher:handover", `{"reason":"a new node"}`)
	require.JSONEq(t, `{"owner": {"serverId": "host-1", "epoch": 7}}`, a.body)
	entries := p.do("GET", "/v1/projects/default/audit?action=dispatcher.hand_over", "").ok()["entries"].([]any)
	require.Len(t, entries, 1)
	require.Equal(t, "a new node", entries[0].(map[string]any)["reason"])
	p.do("POST", "/v1/projects/nowhere/dispatcher:handover", `{}`).fails(http.StatusNotFound, apperror.ProjectNotFound)

	fake.report = dispatchtype.Report{
		Dispatchers: 3, Healthy: 1, Stale: 1, Unknown: 1, Duration: 20 * time.Millisecond,
		Items: []dispatchtype.ReportItem{{
			Action: dispatchtype.ActionTerminate, Kind: "owner_gone", Name: inbox.Name{Project: "shop", TaskQueue: "q"},
			WorkflowID: "dispatcher-shop-q", RunID: "x",
			Owner: inbox.Owner{Epoch: 1, Holder: "host-0"}, Reason: "gone", Applied: true,
		}, {Action: dispatchtype.ActionAlert, Kind: "no_keys", Reason: "the store has nothing", Error: "e"}},
	}
	a = p.do("POST", "/v1/dispatchers:reconcile", `{"dryRun":true}`)
	require.JSONEq(t, `{
		"dispatchers": 3, "healthy": 1, "stale": 1, "unknown": 1, "took": "0.020s", "dryRun": true,
		"items": [{
			"action": "terminate", "kind": "owner_gone", "project": "shop", "taskQueue": "q", "workflowId": "dispatcher-shop-q", "runId": "x",
			"owner": {"serverId": "host-0", "epoch": 1}, "reason": "gone", "applied": true
		}, {"action": "alert", "kind": "no_keys", "reason": "the store has nothing", "applied": false, "error": "e"}]
	}`, a.body)
	require.Empty(t, p.do("GET", "/v1/projects/-/audit?action=dispatcher.reconcile", "").ok()["entries"])
	p.do("POST", "/v1/dispatchers:reconcile", `{}`).ok()
	require.Len(t, p.do("GET", "/v1/projects/-/audit?action=dispatcher.reconcile", "").ok()["entries"], 1)

	fake.refuse, fake.report = dispatchtype.ErrNotOwned, dispatchtype.Report{}
	p.do("POST", "/v1/projects/default/dispatcher:handover", `{}`).fails(http.StatusBadRequest,
		apperror.DispatcherNotOwned)
	p.do("POST", "/v1/dispatchers:reconcile", `{}`).fails(http.StatusServiceUnavailable, apperror.LeasesUnavailable)
}

func TestWorkers(t *testing.T) {
	t.Parallel()
	p, fake := startDispatchers(t)
	fake.failed = []dispatchtype.PartError{
		{Part: dispatchtype.PartTemporal, Err: errors.New("dial tcp temporal.example.com")}}
	fake.workers = []dispatchtype.Worker{
		{
			ServerID: "a", Status: dispatchtype.WorkerAlive, HeartbeatAt: noon, StaleIn: 17300 * time.Millisecond,
			Heartbeat: dispatchtype.Heartbeat{
				Build: "1.2.3", Projects: []string{"shop"}, StartedAt: noon,
				Facts: dispatcher.Facts{Interpreter: 1, Contract: "f", LastPoll: noon, BusySince: noon}.Encode(),
			},
		},
		{ServerID: "b", Status: dispatchtype.WorkerLate, HeartbeatAt: noon, StaleIn: -3 * time.Second},
		{ServerID: "c", Status: dispatchtype.WorkerSilent, Registrations: []dispatchtype.Registration{{
			Name:             inbox.Name{Project: "default", TaskQueue: "q"},
			RegisteredWorker: dispatchtype.RegisteredWorker{RegisteredAt: noon},
		}}},
	}
	const at = "2026-01-31T12:00:00Z"
	a := p.do("GET", "/v1/workers", "")
	require.JSONEq(t, `{"errors": ["temporal: Temporal does not answer; check `+"`signalbox system status`"+
		`; see the server's log for the cause"], "workers": [
		{"serverId": "a", "state": "alive", "build": "1.2.3", "interpreter": 1, "contract": "f", "projects": ["shop"], "startTime": "`+at+`",
		 "lastBeatTime": "`+at+`", "staleIn": "17.300s", "lastPollTime": "`+at+`", "busyTime": "`+at+`", "registrations": []},
		{"serverId": "b", "state": "late", "interpreter": 0, "projects": [], "lastBeatTime": "`+at+`", "staleIn": "-3s", "registrations": []},
		{"serverId": "c", "state": "silent", "interpreter": 0, "projects": [], "registrations": [{"project": "default", "taskQueue": "q", "registerTime": "`+at+`"}]}
	]}`, a.body)
	ids := func(query string) (found []any) {
		for _, w := range p.do("GET", "/v1/workers"+query, "").ok()["workers"].([]any) {
			found = append(found, w.(map[string]any)["serverId"])
		}
		return found
	}
	require.Equal(t, []any{"a"}, ids("?states=alive"))
	require.Equal(t, []any{"b", "c"}, ids("?project=default"), "workers for all projects, and registered workers")
	page := p.do("GET", "/v1/workers?pageSize=2", "").ok()
	require.Len(t, page["workers"], 2)
	require.Equal(t, []any{"c"}, ids("?pageSize=2&pageToken="+page["nextPageToken"].(string)))
	p.do("GET", "/v1/workers?states=gone", "").fails(http.StatusBadRequest, apperror.InvalidArgument)
	p.do("GET", "/v1/workers?project=nowhere", "").fails(http.StatusNotFound, apperror.ProjectNotFound)
}
