package system_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/maintenance"
	"github.com/signalbox-dev/signalbox/internal/processor"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
	"github.com/signalbox-dev/signalbox/internal/system"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

var (
	ours    = worker.Worker{ServerID: "host-1", Fingerprint: worker.Fingerprint{Contract: "c1"}}
	foreign = worker.Worker{ServerID: "host-2", Fingerprint: worker.Fingerprint{Contract: "c2"}}
)

// fakes are the dependencies of the service, with responses set by a test.
type fakes struct {
	connection conntype.Status
	resets     int
	queued     func(context.Context) (int64, int64, error)
	live       func(context.Context) ([]worker.Worker, error)
	dead       []worker.Worker // listed without a recent heartbeat
	report     run.Report
	refuse     error
	since      time.Time
	dry        []bool
	entries    []audit.Entry
	auditError error
	mode       *maintenance.State
	facts      system.StoreFacts
	listError  error
	queue      func(project string) (diagnose.QueueState, error)
	permitting []project.Project // projects that permit programs
	runners    func(project string) (diagnose.ProgramQueue, error)
	restored   system.RestoreCheck // the answers of the sources of a restore
	restoreErr error
	// openRuns is the number of open runs; historyTakes and historyErr are how each history is read.
	openRuns     int
	historyTakes time.Duration
	historyErr   error
}

// mode is the maintenance mode of the fakes.
type mode struct{ *fakes }

func (m mode) Last() (maintenance.State, bool) {
	if m.mode == nil {
		return maintenance.State{}, false
	}
	return *m.mode, true
}

func (m mode) Get(context.Context) (maintenance.State, error) { return *m.mode, nil }

func (m mode) Set(_ context.Context, on bool, reason string) (maintenance.State, error) {
	m.mode.On, m.mode.Reason = on, reason
	return *m.mode, nil
}

func (s *fakes) Status() conntype.Status { return s.connection }

func (s *fakes) RunsTitle() string { return "This server uses another Temporal than 21 open runs" }

func (s *fakes) Adopt(_ context.Context, r run.AdoptRequest) (run.Adoption, error) {
	return run.Adoption{Adopted: !r.DryRun}, s.refuse
}

func (s *fakes) ResetBreaker() {
	s.resets++
	s.connection.Breaker.State = conntype.BreakerHalfOpen
}

func (s *fakes) CountQueued(ctx context.Context) (waiting, total int64, err error) {
	return s.queued(ctx)
}

func (s *fakes) ListWorkers(ctx context.Context, within time.Duration, _ int) ([]worker.Worker, error) {
	live, err := s.live(ctx)
	if within > worker.AliveFor {
		live = append(live, s.dead...)
	}
	return live, err
}

func (s *fakes) Reconcile(_ context.Context, dryRun bool) (run.Report, error) {
	s.dry = append(s.dry, dryRun)
	return s.report, s.refuse
}

func (s *fakes) SearchSince(_ context.Context, since time.Time) error {
	s.since = since
	return nil
}

func (s *fakes) Last() (run.Report, time.Time, error) {
	return run.Report{Checked: 7}, noon, errPartial
}

func (s *fakes) WriteAudit(_ context.Context, e audit.Entry) error {
	s.entries = append(s.entries, e)
	return s.auditError
}

// errPartial is why the last comparison left runs unchanged.
var errPartial = errors.New("half")

// limit is the limit of processors.
var limit = 0.25

// leases is a dependency that is down.
var leases = health.DependencyState{Name: "leases", State: health.Down, Since: noon, LastError: "redis does not answer"}

