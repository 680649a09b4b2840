package explain_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/explain"
)

// world is what is stored about one event and the listeners for its type.
type world struct {
	stored

	event     event.Event
	listening []explain.Listening
	start     int64
}

func (w world) Listening(context.Context, string, string, int) ([]explain.Listening, error) {
	return w.listening, nil
}

func (w world) NotTaken(context.Context, string, string, []string, int) ([]event.Event, int64, error) {
	return []event.Event{w.event}, w.start, nil
}

func (w world) EventsAt(context.Context, string, []int64) ([]event.Event, error) {
	return []event.Event{w.event}, nil
}

func (w world) Get(context.Context, string, string) (run.Run, error) {
	r := running(run.Waiting, run.WaitingEvent)
	r.DocumentHash = "h"
	return r, nil
}

// hidden shows each text "secret" as a mark; the original event has the text.
type hidden struct{ original json.RawMessage }

func (h hidden) Listeners(_ context.Context, _ string, list []event.Listener) ([]event.Listener, error) {
	shown := make([]event.Listener, len(list))
	text, _ := json.Marshal(list)
	return shown, json.Unmarshal([]byte(strings.ReplaceAll(string(text), `"secret"`, `"⟦redacted⟧"`)), &shown)
}

func (h hidden) OpenToCompare(events []event.Event, listeners []event.Listener) ([]event.Event, []event.Listener) {
	opened := append([]event.Event(nil), events...)
	if h.original != nil {
		opened[0].Data = h.original
	}
	return opened, listeners
}

func filter(t *testing.T, text string) event.Filter {
	t.Helper()
	var f event.Filter
	require.NoError(t, json.Unmarshal([]byte(text), &f))
	return f
}

const order = `{"with": {"type": {"literal": "paid"}, "source": {"literal": "/shop"}, "data": {"members": {"amount": {"expr": ". > 5"}}}},
"correlate": {"order": {"from": ".data.order", "expect": "A-1"}, "region": {"from": ".data.region"}}}`

