package dispatcher

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

// ownersShown is how much of the history of its owners comes with a dispatcher.
const ownersShown = 20

// Source reads leases, Temporal and the inbox, and acts on dispatchers. What it returns may come in any order.
type Source interface {
	// List returns all dispatchers that any of the three knows, and one of each project. It fails only where none of them can be asked.
	List(ctx context.Context) ([]Dispatcher, error)
	// Get returns a project's dispatcher with its workers: [Missing] where there is none.
	Get(ctx context.Context, project string) (Dispatcher, error)
	Workers(ctx context.Context) (Workers, error)
	// HandOver asks the owner of a project's dispatcher to resign, and returns who that is. It returns
	// [fault.DispatcherNotOwned] while there is none, and [fault.LeasesUnavailable] where that cannot be asked.
	HandOver(ctx context.Context, project, by, reason string) (inbox.Owner, error)
	// Reconcile makes one cycle of the supervisor now. It returns a [fault.Unavailable] where there is nothing to judge by.
	Reconcile(ctx context.Context, dryRun bool) (Report, error)
}

// History keeps the owners that dispatchers had.
type History interface {
	// OwnerHistory returns up to limit changes, newest first.
	OwnerHistory(ctx context.Context, name inbox.Name, limit int) ([]event.OwnerChange, error)
}

// AuditLog takes entries of what changes no row.
type AuditLog interface {
	WriteAudit(ctx context.Context, e audit.Entry) error
}

// Service tells of dispatchers and workers, and does what is done to them.
type Service struct {
	source  Source
	history History
	audit   AuditLog
	now     func() time.Time
}

// NewService wires the service.
func NewService(source Source, history History, log AuditLog, now func() time.Time) *Service {
	return &Service{source: source, history: history, audit: log, now: now}
}

// List returns all dispatchers by project and task queue.
func (s *Service) List(ctx context.Context) ([]Dispatcher, error) {
	all, err := s.source.List(ctx)
	slices.SortFunc(all, func(a, b Dispatcher) int { return a.Name.Compare(b.Name) })
	return all, err
}

// Get returns a project's dispatcher with its workers and its last owners. A history that cannot be read is one of its errors.
func (s *Service) Get(ctx context.Context, project string) (Dispatcher, error) {
	d, err := s.source.Get(ctx, project)
	if err != nil {
		return Dispatcher{}, err
	}
	slices.SortFunc(d.Workers, func(a, b Registered) int {
		return cmp.Or(strings.Compare(a.ServerID, b.ServerID), strings.Compare(a.TaskQueue, b.TaskQueue))
	})
	if d.Owners, err = s.history.OwnerHistory(ctx, d.Name, ownersShown); err != nil {
		d.Errors = append(d.Errors, "the history of its owners: "+told(ctx, err))
	}
	return d, nil
}

// Workers returns all workers by server ID.
func (s *Service) Workers(ctx context.Context) (Workers, error) {
	found, err := s.source.Workers(ctx)
	slices.SortFunc(found.Workers, func(a, b Worker) int { return strings.Compare(a.ServerID, b.ServerID) })
	for _, w := range found.Workers {
		slices.SortFunc(w.Registrations, func(a, b Registration) int { return a.Name.Compare(b.Name) })
	}
	return found, err
}

// HandOver asks the owner of a project's dispatcher to resign, and returns who that is.
func (s *Service) HandOver(ctx context.Context, project, reason string) (inbox.Owner, error) {
	entry := audit.NewEntry(ctx, s.now(), audit.DispatcherHandOver, project, project, reason)
	owner, err := s.source.HandOver(ctx, project, entry.Actor.Name, reason)
	if err != nil {
		return inbox.Owner{}, err
	}
	entry.Detail, _ = json.Marshal(map[string]any{ //nolint:errchkjson // a text and a number always encode
		"owner": owner.Holder, "epoch": owner.Epoch,
	})
	s.record(ctx, entry)
	return owner, nil
}

// Reconcile makes one cycle of the supervisor now. A dry run does nothing and leaves no entry. Each termination has an entry of
// its own, which whoever terminates writes.
func (s *Service) Reconcile(ctx context.Context, dryRun bool) (Report, error) {
	report, err := s.source.Reconcile(ctx, dryRun)
	if err != nil || dryRun {
		return report, err
	}
	counts := map[string]int{"dispatchers": report.Dispatchers, "healthy": report.Healthy, "stale": report.Stale, "unknown": report.Unknown}
	for _, item := range report.Items {
		if item.Applied {
			counts[string(item.Action)]++
		}
	}
	entry := audit.NewEntry(ctx, s.now(), audit.DispatcherReconcile, "", "dispatchers", "")
	entry.Detail, _ = json.Marshal(counts) //nolint:errchkjson // numbers always encode
	s.record(ctx, entry)
	return report, nil
}

// record writes an entry for what has been done already: a failure is logged, with all that the entry would have said.
func (s *Service) record(ctx context.Context, e audit.Entry) {
	if err := s.audit.WriteAudit(ctx, e); err != nil {
		logger.FromContext(ctx).ErrorContext(ctx, "An audit entry could not be written", "action", e.Action,
			"subject", e.Subject, "actor", e.Actor.Name, "reason", e.Reason, "detail", string(e.Detail), "error", err)
	}
}

// told is an error as callers may see it; the log has the rest.
func told(ctx context.Context, err error) string {
	if f, ok := fault.From(err); ok {
		return f.Message
	}
	logger.FromContext(ctx).WarnContext(ctx, "A part of what is known of a dispatcher is missing", "error", err)
	return "not known; the server's log says why"
}
