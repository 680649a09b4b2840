package cli_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

// platform is the system status of the fake API.
type platform struct {
	status *signalboxv1.GetStatusResponse
	report *signalboxv1.ReconcileResponse
	passes []*signalboxv1.ReconcileResponse // the next reports
	refuse error                            // answer of Reconcile
	// adoption is the answer of AdoptTemporal, apart from what was requested.
	adoption *signalboxv1.AdoptTemporalResponse
	mismatch string
}

func (a *api) GetStatus(context.Context,
	*connect.Request[signalboxv1.GetStatusRequest]) (*connect.Response[signalboxv1.GetStatusResponse], error) {
	return connect.NewResponse(proto.CloneOf(a.platform.status)), nil
}

func (a *api) GetConnection(context.Context,
	*connect.Request[signalboxv1.GetConnectionRequest]) (*connect.Response[signalboxv1.GetConnectionResponse], error) {
	c := a.platform.status.GetConnection()
	return connect.NewResponse(
		&signalboxv1.GetConnectionResponse{
			State: c.GetState(), Since: c.GetSince(), Title: c.GetTitle(), Mismatch: a.platform.mismatch}), nil
}

func (a *api) AdoptTemporal(_ context.Context,
	request *connect.Request[signalboxv1.AdoptTemporalRequest]) (*connect.Response[signalboxv1.AdoptTemporalResponse],
	error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(request.Msg)
	if a.platform.refuse != nil {
		return nil, a.platform.refuse
	}
	done := proto.CloneOf(a.platform.adoption)
	done.DryRun, done.Adopted = request.Msg.GetDryRun(), done.GetNeeded() && !request.Msg.GetDryRun()
	return connect.NewResponse(done), nil
}

func TestSystemAdoptTemporal(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	a.platform.adoption = &signalboxv1.AdoptTemporalResponse{
		Former: &signalboxv1.TemporalNamespace{Address: "a:7233", Namespace: "ns", NamespaceId: "n1"}, Since: before(0),
		Needed:   true,
		Now:      &signalboxv1.TemporalNamespace{Address: "b:7233", Namespace: "ns", NamespaceId: "n2"},
		LeftRuns: []*signalboxv1.LeftRuns{{Project: "bank", Runs: 20}, {Project: "shop", Runs: 1}},
	}
	const card = `server  Temporal at b:7233 (namespace "ns", ID n2)
former  Temporal at a:7233 (namespace "ns", ID n1), since 2026-01-31T12:00:00Z
left    20 open runs of project bank
left    1 open run of project shop
`
	c := shell.run(t, "system", "adopt-temporal", "--dry-run")
	require.Zero(t, c.code, c.err.String())
	require.Equal(t, card, c.out.String())
	require.Equal(t, "nothing was adopted: this is a dry run\n", c.err.String())
	c = shell.run(t, "system", "adopt-temporal", "b:7233", "ns", "-r", "lost")
	require.Equal(t, card, c.out.String())
	require.Equal(t, "runs start in the server's Temporal from now on; 21 open runs stay in the former one\n",
		c.err.String(), "a script is not asked")
	request := last[*signalboxv1.AdoptTemporalRequest](t, a)
	require.Equal(t, []any{"b:7233", "ns", "lost", false},
		[]any{request.GetAddress(), request.GetNamespace(), request.GetReason(), request.GetDryRun()})
	require.Contains(t, shell.run(t, "system", "adopt-temporal", "b:7233", "ns", "-o", "json").out.String(),
		`"adopted": true`)
	for _, wrong := range [][]string{{}, {"b:7233"}, {"b:7233", "--dry-run"}, {"b:7233", "ns", "more"}} {
		require.Equal(t, exit.Usage, shell.run(t, append([]string{"system", "adopt-temporal"}, wrong...)...).code, wrong)
	}

	shell.interactive, shell.stdin = true, "n\n"
	c = shell.run(t, "system", "adopt-temporal", "b:7233", "ns")
	require.Equal(t, exit.Failed, c.code)
	require.Equal(t, `Start runs in Temporal at b:7233 (namespace "ns", ID n2) from now on? 21 open runs stay in Temporal at a:7233 (namespace "ns", ID n1), and continue no more here. [y/N] `+
		"error: not confirmed; nothing was changed\n", c.err.String())
	require.True(t, last[*signalboxv1.AdoptTemporalRequest](t, a).GetDryRun())
	shell.stdin = "y\n"
	require.Zero(t, shell.run(t, "system", "adopt-temporal", "b:7233", "ns").code)
	require.False(t, last[*signalboxv1.AdoptTemporalRequest](t, a).GetDryRun())
	shell.stdin = ""
	require.Zero(t, shell.run(t, "system", "adopt-temporal", "b:7233", "ns", "--yes").code)
	a.platform.adoption.Needed, a.platform.adoption.LeftRuns = false, nil
	require.Contains(t, shell.run(t, "system", "adopt-temporal", "b:7233", "ns").err.String(), "nothing to adopt")

	a.platform.refuse = refusal(connect.CodeFailedPrecondition, "CONTRACT_MISMATCH", "workers live there")
	requireRefusal(t, shell.run(t, "system", "adopt-temporal", "--dry-run"), exit.Refused, "adopt the server's Temporal",
		"workers live there")
}

