package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/view"
)

func newView(id, owner, name string, shared bool) view.View {
	person := view.Person{Kind: "token", Name: owner}
	return view.View{
		ID: id, Project: here, Name: name, Shared: shared, Owner: person, Updater: person, Revision: 1, UpdatedAt: at(1),
		Query: view.Query{Filter: run.Filter{Statuses: []run.Status{run.Failed}, Since: at(0)}, Period: time.Hour,
			Order: "oldest", Columns: []string{"run", "actor"}},
	}
}

// writing changes a view regardless of the others.
func writing(to *view.View, entry *audit.Entry) func([]view.View) (view.Change, error) {
	return func([]view.View) (view.Change, error) { return view.Change{To: to, Entry: entry}, nil }
}

func viewNames(list []view.View) string {
	var names []string
	for _, v := range list {
		names = append(names, v.Owner.Name+" "+v.Name)
	}
	return strings.Join(names, ", ")
}

func testViews(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	require.NoError(t, s.CreateProject(ctx, project.Project{Name: "other", CreatedAt: at(0)},
		entry(audit.ProjectCreate, "other", "other")))
	ada, bob := view.Person{Kind: "token", Name: "ada"}, view.Person{Kind: "token", Name: "bob"}
	list, err := s.Views().ListViews(ctx, here, ada)
	require.NoError(t, err)
	require.Empty(t, list)
	_, err = s.Views().ListViews(ctx, "none", ada)
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, "none")
	err = s.Views().ChangeView(ctx, "none", "v", ada, writing(nil, nil))
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, "none")

	elsewhere := newView("elsewhere", "ada", "elsewhere", true)
	elsewhere.Project = "other"
	saved := entry(audit.ViewSave, here, "a2")
	for _, v := range []view.View{
		newView("a1", "ada", "mine", false), newView("a2", "ada", "shared", true), newView("b1", "bob", "mine", false),
		newView("b2", "bob", "all", true), elsewhere} {
		e := &saved
		if v.ID != "a2" {
			e = nil
		}
		require.NoError(t, s.Views().ChangeView(ctx, v.Project, v.ID, v.Owner, writing(&v, e)))
	}
	list, err = s.Views().ListViews(ctx, here, ada)
	require.NoError(t, err)
	require.Equal(t, "bob all, ada mine, ada shared", viewNames(list), "by name, each once")
	require.Equal(t, newView("a1", "ada", "mine", false), list[1])
	list, err = s.Views().ListViews(ctx, here, view.Person{Kind: "local", Name: "ada"})
	require.NoError(t, err)
	require.Equal(t, "bob all, ada shared", viewNames(list), "another kind of actor is another owner")
	entries, err := s.ListAudit(ctx, audit.Filter{Action: audit.ViewSave, Limit: 10})
	require.NoError(t, err)
	require.Len(t, entries, 1)

	// A change sees the views of the owner of the view, not of the caller.
	changed := newView("a2", "ada", "renamed", true)
	changed.Updater, changed.Revision = bob, 2
	require.NoError(t, s.Views().ChangeView(ctx, here, "a2", bob, func(views []view.View) (view.Change, error) {
		require.Equal(t, "bob all, ada mine, ada shared", viewNames(views))
		return view.Change{To: &changed}, nil
	}))
	failed := errors.New("refused")
	require.ErrorIs(t, s.Views().ChangeView(ctx, here, "new", bob, func(views []view.View) (view.Change, error) {
		require.Equal(t, "bob all, bob mine, ada renamed", viewNames(views))
		require.Contains(t, views, changed)
		return view.Change{}, failed
	}), failed)
	require.ErrorIs(t, s.Views().ChangeView(ctx, here, "elsewhere", bob, func(views []view.View) (view.Change, error) {
		require.NotContains(t, viewNames(views), "elsewhere", "the ID of another project")
		return view.Change{}, failed
	}), failed)
	require.NoError(t, s.Views().ChangeView(ctx, here, "a2", ada, writing(nil, nil)))
	list, err = s.Views().ListViews(ctx, here, bob)
	require.NoError(t, err)
	require.Equal(t, "bob all, bob mine", viewNames(list))
}

// testViewsAtOnce creates views of one name at once: one of them wins, and the others see it.
func testViewsAtOnce(t *testing.T, open Opener) {
	stores := []Store{open(t), open(t)}
	var wins, losses int
	var mu sync.Mutex
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			v := newView(fmt.Sprintf("v%d", n), fmt.Sprintf("owner-%d", n), "same", true)
			taken := errors.New("taken")
			err := stores[n%2].Views().ChangeView(t.Context(), here, v.ID, v.Owner,
				func(views []view.View) (view.Change, error) {
					if len(views) > 0 {
						return view.Change{}, taken
					}
					return view.Change{To: &v}, nil
				})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				wins++
			} else if errors.Is(err, taken) {
				losses++
			}
		})
	}
	group.Wait()
	require.Equal(t, []int{1, 7}, []int{wins, losses})
}
