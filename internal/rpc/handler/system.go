package handler

import (
	"context"
	"maps"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/maintenance"
	"github.com/signalbox-dev/signalbox/internal/processor"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/sealingkey"
	"github.com/signalbox-dev/signalbox/internal/system"
)

// SystemInfo describes this server process.
type SystemInfo struct {
	// Version of Signalbox.
	Version string
	// Interpreter is the version of the interpreter that new runs start with.
	Interpreter int
	// ServerID identifies this start of the process.
	ServerID string
	// QueuesRuns: new runs are queued while Temporal is unavailable.
	QueuesRuns bool
}

// Engine is this process's connection to Temporal.
type Engine interface {
	// Connection returns its state. It never blocks.
	Connection() conntype.Status
}

// SystemService is the domain's service of the platform as a whole.
type SystemService interface {
	Status(ctx context.Context) system.Status
	Engine
	Queues(ctx context.Context, after string, limit int) ([]system.TaskQueue, error)
	ResetBreaker(ctx context.Context) conntype.Status
	Reconcile(ctx context.Context, dryRun bool, since time.Time) (run.Report, error)
	CheckRestore(ctx context.Context) system.RestoreCheck
	SealingKeys(ctx context.Context) ([]sealingkey.State, error)
	Mismatch() string
	AdoptTemporal(ctx context.Context, r run.AdoptRequest) (run.Adoption, error)
	Maintenance(ctx context.Context) (maintenance.State, error)
	SetMaintenance(ctx context.Context, on bool, reason string) (maintenance.State, error)
}

// System implements signalbox.v1.SystemService.
type System struct {
	info    SystemInfo
	service SystemService
}

// GetVersion returns the server's version.
func (h *System) GetVersion(
	context.Context, *connect.Request[signalboxv1.GetVersionRequest],
) (*connect.Response[signalboxv1.GetVersionResponse], error) {
	return connect.NewResponse(&signalboxv1.GetVersionResponse{
		Version: h.info.Version, Interpreter: int32(h.info.Interpreter), //nolint:gosec // counts up from 1
		ServerId: h.info.ServerID,
	}), nil
}

// GetConnection returns the state of the connection to Temporal.
func (h *System) GetConnection(
	context.Context, *connect.Request[signalboxv1.GetConnectionRequest],
) (*connect.Response[signalboxv1.GetConnectionResponse], error) {
	c := h.service.Connection()
	return connect.NewResponse(&signalboxv1.GetConnectionResponse{
		State: string(c.State), Kind: string(c.Kind), Since: message.Timestamp(c.Since), Title: c.Title(),
		QueuesRuns: h.info.QueuesRuns, Time: timestamppb.Now(), Mismatch: h.service.Mismatch(),
	}), nil
}

// GetStatus returns the status of the platform.
func (h *System) GetStatus(
	ctx context.Context, _ *connect.Request[signalboxv1.GetStatusRequest],
) (*connect.Response[signalboxv1.GetStatusResponse], error) {
	s := h.service.Status(ctx)
	res := &signalboxv1.GetStatusResponse{
		Version: s.Version, ServerId: s.ServerID, Roles: s.Roles, StartTime: message.Timestamp(s.StartedAt),
		Connection: connectionMessage(s.Connection),
		QueueMode: &signalboxv1.QueueMode{
			Enabled: s.QueueMode.Enabled, Runs: s.QueueMode.Runs, MaxRuns: int64(s.QueueMode.MaxRuns),
			Ttl: durationpb.New(s.QueueMode.TTL), Error: s.QueueMode.Error,
		},
		Reconciler: &signalboxv1.Reconciler{
			LastTime: message.Timestamp(s.Reconciliation.At), Checked: int64(s.Reconciliation.Checked),
			Corrections: int64(s.Reconciliation.Total), Failed: int64(s.Reconciliation.Failed),
			Foreign:       int64(s.Reconciliation.ForeignCount()),
			SearchedUntil: message.Timestamp(s.Reconciliation.SearchedUntil),
		},
		WorkersError: s.WorkersError, Time: message.Timestamp(s.At), Store: storeMessage(s.Store),
		Processor: processorMessage(s.Processor),
	}
	if s.Maintenance != nil {
		res.Maintenance = maintenanceMessage(*s.Maintenance)
	}
	for _, w := range s.Workers {
		res.Workers = append(res.Workers, &signalboxv1.Worker{
			ServerId: w.ServerID, Contract: w.Fingerprint.Contract, Address: w.Fingerprint.Address,
			Namespace:   w.Fingerprint.Namespace,
			NamespaceId: w.Fingerprint.NamespaceID, Projects: w.Projects, StartTime: message.Timestamp(w.StartedAt),
			LastBeatTime: message.Timestamp(w.BeatAt),
			TakesRuns:    w.TakesRuns, Processor: processorMessage(w.Processor),
		})
	}
	res.MoreRunners, res.RunnersError = s.MoreRunners, s.RunnersError
	for _, q := range s.Runners {
		res.Runners = append(res.Runners, runnerQueueMessage(q))
	}
	if err := s.Reconciliation.Err; err != nil {
		res.Reconciler.Error = err.Error()
	}
	for _, d := range s.Dependencies {
		shown := &signalboxv1.Dependency{Name: d.Name, State: d.State, Since: message.Timestamp(d.Since)}
		if d.State != health.Up {
			shown.Error, shown.Title = d.LastError, d.Title
		}
		res.Dependencies = append(res.Dependencies, shown)
	}
	return connect.NewResponse(res), nil
}

