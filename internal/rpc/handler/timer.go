package handler

import (
	"context"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
)

// The numbers of due times that a request looks at.
const (
	dueTimesDefault = 100
	dueTimesMost    = 1000
)

// ScheduleOverlaps returns the values of the overlap of a schedule.
func ScheduleOverlaps() []dsl.Overlap { return dsl.Overlaps() }

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
	return h.timerMessage(ctx, t), nil
}

// timerMessage describes a timer. If Temporal is unavailable, it has no times.
func (h *Workflows) timerMessage(ctx context.Context, t event.Timer) *signalboxv1.WorkflowTimer {
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
		out.Settings = overrideMessage(t.Override)
	}
	fires, err := h.opts.Clock.Fires(ctx, t)
	if err != nil {
		out.UnknownBecause = "Temporal did not answer; see the server's log for the cause"
		if f, ok := apperror.From(err); ok {
			out.UnknownBecause = f.Message
		}
		logger.FromContext(ctx).WarnContext(ctx, "The times of a timer cannot be read", "workflow", t.Workflow, "error", err)
		return out
	}
	for _, next := range fires.Next {
		out.NextTimes = append(out.NextTimes, message.Timestamp(next))
	}
	out.LastTime = message.Timestamp(fires.Last)
	out.Fired, out.Missed, out.Skipped = fires.Fired, fires.Missed, fires.Skipped
	return out
}

func overrideMessage(o event.Override) *signalboxv1.ScheduleSettings {
	out := &signalboxv1.ScheduleSettings{
		TimeZone: o.TimeZone, Overlap: string(o.Overlap), PausedUntil: message.Timestamp(o.PausedUntil),
	}
	if o.Jitter != nil {
		out.Jitter = durationpb.New(*o.Jitter)
	}
	if o.CatchUp != nil {
		out.CatchUp = durationpb.New(*o.CatchUp)
	}
	return out
}

func overrideOf(m *signalboxv1.ScheduleSettings) (event.Override, error) {
	length := func(d *durationpb.Duration) *time.Duration {
		if d == nil {
			return nil
		}
		return new(d.AsDuration())
	}
	until, err := message.Time("settings.pausedUntil", m.GetPausedUntil())
	return event.Override{
		TimerSettings: event.TimerSettings{TimeZone: m.GetTimeZone(), Overlap: dsl.Overlap(m.GetOverlap()),
			Jitter: length(m.GetJitter()), CatchUp: length(m.GetCatchUp())},
		PausedUntil: until,
	}, err
}

// schedule returns the timer of a workflow that fires by the clock alone.
func (h *Workflows) schedule(ctx context.Context, project, name string) (event.Timer, error) {
	w, err := h.service.Get(ctx, project, name)
	if err != nil {
		return event.Timer{}, err
	}
	t, ok, err := h.opts.Clock.Timer(ctx, project, w.Name)
	if err == nil && (!ok || t.Spec.Follows()) {
		err = apperror.New(apperror.Refused, apperror.NoSchedule, "the newest version of workflow %q has no schedule with "+
			"`cron` or `every`", w.Name)
	}
	return t, err
}

// SetSchedule replaces what operators have set of a schedule.
func (h *Workflows) SetSchedule(
	ctx context.Context, req *connect.Request[signalboxv1.SetScheduleRequest],
) (*connect.Response[signalboxv1.SetScheduleResponse], error) {
	t, err := h.schedule(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetWorkflow())
	if err != nil {
		return nil, err
	}
	o, err := overrideOf(req.Msg.GetSettings())
	if err != nil {
		return nil, err
	}
	if t, err = h.service.SetSchedule(ctx, t, o); err != nil {
		return nil, err
	}
	return connect.NewResponse(&signalboxv1.SetScheduleResponse{Timer: h.timerMessage(ctx, t)}), nil
}

// ListDueTimes lists the newest due times of a schedule with their outcomes.
func (h *Workflows) ListDueTimes(
	ctx context.Context, req *connect.Request[signalboxv1.ListDueTimesRequest],
) (*connect.Response[signalboxv1.ListDueTimesResponse], error) {
	m := req.Msg
	limit, err := bounded("limit", "limit", m.GetLimit(), dueTimesDefault, dueTimesMost)
	if err != nil {
		return nil, err
	}
	wanted := m.GetOutcomes()
	for _, outcome := range wanted {
		if !slices.Contains(event.Outcomes(), event.Outcome(outcome)) {
			return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument,
				"%.80q is no outcome of a due time: give some of %q", outcome, event.Outcomes()).
				WithField("outcomes", "must be some of %q", event.Outcomes())
		}
	}
	since, until, err := period(m)
	if err != nil {
		return nil, err
	}
	t, err := h.schedule(ctx, message.ProjectOf(m.GetProject()), m.GetWorkflow())
	if err != nil {
		return nil, err
	}
	list, err := h.opts.Clock.Times(ctx, t, since, until, limit)
	if len(wanted) > 0 {
		list = slices.DeleteFunc(list, func(d event.DueTime) bool { return !slices.Contains(wanted, string(d.Outcome)) })
	}
	return message.Reply(&signalboxv1.ListDueTimesResponse{DueTimes: dueTimeMessages(list)}, err)
}

// BackfillWorkflow fires a schedule at past due times.
func (h *Workflows) BackfillWorkflow(
	ctx context.Context, req *connect.Request[signalboxv1.BackfillWorkflowRequest],
) (*connect.Response[signalboxv1.BackfillWorkflowResponse], error) {
	m := req.Msg
	if m.GetSince() == nil {
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument, "since is not given: name the beginning of the "+
			"period to fire the schedule for").WithField("since", "is required")
	}
	since, until, err := period(m)
	if err != nil {
		return nil, err
	}
	t, err := h.schedule(ctx, message.ProjectOf(m.GetProject()), m.GetWorkflow())
	if err != nil {
		return nil, err
	}
	list, err := h.opts.Clock.Backfill(ctx, t, since, until, m.GetDryRun())
	return message.Reply(&signalboxv1.BackfillWorkflowResponse{DueTimes: dueTimeMessages(list)}, err)
}

// period returns the period of a request.
func period(m interface {
	GetSince() *timestamppb.Timestamp
	GetUntil() *timestamppb.Timestamp
}) (since, until time.Time, err error) {
	if since, err = message.Time("since", m.GetSince()); err != nil {
		return since, until, err
	}
	if until, err = message.Time("until", m.GetUntil()); err != nil {
		return since, until, err
	}
	if !until.IsZero() && !since.Before(until) {
		err = apperror.New(apperror.Invalid, apperror.InvalidArgument, "since is not before until").
			WithField("since", "must be before until")
	}
	return since, until, err
}

func dueTimeMessages(list []event.DueTime) []*signalboxv1.DueTime {
	out := make([]*signalboxv1.DueTime, len(list))
	for i, d := range list {
		out[i] = &signalboxv1.DueTime{
			Time: message.Timestamp(d.At), Outcome: string(d.Outcome), Reason: d.Reason, Position: d.Position,
		}
	}
	return out
}
