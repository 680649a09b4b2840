package system

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/maintenance"
	"github.com/signalbox-dev/signalbox/internal/processor"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// statusTimeout bounds the queries of a status: a hung database must not delay the rest.
const statusTimeout = time.Second

// maxWorkers is how many live workers a status lists.
const maxWorkers = 1000

// Connector is this process's connection to Temporal. [conn.Manager] implements it.
type Connector interface {
	// Status returns the current state. It never blocks.
	Status() conntype.Status
	// ResetBreaker makes the connection try to connect immediately.
	ResetBreaker()
}

// Queue holds the runs that were accepted while Temporal was unavailable.
type Queue interface {
	// CountQueued returns how many runs wait, and how many queue slots are taken, including runs being submitted.
	CountQueued(ctx context.Context) (waiting, total int64, err error)
}

// Reconciler compares the runs with Temporal.
type Reconciler interface {
	// Reconcile runs immediately, and corrects differences unless dryRun is set. It returns an [apperror.Unavailable]
	// while Temporal is unavailable.
	Reconcile(ctx context.Context, dryRun bool) (run.Report, error)
	SearchSince(ctx context.Context, since time.Time) error
	// Last returns the report of this process's last comparison, when it ended, and why it failed or left runs unchanged.
	Last() (run.Report, time.Time, error)
}

// AuditLog stores entries for actions that change no row.
type AuditLog interface {
	WriteAudit(ctx context.Context, e audit.Entry) error
}

// Maintenance is the maintenance mode.
type Maintenance interface {
	// Last returns the state that the process last read; false if it has read none.
	Last() (maintenance.State, bool)
	Get(ctx context.Context) (maintenance.State, error)
	// Set switches the mode on or off.
	Set(ctx context.Context, on bool, reason string) (maintenance.State, error)
}

// Placement compares the Temporal of the process with the one that holds the runs.
type Placement interface {
	// RunsTitle returns how they differ, in one sentence without addresses; empty while they do not. It never blocks.
	RunsTitle() string
	// Adopt records that runs start in the Temporal of the process from now on, which is audited. A dry run changes
	// nothing.
	Adopt(ctx context.Context, r run.AdoptRequest) (run.Adoption, error)
}

// Options describe the process.
type Options struct {
	Version, ServerID string
	Roles             []string
	StartedAt         time.Time
	// QueueMode has the settings; Status fills in Runs and Error.
	QueueMode QueueMode
	// Fingerprint returns the fingerprint with which the process starts runs.
	Fingerprint func() worker.Fingerprint
	// Health returns the state of the process. It may take as long as the checks of its dependencies.
	Health func(context.Context) health.Report
	// Maintenance is the maintenance mode.
	Maintenance Maintenance
	// Placement compares Temporals.
	Placement Placement
	// Processor returns what the process gets of the machine's processors.
	Processor func() processor.State
	// Store reads the facts of the database.
	Store func(context.Context) StoreFacts
	// Projects lists projects by name, after a name.
	Projects func(ctx context.Context, after string, limit int) ([]project.Project, error)
	// QueueName returns the name of the task queue of a project, Queue describes it.
	QueueName func(project string) string
	Queue     func(ctx context.Context, project string) (diagnose.QueueState, error)
	// Permitted returns the kinds of programs that a project permits.
	Permitted func(p project.Project) []string
	// Runners describes the task queue for the programs of a project.
	Runners func(ctx context.Context, project string) (diagnose.ProgramQueue, error)
	// Restore has what a restored database is compared with.
	Restore RestoreSources
	// Now is the clock.
	Now func() time.Time
}

// Service reports the status of the platform and executes the actions on the platform as a whole.
type Service struct {
	connector  Connector
	queue      Queue
	reconciler Reconciler
	registry   diagnose.Registry
	audit      AuditLog
	opts       Options
}