func runnerQueueMessage(q system.RunnerQueue) *signalboxv1.RunnerQueue {
	m := &signalboxv1.RunnerQueue{Project: q.Project, Name: q.Name, Kinds: q.Kinds, Error: q.Error}
	for _, r := range q.Runners {
		m.Runners = append(m.Runners, &signalboxv1.Runner{
			Isolations: r.Isolations,
			ServerId:   r.ServerID, LastPollTime: message.Timestamp(r.PolledAt), Polling: r.Polls,
		})
	}
	return m
}

func processorMessage(p processor.State) *signalboxv1.Processor {
	m := &signalboxv1.Processor{
		Limit: p.Limit, Used: p.Used, Throttled: p.Throttled, Waiting: p.Waiting, Required: processor.Minimum}
	if p.Short() {
		m.Shortage = "it " + p.Gets()
	}
	return m
}

func storeMessage(f system.StoreFacts) *signalboxv1.StoreFacts {
	m := &signalboxv1.StoreFacts{
		Driver: f.Driver, Location: f.Location, Version: f.Version, RequiredSchema: f.Required, Error: f.Error}
	if f.Schema > 0 {
		m.Schema = &f.Schema
	}
	if f.Bytes > 0 {
		m.Bytes = &f.Bytes
	}
	if f.Latency > 0 {
		m.Latency, m.ClockSkew = durationpb.New(f.Latency), durationpb.New(f.ClockSkew)
	}
	for _, p := range f.Pools {
		m.Pools = append(m.Pools,
			&signalboxv1.ConnectionPool{Name: p.Name, InUse: int64(p.InUse), Limit: int64(p.Limit), Waits: p.Waits})
	}
	return m
}

// ListQueues lists the task queues of the projects.
func (h *System) ListQueues(
	ctx context.Context, req *connect.Request[signalboxv1.ListQueuesRequest],
) (*connect.Response[signalboxv1.ListQueuesResponse], error) {
	queues, next, err := listPage(req.Msg, pageDefault, pageMost,
		func(after *string, limit int) ([]system.TaskQueue, error) {
			return h.service.Queues(ctx, startOf(after), limit)
		}, func(q system.TaskQueue) string { return q.Project })
	res := &signalboxv1.ListQueuesResponse{NextPageToken: next, Time: timestamppb.Now()}
	for _, q := range queues {
		m := &signalboxv1.Queue{Project: q.Project, Name: q.Name, Error: q.Error}
		if q.Error == "" {
			m.WorkflowTasks, m.Activities = lineMessage(q.Workflow), lineMessage(q.Activity)
		}
		res.Queues = append(res.Queues, m)
	}
	return message.Reply(res, err)
}

func lineMessage(l system.QueueLine) *signalboxv1.QueueLine {
	m := &signalboxv1.QueueLine{
		Pollers: int64(l.Pollers), Busy: int64(l.Busy), LastPollTime: message.Timestamp(l.PolledAt), Backlog: l.Backlog}
	if l.Backlog != nil {
		m.BacklogAge = durationpb.New(l.Age)
	}
	return m
}

// ResetBreaker makes the server try to connect immediately.
func (h *System) ResetBreaker(
	ctx context.Context, _ *connect.Request[signalboxv1.ResetBreakerRequest],
) (*connect.Response[signalboxv1.ResetBreakerResponse], error) {
	return connect.NewResponse(
		&signalboxv1.ResetBreakerResponse{Connection: connectionMessage(h.service.ResetBreaker(ctx))}), nil
}

// Reconcile compares the runs with Temporal.
func (h *System) Reconcile(
	ctx context.Context, req *connect.Request[signalboxv1.ReconcileRequest],
) (*connect.Response[signalboxv1.ReconcileResponse], error) {
	since, err := message.Time("since", req.Msg.GetSince())
	if err != nil {
		return nil, err
	}
	report, err := h.service.Reconcile(ctx, req.Msg.GetDryRun(), since)
	return message.Reply(reportMessage(report), err)
}

