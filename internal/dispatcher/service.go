package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

// ownersShown is the number of last owners that are returned with a dispatcher.
const ownersShown = 20

// Overview reads dispatchers and workers. Its lists are ordered by name, those of workers by server ID.
// [dispatch.Overview] implements it.
type Overview interface {
	// List returns the dispatchers of all sources, and one of each project. It fails only if no source can be read.
	List(ctx context.Context) ([]dispatchtype.Dispatcher, error)
	// Get returns one dispatcher with its answer to a state query. Its status is [dispatchtype.Missing] if there is none.
	Get(ctx context.Context, name inbox.Name) (dispatchtype.Dispatcher, error)
	// Workers returns all workers with their registrations, and the sources that could not be read.
	Workers(ctx context.Context) ([]dispatchtype.Worker, []dispatchtype.PartError, error)
}

// Operator acts on dispatchers. [dispatch.Dispatchers] implements it.
type Operator interface {
	// RequestHandover asks the owner of a dispatcher to resign. It returns [dispatchtype.ErrNotOwned] if there is none.
	RequestHandover(ctx context.Context, name inbox.Name, by, reason string) error
	// Reconcile runs one supervisor cycle now.
	Reconcile(ctx context.Context, dryRun bool) (dispatchtype.Report, error)
}

// History stores the owners of dispatchers.
type History interface {
	// OwnerHistory returns up to limit changes, newest first.
	OwnerHistory(ctx context.Context, name inbox.Name, limit int) ([]dispatchtype.OwnerChange, error)
}

// AuditLog stores audit entries of operations that change no row.
type AuditLog interface {
	WriteAudit(ctx context.Context, e audit.Entry) error
}

// Options configure [NewService].
type Options struct {
	Overview Overview
	Operator Operator
	History  History
	Audit    AuditLog
	// Name returns the name of a project's dispatcher.
	Name func(project string) inbox.Name
	Now  func() time.Time
}

// Service reads dispatchers and workers, and runs the operations.
type Service struct{ o Options }

// NewService returns a service.
func NewService(o Options) *Service { return &Service{o} }

// List returns all dispatchers, ordered by project and task queue.
func (s *Service) List(ctx context.Context) ([]Dispatcher, error) {
	found, err := s.o.Overview.List(ctx)
	all := make([]Dispatcher, len(found))
	for i := range found {
		all[i] = describe(ctx, found[i])
	}
	return all, statusError(ctx, err)
}

// Get returns a project's dispatcher with its workers and its last owners. A history that cannot be read is reported in
// the dispatcher's Unread.
func (s *Service) Get(ctx context.Context, project string) (Dispatcher, error) {
	found, err := s.o.Overview.Get(ctx, s.o.Name(project))
	if err != nil {
		return Dispatcher{}, statusError(ctx, err)
	}
	d := describe(ctx, found)
	if d.Owners, err = s.o.History.OwnerHistory(ctx, d.Name, ownersShown); err != nil {
		d.Unread = append(d.Unread, "the history of its owners: "+publicError(ctx, err))
	}
	return d, nil
}

// Workers returns all workers, ordered by server ID.
func (s *Service) Workers(ctx context.Context) (Workers, error) {
	found, failed, err := s.o.Overview.Workers(ctx)
	return Workers{found, unread(ctx, failed)}, statusError(ctx, err)
}

// HandOver asks the owner of a project's dispatcher to resign, and returns the owner. It returns
// [apperror.DispatcherNotOwned] if there is none, and [apperror.LeasesUnavailable] if the leases cannot be read.
func (s *Service) HandOver(ctx context.Context, project, reason string) (inbox.Owner, error) {
	name := s.o.Name(project)
	before, err := s.o.Overview.Get(ctx, name)
	if err != nil {
		return inbox.Owner{}, statusError(ctx, err)
	}
	entry := audit.NewEntry(ctx, s.o.Now(), audit.DispatcherHandOver, project, project, reason)
	err = s.o.Operator.RequestHandover(ctx, name, entry.Actor.Name, reason)
	if errors.Is(err, dispatchtype.ErrNotOwned) {
		return inbox.Owner{}, apperror.New(apperror.Refused, apperror.DispatcherNotOwned,
			"the dispatcher of project %q has no owner that could hand it over; `signalbox dispatcher show %s` shows its state", project, project)
	}
	if err != nil {
		return inbox.Owner{}, apperror.New(apperror.Unavailable, apperror.LeasesUnavailable,
			"the leases cannot be read; see redis in the configuration").WithRetry(retryDelay).WithCause(err)
	}
	var owner inbox.Owner
	if before.Lease != nil {
		owner = before.Lease.Owner
	}
	entry.Detail, _ = json.Marshal(map[string]any{ //nolint:errchkjson // a text and a number always encode
		"owner": owner.Holder, "epoch": owner.Epoch,
	})
	s.record(ctx, entry)
	return owner, nil
}

// Reconcile runs one supervisor cycle now. A dry run takes no action and has no audit entry. Each termination has its
// own entry, which the terminating process writes. A cycle that failed after it took actions is reported with their
// errors.
func (s *Service) Reconcile(ctx context.Context, dryRun bool) (dispatchtype.Report, error) {
	report, err := s.o.Operator.Reconcile(ctx, dryRun)
	if err != nil && len(report.Items) == 0 {
		return dispatchtype.Report{}, statusError(ctx, err)
	}
	if dryRun {
		return report, nil
	}
	counts := map[string]int{
		"dispatchers": report.Dispatchers, "healthy": report.Healthy, "stale": report.Stale, "unknown": report.Unknown}
	for _, item := range report.Items {
		if item.Applied {
			counts[string(item.Action)]++
		}
	}
	entry := audit.NewEntry(ctx, s.o.Now(), audit.DispatcherReconcile, "", "dispatchers", "")
	entry.Detail, _ = json.Marshal(counts) //nolint:errchkjson // numbers always encode
	s.record(ctx, entry)
	return report, nil
}

// record writes the entry of a completed operation: a failure is logged with the contents of the entry.
func (s *Service) record(ctx context.Context, e audit.Entry) {
	if err := s.o.Audit.WriteAudit(ctx, e); err != nil {
		logger.FromContext(ctx).ErrorContext(ctx, "An audit entry could not be written", "action", e.Action,
			"subject", e.Subject, "actor", e.Actor.Name, "reason", e.Reason, "detail", string(e.Detail), "error", err)
	}
}