func TestConnectionReportsAnotherTemporal(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	a.platform.status, a.platform.mismatch = connected(), "This server uses another Temporal than 21 open runs"
	out := shell.run(t, "system", "connection").out.String()
	require.Contains(t, out, "This server uses another Temporal than 21 open runs\n")
	require.Contains(t, out, "are refused while the runs are in another Temporal\n")
}

func (a *api) ListQueues(context.Context,
	*connect.Request[signalboxv1.ListQueuesRequest]) (*connect.Response[signalboxv1.ListQueuesResponse], error) {
	return connect.NewResponse(&signalboxv1.ListQueuesResponse{Time: before(0), Queues: []*signalboxv1.Queue{
		{
			Project: "default", Name: "signalbox-default", Activities: &signalboxv1.QueueLine{},
			WorkflowTasks: &signalboxv1.QueueLine{
				Pollers: 2, LastPollTime: before(3 * time.Second), Backlog: new(int64(4)), BacklogAge: durationpb.New(time.Minute)},
		},
		{Project: "shop", Name: "signalbox-shop", Error: "Temporal is away"},
	}}), nil
}

func TestSystemQueues(t *testing.T) {
	t.Parallel()
	shell, _ := sh(t)
	c := shell.run(t, "system", "queues")
	require.Zero(t, c.code, c.err.String())
	require.Regexp(t, `(?m)^default +signalbox-default +2 +3s ago +4, oldest 1m0?0?s? +0 +none known +unknown$`,
		c.out.String())
	require.Regexp(t, `(?m)^shop +signalbox-shop +unknown +unknown +unknown +unknown +unknown +unknown +Temporal is away$`,
		c.out.String())
}

func (a *api) ResetBreaker(_ context.Context,
	request *connect.Request[signalboxv1.ResetBreakerRequest]) (*connect.Response[signalboxv1.ResetBreakerResponse],
	error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(request.Msg)
	return connect.NewResponse(
		&signalboxv1.ResetBreakerResponse{Connection: proto.CloneOf(a.platform.status.GetConnection())}), nil
}

func (a *api) GetMaintenance(context.Context,
	*connect.Request[signalboxv1.GetMaintenanceRequest]) (*connect.Response[signalboxv1.GetMaintenanceResponse], error) {
	return connect.NewResponse(
		&signalboxv1.GetMaintenanceResponse{Maintenance: proto.CloneOf(a.platform.status.GetMaintenance())}), nil
}

func (a *api) SetMaintenance(_ context.Context,
	request *connect.Request[signalboxv1.SetMaintenanceRequest]) (*connect.Response[signalboxv1.SetMaintenanceResponse],
	error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(request.Msg)
	m := &signalboxv1.Maintenance{
		Active: request.Msg.GetActive(), Reason: request.Msg.GetReason(), Actor: "ada", Since: before(0)}
	a.platform.status.Maintenance = m
	return connect.NewResponse(&signalboxv1.SetMaintenanceResponse{Maintenance: proto.CloneOf(m)}), nil
}

func (a *api) Reconcile(_ context.Context,
	request *connect.Request[signalboxv1.ReconcileRequest]) (*connect.Response[signalboxv1.ReconcileResponse], error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(request.Msg)
	if a.platform.refuse != nil {
		return nil, a.platform.refuse
	}
	if len(a.platform.passes) > 0 {
		a.platform.report, a.platform.passes = a.platform.passes[0], a.platform.passes[1:]
	}
	return connect.NewResponse(proto.CloneOf(a.platform.report)), nil
}

