package view_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
	"github.com/signalbox-dev/signalbox/internal/view"
)

const shop = "shop"

// filters knows one workflow, and refuses the status "odd".
type filters struct{}

func (filters) Checked(_ context.Context, f run.Filter) (run.Filter, error) {
	if f.Workflow == "order" {
		f.Workflow = "shop/order"
	}
	if len(f.Statuses) > 0 && f.Statuses[0] == "odd" {
		return f, apperror.New(apperror.Invalid, apperror.InvalidArgument, "unknown run status %q", f.Statuses[0])
	}
	return f, nil
}

type bench struct {
	*view.Service

	t     *testing.T
	store *storetest.Plain
	now   time.Time
}

func newBench(t *testing.T) *bench {
	t.Helper()
	s, err := storetest.Open(t.Context(), t,
		store.Options{Driver: store.SQLite, DSN: storetest.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, s.Stop(context.WithoutCancel(t.Context()))) })
	b := &bench{t: t, store: s, now: time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)}
	for _, name := range []string{shop, "bank"} {
		require.NoError(t, s.CreateProject(t.Context(), project.Project{Name: name, CreatedAt: b.now},
			audit.Entry{Time: b.now, Action: audit.ProjectCreate, Project: name}))
	}
	b.Service = view.NewService(s.Views(), filters{}, func() time.Time { return b.now })
	return b
}

// as returns the context of an actor with a role in the shop.
func as(t *testing.T, name string, role auth.Role) context.Context {
	t.Helper()
	return auth.WithActor(t.Context(),
		auth.Actor{Kind: auth.KindToken, Name: name, Roles: map[string]auth.Role{shop: role}})
}

func (b *bench) save(ctx context.Context, v view.View) view.View {
	b.t.Helper()
	v.Project = shop
	saved, err := b.Save(ctx, v)
	require.NoError(b.t, err)
	return saved
}

func (b *bench) refused(err error, reason string, parts ...string) {
	b.t.Helper()
	require.Error(b.t, err)
	require.True(b.t, apperror.Is(err, reason), "%v", err)
	for _, part := range parts {
		require.ErrorContains(b.t, err, part)
	}
}

func (b *bench) names(ctx context.Context) string {
	b.t.Helper()
	list, err := b.List(ctx, shop)
	require.NoError(b.t, err)
	var names []string
	for _, v := range list {
		names = append(names, v.Name)
	}
	return strings.Join(names, " ")
}

func TestPersonalViewsAreSeenByTheirOwner(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ada, bob := as(t, "ada", auth.Viewer), as(t, "bob", auth.Admin)
	v := b.save(ada, view.View{
		Name: " Failed orders ", Query: view.Query{
			Filter: run.Filter{Workflow: "order", Statuses: []run.Status{run.Failed}}, Columns: []string{"run", "actor"}}})
	require.Equal(t, []any{"Failed orders", "shop/order", int64(1), "ada"},
		[]any{v.Name, v.Query.Workflow, v.Revision, v.Updater.Name})
	require.Equal(t, "Failed orders", b.names(ada))
	require.Empty(t, b.names(bob))
	b.save(bob, view.View{Name: "Failed orders"})

	_, err := b.Save(bob, view.View{Project: shop, ID: v.ID, Name: "mine now", Revision: 1})
	b.refused(err, apperror.ViewNotFound, v.ID)
	b.refused(b.Delete(bob, shop, v.ID, 1), apperror.ViewNotFound, v.ID)
	b.refused(b.Delete(ada, "bank", v.ID, 1), apperror.ViewNotFound, "bank")
	require.NoError(t, b.Delete(ada, shop, v.ID, 1))
	entries, err := b.store.ListAudit(t.Context(), audit.Filter{Action: audit.ViewSave, Limit: 10})
	require.NoError(t, err)
	require.Empty(t, entries, "changes of personal views are not audited")
}

func TestSharedViewsAreChangedByOwnerAndAdmins(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ada, bob, admin, viewer := as(t, "ada", auth.Operator), as(t, "bob", auth.Operator), as(t, "eve", auth.Admin),
		as(t, "vic", auth.Viewer)
	_, err := b.Save(viewer, view.View{Project: shop, Name: "mine", Shared: true})
	b.refused(err, apperror.PermissionDenied, "operator")

	v := b.save(ada, view.View{Name: "EU", Shared: true})
	for _, ctx := range []context.Context{ada, bob, admin, viewer} {
		require.Equal(t, "EU", b.names(ctx))
	}
	_, err = b.Save(bob, view.View{Project: shop, ID: v.ID, Name: "US", Shared: true, Revision: 1})
	b.refused(err, apperror.PermissionDenied, `belongs to ada`, "admins")
	b.refused(b.Delete(bob, shop, v.ID, 1), apperror.PermissionDenied, `belongs to ada`)
	_, err = b.Save(admin, view.View{Project: shop, ID: v.ID, Name: "EU", Revision: 1})
	b.refused(err, apperror.PermissionDenied, "only its owner stops sharing it")

	b.now = b.now.Add(time.Hour)
	v = b.save(admin, view.View{ID: v.ID, Name: "EU orders", Shared: true, Revision: 1})
	require.Equal(t, []any{"ada", "eve", int64(2)}, []any{v.Owner.Name, v.Updater.Name, v.Revision})
	_, err = b.Save(ada, view.View{Project: shop, ID: v.ID, Name: "EU", Shared: true, Revision: 1})
	b.refused(err, apperror.ViewChanged, "eve changed", "2026-03-01T13:30:00Z", "revision 2, not 1")
	b.refused(b.Delete(ada, shop, v.ID, 1), apperror.ViewChanged)

	v = b.save(ada, view.View{ID: v.ID, Name: "EU orders", Revision: 2})
	require.Empty(t, b.names(bob), "no longer shared")
	v = b.save(ada, view.View{ID: v.ID, Name: "EU orders", Shared: true, Revision: 3})
	require.NoError(t, b.Delete(admin, shop, v.ID, 4))
	b.refused(b.Delete(ada, shop, v.ID, 4), apperror.ViewNotFound)
	entries, err := b.store.ListAudit(t.Context(), audit.Filter{Project: shop, Subject: v.ID, Limit: 10})
	require.NoError(t, err)
	var actions []string
	for _, e := range entries {
		actions = append(actions, e.Actor.Name+" "+e.Action+" "+e.Reason)
	}
	require.Equal(t, []string{
		"eve view.delete EU orders", "ada view.save EU orders", "ada view.save EU orders", "eve view.save EU orders",
		"ada view.save EU"}, actions)
}

