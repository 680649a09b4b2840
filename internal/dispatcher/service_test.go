package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

var shopDispatcher = inbox.Name{Project: "shop", TaskQueue: "signalbox-shop"}

// dependencies are the service's dependencies, with the answers that a test sets.
type dependencies struct {
	all        []dispatchtype.Dispatcher
	workers    []dispatchtype.Worker
	failed     []dispatchtype.PartError
	report     dispatchtype.Report
	refuse     error
	history    error
	by         []string
	dry        []bool
	entries    []audit.Entry
	auditError error
}

func (s *dependencies) List(context.Context) ([]dispatchtype.Dispatcher, error) {
	return s.all, s.refuse
}

func (s *dependencies) Get(_ context.Context, name inbox.Name) (dispatchtype.Dispatcher, error) {
	for _, d := range s.all {
		if d.Name == name {
			return d, nil
		}
	}
	return dispatchtype.Dispatcher{}, apperror.New(apperror.Unavailable, apperror.StoreUnavailable, "none can be asked")
}

func (s *dependencies) Workers(context.Context) ([]dispatchtype.Worker, []dispatchtype.PartError, error) {
	return s.workers, s.failed, s.refuse
}

func (s *dependencies) RequestHandover(_ context.Context, name inbox.Name, by, reason string) error {
	s.by = append(s.by, name.Project+" "+by+" "+reason)
	return s.refuse
}

func (s *dependencies) Reconcile(_ context.Context, dryRun bool) (dispatchtype.Report, error) {
	s.dry = append(s.dry, dryRun)
	return s.report, s.refuse
}

func (s *dependencies) OwnerHistory(_ context.Context, name inbox.Name, limit int) ([]dispatchtype.OwnerChange, error) {
	if limit < 1 || limit > 100 {
		return nil, errors.New("history without bounds")
	}
	return []dispatchtype.OwnerChange{{Name: name, Outcome: "takeover"}}, s.history
}

func (s *dependencies) WriteAudit(_ context.Context, e audit.Entry) error {
	s.entries = append(s.entries, e)
	return s.auditError
}

func newService(s *dependencies) *dispatcher.Service {
	return dispatcher.NewService(dispatcher.Options{
		Overview: s, Operator: s, History: s, Audit: s, Now: func() time.Time { return noon },
		Name: func(project string) inbox.Name {
			return inbox.Name{Project: project, TaskQueue: "signalbox-" + project}
		},
	})
}

