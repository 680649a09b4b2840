package handler

import (
	"cmp"
	"context"
	"slices"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/explain"
)

// Explainer explains what runs wait for, and why errors were not caught.
type Explainer interface {
	Waits(ctx context.Context, r run.Run, after int64, limit int) (list []explain.Wait, last int64, err error)
	Uncaught(ctx context.Context, r run.Run, steps []run.Step) map[int64]string
	Missed(ctx context.Context, e event.Event, deliveries []event.Delivery) (list []explain.Missed, more bool, err error)
}

// addWaits adds the run's current wait to its message.
func (h *Runs) addWaits(ctx context.Context, r run.Run, m *signalboxv1.Run) error {
	if h.opts.Explainer == nil {
		return nil
	}
	waits, last, err := h.opts.Explainer.Waits(ctx, r, 0, explain.Most)
	m.Waits, m.MoreWaits = waitMessages(waits), last > 0
	return err
}

// ListWaits lists what a run waits for.
func (h *Runs) ListWaits(
	ctx context.Context, req *connect.Request[signalboxv1.ListWaitsRequest],
) (*connect.Response[signalboxv1.ListWaitsResponse], error) {
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
	r, err := h.service.Get(ctx, project, m.GetId())
	if err != nil {
		return nil, err
	}
	waits, next, err := searchPage(m, waitsDefault, explain.Most,
		func(after *int64, limit int) ([]explain.Wait, *int64, error) {
			if h.opts.Explainer == nil {
				return nil, nil, nil
			}
			list, last, err := h.opts.Explainer.Waits(ctx, r, startOf(after), limit)
			if err != nil || last == 0 {
				return list, nil, err
			}
			return list, &last, nil
		})
	return message.Reply(&signalboxv1.ListWaitsResponse{Waits: waitMessages(waits), NextPageToken: next}, err)
}

// waitsDefault is the number of open steps that a page of waits examines by default.
const waitsDefault = 100

func waitMessages(waits []explain.Wait) []*signalboxv1.Wait {
	messages := make([]*signalboxv1.Wait, len(waits))
	for i := range waits {
		messages[i] = waitMessage(&waits[i])
	}
	return messages
}

// explainSteps adds to the messages of steps what the open ones wait for, and why errors of failed attempts were not
// caught.
func (h *Runs) explainSteps(ctx context.Context, project, id string, steps []run.Step,
	messages []*signalboxv1.Step) error {
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
		if err := h.explainOpen(ctx, r, steps, byNumber); err != nil {
			return err
		}
	}
	if failed {
		for number, why := range h.opts.Explainer.Uncaught(ctx, r, steps) {
			byNumber[number].Uncaught = why
		}
	}
	return nil
}

// explainOpen adds to the messages of open steps what they wait for.
func (h *Runs) explainOpen(ctx context.Context, r run.Run, steps []run.Step,
	byNumber map[int64]*signalboxv1.Step) error {
	byEntry := func(a, b run.Step) int { return cmp.Compare(a.Number, b.Number) }
	after, last := slices.MinFunc(steps, byEntry).Number-1, slices.MaxFunc(steps, byEntry).Number
	for {
		waits, examined, err := h.opts.Explainer.Waits(ctx, r, after, explain.Most)
		if err != nil {
			return err
		}
		for i := range waits {
			if m := byNumber[waits[i].Step]; m != nil && m.GetEndTime() == nil {
				m.Wait = waitMessage(&waits[i])
			}
		}
		if examined == 0 || examined >= last {
			return nil
		}
		after = examined
	}
}

func waitMessage(w *explain.Wait) *signalboxv1.Wait {
	m := &signalboxv1.Wait{
		Kind: w.Kind, What: w.What, Step: w.Step, Task: w.Task, Pointer: w.Pointer, Path: w.Path,
		Since: message.Timestamp(w.Since), DueTime: message.Timestamp(w.Due),
		Deadline: message.Timestamp(w.Deadline), DeadlineBy: w.DeadlineBy, DeadlineUnknown: w.DeadlineUnknown, Mode: w.Mode,
	}
	for _, e := range w.Events {
		awaited := &signalboxv1.AwaitedEvent{
			Type: e.Type, With: message.JSON(e.With), Ends: e.Ends, Came: e.Came, CameTime: message.Timestamp(e.CameAt)}
		for _, k := range e.Keys {
			awaited.Keys = append(awaited.Keys, &signalboxv1.AwaitedKey{
				Name: k.Name, From: k.From, Expect: message.JSON(k.Expect), Unknown: k.Unknown,
			})
		}
		m.Events = append(m.Events, awaited)
	}
	for _, e := range w.Near {
		m.Near = append(m.Near, &signalboxv1.NearEvent{
			Position: e.Position, Id: e.ID, Source: e.Source, Type: e.Type, ReceiveTime: message.Timestamp(e.ReceivedAt),
			Reason: e.Reason,
		})
	}
	if r := w.Retry; r != nil {
		m.Retry = &signalboxv1.Retry{
			Step: r.Step, Task: r.Task, Failed: int64(r.Failed), Limit: int64(r.Limit), Since: message.Timestamp(r.Since),
			LastError: message.Error(r.LastError),
		}
	}
	if c := w.Child; c != nil {
		m.Child = &signalboxv1.AwaitedRun{
			Id: c.RunID, Workflow: c.Workflow, Version: c.Version, Status: string(c.Status), QueuedReason: c.QueuedReason,
			WaitingKind: c.WaitingKind,
		}
	}
	return m
}
