package router

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/cloudevents"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// retryFirst and retryMost are the pauses between attempts, which double.
	retryFirst = time.Second
	retryMost  = time.Minute
	// puzzles is after how many attempts a delivery is given up that fails for no reason that is known.
	puzzles = 10
)

// Deliver implements [inbox.Inbox].
func (r *Router) Deliver(ctx context.Context, _ inbox.Name, d inbox.Delivery) inbox.Outcome {
	item, ok := d.Item.(event.Delivery)
	if !ok || len(item.Events) == 0 {
		return inbox.Outcome{Result: inbox.Dead, Reason: "the events of the delivery are gone"}
	}
	for _, e := range item.Events {
		if e.Original != nil {
			return inbox.Outcome{Result: inbox.Dead, Reason: fmt.Sprintf(
				"what is sensitive in event %d was sealed with the key %q, which does not open it here; deliver it again when it does", e.Position, e.Original.KeyID)}
		}
	}
	ctx = auth.WithActor(ctx, auth.System())
	if item.Kind == event.Wake {
		return r.wake(ctx, item, d.Attempt)
	}
	return r.start(ctx, item, d.Attempt)
}

// start starts a run, with an ID that is derived from the events: an attempt whose answer was lost has started it once and for all.
func (r *Router) start(ctx context.Context, d event.Delivery, attempt int) inbox.Outcome {
	req := run.StartRequest{
		Project: d.Project, Workflow: d.Workflow, Version: d.Version, RunID: d.RunID, RequestID: d.RunID, Trigger: run.TriggerEvent,
		InputOf: func(doc *dsl.Document) (json.RawMessage, error) { return input(doc, d.Events) },
		// Why it was refused is kept with the delivery, which readers of the project see: they do not see all that is in the events.
		InputHidden: true,
	}
	for _, e := range d.Events {
		req.Sensitive = append(req.Sensitive, e.Sensitive...)
	}
	if e := d.Events[0]; e.Type == event.ScheduleFired && e.Source == event.TimerSource(d.Project, d.Workflow) {
		req.Trigger, req.InputOf = run.TriggerSchedule, nil
	}
	if _, _, err := r.opts.Runs.Start(ctx, req); err != nil {
		if told := r.report(ctx, d, err); told != nil {
			return refused(told, attempt)
		}
		return refused(err, attempt)
	}
	return inbox.Outcome{Result: inbox.Done}
}

func (r *Router) wake(ctx context.Context, d event.Delivery, attempt int) inbox.Outcome {
	for _, e := range d.Events {
		err := r.opts.Waker.Wake(ctx, d.RunID, d.Listener, e.Position, cloudevents.JSON(e), e.Sensitive)
		switch {
		case errors.Is(err, run.ErrNotKnown), errors.Is(err, run.ErrClosed):
			return inbox.Outcome{Result: inbox.Done, Reason: "the run has ended"}
		case err != nil:
			return refused(err, attempt)
		}
	}
	return inbox.Outcome{Result: inbox.Done}
}

// input is what events are for the run that they start: their array, each in the form that the document asks for.
func input(doc *dsl.Document, events []event.Event) (json.RawMessage, error) {
	form := eventfilter.Envelope
	if doc.Schedule != nil && doc.Schedule.Read != "" {
		form = doc.Schedule.Read
	}
	items := make([][]byte, len(events))
	for i, e := range events {
		switch form {
		case eventfilter.Envelope:
			items[i] = cloudevents.JSON(e)
		case eventfilter.Data:
			items[i] = e.Data // as it was given, digit for digit
		default:
			value, err := jq.DecodeJSON(cloudevents.JSON(e))
			if err != nil {
				return nil, fmt.Errorf("reading event %d: %w", e.Position, err)
			}
			plain, _ := value.(map[string]any)
			if items[i], err = jq.EncodeJSON(form.Read(plain)); err != nil {
				return nil, fmt.Errorf("reading event %d: %w", e.Position, err)
			}
		}
		if items[i] == nil {
			items[i] = []byte("null")
		}
	}
	return slices.Concat([]byte("["), bytes.Join(items, []byte(",")), []byte("]")), nil
}

// refused is what a failed attempt comes to. What may pass is tried again without an end: an outage loses nothing, however long it is.
func refused(err error, attempt int) inbox.Outcome {
	f, ok := fault.From(err)
	passes := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	if ok {
		passes = f.Class == fault.Unavailable || f.Reason == fault.QueueFull || f.Reason == fault.ContractMismatch ||
			f.Reason == fault.MemoryExhausted
		if !passes {
			return inbox.Outcome{Result: inbox.Dead, Reason: f.Message}
		}
	}
	if !passes && attempt >= puzzles {
		return inbox.Outcome{Result: inbox.Dead, Reason: fmt.Sprintf("given up after %d attempts: %v", attempt, err)}
	}
	after := pause(attempt)
	if ok {
		after = max(after, min(f.RetryAfter, retryMost))
	}
	return inbox.Outcome{Result: inbox.Retry, After: after, Reason: err.Error()}
}

// pause is how long to wait after an attempt, between half of its time and all of it, so that those that failed together do
// not come back together.
func pause(attempt int) time.Duration {
	full := retryMost
	const doublings = 6 // after which it is over retryMost
	if n := max(attempt-1, 0); n < doublings {
		full = min(retryFirst<<n, retryMost)
	}
	return full/2 + rand.N(full/2) //nolint:gosec // spreads load, protects nothing
}
