// Package views implements the ViewService: it translates between messages and the domain's service of views.
//
//	mux.Handle(signalboxv1connect.NewViewServiceHandler(views.New(service)))
package views

import (
	"context"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/label"
	"github.com/signalbox-dev/signalbox/internal/view"
)

// Service is the domain's service of views. It validates views, and the permissions that depend on the view.
type Service interface {
	// List returns the views that the caller sees, by name.
	List(ctx context.Context, project string) ([]view.View, error)
	// Save creates a view without an ID, and replaces one with an ID.
	Save(ctx context.Context, v view.View) (view.View, error)
	Delete(ctx context.Context, project, id string, revision int64) error
}

// Views implements signalbox.v1.ViewService.
type Views struct{ service Service }

// New returns the handler.
func New(service Service) *Views { return &Views{service: service} }

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
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument, "revision %d without the ID of a view: name the view to replace", m.GetRevision()).
			WithField("id", "is required with revision")
	}
	v, err := h.service.Save(ctx, view.View{
		Project: message.ProjectOf(m.GetProject()), ID: m.GetId(), Name: m.GetName(), Query: query, Shared: m.GetShared(), Revision: m.GetRevision(),
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
	f, err := message.FilterOf(m, "query.")
	if err != nil {
		return view.Query{}, err
	}
	if err := message.SetOrder(&run.Filter{}, "query.order", m.GetOrder()); err != nil {
		return view.Query{}, err
	}
	q := view.QueryOf(f)
	q.Order, q.Columns = m.GetOrder(), m.GetColumns()
	if m.GetPeriod() != nil {
		if m.GetPeriod().CheckValid() != nil || m.GetPeriod().AsDuration() <= 0 {
			return view.Query{}, apperror.New(apperror.Invalid, apperror.InvalidArgument, "query.period: give a positive duration").WithField("query.period", "must be positive")
		}
		q.Period = m.GetPeriod().AsDuration()
	}
	return q, nil
}

func viewMessage(ctx context.Context, v view.View) *signalboxv1.View {
	actor, _ := auth.ActorFrom(ctx)
	return &signalboxv1.View{
		Id: v.ID, Project: v.Project, Name: v.Name, Query: queryMessage(v.Query), Shared: v.Shared, Owner: v.Owner.Name, Mine: v.OwnedBy(actor),
		Revision: v.Revision, UpdateTime: message.Timestamp(v.UpdatedAt), Updater: v.Updater.Name,
	}
}

func queryMessage(q view.Query) *signalboxv1.ViewQuery {
	m := &signalboxv1.ViewQuery{
		Workflow: q.Workflow, Version: q.Version, Since: message.Timestamp(q.Since), Until: message.Timestamp(q.Until), Problems: q.Problems,
		Trigger: q.Trigger, NotReplayed: q.NotReplayed, FailureGroup: q.FailureGroup, Text: q.Text, ParentRunId: q.ParentRunID,
		ReplayOf: q.ReplayOf, BatchId: q.BatchID, StartedByBatchId: q.StartedByBatchID, Order: q.Order, Columns: q.Columns, Labels: label.Texts(q.Labels),
	}
	for _, status := range q.Statuses {
		m.Statuses = append(m.Statuses, string(status))
	}
	if q.Period != 0 {
		m.Period = durationpb.New(q.Period)
	}
	return m
}
