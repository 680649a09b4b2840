package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/maintenance"
	"github.com/signalbox-dev/signalbox/internal/processor"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
	"github.com/signalbox-dev/signalbox/internal/sealingkey"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
	"github.com/signalbox-dev/signalbox/internal/system"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// fakeSystem replaces the connection to Temporal, the worker registry and the reconciler.
type fakeSystem struct {
	mu         sync.Mutex
	connection conntype.Status
	resets     int
	report     run.Report
	refuse     error
	live       []worker.Worker
	unknown    error
	title      string
	adoption   run.Adoption
	adopted    run.AdoptRequest
}

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func newFakeSystem() *fakeSystem {
	return &fakeSystem{connection: conntype.Status{
		State: conntype.Down, Kind: conntype.Hung, Since: noon, Address: "127.0.0.1:7233", Namespace: "default",
		NamespaceID: "n-1",
		LastError:   "no answer", LastErrorAt: noon, Generation: 2, Latency: 1234567 * time.Nanosecond, Attempts: 7,
		NextAttempt: noon.Add(time.Second),
		Breaker: conntype.Breaker{
			State: conntype.BreakerOpen, Failures: 10, OpenedAt: noon, NextProbe: noon.Add(time.Minute)},
		Statistics: conntype.Statistics{
			Uptime: time.Hour, Downtime: 1500 * time.Millisecond, Connections: 2, Outages: 1, LastOutage: time.Second,
			LongestOutage: 2 * time.Second, ConnectedSince: noon},
		Workers: []conntype.WorkerStatus{
			{Name: "default", TaskQueues: []string{"q"}, Running: true, Polling: true, Generation: 2, Since: noon,
				LastPoll: noon, Failures: 1, Error: "e"}},
		Draining: 1,
	}}
}

func (f *fakeSystem) Status() conntype.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.connection
}

func (f *fakeSystem) setConnection(c conntype.Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.connection = c
}

func (f *fakeSystem) ResetBreaker() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resets++
}

func (f *fakeSystem) Reconcile(_ context.Context, dryRun bool) (run.Report, error) {
	report := f.report
	report.DryRun = dryRun
	return report, f.refuse
}

func (*fakeSystem) SearchSince(context.Context, time.Time) error { return nil }

func (f *fakeSystem) Last() (run.Report, time.Time, error) {
	return run.Report{Checked: 4, Total: 3, Failed: 2}, noon, errors.New("half")
}

func (*fakeSystem) Comparisons(context.Context) (run.Comparisons, error) {
	return run.Comparisons{RestoredAt: noon, RestoredTo: noon.Add(-time.Hour)}, nil
}

func (*fakeSystem) RestoredRows(context.Context, time.Time) (system.RestoredRows, error) {
	return system.RestoredRows{Newest: noon.Add(-time.Hour), Adopted: 5, Missing: 6}, nil
}

func (f *fakeSystem) Schedules(context.Context) (int, []string, error) {
	return 8, []string{"create signalbox-schedule/shop/nightly"}, f.unknown
}

func (*fakeSystem) Dispatchers(context.Context) (int, []string, error) {
	return 9, []string{"shop"}, nil
}

func (*fakeSystem) OpenRuns(context.Context, string, int) ([]run.Run, error) {
	return []run.Run{{ID: "lacks"}, {ID: "has"}}, nil
}

func (*fakeSystem) LacksPayload(_ context.Context, id string) (bool, error) {
	return id == "lacks", nil
}

func (f *fakeSystem) SealingKeys(context.Context) ([]sealingkey.State, error) {
	return []sealingkey.State{{
		Key: sealingkey.Key{ID: "2026-11", Fingerprint: "00ff", FirstAt: noon.Add(-time.Hour), LastAt: noon},
		Use: sealingkey.Use{Runs: 1, Events: 2, Sets: 3, Starts: 4, Webhooks: 5}, Active: true, Configured: true,
	}}, f.unknown
}

func (f *fakeSystem) RunsTitle() string { return f.title }

func (f *fakeSystem) Adopt(_ context.Context, r run.AdoptRequest) (run.Adoption, error) {
	f.adopted = r
	return f.adoption, f.refuse
}

func (f *fakeSystem) ListWorkers(context.Context, time.Duration, int) ([]worker.Worker, error) {
	return f.live, f.unknown
}

