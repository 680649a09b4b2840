package dispatcher_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

var shop = inbox.Name{Project: "shop", TaskQueue: "signalbox-shop"}

// dependencies are the service's dependencies, with the answers that a test sets.
type dependencies struct {
	all        []dispatcher.Dispatcher
	workers    dispatcher.Workers
	owner      inbox.Owner
	report     dispatcher.Report
	refuse     error
	history    error
	by         []string
	dry        []bool
	entries    []audit.Entry
	auditError error
}

func (s *dependencies) List(context.Context) ([]dispatcher.Dispatcher, error) { return s.all, s.refuse }

func (s *dependencies) Get(_ context.Context, project string) (dispatcher.Dispatcher, error) {
	for _, d := range s.all {
		if d.Name.Project == project {
			return d, nil
		}
	}
	return dispatcher.Dispatcher{}, apperror.New(apperror.Unavailable, apperror.StoreUnavailable, "none can be asked")
}

func (s *dependencies) Workers(context.Context) (dispatcher.Workers, error) {
	return s.workers, s.refuse
}

func (s *dependencies) HandOver(_ context.Context, project, by, reason string) (inbox.Owner, error) {
	s.by = append(s.by, project+" "+by+" "+reason)
	return s.owner, s.refuse
}

func (s *dependencies) Reconcile(_ context.Context, dryRun bool) (dispatcher.Report, error) {
	s.dry = append(s.dry, dryRun)
	return s.report, s.refuse
}

func (s *dependencies) OwnerHistory(_ context.Context, name inbox.Name, limit int) ([]event.OwnerChange, error) {
	if limit < 1 || limit > 100 {
		return nil, errors.New("history without bounds")
	}
	return []event.OwnerChange{{Name: name, How: "takeover"}}, s.history
}

func (s *dependencies) WriteAudit(_ context.Context, e audit.Entry) error {
	s.entries = append(s.entries, e)
	return s.auditError
}

func newService(s *dependencies) *dispatcher.Service {
	return dispatcher.NewService(s, s, s, func() time.Time { return noon })
}

func TestListsAreSorted(t *testing.T) {
	t.Parallel()
	queue := func(project, queue string) dispatcher.Dispatcher {
		return dispatcher.Dispatcher{Name: inbox.Name{Project: project, TaskQueue: queue}}
	}
	s := &dependencies{
		all: []dispatcher.Dispatcher{queue("b", "x"), queue("a", "y"), queue("a", "x")},
		workers: dispatcher.Workers{Errors: []string{"Temporal is away"}, Workers: []dispatcher.Worker{
			{ServerID: "2", Registrations: []dispatcher.Registration{{Name: inbox.Name{Project: "b"}}, {Name: inbox.Name{Project: "a"}}}},
			{ServerID: "1"},
		}},
	}
	service := newService(s)
	all, err := service.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []dispatcher.Dispatcher{queue("a", "x"), queue("a", "y"), queue("b", "x")}, all)
	workers, err := service.Workers(t.Context())
	require.NoError(t, err)
	require.Equal(t, dispatcher.Workers{Errors: []string{"Temporal is away"}, Workers: []dispatcher.Worker{
		{ServerID: "1"},
		{ServerID: "2", Registrations: []dispatcher.Registration{{Name: inbox.Name{Project: "a"}}, {Name: inbox.Name{Project: "b"}}}},
	}}, workers)

	s.refuse = apperror.New(apperror.Unavailable, apperror.LeasesUnavailable, "away")
	_, err = service.List(t.Context())
	require.True(t, apperror.Is(err, apperror.LeasesUnavailable))
	_, err = service.Workers(t.Context())
	require.True(t, apperror.Is(err, apperror.LeasesUnavailable))
}

