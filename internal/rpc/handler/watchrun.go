package handler

import (
	"context"
	"sync"
	"time"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/run/read"
)

// heartbeat is the time without a message after which a watch sends one: the write detects that the client is gone, and
// prevents proxies from closing an idle stream after 30 or 60 seconds.
const heartbeat = 15 * time.Second

// WatchRun streams the run and its steps as they change.
func (h *Runs) WatchRun(
	ctx context.Context, req *connect.Request[signalboxv1.WatchRunRequest],
	stream *connect.ServerStream[signalboxv1.WatchRunResponse],
) error {
	m := req.Msg
	if err := requireID(m.GetId()); err != nil {
		return err
	}
	if m.GetAfterSequence() < 0 {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"after_sequence is negative: give the last sequence seen, or 0 for all").
			WithField("afterSequence", "must not be negative")
	}
	heads, err := headsOnly(m.GetView(), "view")
	if err != nil {
		return err
	}
	watched := read.Watched{Project: message.ProjectOf(m.GetProject()), ID: m.GetId(), After: m.GetAfterSequence(),
		Heads: heads}
	w := &watch{send: stream.Send}
	return w.follow(ctx, func(ctx context.Context) error {
		return h.service.Watch(ctx, watched, func(c read.Change) error {
			return w.change(h.change(ctx, c))
		})
	})
}

// headsOnly returns whether a watch omits the inputs and outputs of steps. The field is named in errors.
func headsOnly(view, field string) (bool, error) {
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

// change returns the message of a change of a run.
func (h *Runs) change(ctx context.Context, c read.Change) *signalboxv1.WatchRunResponse {
	return &signalboxv1.WatchRunResponse{
		Run: h.messages.Run(ctx, c.Run), Steps: stepMessages(c.Steps), Summary: summaryMessage(c.Summary), Caught: c.Caught}
}

// watch serializes the messages of two goroutines: changes and heartbeats.
type watch struct {
	send func(*signalboxv1.WatchRunResponse) error

	mu   sync.Mutex
	last *signalboxv1.Run
}

// follow runs the watch and a heartbeat concurrently, and waits for both to end.
func (w *watch) follow(ctx context.Context, changes func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var beating sync.WaitGroup
	beating.Go(func() {
		ticker := time.NewTicker(heartbeat)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if err := w.beat(); err != nil {
					cancel(err)
					return
				}
			}
		}
	})
	err := changes(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	cancel(nil)
	beating.Wait()
	return err
}

// change sends a change. The input never changes, so only the first message contains it.
func (w *watch) change(message *signalboxv1.WatchRunResponse) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last != nil {
		message.Run.Input = nil
	}
	if err := w.send(message); err != nil {
		return err
	}
	w.last = message.GetRun()
	return nil
}

// beat sends the run again, without input and steps.
func (w *watch) beat() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		return nil
	}
	w.last.Input = nil
	return w.send(&signalboxv1.WatchRunResponse{Run: w.last})
}