// service is the real service over the real store.
func (f *fakeSystem) service(st *storetest.Plain) *system.Service {
	return system.NewService(f, st, f, f, st, system.Options{
		Health: func(context.Context) health.Report {
			return health.Report{Dependencies: []health.DependencyState{
				{Name: "leases", State: health.Down, Title: "No Redis", LastError: "redis does not answer"},
				{Name: "store", State: health.Up, LastError: "it was away"},
			}}
		},
		Version: "1.2.3", ServerID: "server-1", Roles: []string{"api"}, StartedAt: noon, Now: func() time.Time {
			return noon
		},
		QueueMode: system.QueueMode{Enabled: true, MaxRuns: 9, TTL: time.Hour},
		Fingerprint: func() worker.Fingerprint {
			return worker.Fingerprint{Contract: "c"}
		}, Maintenance: maintenance.New(st, func() time.Time { return noon }),
		Placement: f, Restore: f, Processor: func() processor.State {
			return processor.State{Limit: new(0.25), Used: new(0.24), Throttled: new(0.93)}
		},
		Store: func(context.Context) system.StoreFacts {
			return system.StoreFacts{
				Driver: "sqlite", Location: "/data/signalbox.db", Version: "3.50", Schema: 40, Required: 41, Bytes: 4096,
				Latency: time.Millisecond, ClockSkew: -3 * time.Hour,
				Pools: []system.Pool{{Name: "read", InUse: 1, Limit: 4, Waits: 2}}, Err: errors.New("half"),
			}
		},
		Projects: st.ListProjects,
		Queue: func(_ context.Context, project string) (diagnose.QueueState, error) {
			return diagnose.QueueState{Name: "q-" + project, Workflow: diagnose.TaskTypeState{
				Pollers: []diagnose.Poller{{LastAccess: noon}}, Backlog: 2, Age: time.Second, Measured: true,
			}}, f.unknown
		},
		Permitted: func(p project.Project) []string { return p.Settings.Runners },
		Runners: func(_ context.Context, name string) (diagnose.ProgramQueue, error) {
			return diagnose.ProgramQueue{Name: "runner-" + name, Pollers: []diagnose.Poller{{Identity: "r", LastAccess: noon}}},
				f.unknown
		},
	})
}

func TestStatusHasRunners(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.do("POST", "/v1/projects", `{"name":"shop"}`).ok()
	require.Empty(t, p.do("GET", "/v1/system/status", "").ok()["runners"])
	p.do("PATCH", "/v1/projects/shop", `{"runners": {"kinds": ["script"]}}`).ok()
	require.Equal(t, []any{map[string]any{"project": "shop", "name": "runner-shop", "kinds": []any{"script"},
		"runners": []any{map[string]any{"serverId": "r", "lastPollTime": "2026-01-31T12:00:00Z", "polling": true,
			"isolations": map[string]any{}}}}},
		p.do("GET", "/v1/system/status", "").ok()["runners"])
}

func TestSystemQueues(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.do("POST", "/v1/projects", `{"name":"shop"}`).ok()
	first := p.do("GET", "/v1/system/queues?page_size=1", "").ok()
	require.Equal(t, []any{map[string]any{
		"project": "default", "name": "q-default",
		"activities": map[string]any{"pollers": json.Number("0"), "busy": json.Number("0")},
		"workflowTasks": map[string]any{
			"pollers": json.Number("1"), "busy": json.Number("0"), "lastPollTime": "2026-01-31T12:00:00Z",
			"backlog": json.Number("2"), "backlogAge": "1s"},
	}}, first["queues"])
	p.system.unknown = errors.New("no answer")
	next := p.do("GET", "/v1/system/queues?page_size=1&page_token="+first["nextPageToken"].(string), "").ok()
	require.Equal(t, []any{map[string]any{
		"project": "shop", "name": "q-shop", "error": "unknown; see the server's log for the cause"}}, next["queues"])
	require.Empty(t, next["nextPageToken"])
}