// NewService wires the service.
func NewService(connector Connector, queue Queue, reconciler Reconciler, registry diagnose.Registry, log AuditLog,
	opts Options) *Service {
	return &Service{connector: connector, queue: queue, reconciler: reconciler, registry: registry, audit: log, opts: opts}
}

// Status returns the current status.
func (s *Service) Status(ctx context.Context) Status {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	var asking sync.WaitGroup
	var report health.Report
	var facts StoreFacts
	asking.Go(func() { report = s.opts.Health(ctx) })
	asking.Go(func() { facts = s.opts.Store(ctx) })
	var runners Status
	asking.Go(func() { s.readRunners(ctx, &runners) })
	status := Status{
		At: s.opts.Now(), Version: s.opts.Version, ServerID: s.opts.ServerID, Roles: s.opts.Roles,
		StartedAt:  s.opts.StartedAt,
		Connection: s.connector.Status(), QueueMode: s.opts.QueueMode, Processor: s.opts.Processor(),
	}
	if state, known := s.opts.Maintenance.Last(); known {
		status.Maintenance = &state
	}
	last := &status.Reconciliation
	last.Report, last.At, last.Err = s.reconciler.Last()
	var err error
	if _, status.QueueMode.Runs, err = s.queue.CountQueued(ctx); err != nil {
		status.QueueMode.Error = publicError(ctx, err)
	}
	live, err := s.registry.ListWorkers(ctx, worker.AliveFor, maxWorkers)
	if err != nil {
		status.WorkersError = publicError(ctx, err)
	}
	own := s.opts.Fingerprint()
	for _, w := range live {
		status.Workers = append(status.Workers, LiveWorker{Worker: w, TakesRuns: !own.Differs(w.Fingerprint)})
	}
	asking.Wait()
	status.Dependencies, status.Store = report.Dependencies, facts
	status.Runners, status.MoreRunners, status.RunnersError = runners.Runners, runners.MoreRunners, runners.RunnersError
	if facts.Err != nil {
		status.Store.Error = publicError(ctx, facts.Err)
	}
	return status
}

