package handler

import (
	"context"
	"slices"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/explain"
)

// Explainer explains what runs wait for, and why errors were not caught.
type Explainer interface {
	Waits(ctx context.Context, r run.Run) (list []explain.Wait, more bool, err error)
	Uncaught(ctx context.Context, r run.Run, steps []run.Step) map[int64]string
}

// addWaits adds the run's current wait to its message.
func (h *Runs) addWaits(ctx context.Context, r run.Run, m *signalboxv1.Run) error {
	if h.opts.Explainer == nil {
		return nil
	}
	waits, more, err := h.opts.Explainer.Waits(ctx, r)
	for i := range waits {
		m.Waits = append(m.Waits, waitMessage(&waits[i]))
	}
	m.MoreWaits = more
	return err
}

// explainSteps adds to the messages of steps what the open ones wait for, and why errors of failed attempts were not caught.
func (h *Runs) explainSteps(ctx context.Context, project, id string, steps []run.Step, messages []*signalboxv1.Step) error {
	open := slices.ContainsFunc(steps, func(t run.Step) bool { return t.EndedAt.IsZero() })
	failed := slices.ContainsFunc(steps, func(t run.Step) bool { return t.Status == string(run.Failed) })
	if h.opts.Explainer == nil || !open && !failed {
		return nil
	}
	r, err := h.service.Get(ctx, project, id)
	if err != nil {
		return err
	}
	byNumber := make(map[int64]*signalboxv1.Step, len(messages))
	for _, m := range messages {
		byNumber[m.GetNumber()] = m
	}
	if open {
		waits, _, err := h.opts.Explainer.Waits(ctx, r)
		if err != nil {
			return err
		}
		for i := range waits {
			if m := byNumber[waits[i].Step]; m != nil && m.GetEndTime() == nil {
				m.Wait = waitMessage(&waits[i])
			}
		}
	}
	if failed {
		for number, why := range h.opts.Explainer.Uncaught(ctx, r, steps) {
			byNumber[number].Uncaught = why
		}
	}
	return nil
}

func waitMessage(w *explain.Wait) *signalboxv1.Wait {
	m := &signalboxv1.Wait{
		Kind: w.Kind, What: w.What, Step: w.Step, Task: w.Task, Pointer: w.Pointer, Path: w.Path,
		Since: message.Timestamp(w.Since), DueTime: message.Timestamp(w.Due),
		Deadline: message.Timestamp(w.Deadline), DeadlineBy: w.DeadlineBy, DeadlineUnknown: w.DeadlineUnknown, Mode: w.Mode,
	}
	for _, e := range w.Events {
		awaited := &signalboxv1.AwaitedEvent{Type: e.Type, With: message.JSON(e.With), Ends: e.Ends, Came: e.Came, CameTime: message.Timestamp(e.CameAt)}
		for _, k := range e.Keys {
			awaited.Keys = append(awaited.Keys, &signalboxv1.AwaitedKey{
				Name: k.Name, From: k.From, Expect: message.JSON(k.Expect), Unknown: k.Unknown,
			})
		}
		m.Events = append(m.Events, awaited)
	}
	if c := w.Child; c != nil {
		m.Child = &signalboxv1.AwaitedRun{
			Id: c.RunID, Workflow: c.Workflow, Version: c.Version, Status: string(c.Status), QueuedReason: c.QueuedReason, WaitingKind: c.WaitingKind,
		}
	}
	return m
}