func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ada, bob := as(t, "ada", auth.Operator), as(t, "bob", auth.Admin)
	b.save(ada, view.View{Name: "a"})
	_, err := b.Save(ada, view.View{Project: shop, Name: "a", Shared: true})
	b.refused(err, apperror.ViewExists, `ada has a view "a"`)
	shared := b.save(ada, view.View{Name: "b", Shared: true})
	b.save(bob, view.View{Name: "b"})
	_, err = b.Save(bob, view.View{Project: shop, Name: "c", Shared: true})
	require.NoError(t, err)
	_, err = b.Save(ada, view.View{Project: shop, ID: shared.ID, Name: "c", Shared: true, Revision: 1})
	b.refused(err, apperror.ViewExists, `bob shares a view "c"`)
	_, err = b.Save(bob, view.View{Project: shop, ID: shared.ID, Name: "a", Shared: true, Revision: 1})
	b.refused(err, apperror.ViewExists, `ada has a view "a"`)
	b.save(bob, view.View{ID: shared.ID, Name: "b", Shared: true, Revision: 1})
}

func TestNumbersOfViewsAreLimited(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ada := as(t, "ada", auth.Operator)
	for n := range view.MaxOwned {
		b.save(ada, view.View{Name: fmt.Sprint(n), Shared: true})
	}
	_, err := b.Save(ada, view.View{Project: shop, Name: "more"})
	b.refused(err, apperror.TooManyViews, "ada has 100 views")
	for n := range view.MaxShared - view.MaxOwned {
		b.save(as(t, "bob", auth.Operator), view.View{Name: fmt.Sprint("bob's ", n), Shared: true})
	}
	eve := as(t, "eve", auth.Operator)
	_, err = b.Save(eve, view.View{Project: shop, Name: "shared", Shared: true})
	b.refused(err, apperror.TooManyViews, "200 shared views")
	v := b.save(eve, view.View{Name: "own"})
	_, err = b.Save(eve, view.View{Project: shop, ID: v.ID, Name: "own", Shared: true, Revision: 1})
	b.refused(err, apperror.TooManyViews, "200 shared views")
	list, err := b.List(eve, shop)
	require.NoError(t, err)
	require.Len(t, list, view.MaxShared+1)
}

func TestInvalidViewsAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ada := as(t, "ada", auth.Operator)
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for text, v := range map[string]view.View{
		"has no name":              {Name: " "},
		"at most 100 bytes":        {Name: strings.Repeat("x", 101)},
		"printable":                {Name: "a\nb"},
		`unknown run status "odd"`: {Name: "v", Query: view.Query{Filter: run.Filter{Statuses: []run.Status{"odd"}}}},
		`unknown column "input"`:   {Name: "v", Query: view.Query{Columns: []string{"run", "input"}}},
		`column "run" twice`:       {Name: "v", Query: view.Query{Columns: []string{"run", "run"}}},
		"whole seconds":            {Name: "v", Query: view.Query{Period: time.Millisecond}},
		"at most 3650 days":        {Name: "v", Query: view.Query{Period: view.MaxPeriod + time.Second}},
		"both since and period":    {Name: "v", Query: view.Query{Period: time.Hour, Filter: run.Filter{Since: day}}},
		"both ended_since and": {
			Name: "v", Query: view.Query{EndedPeriod: time.Hour, Filter: run.Filter{EndedSince: day}}},
		"ended_until 2026": {Name: "v", Query: view.Query{Filter: run.Filter{EndedUntil: day, EndedSince: day}}},
		"no run matches":   {Name: "v", Query: view.Query{Filter: run.Filter{Until: day, Since: day}}},
		"bytes as JSON": {
			Name: "v", Query: view.Query{Filter: run.Filter{Text: strings.Repeat("x", view.MaxQuery)}}},
		`project "none" does not ex`: {Name: "v", Project: "none"},
	} {
		if v.Project == "" {
			v.Project = shop
		}
		_, err := b.Save(ada, v)
		require.ErrorContains(t, err, text)
	}
	require.Empty(t, b.names(ada))
	_, err := b.List(ada, "none")
	b.refused(err, apperror.ProjectNotFound)
}
