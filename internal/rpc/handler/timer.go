package handler

import (
	"context"

	"google.golang.org/protobuf/types/known/durationpb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
)

// timer returns the timer of a workflow. If Temporal is unavailable, it returns the timer without times, so that the
// workflow can still be read.
func (h *Workflows) timer(ctx context.Context, project, name string) (*signalboxv1.WorkflowTimer, error) {
	if h.opts.Clock == nil {
		return nil, nil
	}
	t, ok, err := h.opts.Clock.Timer(ctx, project, name)
	if err != nil || !ok {
		return nil, err
	}
	out := &signalboxv1.WorkflowTimer{Cron: t.Spec.Cron}
	if t.Spec.Every > 0 {
		out.Every = durationpb.New(t.Spec.Every)
	}
	if t.Spec.Follows() { // the pause may be zero
		out.After = durationpb.New(t.Spec.After)
	} else {
		settings := t.Settings()
		out.TimeZone, out.Overlap = t.Firing().Zone, string(settings.Overlap)
		out.Jitter, out.CatchUp = durationpb.New(*settings.Jitter), durationpb.New(*settings.CatchUp)
	}
	fires, err := h.opts.Clock.Fires(ctx, t)
	if err != nil {
		out.UnknownBecause = "Temporal did not answer; see the server's log for the cause"
		if f, ok := apperror.From(err); ok {
			out.UnknownBecause = f.Message
		}
		logger.FromContext(ctx).WarnContext(ctx, "The times of a timer cannot be read", "workflow", name, "error", err)
		return out, nil
	}
	for _, next := range fires.Next {
		out.NextTimes = append(out.NextTimes, message.Timestamp(next))
	}
	out.LastTime = message.Timestamp(fires.Last)
	out.Fired, out.Missed, out.Skipped = fires.Fired, fires.Missed, fires.Skipped
	return out, nil
}