func TestWhyAListenTaskHasNotTakenAnEvent(t *testing.T) {
	t.Parallel()
	const waits = "do:\n  - t: {listen: {to: {one: {with: {type: paid}}}}}\n"
	const later = "do:\n  - t: {listen: {to: {one: {with: {type: paid}}}}, metadata: {signalbox.since: listen}}\n"
	everyPaid := `{"with": {"type": {"literal": "paid"}}}`
	for name, tt := range map[string]struct {
		data, original, document, filter string
		position                         int64
		start                            int64
		deliveries                       []event.Delivery
		reason                           string
	}{
		"each unmet condition with both values": {
			data: `{"order": "A-2", "amount": 3}`, filter: order, position: 7, start: 1,
			reason: `its data is {"amount":3,"order":"A-2"}, the task requires {amount: ${ . > 5 }}, and its source is "/store", the task requires "/shop", ` +
				`and its correlation key order is "A-2", the task requires "A-1", and the event has no correlation key region: .data.region gives no value`,
		},
		"a value that is hidden in both": {
			data: `"⟦redacted⟧"`, original: `"other secret"`, position: 7, start: 1,
			filter: `{"with": {"type": {"literal": "paid"}}, "correlate": {"key": {"from": ".data", "expect": "secret"}}}`,
			reason: `its correlation key key differs; the values are hidden`,
		},
		"a value that is hidden with the whole data": {
			data: `"⟦redacted⟧"`, original: `{"key": "other secret"}`, position: 7, start: 1,
			filter: `{"with": {"type": {"literal": "paid"}}, "correlate": {"key": {"from": ".data.key", "expect": "secret"}}}`,
			reason: `its correlation key key differs; the values are hidden`,
		},
		"it came before the task, which takes only later events": {
			filter: everyPaid, document: later, position: 3, start: 1,
			reason: "it arrived 3.2s before the task began to wait, which takes only later events (signalbox.since: listen)",
		},
		"it came before the run": {filter: everyPaid, position: 3, start: 3, reason: "it arrived before the run started"},
		"it came before and was not looked through": {
			filter: everyPaid, position: 3, start: 1,
			reason: "it arrived 3.2s before the task began to wait, and was not looked through: see the warnings of the run",
		},
		"taken by another task": {
			filter: everyPaid, position: 7, start: 1,
			deliveries: []event.Delivery{{RunID: "r", Kind: event.Wake, Listener: "of another task"}},
			reason:     "the run has taken it already, in another task",
		},
		"it started the run": {
			filter: everyPaid, position: 7, start: 7, deliveries: []event.Delivery{{RunID: "r", Kind: event.Start}},
			reason: "it started the run, which takes each event once",
		},
		"not routed yet": {filter: everyPaid, position: 7, start: 1, reason: "it matches, and is not routed yet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := event.Listener{ID: key("", "/do/0/t"), Project: "p", RunID: "r", Since: 5,
				Spec: event.Spec{Mode: event.One, Filters: []event.Filter{filter(t, tt.filter)}}}
			step := open(2, "/do/0/t", dsl.KindListen, run.WaitingEvent)
			step.StartedAt = at(10)
			w := world{
				stored: stored{Steps: []run.Step{step}, Listeners: []event.Listener{l}}, start: tt.start,
				event: event.Event{Project: "p", Position: tt.position, ID: "1", Source: "/store", Type: "paid",
					Status: event.Pending, ReceivedAt: at(10).Add(-3200 * time.Millisecond)},
				listening: []explain.Listening{{Listener: l, Workflow: "demo/w", Version: "1.0.0", Start: tt.start}},
			}
			if tt.data != "" {
				w.event.Data = json.RawMessage(tt.data)
			}
			redactor := hidden{}
			if tt.original != "" {
				redactor.original = json.RawMessage(tt.original)
			}
			document := waits
			if tt.document != "" {
				document = tt.document
			}
			service := explain.New(explain.Options{
				Store: w, Events: w, Runs: w, Redactor: redactor, Documents: documents{"h": parse(t, document)}, Key: key,
			})
			missed, more, err := service.Missed(t.Context(), w.event, tt.deliveries)
			require.NoError(t, err)
			require.False(t, more)
			require.Equal(t, []explain.Missed{
				{RunID: "r", Workflow: "demo/w", Version: "1.0.0", Step: 2, Task: "t", Since: at(10), Reason: tt.reason}}, missed)
			if len(tt.deliveries) > 0 {
				return // such an event is not read for the run
			}
			r, _ := w.Get(t.Context(), "", "")
			found, _, err := service.Waits(t.Context(), r, 0, explain.Most)
			require.NoError(t, err)
			require.Equal(t, []explain.Near{
				{Position: tt.position, ID: "1", Source: "/store", Type: "paid", ReceivedAt: w.event.ReceivedAt,
					Reason: tt.reason}}, found[0].Near)
		})
	}
}

func TestListenTasksNearestToAMatchAreFirst(t *testing.T) {
	t.Parallel()
	var w world
	w.event = event.Event{Project: "p", Position: 7, ID: "1", Source: "/store", Type: "paid"}
	for id, text := range map[string]string{
		"far":   `{"with": {"type": {"literal": "paid"}, "source": {"literal": "/shop"}, "subject": {"literal": "x"}}}`,
		"near":  `{"with": {"type": {"literal": "paid"}, "source": {"literal": "/shop"}}}`,
		"other": `{"with": {"type": {"expr": "test(\"^sold\")"}}}`,
		"woken": `{"with": {"type": {"literal": "paid"}}}`,
	} {
		w.listening = append(w.listening, explain.Listening{Listener: event.Listener{
			ID: id, RunID: id, Since: 5, Spec: event.Spec{Mode: event.One, Filters: []event.Filter{filter(t, text)}},
		}})
	}
	service := explain.New(explain.Options{
		Store: w, Events: w, Runs: w, Redactor: hidden{}, Documents: documents{}, Key: key})
	missed, _, err := service.Missed(t.Context(), w.event, []event.Delivery{{Listener: "woken", RunID: "woken"}})
	require.NoError(t, err)
	require.Len(t, missed, 2, "neither the one that takes it, nor the one for other types")
	require.Equal(t, []string{"near", "far"}, []string{missed[0].RunID, missed[1].RunID})
	require.Zero(t, missed[0].Step, "its step is not recorded")
}
