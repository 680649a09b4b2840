package dispatcher

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

// ownersShown is the number of last owners that are returned with a dispatcher.
const ownersShown = 20

// Source reads leases, Temporal and the inbox, and acts on dispatchers. Its results may be in any order.
type Source interface {
	// List returns the dispatchers of all three sources, and one of each project. It fails only if no source can be read.
	List(ctx context.Context) ([]Dispatcher, error)
	// Get returns a project's dispatcher with its workers; its state is [Missing] if there is none.
	Get(ctx context.Context, project string) (Dispatcher, error)
	Workers(ctx context.Context) (Workers, error)
	// HandOver asks the owner of a project's dispatcher to resign, and returns the owner. It returns [apperror.DispatcherNotOwned] if there
	// is none, and [apperror.LeasesUnavailable] if the leases cannot be read.
	HandOver(ctx context.Context, project, by, reason string) (inbox.Owner, error)
	// Reconcile runs one supervisor cycle now. It returns an [apperror.Unavailable] if the sources cannot be read.
	Reconcile(ctx context.Context, dryRun bool) (Report, error)
}

// History stores the owners of dispatchers.
type History interface {
	// OwnerHistory returns up to limit changes, newest first.
	OwnerHistory(ctx context.Context, name inbox.Name, limit int) ([]event.OwnerChange, error)
}

// AuditLog stores audit entries of operations that change no row.
type AuditLog interface {
	WriteAudit(ctx context.Context, e audit.Entry) error
}

// Service reads dispatchers and workers, and runs the operations.
type Service struct {
	source  Source
	history History
	audit   AuditLog
	now     func() time.Time
}

// NewService returns a service.
func NewService(source Source, history History, log AuditLog, now func() time.Time) *Service {
	return &Service{source: source, history: history, audit: log, now: now}
}

// List returns all dispatchers, ordered by project and task queue.
func (s *Service) List(ctx context.Context) ([]Dispatcher, error) {
	all, err := s.source.List(ctx)
	slices.SortFunc(all, func(a, b Dispatcher) int { return a.Name.Compare(b.Name) })
	return all, err
}

// Get returns a project's dispatcher with its workers and its last owners. A history that cannot be read is reported in the dispatcher's
// Errors.
func (s *Service) Get(ctx context.Context, project string) (Dispatcher, error) {
	d, err := s.source.Get(ctx, project)
	if err != nil {
		return Dispatcher{}, err
	}
	slices.SortFunc(d.Workers, func(a, b Registered) int {
		return cmp.Or(strings.Compare(a.ServerID, b.ServerID), strings.Compare(a.TaskQueue, b.TaskQueue))
	})
	if d.Owners, err = s.history.OwnerHistory(ctx, d.Name, ownersShown); err != nil {
		d.Errors = append(d.Errors, "the history of its owners: "+publicError(ctx, err))
	}
	return d, nil
}

// Workers returns all workers, ordered by server ID.
func (s *Service) Workers(ctx context.Context) (Workers, error) {
	found, err := s.source.Workers(ctx)
	slices.SortFunc(found.Workers, func(a, b Worker) int { return strings.Compare(a.ServerID, b.ServerID) })
	for _, w := range found.Workers {
		slices.SortFunc(w.Registrations, func(a, b Registration) int { return a.Name.Compare(b.Name) })
	}
	return found, err
}

// HandOver asks the owner of a project's dispatcher to resign, and returns the owner.
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

// Reconcile runs one supervisor cycle now. A dry run takes no action and has no audit entry. Each termination has its own entry, which the
// terminating process writes.
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

// record writes the entry of a completed operation: a failure is logged with the contents of the entry.
func (s *Service) record(ctx context.Context, e audit.Entry) {
	if err := s.audit.WriteAudit(ctx, e); err != nil {
		logger.FromContext(ctx).ErrorContext(ctx, "An audit entry could not be written", "action", e.Action,
			"subject", e.Subject, "actor", e.Actor.Name, "reason", e.Reason, "detail", string(e.Detail), "error", err)
	}
}

// publicError returns the text of an error for callers; the log has the error.
func publicError(ctx context.Context, err error) string {
	if f, ok := apperror.From(err); ok {
		return f.Message
	}
	logger.FromContext(ctx).WarnContext(ctx, "Dispatcher status is incomplete", "error", err)
	return "cannot be read; the server's log has the cause"
}
