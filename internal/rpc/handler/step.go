package handler

import (
	"context"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// ListSteps lists a run's steps in order of entry.
func (h *Runs) ListSteps(
	ctx context.Context, req *connect.Request[signalboxv1.ListStepsRequest],
) (*connect.Response[signalboxv1.ListStepsResponse], error) {
	m := req.Msg
	if err := requireID(m.GetId()); err != nil {
		return nil, err
	}
	filter, err := stepFilter(m)
	if err != nil {
		return nil, err
	}
	project := message.ProjectOf(m.GetProject())
	done, err := h.reads.acquire(ctx, project)
	if err != nil {
		return nil, err
	}
	defer done()
	list, err := h.stepReader(m.GetUnredacted())
	if err != nil {
		return nil, err
	}
	var searched int64
	steps, next, err := searchPage(m, stepsDefault, stepsMost, func(after *int64, limit int) ([]run.Step, *int64, error) {
		filter.After, filter.Limit = startOf(after), limit
		found, err := list(ctx, project, m.GetId(), filter)
		searched = found.Searched
		if err != nil || found.Last == 0 {
			return found.Steps, nil, err
		}
		return found.Steps, &found.Last, nil
	})
	if err != nil {
		return nil, err
	}
	shown := stepMessages(steps)
	if !filter.Basic {
		if err := h.explainSteps(ctx, project, m.GetId(), steps, shown); err != nil {
			return nil, err
		}
	}
	summary, err := h.service.StepSummary(ctx, project, m.GetId())
	return message.Reply(&signalboxv1.ListStepsResponse{
		Steps: shown, NextPageToken: next, Summary: summaryMessage(summary), Searched: searched}, err)
}

// stepReader returns the reader of steps, with or without marks.
func (h *Runs) stepReader(
	unredacted bool) (func(ctx context.Context, project, id string, f run.StepFilter) (run.StepPage, error), error) {
	switch {
	case !unredacted:
		return h.service.Steps, nil
	case h.opts.Unredacted == nil:
		return nil, errUnredactedDisabled()
	}
	return h.opts.Unredacted.Steps, nil
}

func stepFilter(m *signalboxv1.ListStepsRequest) (run.StepFilter, error) {
	f := run.StepFilter{Pointer: m.GetPointer(), ParentPath: m.GetParentPath(), Statuses: m.GetStatuses(),
		Text: m.GetText(), Caught: m.Caught}
	switch m.GetView() {
	case "", "full":
	case "basic":
		f.Basic = true
	default:
		return f, apperror.New(apperror.Invalid, apperror.InvalidArgument, "view %q: use full or basic", m.GetView()).
			WithField("view", "must be full or basic")
	}
	switch m.GetOrder() {
	case "", "oldest":
	case "newest":
		f.NewestFirst = true
	default:
		return f, apperror.New(apperror.Invalid, apperror.InvalidArgument, "order %q: use oldest or newest", m.GetOrder()).
			WithField("order", "must be oldest or newest")
	}
	return f, nil
}

// GetStep returns one step of a run.
func (h *Runs) GetStep(
	ctx context.Context, req *connect.Request[signalboxv1.GetStepRequest],
) (*connect.Response[signalboxv1.GetStepResponse], error) {
	m := req.Msg
	if err := requireID(m.GetId()); err != nil {
		return nil, err
	}
	if err := requireNumber(m.GetNumber()); err != nil {
		return nil, err
	}
	project := message.ProjectOf(m.GetProject())
	done, err := h.reads.acquire(ctx, project)
	if err != nil {
		return nil, err
	}
	defer done()
	list, err := h.stepReader(m.GetUnredacted())
	if err != nil {
		return nil, err
	}
	found, err := list(ctx, project, m.GetId(), run.StepFilter{After: m.GetNumber() - 1, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(found.Steps) == 0 || found.Steps[0].Number != m.GetNumber() {
		return nil, run.NoStep(m.GetId(), m.GetNumber())
	}
	shown := stepMessages(found.Steps)
	return message.Reply(&signalboxv1.GetStepResponse{Step: shown[0]},
		h.explainSteps(ctx, project, m.GetId(), found.Steps, shown))
}

// requireNumber refuses a number that no step has.
func requireNumber(number int64) error {
	if number >= 1 {
		return nil
	}
	return apperror.New(apperror.Invalid, apperror.InvalidArgument, "step %d: give the number of a step, from 1", number).
		WithField("number", "must be at least 1")
}

// SummarizeSteps returns totals of a run's steps by task.
func (h *Runs) SummarizeSteps(
	ctx context.Context, req *connect.Request[signalboxv1.SummarizeStepsRequest],
) (*connect.Response[signalboxv1.SummarizeStepsResponse], error) {
	m := req.Msg
	if err := requireID(m.GetId()); err != nil {
		return nil, err
	}
	project := message.ProjectOf(m.GetProject())
	done, err := h.reads.acquire(ctx, project)
	if err != nil {
		return nil, err
	}
	defer done()
	tasks, err := h.service.SumSteps(ctx, project, m.GetId())
	res := &signalboxv1.SummarizeStepsResponse{}
	for _, t := range tasks {
		shown := &signalboxv1.TaskTotals{
			Pointer: t.Pointer, Task: t.Task, Kind: t.Kind, Statuses: t.Statuses, FirstFailed: t.FirstFailed,
			NotListed:      t.Summarized,
			FirstStartTime: message.Timestamp(t.FirstStart), LastEndTime: message.Timestamp(t.LastEnd),
			Total: durationpb.New(t.Total), Longest: durationpb.New(t.Longest),
		}
		if t.Summarized == 0 {
			shown.Attempts = &t.Attempts
		}
		res.Tasks = append(res.Tasks, shown)
	}
	return message.Reply(res, err)
}

// waitingRetry is the waiting kind of a step before its next attempt.
const waitingRetry = "retry"

func stepMessages(steps []run.Step) []*signalboxv1.Step {
	messages := make([]*signalboxv1.Step, len(steps))
	for i, s := range steps {
		messages[i] = &signalboxv1.Step{
			Number: s.Number, Path: s.Path, Pointer: s.Pointer, Task: s.Task, Kind: s.Kind,
			Status: s.Status, WaitingKind: s.WaitingKind, WaitUntil: message.Timestamp(s.WaitUntil),
			StartTime: message.Timestamp(s.StartedAt), EndTime: message.Timestamp(s.EndedAt),
			Input: message.JSON(s.Input), Output: message.JSON(s.Output), Error: message.Error(s.Error),
			InputShortened: shortened(s.InputSize), OutputShortened: shortened(s.OutputSize),
			Attempts: attemptMessages(s.Attempts), Sequence: s.Sequence, Caught: s.Caught,
		}
		if n := len(s.Attempts); n > 0 && s.WaitingKind == waitingRetry {
			messages[i].Attempts[n-1].NextTime = message.Timestamp(s.WaitUntil)
		}
	}
	return messages
}

// shortened returns nil for a value that is shown whole.
func shortened(size int64) *signalboxv1.Shortened {
	if size == 0 {
		return nil
	}
	return &signalboxv1.Shortened{Size: size}
}

func attemptMessages(attempts []run.Attempt) []*signalboxv1.Attempt {
	messages := make([]*signalboxv1.Attempt, len(attempts))
	for i, a := range attempts {
		messages[i] = &signalboxv1.Attempt{
			Number: int32(a.Number), StartTime: message.Timestamp(a.StartedAt), //nolint:gosec // retries stay far below
			Error:   message.Error(a.Error),
			Outcome: a.Outcome, Method: a.Method, Host: a.Host,
		}
		if a.HTTPStatus != 0 {
			messages[i].HttpStatus = new(int32(a.HTTPStatus)) //nolint:gosec // three digits
		}
		if a.RetryAfter > 0 {
			messages[i].RetryAfter = durationpb.New(a.RetryAfter)
		}
		if a.EndedAt != nil {
			messages[i].EndTime = message.Timestamp(*a.EndedAt)
		}
	}
	return messages
}

// summaryMessage returns nil if all steps are listed.
func summaryMessage(s *run.StepSummary) *signalboxv1.StepSummary {
	if s == nil {
		return nil
	}
	m := &signalboxv1.StepSummary{From: s.From, To: s.To, Steps: s.Steps()}
	for _, t := range s.Tasks {
		m.Tasks = append(m.Tasks, &signalboxv1.TaskSummary{
			Pointer: t.Pointer, Task: t.Task, Kind: t.Kind, Count: t.Count,
			Completed: t.Completed, Failed: t.Failed, Skipped: t.Skipped, Canceled: t.Canceled,
			Shortest: durationpb.New(t.Shortest), Longest: durationpb.New(t.Longest), Total: durationpb.New(t.Total),
		})
	}
	return m
}
