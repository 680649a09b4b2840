package dispatcher

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/backoff"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/cloudevents"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/start"
	"github.com/signalbox-dev/signalbox/internal/traceparent"
)

const (
	// retryFirst and retryMost are the first and the longest pause between attempts; the pause doubles.
	retryFirst = time.Second
	retryMost  = time.Minute
	// maxUnknown is the number of attempts after which a delivery with unclassified errors is dead.
	maxUnknown = 10
)

// Deliver implements [inbox.Inbox]. The attempt takes a turn of its project.
func (r *Router) Deliver(ctx context.Context, name inbox.Name, d inbox.Delivery) (outcome inbox.Outcome) {
	release, err := r.opts.Turns.Acquire(ctx, name.Project, kindOf(d))
	if err != nil {
		return inbox.Outcome{Result: inbox.Released}
	}
	defer func() { release(outcome.Result == inbox.Done) }()
	return r.deliver(ctx, d)
}

// kindOf returns the kind of a delivery's request.
func kindOf(d inbox.Delivery) string {
	item, _ := d.Item.(event.Delivery)
	return "deliver " + string(item.Kind)
}

// deliver makes one delivery.
func (r *Router) deliver(ctx context.Context, d inbox.Delivery) inbox.Outcome {
	item, ok := d.Item.(event.Delivery)
	if !ok || len(item.Events) == 0 {
		return inbox.Outcome{Result: inbox.Dead, Reason: "the events of the delivery are gone"}
	}
	for _, e := range item.Events {
		if e.Original != nil {
			return inbox.Outcome{Result: inbox.Dead, Reason: fmt.Sprintf(
				"the sensitive data of event %d is sealed with the key %q, which does not open it here; redeliver it when it "+
					"does", e.Position, e.Original.KeyID)}
		}
	}
	ctx = auth.WithActor(ctx, auth.System())
	if item.Kind == event.Wake {
		return r.wake(ctx, item, d.Attempt)
	}
	return r.start(ctx, item, d.Attempt)
}

// batchBytes bounds the events that one signal delivers, so that it stays far below Temporal's limit.
const batchBytes = 256 << 10

var _ inbox.Batcher = (*Router)(nil)

// DeliverMany implements [inbox.Batcher]: events that wake the same run share a signal. The other deliveries are made
// one by one, and so are those that Temporal rejects together.
func (r *Router) DeliverMany(ctx context.Context, name inbox.Name,
	list []inbox.Delivery) (outcomes []inbox.Outcome) {
	release, err := r.opts.Turns.Acquire(ctx, name.Project, kindOf(list[0]))
	if err != nil {
		return nil // no attempt was made
	}
	defer func() { release(len(outcomes) > 0 && outcomes[0].Result == inbox.Done) }()
	wakes := together(list)
	if len(wakes) < 2 { //nolint:mnd // one is delivered as always
		return []inbox.Outcome{r.deliver(ctx, list[0])}
	}
	ctx = auth.WithActor(ctx, auth.System())
	if first, ok := list[0].Item.(event.Delivery); ok {
		ctx = traceparent.Follow(ctx, first.Events[0].Traceparent)
	}
	outcome := outcomeOfWake(r.opts.Waker.Wake(ctx, wakes[0].RunID, wakes...), list[0].Attempt)
	switch outcome.Result {
	case inbox.Done:
		return slices.Repeat([]inbox.Outcome{outcome}, len(wakes))
	case inbox.Dead:
		return []inbox.Outcome{r.deliver(ctx, list[0])}
	default:
		return []inbox.Outcome{outcome}
	}
}

// together returns the wakes of the first deliveries that one signal can deliver, one for each; fewer than two where
// they cannot share one.
func together(list []inbox.Delivery) []event.WakeEvent {
	var wakes []event.WakeEvent
	size := 0
	for _, d := range list {
		item, ok := d.Item.(event.Delivery)
		if !ok || item.Kind != event.Wake || len(item.Events) != 1 || item.Events[0].Original != nil || len(wakes) > 0 &&
			item.RunID != wakes[0].RunID {
			break
		}
		w := wakeOf(item, item.Events[0])
		if size += len(w.JSON); size > batchBytes {
			break
		}
		wakes = append(wakes, w)
	}
	return wakes
}

func wakeOf(d event.Delivery, e event.Event) event.WakeEvent {
	return event.WakeEvent{RunID: d.RunID, Listener: d.Listener, Position: e.Position, JSON: cloudevents.JSON(e),
		Sensitive: e.Sensitive}
}

