package system

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// askFor bounds what is asked for a status: a database that hangs must not keep the rest from being told.
const askFor = time.Second

// mostWorkers is how many live workers a status lists.
const mostWorkers = 1000

// Link is this process's connection to Temporal.
type Link interface {
	// Connection returns what is known. It never blocks.
	Connection() Connection
	// ResetBreaker lets it try to connect at once.
	ResetBreaker()
}

// Queue holds the runs that were accepted while Temporal was away.
type Queue interface {
	// CountQueued returns how many wait, and how many places of the queue are taken, by those that are being handed over too.
	CountQueued(ctx context.Context) (waiting, total int64, err error)
}

// Reconciler compares the runs with Temporal.
type Reconciler interface {
	// Reconcile does it now, and corrects what differs unless dryRun is set. It returns a [fault.Unavailable] while
	// Temporal is away.
	Reconcile(ctx context.Context, dryRun bool) (run.Report, error)
	// Last returns what this process's last one found.
	Last() Reconciliation
}

// Registry knows the live workers of all processes.
type Registry interface {
	// ListWorkers returns up to limit workers that gave a sign of life within that time.
	ListWorkers(ctx context.Context, within time.Duration, limit int) ([]worker.Worker, error)
}

// AuditLog takes entries of what changes no row.
type AuditLog interface {
	WriteAudit(ctx context.Context, e audit.Entry) error
}

// Options are what the process knows of itself.
type Options struct {
	Version, ServerID string
	Roles             []string
	StartedAt         time.Time
	// QueueMode has the settings; its Runs and Error are asked for.
	QueueMode QueueMode
	// Fingerprint is what the process starts runs with.
	Fingerprint func() worker.Fingerprint
	// Mismatch returns how the process's Temporal differs from that of the runs or of live workers; empty while it does not.
	Mismatch func() string
	// Dependencies returns the states of what the process needs. It may take as long as its checks do.
	Dependencies func(context.Context) []Dependency
	// Now is the clock.
	Now func() time.Time
}

// Service tells of the platform, and does what is done to it as a whole.
type Service struct {
	link       Link
	queue      Queue
	reconciler Reconciler
	registry   Registry
	audit      AuditLog
	opts       Options
}

// NewService wires the service.
func NewService(link Link, queue Queue, reconciler Reconciler, registry Registry, log AuditLog, opts Options) *Service {
	return &Service{link: link, queue: queue, reconciler: reconciler, registry: registry, audit: log, opts: opts}
}

// Status returns everything that is known now.
func (s *Service) Status(ctx context.Context) Status {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	var asking sync.WaitGroup
	var dependencies []Dependency
	asking.Go(func() { dependencies = s.opts.Dependencies(ctx) })
	status := Status{
		At: s.opts.Now(), Version: s.opts.Version, ServerID: s.opts.ServerID, Roles: s.opts.Roles, StartedAt: s.opts.StartedAt,
		Connection: s.link.Connection(), QueueMode: s.opts.QueueMode, Reconciliation: s.reconciler.Last(),
		Mismatch: s.opts.Mismatch(),
	}
	var err error
	if _, status.QueueMode.Runs, err = s.queue.CountQueued(ctx); err != nil {
		status.QueueMode.Error = told(ctx, err)
	}
	live, err := s.registry.ListWorkers(ctx, worker.AliveFor, mostWorkers)
	if err != nil {
		status.WorkersError = told(ctx, err)
	}
	own := s.opts.Fingerprint()
	for _, w := range live {
		status.Workers = append(status.Workers, LiveWorker{Worker: w, TakesRuns: !own.Differs(w.Fingerprint)})
	}
	asking.Wait()
	status.Dependencies = dependencies
	return status
}

// told is an error as callers may see it; the log has the rest.
func told(ctx context.Context, err error) string {
	if f, ok := fault.From(err); ok {
		return f.Message
	}
	logger.FromContext(ctx).WarnContext(ctx, "A part of the platform's status is not known", "error", err)
	return "not known; the server's log says why"
}

// ResetBreaker lets the connection try at once and returns it as it then is. The attempt is not waited for. It works
// while the database is away as well: its audit entry is then in the log alone.
func (s *Service) ResetBreaker(ctx context.Context) Connection {
	s.link.ResetBreaker()
	c := s.link.Connection()
	entry := audit.NewEntry(ctx, s.opts.Now(), audit.SystemResetBreaker, "", c.Address+" "+c.Namespace, "")
	s.record(ctx, entry)
	return c
}

// Reconcile compares the runs with Temporal now. A dry run corrects nothing and leaves no entry.
func (s *Service) Reconcile(ctx context.Context, dryRun bool) (run.Report, error) {
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

// record writes an entry for what has been done already: a failure is logged, with all that the entry would have said.
func (s *Service) record(ctx context.Context, e audit.Entry) {
	if err := s.audit.WriteAudit(ctx, e); err != nil {
		logger.FromContext(ctx).ErrorContext(ctx, "An audit entry could not be written", "action", e.Action,
			"subject", e.Subject, "actor", e.Actor.Name, "detail", string(e.Detail), "error", err)
	}
}