// Queues describes the task queues of the projects by name, after a project.
func (s *Service) Queues(ctx context.Context, after string, limit int) ([]TaskQueue, error) {
	projects, err := s.opts.Projects(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	workers, unread := diagnose.ReadWorkers(ctx, s.registry, s.opts.Fingerprint())
	queues := make([]TaskQueue, len(projects))
	var asking errgroup.Group
	asking.SetLimit(maxQueueReads)
	for i := range projects {
		asking.Go(func() error {
			queues[i] = s.describe(ctx, projects[i], workers, unread)
			return nil
		})
	}
	return queues, asking.Wait()
}

// maxQueueReads is how many task queues are described at the same time.
const maxQueueReads = 8

// describe describes the queue of a project. Without the workers, for the reason unread, its live pollers are not
// known. The queue of a parked project is not read: no worker polls it, and it has no tasks.
func (s *Service) describe(ctx context.Context, p project.Project, workers []diagnose.Worker, unread error) TaskQueue {
	name := p.Name
	if text := parked(p); text != "" {
		return TaskQueue{Project: name, Name: s.opts.QueueName(name), Error: text}
	}
	state, err := s.opts.Queue(ctx, name)
	q := TaskQueue{Project: name, Name: state.Name}
	if err = cmp.Or(err, unread); err != nil {
		q.Error = publicError(ctx, err)
		return q
	}
	workflow, activity := state.Pollers(name, workers, s.opts.Now())
	q.Workflow, q.Activity = queueLine(state.Workflow, workflow), queueLine(state.Activity, activity)
	return q
}

// parked describes a parked project; empty for another one.
func parked(p project.Project) string {
	if p.ParkedAt.IsZero() {
		return ""
	}
	return fmt.Sprintf("parked since %s: nothing happens in the project, and no worker polls for it until the first start or "+
		"event", p.ParkedAt.UTC().Format(time.RFC3339))
}

func queueLine(state diagnose.TaskTypeState, pollers diagnose.Pollers) QueueLine {
	line := QueueLine{Pollers: pollers.Alive, Busy: pollers.Busy, Age: state.Age}
	if state.Measured {
		line.Backlog = &state.Backlog
	}
	for _, p := range state.Pollers {
		if p.LastAccess.After(line.PolledAt) {
			line.PolledAt = p.LastAccess
		}
	}
	return line
}

// Connection returns the state of this process's connection to Temporal. It never blocks.
func (s *Service) Connection() conntype.Status { return s.connector.Status() }

// Maintenance returns whether the platform is in maintenance.
func (s *Service) Maintenance(ctx context.Context) (maintenance.State, error) {
	return s.opts.Maintenance.Get(ctx)
}

// SetMaintenance switches the maintenance mode on or off, which is audited.
func (s *Service) SetMaintenance(ctx context.Context, on bool, reason string) (maintenance.State, error) {
	return s.opts.Maintenance.Set(ctx, on, reason)
}

// Mismatch returns how the Temporal of the process differs from the one that holds the runs, in one sentence; empty
// while it does not.
func (s *Service) Mismatch() string { return s.opts.Placement.RunsTitle() }

// AdoptTemporal records that runs start in the Temporal of the process from now on. Open runs are left in the former
// one.
func (s *Service) AdoptTemporal(ctx context.Context, r run.AdoptRequest) (run.Adoption, error) {
	return s.opts.Placement.Adopt(ctx, r)
}

// publicError returns an error in the form for callers; the log has the rest.
func publicError(ctx context.Context, err error) string {
	if f, ok := apperror.From(err); ok {
		return f.Message
	}
	logger.FromContext(ctx).WarnContext(ctx, "The platform's status is incomplete", "error", err)
	return "unknown; see the server's log for the cause"
}

// ResetBreaker makes the connection try immediately and returns its state, without waiting for the attempt. It works
// while the database is unavailable; its audit entry is then only in the log.
func (s *Service) ResetBreaker(ctx context.Context) conntype.Status {
	s.connector.ResetBreaker()
	c := s.connector.Status()
	entry := audit.NewEntry(ctx, s.opts.Now(), audit.SystemResetBreaker, "", c.Address+" "+c.Namespace, "")
	s.record(ctx, entry)
	return c
}

// Reconcile compares the runs with Temporal immediately, and has executions without a row searched that ended after
// since, unless that is zero. A dry run corrects nothing and writes no audit entry.
func (s *Service) Reconcile(ctx context.Context, dryRun bool, since time.Time) (run.Report, error) {
	if !since.IsZero() {
		if dryRun {
			return run.Report{}, apperror.New(apperror.Invalid, apperror.InvalidArgument,
				"a dry run searches nothing again; leave out since, or dry_run").
				WithField("since", "is not possible with dry_run")
		}
		if err := s.reconciler.SearchSince(ctx, since); err != nil {
			return run.Report{}, err
		}
	}
	report, err := s.reconciler.Reconcile(ctx, dryRun)
	if err != nil || dryRun {
		return report, err
	}
	entry := audit.NewEntry(ctx, s.opts.Now(), audit.SystemReconcile, "", s.opts.ServerID, "")
	entry.Detail, _ = json.Marshal(map[string]int{ //nolint:errchkjson // numbers always encode
		"checked": report.Checked, "corrections": report.Total, "failed": report.Failed, "withheld": report.Withheld,
	})
	s.record(ctx, entry)
	return report, nil
}

// record writes an entry for an action that was already executed: a failure is logged, with all the data of the entry.
func (s *Service) record(ctx context.Context, e audit.Entry) {
	if err := s.audit.WriteAudit(ctx, e); err != nil {
		logger.FromContext(ctx).ErrorContext(ctx, "An audit entry could not be written", "action", e.Action,
			"subject", e.Subject, "actor", e.Actor.Name, "detail", string(e.Detail), "error", err)
	}
}