func (a *api) CheckRestore(_ context.Context,
	request *connect.Request[signalboxv1.CheckRestoreRequest]) (*connect.Response[signalboxv1.CheckRestoreResponse],
	error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(request.Msg)
	return connect.NewResponse(&signalboxv1.CheckRestoreResponse{
		Time: before(0), Complete: a.platform.report == nil ||
			a.platform.report.GetTotal() == 0, Comparison: proto.CloneOf(a.platform.report),
	}), a.platform.refuse
}

func (a *api) ListSealingKeys(_ context.Context,
	request *connect.Request[signalboxv1.ListSealingKeysRequest]) (*connect.Response[signalboxv1.ListSealingKeysResponse],
	error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(request.Msg)
	return connect.NewResponse(&signalboxv1.ListSealingKeysResponse{
		Time: before(0), SealingKeys: []*signalboxv1.SealingKey{
			{Id: "2026-11", Configured: true, Active: true, OpenRuns: 3, LastTime: before(time.Second)}},
	}), a.platform.refuse
}

// noon is the server's clock.
var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(noon.Add(-d)) }

// connected is the status of a healthy server.
func connected() *signalboxv1.GetStatusResponse {
	return &signalboxv1.GetStatusResponse{
		Version: "1.2.3", ServerId: "host-1-abc", Roles: []string{"api", "worker"}, StartTime: before(2 * time.Hour),
		Time: before(0),
		Connection: &signalboxv1.Connection{
			State: "connected", Since: before(time.Second), Address: "127.0.0.1:7233", Namespace: "default", Generation: 2,
			Attempts: 5,
			Latency:  durationpb.New(1234 * time.Microsecond), LastError: "connection refused",
			LastErrorTime: before(200 * time.Second), Draining: 1,
			Breaker: &signalboxv1.Breaker{State: "closed"},
			Statistics: &signalboxv1.ConnectionStatistics{
				Uptime: durationpb.New(119 * time.Minute), Downtime: durationpb.New(8 * time.Second), Connections: 2, Outages: 1,
				LastOutage: durationpb.New(8 * time.Second), LongestOutage: durationpb.New(8 * time.Second),
				ConnectedSince: before(192 * time.Second),
			},
			WorkerSets: []*signalboxv1.WorkerSet{
				{Name: "default", TaskQueues: []string{"signalbox-default"}, Running: true, Polling: true, Generation: 2,
					StartTime: before(192 * time.Second), LastPollTime: before(3 * time.Second)},
				{Name: "shop", Generation: 1, Failures: 3, Error: "namespace\nnot found"},
			},
		},
		QueueMode: &signalboxv1.QueueMode{MaxRuns: 1000, Ttl: durationpb.New(time.Hour)},
		Store: &signalboxv1.StoreFacts{
			Driver: "sqlite", Version: "3.50.4", Location: "/data/signalbox.db", RequiredSchema: 41,
			Bytes: new(int64(12_345_678)), Latency: durationpb.New(1234 * time.Microsecond),
			Pools: []*signalboxv1.ConnectionPool{{Name: "read", InUse: 1, Limit: 4, Waits: 2}, {Name: "write"}},
			Error: "no answer",
		},
		Reconciler:  &signalboxv1.Reconciler{LastTime: before(12 * time.Second), Checked: 40, Corrections: 1},
		Maintenance: &signalboxv1.Maintenance{Active: true, Reason: "upgrade", Actor: "ada", Since: before(time.Minute)},
		Processor: &signalboxv1.Processor{
			Limit: new(0.25), Used: new(0.2), Throttled: new(0.07), Waiting: new(0.5), Required: 0.25},
		Workers: []*signalboxv1.Worker{
			{ServerId: "host-1-abc", Contract: "c0ffee", Address: "127.0.0.1:7233", Namespace: "default", TakesRuns: true,
				LastBeatTime: before(4 * time.Second)}},
	}
}

