package handler

import (
	"context"

	"google.golang.org/protobuf/types/known/durationpb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
)

// timer tells what the clock does for a workflow. That the times are not known, because Temporal is away, keeps nobody from reading
// the rest.
func (h *Workflows) timer(ctx context.Context, project, name string) (*signalboxv1.WorkflowTimer, error) {
	if h.clock == nil {
		return nil, nil
	}
	t, ok, err := h.clock.Timer(ctx, project, name)
	if err != nil || !ok {
		return nil, err
	}
	out := &signalboxv1.WorkflowTimer{Cron: t.Spec.Cron}
	if t.Spec.Every > 0 {
		out.Every = durationpb.New(t.Spec.Every)
	}
	if t.Spec.Follows() { // whose pause may be none
		out.After = durationpb.New(t.Spec.After)
	}
	fires, err := h.clock.Fires(ctx, t)
	if err != nil {
		out.UnknownBecause = "Temporal does not tell; the server's log says why"
		if f, ok := fault.From(err); ok {
			out.UnknownBecause = f.Message
		}
		logger.FromContext(ctx).WarnContext(ctx, "The times of a timer are not known", "workflow", name, "error", err)
		return out, nil
	}
	for _, next := range fires.Next {
		out.NextTimes = append(out.NextTimes, message.Timestamp(next))
	}
	out.LastTime, out.Fired, out.Missed = message.Timestamp(fires.Last), fires.Fired, fires.Missed
	return out, nil
}