func TestSystemStatus(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.system.live = []worker.Worker{{
		ServerID: "w", Projects: []string{"p"}, StartedAt: noon, BeatAt: noon,
		Fingerprint: worker.Fingerprint{Contract: "c", Address: "a", Namespace: "n", NamespaceID: "i"},
		Processor:   processor.State{Limit: new(0.0), Waiting: new(0.0)},
	}}
	const at = "2026-01-31T12:00:00Z"
	body := p.do("GET", "/v1/system/status", "")
	require.Equal(t, http.StatusOK, body.status)
	require.JSONEq(t, `{
		"version": "1.2.3", "serverId": "server-1", "roles": ["api"], "startTime": "`+at+`", "time": "`+at+`",
		"connection": {
			"state": "down", "kind": "hung", "since": "`+at+`", "address": "127.0.0.1:7233", "namespace": "default", "namespaceId": "n-1",
			"lastError": "no answer", "lastErrorTime": "`+at+`", "generation": 2, "latency": "0.001234s", "attempts": 7,
			"nextAttemptTime": "2026-01-31T12:00:01Z", "draining": 1, "title": "Temporal does not answer",
			"breaker": {"state": "open", "failures": 10, "openTime": "`+at+`", "nextProbeTime": "2026-01-31T12:01:00Z"},
			"statistics": {
				"uptime": "3600s", "downtime": "1.500s", "connections": 2, "outages": 1, "lastOutage": "1s", "longestOutage": "2s",
				"connectedSince": "`+at+`"
			},
			"workerSets": [{
				"name": "default", "taskQueues": ["q"], "running": true, "polling": true, "generation": 2, "startTime": "`+at+`",
				"lastPollTime": "`+at+`", "failures": 1, "error": "e"
			}]
		},
		"queueMode": {"enabled": true, "runs": 0, "maxRuns": 9, "ttl": "3600s"}, "runners": [], "moreRunners": false,
		"reconciler": {"lastTime": "`+at+`", "checked": 4, "corrections": 3, "failed": 2, "foreign": 0, "error": "half"},
		"workers": [{
			"serverId": "w", "contract": "c", "address": "a", "namespace": "n", "namespaceId": "i", "projects": ["p"],
			"startTime": "`+at+`", "lastBeatTime": "`+at+`", "takesRuns": true,
			"processor": {"limit": 0, "waiting": 0, "required": 0.25}
		}],
		"processor": {
			"limit": 0.25, "used": 0.24, "throttled": 0.93, "required": 0.25,
			"shortage": "it gets 24 % of a processor (limited to 25 % of a processor and throttled in 93 % of the last minute's periods)"
		},
		"dependencies": [{"name": "leases", "state": "down", "title": "No Redis", "error": "redis does not answer"}, {"name": "store", "state": "up"}],
		"store": {
			"driver": "sqlite", "location": "/data/signalbox.db", "version": "3.50", "schema": 40, "requiredSchema": 41, "bytes": 4096, "latency": "0.001s", "clockSkew": "-10800s",
			"pools": [{"name": "read", "inUse": 1, "limit": 4, "waits": 2}], "error": "unknown; see the server's log for the cause"
		}
	}`, body.body)

	connection := p.do("GET", "/v1/system/connection", "").ok()
	delete(connection, "time")
	require.Equal(t, map[string]any{
		"state": "down", "kind": "hung", "since": at, "title": "Temporal does not answer", "queuesRuns": false,
	}, connection)

	p.system.title = "This server uses another Temporal than 21 open runs"
	require.Equal(t, p.system.title, p.do("GET", "/v1/system/connection", "").ok()["mismatch"])

	p.system.unknown = apperror.New(apperror.Unavailable, apperror.StoreUnavailable,
		"the database is away").WithCause(errors.New("hunter2"))
	status := p.do("GET", "/v1/system/status", "").ok()
	require.Equal(t, "the database is away", status["workersError"])
	require.Equal(t, "down", status["connection"].(map[string]any)["state"])
}

// Actions on the whole platform have no project; the audit log lists them when all projects are requested.
func TestBreakerResetAndItsAuditEntry(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	reset := p.do("POST", "/v1/system/breaker:reset", `{}`).ok()
	require.Equal(t, "down", reset["connection"].(map[string]any)["state"])
	require.Equal(t, 1, p.system.resets)
	p.do("GET", "/v1/system/breaker:reset", "").fails(405, "UNIMPLEMENTED")
	require.Equal(t, 1, p.system.resets)

	p.do("POST", "/v1/projects", `{"name":"shop"}`).ok()
	require.Empty(t, p.do("GET", "/v1/projects/default/audit", "").ok()["entries"])
	entries := p.do("GET", "/v1/projects/-/audit", "").ok()["entries"].([]any)
	require.Len(t, entries, 2, "of all projects and of none")
	entry := entries[1].(map[string]any)
	require.Equal(t, "system.reset_breaker", entry["action"])
	require.Equal(t, "local", entry["actor"])
	require.Equal(t, "127.0.0.1:7233 default", entry["subject"])
}

