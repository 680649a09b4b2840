package project_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

func moment() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func open(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{
		Driver: store.SQLite, DSN: storetest.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute,
	})
	require.NoError(t, err)
	ctx := t.Context()
	t.Cleanup(func() { require.NoError(t, s.Stop(context.WithoutCancel(ctx))) })
	require.NoError(t, s.Start(ctx))
	return s
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	good := []string{"a", "7", "default", "team-7", "a--b", strings.Repeat("a", project.MaxNameLength)}
	for _, name := range good {
		require.NoError(t, project.CheckName(name), name)
	}
	bad := []string{
		"", "-", "-a", "a-", "A", "a_b", "a.b", "a/b", "a b", "ä", "a\n", "a\x00",
		strings.Repeat("a", project.MaxNameLength+1),
	}
	for _, name := range bad {
		f, ok := apperror.From(project.CheckName(name))
		require.True(t, ok, "%q was taken", name)
		require.Equal(t, []any{apperror.Invalid, apperror.InvalidArgument}, []any{f.Class, f.Reason}, name)
		require.Equal(t, "name", f.Fields[0].Path, name)
	}
	require.ErrorContains(t, project.CheckName("a\nb"), `"a\nb"`)
}

func TestCreateAndGet(t *testing.T) {
	t.Parallel()
	kept := open(t)
	s := project.NewService(kept, moment)
	ctx := auth.WithActor(t.Context(), auth.Actor{Kind: auth.KindLocal, Name: "ada", Roles: auth.Local().Roles})

	made, err := s.Create(ctx, "team-7", "the seventh")
	require.NoError(t, err)
	require.Equal(t, project.Project{Name: "team-7", Description: "the seventh", CreatedAt: moment()}, made)
	got, err := s.Get(ctx, "team-7")
	require.NoError(t, err)
	require.Equal(t, made, got)

	_, err = s.Create(ctx, "team-7", "again")
	require.True(t, apperror.Is(err, apperror.ProjectExists), "%v", err)
	_, err = s.Create(ctx, "Team", "")
	require.True(t, apperror.Is(err, apperror.InvalidArgument), "%v", err)
	_, err = s.Get(ctx, "Team")
	require.True(t, apperror.Is(err, apperror.ProjectNotFound), "a refused project is not there: %v", err)

	entries, err := kept.ListAudit(ctx, audit.Filter{Action: audit.ProjectCreate, Limit: 10})
	require.NoError(t, err)
	require.Len(t, entries, 1, "refused calls are not audited")
	require.Equal(t, []string{"ada", "team-7", "team-7"},
		[]string{entries[0].Actor.Name, entries[0].Subject, entries[0].Project})

	for after, want := range map[string][]string{"": {"default", "team-7"}, "default": {"team-7"}, "team-7": nil} {
		list, err := s.List(ctx, after, 10)
		require.NoError(t, err)
		var names []string
		for _, p := range list {
			names = append(names, p.Name)
		}
		require.Equal(t, want, names, "after %q", after)
	}
	first, err := s.List(ctx, "", 1)
	require.NoError(t, err)
	require.Len(t, first, 1)
}

func TestOnlyProjectsWithARoleAreListed(t *testing.T) {
	t.Parallel()
	s := project.NewService(open(t), moment)
	for _, name := range []string{"a", "b", "c", "d"} {
		_, err := s.Create(t.Context(), name, "")
		require.NoError(t, err)
	}
	ctx := auth.WithActor(t.Context(), auth.Actor{Kind: auth.KindToken, Roles: map[string]auth.Role{
		"d": auth.Viewer, "b": auth.Admin, "a": auth.Operator, "gone": auth.Viewer,
	}})
	names := func(after string, limit int) (names []string) {
		list, err := s.List(ctx, after, limit)
		require.NoError(t, err)
		for _, p := range list {
			names = append(names, p.Name)
		}
		return names
	}
	require.Equal(t, []string{"a", "b", "d"}, names("", 10))
	require.Equal(t, []string{"a", "b"}, names("", 2))
	require.Equal(t, []string{"d"}, names("b", 2))
	all, err := s.List(t.Context(), "", 10)
	require.NoError(t, err)
	require.Len(t, all, 5, "a context without an actor sees all")
}

func TestUpdateIsValidatedAndAudited(t *testing.T) {
	t.Parallel()
	kept := open(t)
	s := project.NewService(kept, moment)
	ctx := auth.WithActor(t.Context(), auth.Actor{Kind: auth.KindLocal, Name: "ada", Roles: auth.Local().Roles})

	updated, err := s.Update(ctx, project.Default, project.Change{MaxSteps: new(int64(1000)), EndPoison: new(true)})
	require.NoError(t, err)
	require.Equal(t, project.Settings{MaxSteps: 1000, EndPoison: true}, updated.Settings)

	for _, tt := range []struct {
		change project.Change
		says   string
	}{
		{project.Change{}, "changes nothing"},
		{project.Change{MaxSteps: new(int64(-1)), EndPoison: new(false)}, "max_steps -1"},
	} {
		_, err := s.Update(ctx, project.Default, tt.change)
		require.True(t, apperror.Is(err, apperror.InvalidArgument), "%v", err)
		require.ErrorContains(t, err, tt.says)
		require.ErrorContains(t, err, `"default"`)
	}
	got, err := s.Get(ctx, project.Default)
	require.NoError(t, err)
	require.Equal(t, updated, got, "a refused update changes nothing")
	_, err = s.Update(ctx, "none", project.Change{EndPoison: new(true)})
	require.True(t, apperror.Is(err, apperror.ProjectNotFound), "%v", err)

	entries, err := kept.ListAudit(ctx, audit.Filter{Action: audit.ProjectUpdate, Limit: 10})
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, []string{"ada", "default", "default"},
		[]string{entries[0].Actor.Name, entries[0].Subject, entries[0].Project})
	require.JSONEq(t, `{"maxSteps": 1000, "endPoison": true}`, string(entries[0].Detail))
}