func reportMessage(report run.Report) *signalboxv1.ReconcileResponse {
	res := &signalboxv1.ReconcileResponse{
		Checked: int64(report.Checked), Open: int64(report.Open), Total: int64(report.Total), Failed: int64(report.Failed),
		Took: durationpb.New(report.Took), DryRun: report.DryRun, Withheld: int64(report.Withheld),
		WithheldBecause: report.WithheldBecause,
		SearchedUntil:   message.Timestamp(report.SearchedUntil), FailedBecause: report.FailedBecause,
	}
	for _, f := range report.Foreign {
		res.Foreign = append(res.Foreign, &signalboxv1.ForeignRuns{
			Project: f.Project, Workflow: f.Workflow, Version: f.Version, Reason: f.Why, Count: int64(f.Count),
			Open: int64(f.Open), SampleRunIds: f.RunIDs,
			FirstStartTime: message.Timestamp(f.Since),
		})
	}
	for _, c := range report.Corrections {
		res.Corrections = append(res.Corrections, &signalboxv1.Correction{
			Kind: string(c.Kind), RunId: c.RunID, Project: c.Project, Detail: c.Detail, Applied: c.Applied,
		})
	}
	return res
}

// CheckRestore compares the database with Temporal after a restore.
func (h *System) CheckRestore(
	ctx context.Context, _ *connect.Request[signalboxv1.CheckRestoreRequest],
) (*connect.Response[signalboxv1.CheckRestoreResponse], error) {
	c := h.service.CheckRestore(ctx)
	res := &signalboxv1.CheckRestoreResponse{
		Time: message.Timestamp(c.At), Complete: c.Complete(), RestoredTime: message.Timestamp(c.RestoredAt),
		BackupTime:       message.Timestamp(c.RestoredTo),
		LackingSchedules: c.LackingSchedules, UnownedDispatchers: c.UnownedDispatchers, Errors: c.Errors,
		SealingKeys: keyMessages(c.SealingKeys),
	}
	if c.Maintenance != nil {
		res.Maintenance = maintenanceMessage(*c.Maintenance)
	}
	if c.Known(system.PartComparison) {
		res.Comparison, res.Differences, res.Lost = reportMessage(c.Comparison), map[string]int64{},
			lostMessage(c.Comparison.Lost)
		for kind, n := range c.Comparison.Counts {
			res.Differences[string(kind)] = int64(n)
		}
	}
	if c.Known(system.PartRows) {
		res.NewestRowTime = message.Timestamp(c.Rows.Newest)
		if !c.RestoredAt.IsZero() {
			res.Adopted, res.FailedMissing = &c.Rows.Adopted, &c.Rows.Missing
		}
	}
	if c.Known(system.PartPayloads) {
		res.LostPayloads = &signalboxv1.LostPayloads{
			Runs: int64(c.Payloads.Runs), SampleRunIds: c.Payloads.RunIDs, Searched: int64(c.Payloads.Searched),
			AllSearched: c.Payloads.All,
		}
	}
	if c.Known(system.PartSchedules) {
		res.Schedules = new(int64(c.Schedules))
	}
	if c.Known(system.PartDispatchers) {
		res.Dispatchers = new(int64(c.Dispatchers))
	}
	return connect.NewResponse(res), nil
}

// ListSealingKeys returns the keys that have sealed values.
func (h *System) ListSealingKeys(
	ctx context.Context, _ *connect.Request[signalboxv1.ListSealingKeysRequest],
) (*connect.Response[signalboxv1.ListSealingKeysResponse], error) {
	keys, err := h.service.SealingKeys(ctx)
	return message.Reply(&signalboxv1.ListSealingKeysResponse{SealingKeys: keyMessages(keys), Time: timestamppb.Now()},
		err)
}

func keyMessages(keys []sealingkey.State) (list []*signalboxv1.SealingKey) {
	for _, k := range keys {
		list = append(list, &signalboxv1.SealingKey{
			Id: k.ID, Fingerprint: k.Fingerprint, FirstTime: message.Timestamp(k.FirstAt), LastTime: message.Timestamp(k.LastAt),
			Configured: k.Configured, Active: k.Active, OpenRuns: k.Runs, WaitingEvents: k.Events, IncompleteSets: k.Sets,
			ScheduledStarts: k.Starts,
			Webhooks:        k.Webhooks,
		})
	}
	return list
}

func lostMessage(l run.Lost) *signalboxv1.LostRows {
	return &signalboxv1.LostRows{
		Open: int64(l.Open), Ended: int64(l.Ended), Young: int64(l.Young), UpToHour: int64(l.UpToHour),
		UpToDay: int64(l.UpToDay), Older: int64(l.Older),
		NewestTime: message.Timestamp(l.Newest), ForgottenFrom: message.Timestamp(l.ForgottenFrom),
		ForgottenUntil: message.Timestamp(l.ForgottenUntil),
	}
}

