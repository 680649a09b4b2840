package handler

import (
	"context"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/view"
)

// ViewService is the domain's service of views. It validates views, and the permissions that depend on the view.
type ViewService interface {
	// List returns the views that the caller sees, by name.
	List(ctx context.Context, project string) ([]view.View, error)
	// Save creates a view without an ID, and replaces one with an ID.
	Save(ctx context.Context, v view.View) (view.View, error)
	Delete(ctx context.Context, project, id string, revision int64) error
}

// Views implements signalbox.v1.ViewService.
type Views struct{ service ViewService }

// ListViews lists the caller's views and the shared ones.
func (h *Views) ListViews(
	ctx context.Context, req *connect.Request[signalboxv1.ListViewsRequest],
) (*connect.Response[signalboxv1.ListViewsResponse], error) {
	list, err := h.service.List(ctx, message.ProjectOf(req.Msg.GetProject()))
	res := &signalboxv1.ListViewsResponse{}
	for _, v := range list {
		res.Views = append(res.Views, viewMessage(ctx, v))
	}
	return message.Reply(res, err)
}

// SaveView creates or replaces a view.
func (h *Views) SaveView(
	ctx context.Context, req *connect.Request[signalboxv1.SaveViewRequest],
) (*connect.Response[signalboxv1.SaveViewResponse], error) {
	m := req.Msg
	query, err := queryOf(m.GetQuery())
	if err != nil {
		return nil, err
	}
	if m.GetId() == "" && m.GetRevision() != 0 {
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"revision %d without the ID of a view: name the view to replace", m.GetRevision()).
			WithField("id", "is required with revision")
	}
	v, err := h.service.Save(ctx, view.View{
		Project: message.ProjectOf(m.GetProject()), ID: m.GetId(), Name: m.GetName(), Query: query, Shared: m.GetShared(),
		Revision: m.GetRevision(),
	})
	return message.Reply(&signalboxv1.SaveViewResponse{View: viewMessage(ctx, v)}, err)
}

// DeleteView deletes a view.
func (h *Views) DeleteView(
	ctx context.Context, req *connect.Request[signalboxv1.DeleteViewRequest],
) (*connect.Response[signalboxv1.DeleteViewResponse], error) {
	err := h.service.Delete(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetId(), req.Msg.GetRevision())
	return message.Reply(&signalboxv1.DeleteViewResponse{}, err)
}

// queryOf reads a query by the rules of a list of runs.
func queryOf(m *signalboxv1.ViewQuery) (view.Query, error) {
	f, err := message.FilterOf(m.GetFilter(), "query.filter.")
	if err != nil {
		return view.Query{}, err
	}
	if err := message.SetOrder(&run.Filter{}, "query.order", m.GetOrder()); err != nil {
		return view.Query{}, err
	}
	q := view.Query{Filter: f, Order: m.GetOrder(), Columns: m.GetColumns()}
	if q.Period, err = periodOf("query.period", m.GetPeriod()); err != nil {
		return view.Query{}, err
	}
	q.EndedPeriod, err = periodOf("query.ended_period", m.GetEndedPeriod())
	return q, err
}

// periodOf reads a period of a query; 0 if it has none.
func periodOf(field string, m *durationpb.Duration) (time.Duration, error) {
	if m == nil {
		return 0, nil
	}
	if m.CheckValid() != nil || m.AsDuration() <= 0 {
		return 0, apperror.New(apperror.Invalid, apperror.InvalidArgument, "%s: give a positive duration",
			field).WithField(field, "must be positive")
	}
	return m.AsDuration(), nil
}

func viewMessage(ctx context.Context, v view.View) *signalboxv1.View {
	actor, _ := auth.ActorFrom(ctx)
	return &signalboxv1.View{
		Id: v.ID, Project: v.Project, Name: v.Name, Query: queryMessage(v.Query), Shared: v.Shared, Owner: v.Owner.Name,
		Mine:     v.OwnedBy(actor),
		Revision: v.Revision, UpdateTime: message.Timestamp(v.UpdatedAt), Updater: v.Updater.Name,
	}
}

func queryMessage(q view.Query) *signalboxv1.ViewQuery {
	m := &signalboxv1.ViewQuery{Filter: message.RunFilter(q.Filter), Order: q.Order, Columns: q.Columns}
	if q.Period != 0 {
		m.Period = durationpb.New(q.Period)
	}
	if q.EndedPeriod != 0 {
		m.EndedPeriod = durationpb.New(q.EndedPeriod)
	}
	return m
}