func TestSystemStatusOutput(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	a.platform.status = connected()
	c := shell.run(t, "system", "status")
	require.Zero(t, c.code, c.err.String())
	require.Equal(t, `Temporal 127.0.0.1:7233 (default): connected for 3m12s, generation 2

server       host-1-abc, version 1.2.3, api and worker, up for 2h
processors   0.20 used, limit 0.25, throttled in 7 % of the periods, 0.5 threads wait for one
maintenance  on, no new runs start, for 1m, by ada: upgrade
breaker      closed, 0 failures in a row
outages      1, last one 8s, longest 8s; since the start connected 1h59m, not connected 8s
attempts     5 to connect, 2 connected
check        answered in 1ms
last error   3m20s ago: connection refused
draining     1 replaced generation
database     sqlite 3.50.4, /data/signalbox.db
             schema unknown (this server requires 41), size 12.3 MB, answers in 1ms: no answer
connections  read 1 of 4 in use, 2 waits; write 0 of no limit in use, 0 waits
queue        off: runs are refused while Temporal is unavailable
reconciler   12s ago: 40 runs compared, 1 difference

workers of this server
SERVES   RUNNING  POLLING  LAST POLL  GENERATION  STARTED      ERROR
default  yes      yes      3s ago     2           3m12s ago
shop     no       no       never      1           not started  namespace\nnot found

live workers of all servers
SERVER      HEARTBEAT  ACCEPTS RUNS  PROJECTS  PROCESSORS  TEMPORAL        NAMESPACE
host-1-abc  4s ago     yes           all       unknown     127.0.0.1:7233  default
`, c.out.String())
	require.Contains(t, shell.run(t, "system", "status", "-o", "wide").out.String(), "c0ffee")

	a.platform.status.Processor.Required, a.platform.status.Processor.Shortage = 0.5, "it gets 24 % of a processor"
	a.platform.status.Workers[0].Processor = &signalboxv1.Processor{
		Limit: new(0.25), Used: new(0.24), Shortage: "it gets 24 % of a processor"}
	out := shell.run(t, "system", "status").out.String()
	for _, part := range []string{
		"\nlimit too low  the control group of this server allows 0.25 processors, and it requires 0.50;",
		"\ntoo slow       this server is short of processor time: it gets 24 % of a processor", "0.24 of 0.25, too little",
	} {
		require.Contains(t, out, part)
	}
	a.platform.status.Processor = nil
	require.Contains(t, shell.run(t, "system", "status").out.String(), "\nprocessors   unknown\n")

	for skew, want := range map[time.Duration]string{
		3*time.Hour + 2*time.Minute: "the database's clock is 3h2m ahead of this server's",
		-3 * time.Second:            "the database's clock is 3s behind this server's",
		2 * time.Second:             "", -2 * time.Second: "",
	} {
		a.platform.status.Store.ClockSkew = durationpb.New(skew)
		out := shell.run(t, "system", "status").out.String()
		require.Equal(t, want != "", strings.Contains(out, "clocks differ"), out)
		require.Contains(t, out, want)
	}

	var status struct {
		Connection struct {
			State      string `json:"state"`
			WorkerSets []struct {
				Polling bool `json:"polling"`
			} `json:"workerSets"`
		} `json:"connection"`
	}
	require.NoError(t, json.Unmarshal([]byte(shell.run(t, "system", "status", "-o", "json").out.String()), &status))
	require.Equal(t, "connected", status.Connection.State)
	require.True(t, status.Connection.WorkerSets[0].Polling)
	require.Contains(t, shell.run(t, "system", "status", "-o", "yaml").out.String(), "state: connected\n")
}

func TestSystemMaintenance(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	a.platform.status = connected()
	a.platform.status.Maintenance = &signalboxv1.Maintenance{}
	c := shell.run(t, "system", "maintenance")
	require.Equal(t, "maintenance: off\n", c.out.String())
	c = shell.run(t, "system", "maintenance", "on", "--reason", "upgrade")
	require.Zero(t, c.code, c.err.String())
	require.Contains(t, c.out.String(), "maintenance: on, no new runs start, for ")
	require.Contains(t, c.out.String(), "by ada: upgrade\n")
	require.JSONEq(t, `{"active": true, "reason": "upgrade", "actor": "ada", "since": "2026-01-31T12:00:00Z"}`,
		shell.run(t, "system", "maintenance", "-o", "json").out.String())
	require.True(t, last[*signalboxv1.SetMaintenanceRequest](t, a).GetActive())
	require.Zero(t, shell.run(t, "system", "maintenance", "off").code)
	require.False(t, last[*signalboxv1.SetMaintenanceRequest](t, a).GetActive())
	for _, wrong := range [][]string{{"maybe"}, {"--reason", "x"}, {"on", "off"}} {
		require.Equal(t, exit.Usage, shell.run(t, append([]string{"system", "maintenance"}, wrong...)...).code, wrong)
	}
}