// Lists keep the order of the overview, and say what could not be read without the address of the backend that failed.
func TestListsReportWhatCouldNotBeRead(t *testing.T) {
	t.Parallel()
	away := dispatchtype.PartError{Part: dispatchtype.PartTemporal, Err: errors.New("dial tcp temporal.example.com:7233")}
	queue := func(project, queue string) dispatchtype.Dispatcher {
		return dispatchtype.Dispatcher{
			Name: inbox.Name{Project: project, TaskQueue: queue}, Errors: []dispatchtype.PartError{away}}
	}
	s := &dependencies{
		all:     []dispatchtype.Dispatcher{queue("a", "x"), queue("a", "y"), queue("b", "x")},
		workers: []dispatchtype.Worker{{ServerID: "1"}, {ServerID: "2"}}, failed: []dispatchtype.PartError{away},
	}
	var log strings.Builder
	ctx := logger.WithContext(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
	service := newService(s)
	all, err := service.List(ctx)
	require.NoError(t, err)
	unread := []string{"temporal: Temporal does not answer; check `signalbox system status`; see the server's log for " +
		"the cause"}
	var want []dispatcher.Dispatcher
	for _, d := range s.all {
		want = append(want, dispatcher.Dispatcher{Dispatcher: d, Unread: unread})
	}
	require.Equal(t, want, all)
	workers, err := service.Workers(ctx)
	require.NoError(t, err)
	require.Equal(t, dispatcher.Workers{Workers: s.workers, Unread: unread}, workers)
	require.Contains(t, log.String(), "temporal.example.com:7233")

	s.refuse = apperror.New(apperror.Unavailable, apperror.LeasesUnavailable, "away")
	_, err = service.List(ctx)
	require.True(t, apperror.Is(err, apperror.LeasesUnavailable))
	_, err = service.Workers(ctx)
	require.True(t, apperror.Is(err, apperror.LeasesUnavailable))
}

func TestFactsOfHeartbeats(t *testing.T) {
	t.Parallel()
	facts := dispatcher.Facts{Interpreter: 3, Contract: "c1", LastPoll: noon, BusySince: noon.Add(-time.Minute)}
	encoded := facts.Encode()
	require.Equal(t, map[string]string{
		"interpreter": "3", "contract": "c1", "lastPoll": "2026-01-31T12:00:00Z", "busySince": "2026-01-31T11:59:00Z"},
		encoded)
	require.Equal(t, facts, dispatcher.FactsOf(dispatchtype.Worker{Heartbeat: dispatchtype.Heartbeat{Facts: encoded}}))
	require.NotContains(t, dispatcher.Facts{}.Encode(), "lastPoll")
	require.NotContains(t, dispatcher.Facts{}.Encode(), "busySince")
	require.Equal(t, dispatcher.Facts{}, dispatcher.FactsOf(dispatchtype.Worker{}), "of a worker without a heartbeat")
}

// A history that cannot be read affects nothing else, and the cause is not in the answer.
func TestGetReturnsHistory(t *testing.T) {
	t.Parallel()
	state := &dispatchtype.State{Workers: []dispatchtype.RegisteredWorker{{ServerID: "a"}, {ServerID: "b"}}}
	s := &dependencies{all: []dispatchtype.Dispatcher{{Name: shopDispatcher, Status: dispatchtype.Routing, State: state}}}
	service := newService(s)
	d, err := service.Get(t.Context(), "shop")
	require.NoError(t, err)
	require.Equal(t, []dispatchtype.OwnerChange{{Name: shopDispatcher, Outcome: "takeover"}}, d.Owners)
	require.Equal(t, state, d.State)
	require.Empty(t, d.Unread)

	s.history = errors.New("password=hunter2")
	d, err = service.Get(logger.WithContext(t.Context(), slog.New(slog.DiscardHandler)), "shop")
	require.NoError(t, err)
	require.Equal(t, dispatchtype.Routing, d.Status)
	require.Equal(t, []string{"the history of its owners: cannot be read; the server's log has the cause"}, d.Unread)
	s.history = apperror.New(apperror.Unavailable, apperror.StoreUnavailable, "the database is away").WithCause(s.history)
	d, err = service.Get(t.Context(), "shop")
	require.NoError(t, err)
	require.Equal(t, []string{"the history of its owners: the database is away"}, d.Unread)

	_, err = service.Get(t.Context(), "other")
	require.True(t, apperror.Is(err, apperror.StoreUnavailable))
}

func TestHandOverIsAuditedUnlessRejected(t *testing.T) {
	t.Parallel()
	ada := auth.Actor{Kind: auth.KindLocal, Name: "ada"}
	ctx := auth.WithActor(t.Context(), ada)
	holder := inbox.Owner{Epoch: 7, Holder: "host-1"}
	s := &dependencies{all: []dispatchtype.Dispatcher{{Name: shopDispatcher, Lease: &dispatchtype.Lease{Owner: holder}}}}
	service := newService(s)
	owner, err := service.HandOver(ctx, "shop", "a new node")
	require.NoError(t, err)
	require.Equal(t, holder, owner)
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

	s.refuse = fmt.Errorf("request handover: %w", dispatchtype.ErrNotOwned)
	_, err = service.HandOver(ctx, "shop", "")
	require.True(t, apperror.Is(err, apperror.DispatcherNotOwned))
	s.refuse = errors.New("dial tcp redis.example.com:6379")
	_, err = service.HandOver(ctx, "shop", "")
	require.True(t, apperror.Is(err, apperror.LeasesUnavailable))
	_, err = service.HandOver(ctx, "other", "")
	require.True(t, apperror.Is(err, apperror.StoreUnavailable))
	require.Len(t, s.entries, 2)
}

func TestReconcileIsAuditedUnlessDryOrRejected(t *testing.T) {
	t.Parallel()
	s := &dependencies{report: dispatchtype.Report{
		Dispatchers: 4, Healthy: 1, Stale: 2, Unknown: 1, Items: []dispatchtype.ReportItem{
			{Action: dispatchtype.ActionTerminate, Applied: true}, {Action: dispatchtype.ActionTerminate, Error: "away"},
			{Action: dispatchtype.ActionDeleteEntry, Applied: true}, {Action: dispatchtype.ActionAlert},
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
	require.JSONEq(t, `{"dispatchers":4,"healthy":1,"stale":2,"unknown":1,"terminate":1,"delete_entry":1}`,
		string(s.entries[0].Detail))

	s.refuse = apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "away")
	report, err = service.Reconcile(t.Context(), false)
	require.NoError(t, err, "a cycle that took actions is reported with their errors")
	require.Equal(t, s.report, report)
	require.Len(t, s.entries, 2)
	s.report = dispatchtype.Report{}
	_, err = service.Reconcile(t.Context(), false)
	require.True(t, apperror.Is(err, apperror.EngineUnavailable))
	require.Len(t, s.entries, 2)
}

// The reason and the text of a cycle that read too little name what failed. Only the answer of Temporal to a list is
// quoted.
func TestReconcileNamesWhatFailed(t *testing.T) {
	t.Parallel()
	dial := errors.New("dial tcp host.example.com:7233")
	for name, tt := range map[string]struct {
		err          error
		reason, text string
	}{
		"a list": {
			dispatchtype.PartError{Part: dispatchtype.PartTemporal,
				Err: fmt.Errorf("%w: elasticsearch", dispatchtype.ErrNotListed)},
			apperror.EngineListFailed, "temporal did not list the open dispatchers: elasticsearch; its visibility store " +
				"serves lists, and other requests may work",
		},
		"Temporal": {
			dispatchtype.PartError{Part: dispatchtype.PartTemporal, Err: dial},
			apperror.EngineUnavailable, "a dispatcher cannot be read from Temporal; see the server's log for the cause",
		},
		"the database": {
			fmt.Errorf("confirm: %w", dispatchtype.PartError{Part: dispatchtype.PartInbox, Err: dial}),
			apperror.StoreUnavailable, "the progress of dispatchers cannot be read from the database; see the server's log " +
				"for the cause",
		},
		"Redis": {
			dispatchtype.PartError{Part: dispatchtype.PartLeases, Err: dial},
			apperror.LeasesUnavailable, "the leases cannot be read from Redis; see the server's log for the cause",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newService(&dependencies{refuse: tt.err}).Reconcile(t.Context(), true)
			f, ok := apperror.From(err)
			require.True(t, ok)
			require.Equal(t, []any{apperror.Unavailable, tt.reason, tt.text}, []any{f.Class, f.Reason, f.Message})
			require.Positive(t, f.RetryAfter)
		})
	}
}
