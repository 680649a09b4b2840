package handler

import (
	"context"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/function"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
)

// FunctionService is the domain's service of functions.
type FunctionService interface {
	Publish(ctx context.Context, f function.Function) (function.Published, error)
	Get(ctx context.Context, project, name, version string) (function.Shown, error)
	List(ctx context.Context, f function.Filter) ([]function.Function, error)
	Delete(ctx context.Context, project, name, version string) error
}

// PublishFunction makes a function an immutable version in the catalog of its project.
func (h *Workflows) PublishFunction(
	ctx context.Context, req *connect.Request[signalboxv1.PublishFunctionRequest],
) (*connect.Response[signalboxv1.PublishFunctionResponse], error) {
	m := req.Msg
	p, err := h.functions.Publish(ctx, function.Function{
		Project: message.ProjectOf(m.GetProject()), Name: m.GetName(), Version: m.GetVersion(), Source: m.GetSource(),
		Publisher: actorName(ctx),
	})
	return message.Reply(&signalboxv1.PublishFunctionResponse{
		Function: functionMessage(p.Function), Created: p.Created, Violations: violationMessages(p.Violations),
	}, err)
}

// ListFunctions lists the versions of the functions in the catalog of a project.
func (h *Workflows) ListFunctions(
	ctx context.Context, req *connect.Request[signalboxv1.ListFunctionsRequest],
) (*connect.Response[signalboxv1.ListFunctionsResponse], error) {
	m := req.Msg
	functions, next, err := listPage(m, pageDefault, pageMost,
		func(after *function.Cursor, limit int) ([]function.Function, error) {
			return h.functions.List(ctx, function.Filter{
				Project: message.ProjectOf(m.GetProject()), Text: m.GetText(), Name: m.GetName(), Latest: m.GetLatest(),
				After: after, Limit: limit,
			})
		}, function.Function.Position)
	res := &signalboxv1.ListFunctionsResponse{NextPageToken: next}
	for _, f := range functions {
		res.Functions = append(res.Functions, functionMessage(f))
	}
	return message.Reply(res, err)
}

// GetFunction returns one version of a function with its source.
func (h *Workflows) GetFunction(
	ctx context.Context, req *connect.Request[signalboxv1.GetFunctionRequest],
) (*connect.Response[signalboxv1.GetFunctionResponse], error) {
	m := req.Msg
	f, err := h.functions.Get(ctx, message.ProjectOf(m.GetProject()), m.GetName(), m.GetVersion())
	res := &signalboxv1.GetFunctionResponse{
		Function: functionMessage(f.Function), Source: f.Source,
		InputSchema: message.JSON(f.InputSchema), OutputSchema: message.JSON(f.OutputSchema),
	}
	for _, u := range f.Users {
		res.UsedBy = append(res.UsedBy, &signalboxv1.FunctionUser{Workflow: u.Workflow, Version: u.Version, Latest: u.Latest})
	}
	return message.Reply(res, err)
}

// DeleteFunction deletes a version of a function, or all of them.
func (h *Workflows) DeleteFunction(
	ctx context.Context, req *connect.Request[signalboxv1.DeleteFunctionRequest],
) (*connect.Response[signalboxv1.DeleteFunctionResponse], error) {
	m := req.Msg
	err := h.functions.Delete(ctx, message.ProjectOf(m.GetProject()), m.GetName(), m.GetVersion())
	return message.Reply(&signalboxv1.DeleteFunctionResponse{}, err)
}

func functionMessage(f function.Function) *signalboxv1.Function {
	return &signalboxv1.Function{
		Name: f.Name, Version: f.Version, Hash: f.Hash, Size: f.Size, Publisher: f.Publisher,
		PublishTime: message.Timestamp(f.PublishedAt),
	}
}