func TestSystemStatusReportsProblems(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*signalboxv1.GetStatusResponse)
		wants  []string
	}{
		"down, breaker open, queue on": {func(s *signalboxv1.GetStatusResponse) {
			c := s.GetConnection()
			c.State, c.Kind, c.Since, c.NextAttemptTime = "down", "namespace_missing", before(68*time.Second),
				before(-4*time.Second)
			c.LastError, c.GetStatistics().ConnectedSince = "namespace \"default\"\nnot found", nil
			c.Breaker = &signalboxv1.Breaker{
				State: "open", Failures: 10, OpenTime: before(time.Minute), NextProbeTime: before(-200 * time.Second)}
			c.Statistics.LastOutage, c.Statistics.LongestOutage = durationpb.New(68*time.Second), durationpb.New(80*time.Second)
			c.Statistics.Downtime = durationpb.New(90 * time.Second)
			s.QueueMode.Enabled, s.QueueMode.Runs = true, 12
		}, []string{
			"outages      1, this one so far 1m8s, longest 1m20s; since the start connected 1h59m, not connected 1m30s\n",
			`Temporal 127.0.0.1:7233 (default): down for 1m8s (namespace missing): namespace "default"\nnot found; next attempt in 4s` + "\n",
			"breaker      open for 1m, 10 failures in a row, next probe in 3m20s",
			"queue        on, 12 of 1000 slots in use, each for 1h at most",
		}},
		"degraded, half open": {func(s *signalboxv1.GetStatusResponse) {
			c := s.GetConnection()
			c.State, c.Kind, c.Breaker = "degraded", "not_polling",
				&signalboxv1.Breaker{State: "half_open", Failures: 1, OpenTime: before(0)}
		}, []string{"degraded for 1s (not polling), generation 2\n", "half open for 0s, 1 failure in a row, trying now"}},
		"connecting": {func(s *signalboxv1.GetStatusResponse) {
			c := s.GetConnection()
			c.State, c.LastError, c.GetStatistics().ConnectedSince, c.WorkerSets = "connecting", "", nil, nil
		}, []string{"(default): connecting for 1s\n"}},
		"closed": {func(s *signalboxv1.GetStatusResponse) {
			s.GetConnection().State = "closed"
		}, []string{": closed for 1s\n"}},
		"database away": {func(s *signalboxv1.GetStatusResponse) {
			s.QueueMode.Enabled, s.QueueMode.Error = true, "the database is away"
			s.Workers, s.WorkersError = nil, "the database is away"
			s.Reconciler = &signalboxv1.Reconciler{LastTime: before(0), Error: "the database is away"}
		}, []string{"queue        on, runs: the database is away", "reconciler   0s ago: the database is away",
			"\nlive workers: the database is away\n"}},
		"queue turned off while full, an API alone": {func(s *signalboxv1.GetStatusResponse) {
			s.QueueMode.Runs, s.Workers, s.Reconciler = 3, nil, &signalboxv1.Reconciler{}
		}, []string{"queue        off, 3 of 1000 slots in use", "reconciler   has not run here", "\nno live workers\n"}},
		"another Temporal": {func(s *signalboxv1.GetStatusResponse) {
			s.Dependencies = []*signalboxv1.Dependency{
				{Name: "placement", State: "down", Since: before(12 * time.Second),
					Title: "This server uses another Temporal than 21 open runs", Error: "both sides"}}
		}, []string{"placement    down for 12s: This server uses another Temporal than 21 open runs: both sides\n"}},
		"a dependency away": {func(s *signalboxv1.GetStatusResponse) {
			s.Dependencies = []*signalboxv1.Dependency{
				{Name: "store", State: "up"},
				{Name: "leases", State: "down", Since: before(12 * time.Second), Error: "redis does not answer"},
				{Name: "memory", State: "impaired", Since: before(time.Minute), Error: "near the limit"},
			}
		}, []string{"leases       down for 12s: redis does not answer\n", "memory       impaired for 1m: near the limit\n"}},
		"runs not compared": {func(s *signalboxv1.GetStatusResponse) {
			s.Reconciler.Failed = 2
		}, []string{"1 difference, 2 not compared"}},
		"foreign runs": {func(s *signalboxv1.GetStatusResponse) {
			s.Reconciler.Foreign = 2
		}, []string{"1 difference, 2 runs in Temporal without a row, which cannot be adopted"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shell, a := sh(t)
			a.platform.status = connected()
			test.change(a.platform.status)
			c := shell.run(t, "system", "status")
			require.Zero(t, c.code, "a status that reports trouble is a successful answer")
			for _, want := range test.wants {
				require.Contains(t, c.out.String(), want)
			}
		})
	}
	requireRefusal(t, newShell(t, "127.0.0.1:1").run(t, "system", "status"), exit.Unavailable, "get the system's status",
		"127.0.0.1:1")
}