// A history that cannot be read affects nothing else, and the cause is not in the answer.
func TestGetReturnsHistory(t *testing.T) {
	t.Parallel()
	s := &dependencies{all: []dispatcher.Dispatcher{{
		Name: shop, State: dispatcher.Routing,
		Workers: []dispatcher.Registered{{ServerID: "b"}, {ServerID: "a", TaskQueue: "y"}, {ServerID: "a", TaskQueue: "x"}},
	}}}
	service := newService(s)
	d, err := service.Get(t.Context(), "shop")
	require.NoError(t, err)
	require.Equal(t, []event.OwnerChange{{Name: shop, How: "takeover"}}, d.Owners)
	require.Equal(t, []dispatcher.Registered{{ServerID: "a", TaskQueue: "x"}, {ServerID: "a", TaskQueue: "y"}, {ServerID: "b"}}, d.Workers)
	require.Empty(t, d.Errors)

	s.history = errors.New("password=hunter2")
	d, err = service.Get(logger.WithContext(t.Context(), slog.New(slog.DiscardHandler)), "shop")
	require.NoError(t, err)
	require.Equal(t, dispatcher.Routing, d.State)
	require.Equal(t, []string{"the history of its owners: cannot be read; the server's log has the cause"}, d.Errors)
	s.history = apperror.New(apperror.Unavailable, apperror.StoreUnavailable, "the database is away").WithCause(s.history)
	d, err = service.Get(t.Context(), "shop")
	require.NoError(t, err)
	require.Equal(t, []string{"the history of its owners: the database is away"}, d.Errors)

	_, err = service.Get(t.Context(), "other")
	require.True(t, apperror.Is(err, apperror.StoreUnavailable))
}

func TestHandOverIsAuditedUnlessRejected(t *testing.T) {
	t.Parallel()
	ada := auth.Actor{Kind: auth.KindLocal, Name: "ada"}
	ctx := auth.WithActor(t.Context(), ada)
	s := &dependencies{owner: inbox.Owner{Epoch: 7, Holder: "host-1"}}
	service := newService(s)
	owner, err := service.HandOver(ctx, "shop", "a new node")
	require.NoError(t, err)
	require.Equal(t, s.owner, owner)
	require.Equal(t, []string{"shop ada a new node"}, s.by)
	require.Len(t, s.entries, 1)
	require.JSONEq(t, `{"owner":"host-1","epoch":7}`, string(s.entries[0].Detail))
	s.entries[0].Detail = nil
	require.Equal(t, audit.Entry{
		Time: noon, Actor: ada, Action: "dispatcher.hand_over", Project: "shop", Subject: "shop", Reason: "a new node",
	}, s.entries[0])

	s.auditError = errors.New("the database is away")
	var log strings.Builder
	_, err = service.HandOver(logger.WithContext(ctx, slog.New(slog.NewTextHandler(&log, nil))), "shop", "again")
	require.NoError(t, err, "the operation is already complete")
	require.Contains(t, log.String(), "actor=ada")
	require.Contains(t, log.String(), "reason=again")

	s.refuse = apperror.New(apperror.Refused, apperror.DispatcherNotOwned, "no owner")
	_, err = service.HandOver(ctx, "shop", "")
	require.True(t, apperror.Is(err, apperror.DispatcherNotOwned))
	require.Len(t, s.entries, 2)
}

func TestReconcileIsAuditedUnlessDryOrRejected(t *testing.T) {
	t.Parallel()
	s := &dependencies{report: dispatcher.Report{Dispatchers: 4, Healthy: 1, Stale: 2, Unknown: 1, Items: []dispatcher.Item{
		{Action: dispatcher.Terminate, Applied: true}, {Action: dispatcher.Terminate, Error: "away"},
		{Action: dispatcher.DeleteEntry, Applied: true}, {Action: dispatcher.Alert},
	}}}
	service := newService(s)
	report, err := service.Reconcile(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, s.report, report)
	require.Empty(t, s.entries)

	_, err = service.Reconcile(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, []bool{true, false}, s.dry)
	require.Len(t, s.entries, 1)
	require.Equal(t, "dispatcher.reconcile", s.entries[0].Action)
	require.JSONEq(t, `{"dispatchers":4,"healthy":1,"stale":2,"unknown":1,"terminate":1,"delete_entry":1}`, string(s.entries[0].Detail))

	s.refuse = apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "away")
	_, err = service.Reconcile(t.Context(), false)
	require.True(t, apperror.Is(err, apperror.EngineUnavailable))
	require.Len(t, s.entries, 1)
}
