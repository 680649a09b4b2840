package cli_test

import (
	"context"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

// views is the ViewService with a view of the caller and a shared one of the same name.
type views struct {
	signalboxv1connect.UnimplementedViewServiceHandler

	api *api
}

func (v *views) note(m proto.Message) {
	v.api.mu.Lock()
	defer v.api.mu.Unlock()
	v.api.note(proto.Clone(m))
}

func (v *views) ListViews(_ context.Context,
	r *connect.Request[signalboxv1.ListViewsRequest]) (*connect.Response[signalboxv1.ListViewsResponse], error) {
	v.note(r.Msg)
	hour := timestamppb.New(time.Now().Add(-time.Hour))
	query := &signalboxv1.ViewQuery{
		Filter: &signalboxv1.RunFilter{Statuses: []string{"failed"}}, Period: durationpb.New(24 * time.Hour), Order: "oldest",
		Columns: []string{"run", "actor"}}
	return connect.NewResponse(&signalboxv1.ListViewsResponse{Views: []*signalboxv1.View{
		{Id: "v1", Name: "failed", Owner: "bob", Shared: true, Revision: 9, UpdateTime: hour,
			Query: &signalboxv1.ViewQuery{}},
		{Id: "v2", Name: "failed", Owner: "ada", Mine: true, Revision: 4, UpdateTime: hour, Updater: "ada", Query: query},
		{Id: "v3", Name: "team", Owner: "bob", Shared: true, Revision: 2, UpdateTime: hour,
			Query: &signalboxv1.ViewQuery{Filter: &signalboxv1.RunFilter{Trigger: "event"}}},
	}}), nil
}

func (v *views) SaveView(_ context.Context,
	r *connect.Request[signalboxv1.SaveViewRequest]) (*connect.Response[signalboxv1.SaveViewResponse], error) {
	v.note(r.Msg)
	return connect.NewResponse(&signalboxv1.SaveViewResponse{View: &signalboxv1.View{
		Id: "v4", Name: r.Msg.GetName(), Query: r.Msg.GetQuery(), Shared: r.Msg.GetShared(), Owner: "ada",
		Revision: r.Msg.GetRevision() + 1,
	}}), nil
}

func (v *views) DeleteView(_ context.Context,
	r *connect.Request[signalboxv1.DeleteViewRequest]) (*connect.Response[signalboxv1.DeleteViewResponse], error) {
	v.note(r.Msg)
	return connect.NewResponse(&signalboxv1.DeleteViewResponse{}), nil
}

func TestViews(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	c := shell.run(t, "view", "list", "-o", "wide")
	require.Zero(t, c.code, c.err.String())
	require.Regexp(t, `failed +no +ada +status failed, last 1d, oldest first +4 +1h +v2 +ada +run,actor`, c.out.String())
	require.Regexp(t, `team +yes +bob +trigger event +2`, c.out.String())

	c = shell.run(t, "view", "save", "eu", "--status", "failed,timed_out", "--since", "7d", "--order", "oldest",
		"--columns", "run,status", "--shared")
	require.Zero(t, c.code, c.err.String())
	require.Regexp(t, `(?s)view +eu.*shared +yes.*filter +status failed,timed_out, last 7d.*revision +1`, c.out.String())
	saved := last[*signalboxv1.SaveViewRequest](t, a)
	require.Empty(t, saved.GetId())
	require.True(t, proto.Equal(&signalboxv1.ViewQuery{
		Filter: &signalboxv1.RunFilter{Statuses: []string{"failed", "timed_out"}}, Period: durationpb.New(7 * 24 * time.Hour),
		Order: "oldest", Columns: []string{"run", "status"},
	}, saved.GetQuery()), "%v", saved)
	shell.run(t, "view", "save", "once", "--since", "2026-01-31T12:00:00Z")
	saved = last[*signalboxv1.SaveViewRequest](t, a)
	require.Nil(t, saved.GetQuery().GetPeriod(), "a moment stays one")
	require.Equal(t, "2026-01-31T12:00:00Z", saved.GetQuery().GetFilter().GetSince().AsTime().Format(time.RFC3339))

	shell.run(t, "view", "save", "failed", "--revision", "4", "--name", "broken", "--trigger", "api")
	saved = last[*signalboxv1.SaveViewRequest](t, a)
	require.Equal(t, []any{"v2", "broken", int64(4), "api"},
		[]any{saved.GetId(), saved.GetName(), saved.GetRevision(), saved.GetQuery().GetFilter().GetTrigger()},
		"the caller's own of two with the name")
	require.Empty(t, saved.GetQuery().GetFilter().GetStatuses(), "the flags replace the whole filter")

	c = shell.run(t, "view", "delete", "team")
	require.Zero(t, c.code, c.err.String())
	deleted := last[*signalboxv1.DeleteViewRequest](t, a)
	require.Equal(t, []any{"v3", int64(2)}, []any{deleted.GetId(), deleted.GetRevision()})
	shell.run(t, "view", "delete", "v1", "--revision", "8")
	require.Equal(t, int64(8), last[*signalboxv1.DeleteViewRequest](t, a).GetRevision())

	requireRefusal(t, shell.run(t, "view", "save"), exit.Usage, "NAME")
	requireRefusal(t, shell.run(t, "view", "save", "x", "--status", "odd"), exit.Usage, "odd")
	requireRefusal(t, shell.run(t, "view", "save", "x", "--order", "odd"), exit.Usage, "odd")
	requireRefusal(t, shell.run(t, "view", "save", "x", "--name", "y"), exit.Usage, "--revision")
	requireRefusal(t, shell.run(t, "view", "save", "none", "--revision", "1"), exit.NotFound, "none", "view list")
	requireRefusal(t, shell.run(t, "view", "delete", "none"), exit.NotFound, "none", "view list")
}

func TestRunsOfAView(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	c := shell.run(t, "run", "list", "--view", "failed", "--limit", "7")
	require.Zero(t, c.code, c.err.String())
	listed := last[*signalboxv1.ListRunsRequest](t, a)
	require.Equal(t, []string{"failed"}, listed.GetFilter().GetStatuses())
	require.Equal(t, "oldest", listed.GetOrder())
	require.WithinDuration(t, time.Now().Add(-24*time.Hour), listed.GetFilter().GetSince().AsTime(), time.Minute)
	shell.run(t, "run", "list", "--view", "failed", "--order", "newest")
	require.Equal(t, "newest", last[*signalboxv1.ListRunsRequest](t, a).GetOrder())
	requireRefusal(t, shell.run(t, "run", "list", "--view", "failed", "--status", "running"), exit.Usage, "--status",
		"--view")
	requireRefusal(t, shell.run(t, "run", "list", "--view", "none"), exit.NotFound, "none")
}