// AdoptTemporal records that runs start in the server's Temporal from now on.
func (h *System) AdoptTemporal(
	ctx context.Context, req *connect.Request[signalboxv1.AdoptTemporalRequest],
) (*connect.Response[signalboxv1.AdoptTemporalResponse], error) {
	a, err := h.service.AdoptTemporal(ctx, run.AdoptRequest{
		Address: req.Msg.GetAddress(), Namespace: req.Msg.GetNamespace(), Reason: req.Msg.GetReason(),
		DryRun: req.Msg.GetDryRun(),
	})
	res := &signalboxv1.AdoptTemporalResponse{
		Now: clusterMessage(a.Now), Since: message.Timestamp(a.Before.Since), Needed: a.Needed, Adopted: a.Adopted,
		DryRun: req.Msg.GetDryRun(),
	}
	if a.Before.ClusterID != (run.ClusterID{}) {
		res.Former = clusterMessage(a.Before.ClusterID)
	}
	for _, project := range slices.Sorted(maps.Keys(a.Left)) {
		res.LeftRuns = append(res.LeftRuns, &signalboxv1.LeftRuns{Project: project, Runs: a.Left[project]})
	}
	return message.Reply(res, err)
}

func clusterMessage(c run.ClusterID) *signalboxv1.TemporalNamespace {
	return &signalboxv1.TemporalNamespace{Address: c.Address, Namespace: c.Namespace, NamespaceId: c.NamespaceID}
}

// GetMaintenance returns whether the platform is in maintenance.
func (h *System) GetMaintenance(
	ctx context.Context, _ *connect.Request[signalboxv1.GetMaintenanceRequest],
) (*connect.Response[signalboxv1.GetMaintenanceResponse], error) {
	state, err := h.service.Maintenance(ctx)
	return message.Reply(&signalboxv1.GetMaintenanceResponse{Maintenance: maintenanceMessage(state)}, err)
}

// SetMaintenance switches the maintenance mode on or off.
func (h *System) SetMaintenance(
	ctx context.Context, req *connect.Request[signalboxv1.SetMaintenanceRequest],
) (*connect.Response[signalboxv1.SetMaintenanceResponse], error) {
	state, err := h.service.SetMaintenance(ctx, req.Msg.GetActive(), req.Msg.GetReason())
	return message.Reply(&signalboxv1.SetMaintenanceResponse{Maintenance: maintenanceMessage(state)}, err)
}

func maintenanceMessage(m maintenance.State) *signalboxv1.Maintenance {
	return &signalboxv1.Maintenance{Active: m.On, Reason: m.Reason, Actor: m.Actor, Since: message.Timestamp(m.Since)}
}

func connectionMessage(c conntype.Status) *signalboxv1.Connection {
	statistics := c.Statistics
	m := &signalboxv1.Connection{
		State: string(c.State), Kind: string(c.Kind), Since: message.Timestamp(c.Since), Title: c.Title(),
		Address: c.Address, Namespace: c.Namespace, NamespaceId: c.NamespaceID,
		LastError: c.LastError, LastErrorTime: message.Timestamp(c.LastErrorAt),
		Generation: int64(c.Generation), Latency: durationpb.New(c.Latency.Truncate(time.Microsecond)),
		Attempts: c.Attempts, NextAttemptTime: message.Timestamp(c.NextAttempt), Draining: int64(c.Draining),
		Breaker: &signalboxv1.Breaker{
			State: string(c.Breaker.State), Failures: int64(c.Breaker.Failures),
			OpenTime: message.Timestamp(c.Breaker.OpenedAt), NextProbeTime: message.Timestamp(c.Breaker.NextProbe),
		},
		Statistics: &signalboxv1.ConnectionStatistics{
			Uptime: message.Duration(statistics.Uptime), Downtime: message.Duration(statistics.Downtime),
			Connections: statistics.Connections, Outages: statistics.Outages,
			LastOutage: message.Duration(statistics.LastOutage), LongestOutage: message.Duration(statistics.LongestOutage),
			ConnectedSince: message.Timestamp(statistics.ConnectedSince),
		},
	}
	for _, w := range c.Workers {
		m.WorkerSets = append(m.WorkerSets, &signalboxv1.WorkerSet{
			Name: w.Name, TaskQueues: w.TaskQueues, Running: w.Running, Polling: w.Polling, Generation: int64(w.Generation),
			StartTime: message.Timestamp(w.Since), LastPollTime: message.Timestamp(w.LastPoll), Failures: int64(w.Failures),
			Error: w.Error,
		})
	}
	return m
}