func TestSystemResetBreaker(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	a.platform.status = connected()
	c := shell.run(t, "system", "reset-breaker")
	require.Zero(t, c.code)
	require.Contains(t, c.err.String(), "nothing to try")
	a.platform.status.Connection.State = "down"
	c = shell.run(t, "system", "reset-breaker")
	require.Contains(t, c.err.String(), "the server attempts to connect now")
	require.True(t, strings.HasPrefix(c.out.String(), "Temporal 127.0.0.1:7233 (default): down for "), c.out.String())
	last[*signalboxv1.ResetBreakerRequest](t, a)
	require.Contains(t, shell.run(t, "system", "reset-breaker", "-o", "json").out.String(), `"state": "down"`)
}

func TestSystemReconcile(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	a.platform.report = &signalboxv1.ReconcileResponse{Checked: 1, Took: durationpb.New(20 * time.Millisecond)}
	c := shell.run(t, "system", "reconcile")
	require.Zero(t, c.code)
	require.Equal(t, "nothing to correct: 1 run compared with Temporal in 20ms\n", c.err.String())
	require.False(t, last[*signalboxv1.ReconcileRequest](t, a).GetDryRun())

	a.platform.report = &signalboxv1.ReconcileResponse{
		Checked: 40, Total: 3, Failed: 1, FailedBecause: "run run-2: its history cannot be read",
		SearchedUntil: timestamppb.New(time.Unix(0, 0)), Took: durationpb.New(time.Second),
		Corrections: []*signalboxv1.Correction{
			{Kind: "finished", RunId: "run-1", Project: "default", Detail: "it completed", Applied: true},
			{Kind: "reopened_in_temporal", RunId: "x", Project: "shop", Detail: "is open in Temporal"},
		},
		Foreign: []*signalboxv1.ForeignRuns{
			{Reason: "it was not started by Signalbox", Count: 1, Open: 1, SampleRunIds: []string{"y"}},
			{Project: "shop", Workflow: "shop/order", Version: "1.1.0", Reason: "the document of shop/order@1.1.0 is not " +
				"stored here", Count: 7, Open: 6, SampleRunIds: []string{"a", "b"}},
		},
	}
	c = shell.run(t, "system", "reconcile")
	require.Regexp(t, `(?m)^run-1 +default +finished +yes +it completed$`, c.out.String())
	require.Regexp(t, `(?m)^x +shop +reopened_in_temporal +no, reported only +is open in Temporal$`, c.out.String())
	require.Equal(t, "1 run could not be compared; the next comparison retries them; run run-2: its history cannot be "+
		"read\n"+
		"executions that ended before 1970-01-01T00:00:00Z were searched for ones without a row; the next comparisons "+
		"search the others\n"+
		"foreign, not a correction: 1 run in Temporal without a row (1 open), for example y: it was not started by "+
		"Signalbox\n"+
		"foreign, not a correction: 7 runs of shop/order@1.1.0 in project shop in Temporal without a row (6 open), for "+
		"example a, b: the document of shop/order@1.1.0 is not stored here\nand 1 more\n3 differences; 40 runs compared "+
		"with Temporal in 1s\n", c.err.String())

	c = shell.run(t, "system", "reconcile", "--dry-run")
	require.True(t, last[*signalboxv1.ReconcileRequest](t, a).GetDryRun())
	require.Contains(t, c.out.String(), "no, dry run")
	require.Contains(t, shell.run(t, "system", "reconcile", "-o", "json").out.String(), `"runId": "run-1"`)

	a.platform.report = &signalboxv1.ReconcileResponse{
		Checked: 2, Withheld: 2, WithheldBecause: "they are not known to Temporal at here", Took: durationpb.New(time.Second),
	}
	require.Equal(t, "2 open runs left alone: they are not known to Temporal at here\nnothing to correct: 2 runs "+
		"compared with Temporal in 1s\n",
		shell.run(t, "system", "reconcile").err.String())

	a.platform.refuse = retryLater()
	requireRefusal(t, shell.run(t, "system", "reconcile"), exit.Unavailable, "reconcile the runs", "ENGINE_UNAVAILABLE",
		"try again in 2s")
}