func newService() (*system.Service, *fakes) {
	s := &fakes{
		connection: conntype.Status{
			State: conntype.Down, Kind: conntype.Hung, Address: "127.0.0.1:7233", Namespace: "default",
			Breaker: conntype.Breaker{State: conntype.BreakerOpen},
		},
		queued: func(context.Context) (int64, int64, error) { return 3, 4, nil },
		live:   func(context.Context) ([]worker.Worker, error) { return []worker.Worker{ours, foreign}, nil },
	}
	return system.NewService(s, s, s, s, s, system.Options{
		Version: "1.2.3", ServerID: "server-1", Roles: []string{"api"}, StartedAt: noon,
		QueueMode: system.QueueMode{Enabled: true, MaxRuns: 10, TTL: time.Hour}, Now: func() time.Time { return noon },
		Maintenance: mode{s}, Placement: s, Restore: s, Processor: func() processor.State {
			return processor.State{Limit: &limit}
		},
		Store: func(context.Context) system.StoreFacts { return s.facts },
		Projects: func(context.Context, string, int) ([]project.Project, error) {
			return append([]project.Project{{Name: "bank"}, {Name: "shop"}}, s.permitting...), s.listError
		},
		Queue:       func(_ context.Context, name string) (diagnose.QueueState, error) { return s.queue(name) },
		Runners:     func(_ context.Context, name string) (diagnose.ProgramQueue, error) { return s.runners(name) },
		Permitted:   func(p project.Project) []string { return p.Settings.Runners },
		Fingerprint: func() worker.Fingerprint { return worker.Fingerprint{Contract: "c1"} },
		Health: func(context.Context) health.Report {
			return health.Report{Dependencies: []health.DependencyState{leases}}
		},
	}), s
}

func TestStatusIsComplete(t *testing.T) {
	t.Parallel()
	service, s := newService()
	s.mode = &maintenance.State{On: true, Reason: "upgrade"}
	require.Equal(t, system.Status{
		Maintenance: s.mode,
		At:          noon, Version: "1.2.3", ServerID: "server-1", Roles: []string{"api"}, StartedAt: noon,
		Connection:     s.connection,
		QueueMode:      system.QueueMode{Enabled: true, Runs: 4, MaxRuns: 10, TTL: time.Hour},
		Reconciliation: system.Reconciliation{Report: run.Report{Checked: 7}, At: noon, Err: errPartial},
		Workers:        []system.LiveWorker{{Worker: ours, TakesRuns: true}, {Worker: foreign}},
		Dependencies:   []health.DependencyState{leases},
		Processor:      processor.State{Limit: &limit},
	}, service.Status(t.Context()))
}

func TestStatusHidesTheCauseOfUnknownFacts(t *testing.T) {
	t.Parallel()
	service, s := newService()
	s.facts = system.StoreFacts{Driver: "postgres", Err: errors.New("password=hunter2")}
	ctx := logger.WithContext(t.Context(), slog.New(slog.DiscardHandler))
	require.Equal(t, "unknown; see the server's log for the cause", service.Status(ctx).Store.Error)
	s.facts.Err = apperror.New(apperror.Unavailable, apperror.StoreUnavailable, "the database is away")
	require.Equal(t, "the database is away", service.Status(ctx).Store.Error)
}

func TestAdoptTemporal(t *testing.T) {
	t.Parallel()
	service, s := newService()
	require.Equal(t, "This server uses another Temporal than 21 open runs", service.Mismatch())
	done, err := service.AdoptTemporal(t.Context(), run.AdoptRequest{})
	require.NoError(t, err)
	require.True(t, done.Adopted)
	s.refuse = errors.New("not now")
	_, err = service.AdoptTemporal(t.Context(), run.AdoptRequest{DryRun: true})
	require.ErrorIs(t, err, s.refuse)
}

func TestQueues(t *testing.T) {
	t.Parallel()
	service, s := newService()
	s.queue = func(name string) (diagnose.QueueState, error) {
		if name == "bank" {
			return diagnose.QueueState{Name: "q-bank"},
				apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "Temporal is away")
		}
		return diagnose.QueueState{
			Name: "q-shop",
			Workflow: diagnose.TaskTypeState{
				Pollers: []diagnose.Poller{
					{Identity: "live", LastAccess: noon.Add(-diagnose.PollCycle)},
					{Identity: "silent", LastAccess: noon.Add(-2 * time.Minute)},
					{Identity: ours.ServerID, LastAccess: noon.Add(-3 * time.Minute)},
					{Identity: "killed", LastAccess: noon.Add(-25 * time.Second)},
				},
				Backlog: 3, Age: time.Minute, Measured: true,
			},
		}, nil
	}
	busy := ours
	busy.Busy = []worker.Busy{{Project: "shop", WorkflowTasks: noon.Add(-3 * time.Minute)}}
	s.live = func(context.Context) ([]worker.Worker, error) { return []worker.Worker{busy}, nil }
	s.dead = []worker.Worker{{ServerID: "killed", Fingerprint: ours.Fingerprint}}
	queues, err := service.Queues(t.Context(), "", 10)
	require.NoError(t, err)
	require.Equal(t, []system.TaskQueue{
		{Project: "bank", Name: "q-bank", Error: "Temporal is away"},
		{
			Project: "shop", Name: "q-shop",
			Workflow: system.QueueLine{
				Pollers: 2, Busy: 1, PolledAt: noon.Add(-25 * time.Second), Backlog: new(int64(3)), Age: time.Minute},
		},
	}, queues, "an unknown backlog is not 0, a busy worker counts, a dead one does not")
	s.listError = errors.New("no answer")
	_, err = service.Queues(t.Context(), "", 10)
	require.ErrorIs(t, err, s.listError)
}