func TestMaintenance(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	require.Equal(t, map[string]any{"active": false}, p.do("GET", "/v1/system/maintenance", "").ok()["maintenance"])
	p.do("POST", "/v1/system/maintenance", `{"active": true}`).fails(400, "INVALID_ARGUMENT")
	on := map[string]any{"active": true, "reason": "upgrade", "actor": "local", "since": "2026-01-31T12:00:00Z"}
	require.Equal(t, on, p.do("POST", "/v1/system/maintenance",
		`{"active": true, "reason": "upgrade"}`).ok()["maintenance"])
	require.Equal(t, on, p.do("GET", "/v1/system/maintenance", "").ok()["maintenance"])
	require.Equal(t, on, p.do("GET", "/v1/system/status", "").ok()["maintenance"])
}

func TestAdoptTemporal(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	former, now := run.ClusterID{Address: "a:7233", Namespace: "ns", NamespaceID: "n1"},
		run.ClusterID{Address: "b:7233", Namespace: "ns", NamespaceID: "n2"}
	p.system.adoption = run.Adoption{
		Before: run.RunsCluster{ClusterID: former, Since: noon}, Now: now, Left: map[string]int64{"shop": 1, "bank": 20},
		Needed: true, Adopted: true,
	}
	a := p.do("POST", "/v1/system/temporal:adopt", `{"address":"b:7233","namespace":"ns","reason":"lost"}`)
	require.JSONEq(t, `{
		"former": {"address": "a:7233", "namespace": "ns", "namespaceId": "n1"}, "since": "2026-01-31T12:00:00Z",
		"now": {"address": "b:7233", "namespace": "ns", "namespaceId": "n2"},
		"leftRuns": [{"project": "bank", "runs": 20}, {"project": "shop", "runs": 1}], "needed": true, "adopted": true, "dryRun": false
	}`, a.body)
	require.Equal(t, run.AdoptRequest{Address: "b:7233", Namespace: "ns", Reason: "lost"}, p.system.adopted)
	p.system.adoption = run.Adoption{Now: now}
	a = p.do("POST", "/v1/system/temporal:adopt", `{"dryRun":true}`)
	require.JSONEq(t, `{"now": {"address": "b:7233", "namespace": "ns", "namespaceId": "n2"}, "leftRuns": [], "needed": false, "adopted": false, "dryRun": true}`, a.body)
	p.system.refuse = apperror.New(apperror.Refused, apperror.ContractMismatch, "workers live there")
	p.do("POST", "/v1/system/temporal:adopt", `{}`).fails(400, apperror.ContractMismatch)
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.system.report = run.Report{
		Checked: 3, Open: 2, Total: 5, Failed: 1, Took: 20 * time.Millisecond, Withheld: 2,
		WithheldBecause: "of where they are",
		Corrections: []run.Correction{
			{Kind: run.CorrectionFinished, RunID: "r", Project: "default", Detail: "it ended", Applied: true}},
		Foreign: []run.ForeignRuns{
			{Project: "shop", Workflow: "shop/order", Version: "1.1.0", Why: "its document is not stored", Count: 7, Open: 6,
				RunIDs: []string{"x"}, Since: time.Unix(0, 0)}},
	}
	a := p.do("POST", "/v1/system/runs:reconcile", `{"dryRun":true}`)
	require.JSONEq(t, `{
		"checked": 3, "open": 2, "total": 5, "failed": 1, "took": "0.020s", "dryRun": true, "withheld": 2, "withheldBecause": "of where they are",
		"corrections": [{"kind": "finished", "runId": "r", "project": "default", "detail": "it ended", "applied": true}],
		"foreign": [{"project": "shop", "workflow": "shop/order", "version": "1.1.0", "reason": "its document is not stored", "count": 7, "open": 6, "sampleRunIds": ["x"], "firstStartTime": "1970-01-01T00:00:00Z"}]
	}`, a.body)
	require.Empty(t, p.do("GET", "/v1/projects/-/audit?action=system.reconcile", "").ok()["entries"])
	p.do("POST", "/v1/system/runs:reconcile", `{}`).ok()
	require.Len(t, p.do("GET", "/v1/projects/-/audit?action=system.reconcile", "").ok()["entries"], 1)

	p.system.refuse = apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal is away")
	a = p.do("POST", "/v1/system/runs:reconcile", `{}`)
	a.fails(503, apperror.EngineUnavailable)
	require.Equal(t, "1", a.header.Get("Retry-After"))
}

