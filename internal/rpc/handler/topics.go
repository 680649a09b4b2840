package handler

import (
	"context"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// CheckProject returns an error if the project does not exist.
func (h *Runs) CheckProject(ctx context.Context, project string) error {
	_, err := h.projects.Get(ctx, project)
	return err
}

// Filter returns the checked filter of a list, without its page.
func (h *Runs) Filter(ctx context.Context, m *signalboxv1.ListRunsRequest) (run.Filter, error) {
	f, err := runFilter(m)
	if err == nil && m.GetOrder() == message.Longest {
		err = apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"order longest: a list by length cannot be watched, list it again instead").
			WithField("order", "must be newest or oldest")
	}
	if err != nil {
		return f, err
	}
	return h.service.Checked(ctx, f)
}

// AcquireRead waits for a slot of the project's reads, and returns the function that releases it.
func (h *Runs) AcquireRead(ctx context.Context, project string) (done func(), err error) {
	return h.reads.acquire(ctx, project)
}

// Follow calls fn with the changes of a run; see [run.Service.Watch].
func (h *Runs) Follow(ctx context.Context, w run.Watched, fn func(run.Change) error) error {
	return h.service.Watch(ctx, w, fn)
}

// Heads returns whether a watch omits the inputs and outputs of steps. The field is named in errors.
func Heads(view, field string) (bool, error) {
	switch view {
	case "", "full":
		return false, nil
	case "heads":
		return true, nil
	default:
		return false, apperror.New(apperror.Invalid, apperror.InvalidArgument, "view %q: use full or heads",
			view).WithField(field, "must be full or heads")
	}
}

// Row returns the message of a run of a list.
func (h *Runs) Row(ctx context.Context, r run.Run) *signalboxv1.Run { return h.messages.Run(ctx, r) }

// Change returns the message of a change of a run.
func (h *Runs) Change(ctx context.Context, c run.Change) *signalboxv1.WatchRunResponse {
	return &signalboxv1.WatchRunResponse{
		Run: h.messages.Run(ctx, c.Run), Steps: stepMessages(c.Steps), Summary: summaryMessage(c.Summary), Caught: c.Caught}
}
