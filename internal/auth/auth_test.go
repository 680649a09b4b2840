package auth_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
)

func TestContextCarriesActor(t *testing.T) {
	t.Parallel()
	_, ok := auth.ActorFrom(t.Context())
	require.False(t, ok, "a bare context has no actor")

	ada := auth.Actor{Kind: auth.KindLocal, Name: "ada"}
	ctx := auth.WithActor(t.Context(), ada)
	derived, cancel := context.WithCancel(ctx)
	cancel()
	for _, c := range []context.Context{ctx, derived, context.WithoutCancel(derived)} {
		got, ok := auth.ActorFrom(c)
		require.True(t, ok)
		require.Equal(t, ada, got)
	}

	got, _ := auth.ActorFrom(auth.WithActor(ctx, auth.System()))
	require.Equal(t, auth.System(), got, "the innermost actor counts")
	got, _ = auth.ActorFrom(ctx)
	require.Equal(t, ada, got)
}

func TestRolesIncludeEachOther(t *testing.T) {
	t.Parallel()
	all := []auth.Role{auth.Viewer, auth.Operator, auth.Publisher, auth.Admin}
	for has, may := range map[auth.Role][]auth.Role{
		"":             nil,
		auth.Viewer:    {auth.Viewer},
		auth.Operator:  {auth.Viewer, auth.Operator},
		auth.Publisher: {auth.Viewer, auth.Publisher},
		auth.Admin:     all,
	} {
		a := auth.Actor{Name: "ada", Roles: map[string]auth.Role{"shop": has}}
		everywhere := auth.Actor{Name: "eve", Roles: map[string]auth.Role{auth.Everywhere: has}}
		for _, role := range all {
			require.Equal(t, slices.Contains(may, role), a.May("shop", role), "%s as %s", has, role)
			require.Equal(t, slices.Contains(may, role), everywhere.May("shop", role), "%s as %s", has, role)
			require.False(t, a.May("other", role), role)
			require.False(t, a.May(auth.Everywhere, role), role)
		}
	}
}

func TestRequireDoesNotDiscloseProjects(t *testing.T) {
	t.Parallel()
	ctx := auth.WithActor(t.Context(), auth.Actor{Name: "ada", Roles: map[string]auth.Role{"shop": auth.Viewer}})
	require.NoError(t, auth.Require(ctx, "shop", auth.Viewer))
	err := auth.Require(ctx, "shop", auth.Admin)
	require.True(t, apperror.Is(err, apperror.PermissionDenied), "%v", err)
	require.ErrorContains(t, err, `"ada" lacks the role admin in project "shop"`)
	require.Equal(t, apperror.NoProject("other"), auth.Require(ctx, "other", auth.Viewer))
	require.True(t, apperror.Is(auth.Require(ctx, auth.Everywhere, auth.Viewer), apperror.PermissionDenied))
	require.Equal(t, apperror.NoProject("shop"), auth.Require(t.Context(), "shop", auth.Viewer),
		"without an actor, nothing is allowed")

	names, all := auth.Actor{Roles: map[string]auth.Role{"b": auth.Viewer, "a": auth.Admin, "c": "none"}}.Visible()
	require.Equal(t, []string{"a", "b"}, names)
	require.False(t, all)
	_, all = auth.Local().Visible()
	require.True(t, all)
}

func TestRolesInAProject(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		roles map[string]auth.Role
		want  []auth.Role
	}{
		{nil, nil},
		{map[string]auth.Role{"other": auth.Admin}, nil},
		{map[string]auth.Role{"shop": auth.Viewer}, []auth.Role{auth.Viewer}},
		{map[string]auth.Role{"shop": auth.Publisher, auth.Everywhere: auth.Operator},
			[]auth.Role{auth.Operator, auth.Publisher}},
		{map[string]auth.Role{"shop": auth.Operator, auth.Everywhere: auth.Viewer}, []auth.Role{auth.Operator}},
		{map[string]auth.Role{"shop": auth.Viewer, auth.Everywhere: auth.Admin}, []auth.Role{auth.Admin}},
	} {
		require.Equal(t, tt.want, auth.Actor{Roles: tt.roles}.RolesIn("shop"))
	}
}