// With --fix, the server corrects until all ended executions were searched.
func TestRestoreCheck(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	a.platform.report = &signalboxv1.ReconcileResponse{
		Took: durationpb.New(time.Second), Total: 2, Corrections: []*signalboxv1.Correction{
			{Kind: "adopted", RunId: "run-1", Project: "default", Applied: true},
			{Kind: "foreign_execution", RunId: "x", Project: "shop"},
		}}
	c := shell.run(t, "restore", "check")
	require.Equal(t, exit.Failed, c.code)
	require.Contains(t, c.out.String(), "differences are left")

	passes := []*signalboxv1.ReconcileResponse{proto.CloneOf(a.platform.report), {Took: durationpb.New(time.Second)}}
	passes[0].SearchedUntil = before(time.Hour)
	a.platform.passes = passes
	c = shell.run(t, "restore", "check", "--fix", "--yes")
	require.Zero(t, c.code, c.err.String())
	require.Equal(t, "1 run corrected; executions that ended before 2026-01-31T11:00:00Z were searched\n1 run corrected\n",
		c.err.String())
	require.False(t, last[*signalboxv1.ReconcileRequest](t, a).GetDryRun())
	require.Contains(t, c.out.String(), "complete")

	a.platform.refuse = retryLater()
	requireRefusal(t, shell.run(t, "restore", "check"), exit.Unavailable, "compare the database with Temporal",
		"ENGINE_UNAVAILABLE", "try again in 2s")
}

// The output of a start while Temporal is unavailable has one line that reports the queued run.
func TestRunStartReportsQueuedRun(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	a.queued = func(run *signalboxv1.Run) {
		run.Status, run.QueuedReason, run.QueuePosition, run.QueueExpireTime = "queued", "engine", proto.Int64(3),
			before(-time.Hour)
	}
	c := shell.run(t, "run", "start", "hello", "-o", "json")
	require.Zero(t, c.code)
	require.Equal(t, "Temporal is unavailable: run run-1 is queued at position 3, and is started when Temporal is "+
		"available; unless that is before 2026-01-31T13:00:00Z, it fails\n", c.err.String())
	require.Contains(t, c.out.String(), `"queuePosition": 3`)
	c = shell.run(t, "run", "show", "run-1")
	require.Regexp(t, `(?m)^reason +engine, position 3$`, c.out.String())
	require.Regexp(t, `(?m)^expires +2026-01-31T13:00:00Z$`, c.out.String())
	c = shell.run(t, "run", "list")
	require.Regexp(t, `(?m)^ID .*STATUS +REASON`, c.out.String())
	require.Regexp(t, `(?m)^run-1 .*queued +engine, position 3`, c.out.String())
	require.Contains(t, shell.run(t, "run", "list", "-o", "wide").out.String(), "2026-01-31T13:00:00Z")

	a.queued = func(run *signalboxv1.Run) { run.Status, run.QueuedReason = "queued", "starting" }
	c = shell.run(t, "run", "start", "hello", "-o", "json")
	require.Equal(t, "Temporal has not confirmed the start of run run-2 yet; it stays queued and is started once, "+
		"automatically\n", c.err.String())
	a.queued = func(run *signalboxv1.Run) { run.Status, run.QueuedReason = "queued", "worker" }
	require.Empty(t, shell.run(t, "run", "start", "hello", "-o", "json").err.String())
}