func TestCheckRestore(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.system.report = run.Report{
		Checked: 3, Total: 4, SearchedUntil: noon,
		Counts: map[run.CorrectionKind]int{run.CorrectionAdopted: 3, run.CorrectionForgotten: 1},
		Lost: run.Lost{Open: 1, Ended: 2, Young: 4, UpToHour: 1, UpToDay: 1, Older: 1, Newest: noon,
			ForgottenFrom: noon.Add(-2 * time.Hour), ForgottenUntil: noon.Add(-time.Hour)},
	}
	require.JSONEq(t, `{
		"time": "2026-01-31T12:00:00Z", "restoredTime": "2026-01-31T12:00:00Z", "backupTime": "2026-01-31T11:00:00Z", "newestRowTime": "2026-01-31T11:00:00Z",
		"comparison": {"checked": 3, "open": 0, "corrections": [], "total": 4, "failed": 0, "withheld": 0, "searchedUntil": "2026-01-31T12:00:00Z", "took": "0s", "dryRun": true, "foreign": []},
		"differences": {"adopted": 3, "forgotten_executions": 1},
		"lost": {"open": 1, "ended": 2, "young": 4, "upToHour": 1, "upToDay": 1, "older": 1, "newestTime": "2026-01-31T12:00:00Z",
			"forgottenFrom": "2026-01-31T10:00:00Z", "forgottenUntil": "2026-01-31T11:00:00Z"},
		"adopted": 5, "failedMissing": 6, "lostPayloads": {"runs": 1, "sampleRunIds": ["lacks"], "searched": 2, "allSearched": true}, "schedules": 8, "lackingSchedules": ["create signalbox-schedule/shop/nightly"],
		"dispatchers": 9, "unownedDispatchers": ["shop"], "complete": false, "errors": {},
		"sealingKeys": [`+sealingKey+`]
	}`, p.do("GET", "/v1/system/restore", "").body)

	p.system.unknown = apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal is away")
	p.system.refuse = p.system.unknown
	a := p.do("GET", "/v1/system/restore", "").ok()
	require.Equal(t, map[string]any{
		"schedules": "temporal is away", "comparison": "temporal is away", "keys": "temporal is away"}, a["errors"])
	for _, unknown := range []string{"schedules", "comparison", "lost"} {
		require.NotContains(t, a, unknown, "unknown is not 0")
	}
}

const sealingKey = `{"id": "2026-11", "fingerprint": "00ff", "firstTime": "2026-01-31T11:00:00Z", "lastTime": "2026-01-31T12:00:00Z",
	"configured": true, "active": true, "openRuns": 1, "waitingEvents": 2, "incompleteSets": 3, "scheduledStarts": 4, "webhooks": 5}`

func TestSealingKeysAreListed(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	keys, err := json.Marshal(p.do("GET", "/v1/system/keys", "").ok()["sealingKeys"])
	require.NoError(t, err)
	require.JSONEq(t, `[`+sealingKey+`]`, string(keys))
}

// A process without the API role serves its system status, too, and accepts a reset of the breaker.
func TestWorkerOnlyProcessServesSystemStatus(t *testing.T) {
	t.Parallel()
	p := start(t, func(o *rpc.Options) { o.Workflows, o.Runs, o.Projects, o.Audit = nil, nil, nil, nil })
	p.do("GET", "/v1/system/status", "").ok()
	p.do("POST", "/v1/system/breaker:reset", `{}`).ok()
	require.Equal(t, 1, p.system.resets)
	p.do("GET", "/v1/projects", "").fails(404, "UNIMPLEMENTED")
}

// Errors over gRPC and HTTP carry the cause of the failed connection and a retry delay.
func TestEngineUnavailableCarriesKindAndRetry(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	p.publish()
	p.engine.failWith(apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal is hung").
		WithFact("state", "down").WithFact("kind", "hung").WithRetry(7 * time.Second))
	err := p.grpc(t).Invoke(t.Context(), "/signalbox.v1.RunService/StartRun", &signalboxv1.StartRunRequest{
		Workflow: "hello", Input: &signalboxv1.JsonValue{Json: "{}"},
	}, &signalboxv1.StartRunResponse{})
	s := requireGRPC(t, err, codes.Unavailable, apperror.EngineUnavailable)
	require.Equal(t, map[string]string{"state": "down", "kind": "hung"},
		s.Details()[0].(*errdetails.ErrorInfo).GetMetadata())
	require.Equal(t, 7*time.Second, s.Details()[1].(*errdetails.RetryInfo).GetRetryDelay().AsDuration())

	a := p.do("POST", "/v1/projects/default/runs", `{"workflow":"hello","input":{}}`)
	a.fails(503, apperror.EngineUnavailable)
	require.Equal(t, "7", a.header.Get("Retry-After"))
	require.Contains(t, a.body, `"metadata":{"kind":"hung","state":"down"}`)
	require.Empty(t, p.do("GET", "/v1/projects/default/runs", "").ok()["runs"])
}