// An unavailable or hung database only affects its own part of the status.
func TestStatusWithoutDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service, s := newService()
		s.queued = func(ctx context.Context) (int64, int64, error) {
			<-ctx.Done()
			return 0, 0, ctx.Err()
		}
		s.live = func(context.Context) ([]worker.Worker, error) {
			return nil, apperror.New(apperror.Unavailable, apperror.StoreUnavailable,
				"the database is away").WithCause(errors.New("password=hunter2"))
		}
		begin := time.Now()
		status := service.Status(logger.WithContext(t.Context(), slog.New(slog.DiscardHandler)))
		require.Equal(t, time.Second, time.Since(begin))
		require.Equal(t, conntype.Down, status.Connection.State)
		require.Equal(t, "unknown; see the server's log for the cause", status.QueueMode.Error)
		require.True(t, status.QueueMode.Enabled)
		require.Equal(t, "the database is away", status.WorkersError)
	})
}

func TestResetIsAuditedAndWorksWithoutDatabase(t *testing.T) {
	t.Parallel()
	service, s := newService()
	ctx := auth.WithActor(t.Context(), auth.Actor{Kind: auth.KindLocal, Name: "ada"})
	require.Equal(t, conntype.BreakerHalfOpen, service.ResetBreaker(ctx).Breaker.State)
	require.Equal(t, 1, s.resets)
	require.Equal(t, []audit.Entry{{
		Time: noon, Actor: auth.Actor{Kind: auth.KindLocal, Name: "ada"}, Action: "system.reset_breaker",
		Subject: "127.0.0.1:7233 default",
	}}, s.entries)

	s.auditError = errors.New("the database is away")
	var log strings.Builder
	service.ResetBreaker(logger.WithContext(ctx, slog.New(slog.NewTextHandler(&log, nil))))
	require.Equal(t, 2, s.resets)
	require.Contains(t, log.String(), "actor=ada")
	require.Contains(t, log.String(), "action=system.reset_breaker")
}

func TestReconcileIsAuditedUnlessDryOrRefused(t *testing.T) {
	t.Parallel()
	service, s := newService()
	s.report = run.Report{Checked: 9, Total: 2, Failed: 1, Withheld: 3}
	report, err := service.Reconcile(t.Context(), true, time.Time{})
	require.NoError(t, err)
	require.Equal(t, s.report, report)
	require.Empty(t, s.entries)

	_, err = service.Reconcile(t.Context(), false, time.Time{})
	require.NoError(t, err)
	require.Equal(t, []bool{true, false}, s.dry)
	require.Len(t, s.entries, 1)
	require.Equal(t, "system.reconcile", s.entries[0].Action)
	require.JSONEq(t, `{"checked":9,"corrections":2,"failed":1,"withheld":3}`, string(s.entries[0].Detail))

	_, err = service.Reconcile(t.Context(), false, noon)
	require.NoError(t, err)
	require.Equal(t, noon, s.since)
	_, err = service.Reconcile(t.Context(), true, noon)
	require.True(t, apperror.Is(err, apperror.InvalidArgument))
	s.entries = s.entries[:1]

	s.refuse = apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "away")
	_, err = service.Reconcile(t.Context(), false, time.Time{})
	require.True(t, apperror.Is(err, apperror.EngineUnavailable))
	require.Len(t, s.entries, 1)
}