// start starts a run with an ID that is derived from the events: if the answer of an attempt was lost, the next attempt
// finds the run.
func (r *Router) start(ctx context.Context, d event.Delivery, attempt int) inbox.Outcome {
	req := start.Request{
		Project: d.Project, Workflow: d.Workflow, Version: d.Version, RunID: d.RunID, RequestID: d.RunID,
		Trigger: run.TriggerEvent,
		InputOf: func(doc *dsl.Document) (json.RawMessage, error) { return input(doc, d.Events) },
		// The reason of a rejection is stored with the delivery, which all readers of the project see; the contents of the
		// events are not for all of them.
		InputHidden:  true,
		AfterFailure: slices.ContainsFunc(d.Events, func(e event.Event) bool { return event.ReportsFailure(e.Type) }),
	}
	var parents []string
	for _, e := range d.Events {
		req.Sensitive, parents = append(req.Sensitive, e.Sensitive...), append(parents, e.Traceparent)
	}
	ctx = traceparent.Follow(ctx, parents...)
	if e := d.Events[0]; e.Type == event.ScheduleFired && e.Source == event.TimerSource(d.Project, d.Workflow) {
		req.Trigger, req.InputOf = run.TriggerSchedule, nil
	}
	var err error
	if req.Lineage, err = r.lineage(ctx, d); err != nil {
		return outcomeOf(err, attempt)
	}
	if _, _, err := r.opts.Runs.Start(ctx, req); err != nil {
		if failure := r.report(ctx, d, err); failure != nil {
			return outcomeOf(failure, attempt)
		}
		return outcomeOf(err, attempt)
	}
	return inbox.Outcome{Result: inbox.Done}
}

// lineage returns the lineage of a run that events start: of the runs that emitted them, or of the run that it follows
// by the clock.
func (r *Router) lineage(ctx context.Context, d event.Delivery) (run.Lineage, error) {
	var l run.Lineage
	for _, e := range d.Events {
		id, follows := e.FollowedRun(d.Project, d.Workflow)
		if follows {
			l = l.Join(run.Lineage{Workflows: []string{d.Workflow}}) // also where the run is gone
		} else if emitter, emitted := auth.RunOf(e.Actor); emitted {
			id = emitter
		} else {
			continue
		}
		before, err := r.opts.Rows.GetRun(ctx, d.Project, id)
		switch {
		case apperror.Is(err, apperror.RunNotFound): // retention has deleted it
		case err != nil:
			return l, err
		case follows:
			l = l.Join(before.Following())
		default:
			l = l.Join(before.Next())
		}
	}
	return l, nil
}

func (r *Router) wake(ctx context.Context, d event.Delivery, attempt int) inbox.Outcome {
	for _, e := range d.Events {
		err := r.opts.Waker.Wake(traceparent.Follow(ctx, e.Traceparent), d.RunID, wakeOf(d, e))
		if err != nil {
			return outcomeOfWake(err, attempt)
		}
	}
	return inbox.Outcome{Result: inbox.Done}
}

// outcomeOfWake returns the outcome of a wake. One for a run that has ended is done.
func outcomeOfWake(err error, attempt int) inbox.Outcome {
	switch {
	case err == nil:
		return inbox.Outcome{Result: inbox.Done}
	case errors.Is(err, run.ErrNotKnown), errors.Is(err, run.ErrClosed):
		return inbox.Outcome{Result: inbox.Done, Reason: "the run has ended"}
	default:
		return outcomeOf(err, attempt)
	}
}

// input returns the input of a run that events start: their array, each in the form that the document selects.
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
			items[i] = e.Data // unchanged, also in the digits of its numbers
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

// outcomeOf returns the outcome of a failed attempt. Transient errors are retried without a limit: an outage of any
// length loses nothing.
func outcomeOf(err error, attempt int) inbox.Outcome {
	f, ok := apperror.From(err)
	passes := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	if ok {
		passes = apperror.Temporary(err)
		if !passes {
			return inbox.Outcome{Result: inbox.Dead, Reason: f.Message}
		}
	}
	if !passes && attempt >= maxUnknown {
		return inbox.Outcome{Result: inbox.Dead, Reason: fmt.Sprintf("given up after %d attempts: %v", attempt, err)}
	}
	after := backoff.Jitter(backoff.Delay(retryFirst, retryMost, max(attempt, 1)))
	if ok {
		after = max(after, min(f.RetryAfter, retryMost))
	}
	return inbox.Outcome{Result: inbox.Retry, After: after, Reason: err.Error()}
}
