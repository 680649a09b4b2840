package runcmd

import (
	"context"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
)

// findView returns the view with an ID or a name. Of several with a name, it is the caller's own.
func findView(ctx context.Context, s *invocation.Invocation, name string) (*signalboxv1.View, error) {
	response, err := invocation.Call(ctx, s, s.Views().ListViews, &signalboxv1.ListViewsRequest{Project: s.Project()},
		"list views")
	if err != nil {
		return nil, err
	}
	var found *signalboxv1.View
	for _, v := range response.GetViews() {
		if v.GetId() == name {
			return v, nil
		}
		if v.GetName() == name && (found == nil || v.GetMine()) {
			found = v
		}
	}
	if found == nil {
		return nil, exit.Errorf(exit.NotFound,
			"no view %q in project %s, neither yours nor shared: `%s` shows those that exist", name, s.Project(),
			s.Command("view list"))
	}
	return found, nil
}

// ViewFilter returns the filter of a saved view, by its name or ID, from now on, and its order.
func ViewFilter(ctx context.Context, s *invocation.Invocation,
	name string) (filter *signalboxv1.RunFilter, order string, err error) {
	v, err := findView(ctx, s, name)
	if err != nil {
		return nil, "", err
	}
	q := v.GetQuery()
	if filter = q.GetFilter(); filter == nil {
		filter = &signalboxv1.RunFilter{}
	}
	if q.GetPeriod() != nil {
		filter.Since = invocation.Timestamp(s.Now().Add(-q.GetPeriod().AsDuration()))
	}
	if q.GetEndedPeriod() != nil {
		filter.EndedSince = invocation.Timestamp(s.Now().Add(-q.GetEndedPeriod().AsDuration()))
	}
	return filter, q.GetOrder(), nil
}

// viewRequest returns the request for the runs of a view. An order that was given replaces that of the view.
func viewRequest(cmd *cobra.Command, s *invocation.Invocation, flags listFlags) (*signalboxv1.ListRunsRequest, error) {
	if name := GivenFlag(cmd, "request-id"); name != "" {
		return nil, exit.Usagef("--%s: with --view, the view has the filter; leave one of them out", name)
	}
	filter, order, err := ViewFilter(cmd.Context(), s, flags.view)
	if err != nil {
		return nil, err
	}
	request := &signalboxv1.ListRunsRequest{Project: s.Project(), Filter: filter, Order: order}
	if cmd.Flags().Changed("order") {
		request.Order = flags.by
	}
	return request, nil
}
