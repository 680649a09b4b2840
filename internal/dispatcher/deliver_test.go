package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/start"
	"github.com/signalbox-dev/signalbox/internal/semaphore"
)

// targets receive deliveries, record them and return scripted errors.
type targets struct {
	started []start.Request
	actors  []string
	woken   []string
	answer  error
	// signals counts the calls of Wake; together is the error of those with several events.
	signals  int
	together error
}

func (g *targets) Start(ctx context.Context, req start.Request) (run.Run, bool, error) {
	actor, _ := auth.ActorFrom(ctx)
	g.started, g.actors = append(g.started, req), append(g.actors, actor.Name)
	return run.Run{ID: req.RunID}, true, g.answer
}

func (g *targets) Wake(_ context.Context, runID string, events ...event.WakeEvent) error {
	g.signals++
	if len(events) > 1 && g.together != nil {
		return g.together
	}
	for _, e := range events {
		g.woken = append(g.woken, fmt.Sprint(runID, " ", e.Listener, " ", e.Position, " ", string(e.JSON)))
	}
	return g.answer
}

func anEvent(position int64, data string) event.Event {
	return event.Event{Project: shop, Position: position, ID: fmt.Sprint("e-", position), Source: "/s", Type: "paid",
		Data: json.RawMessage(data)}
}

// turnsOf are turns without rests.
type turnsOf struct{ *semaphore.Shared }

// Acquire implements [dispatcher.Turns].
func (s turnsOf) Acquire(ctx context.Context, project, _ string) (release func(done bool), err error) {
	free, err := s.Shared.Acquire(ctx, project)
	return func(bool) { free() }, err
}

func deliver(t *testing.T, g *targets, d event.Delivery, attempt int) inbox.Outcome {
	t.Helper()
	r := dispatcher.NewRouter(dispatcher.RouterOptions{Runs: g, Waker: g, Turns: turnsOf{semaphore.NewShared(1)}})
	return r.Deliver(t.Context(), inbox.Name{Project: shop, TaskQueue: "q"},
		inbox.Delivery{ID: d.ID, Attempt: attempt, Item: d})
}

func TestSealedEventsAreNotDelivered(t *testing.T) {
	t.Parallel()
	for _, kind := range []event.Kind{event.Start, event.Wake} {
		g := &targets{}
		e := anEvent(4, `{"password":"mark"}`)
		e.Original = &event.Original{KeyID: "k1"}
		outcome := deliver(t, g, event.Delivery{
			ID: "d", Project: shop, Kind: kind, RunID: "r", Events: []event.Event{anEvent(3, ""), e}}, 1)
		require.Equal(t, inbox.Dead, outcome.Result)
		require.Contains(t, outcome.Reason, `event 4 is sealed with the key "k1"`)
		require.Empty(t, g.started)
		require.Empty(t, g.woken)
	}
}

func TestDeliverStarts(t *testing.T) {
	t.Parallel()
	g := &targets{}
	first, second := anEvent(4, `{"n":1.50,"text":"<a>"}`), anEvent(2, "")
	second.Data, second.DataBase64 = json.RawMessage(`"AAE="`), true
	d := event.Delivery{
		ID: "d", Project: shop, Position: 4, Kind: event.Start, Workflow: "a/b", Version: "1.0.0", RunID: "run-1",
		Positions: []int64{4, 2}, Events: []event.Event{first, second},
	}
	require.Equal(t, inbox.Outcome{Result: inbox.Done}, deliver(t, g, d, 1))
	req := g.started[0]
	require.Equal(t, "signalbox", g.actors[0])
	inputOf := req.InputOf
	req.InputOf = nil
	require.Equal(t, start.Request{
		Project: shop, Workflow: "a/b", Version: "1.0.0", RunID: "run-1", RequestID: "run-1", Trigger: run.TriggerEvent,
		InputHidden: true,
	}, req)
	envelopes := `[{"specversion":"1.0","id":"e-4","source":"/s","type":"paid","data":{"n":1.50,"text":"<a>"}},` +
		`{"specversion":"1.0","id":"e-2","source":"/s","type":"paid","data_base64":"AAE="}]`
	for _, tt := range []struct {
		schedule *dsl.Schedule
		want     string
	}{
		{nil, envelopes},
		{&dsl.Schedule{Read: eventfilter.Envelope}, envelopes},
		{&dsl.Schedule{Read: eventfilter.Data}, `[{"n":1.50,"text":"<a>"},"AAE="]`},
		{&dsl.Schedule{Read: eventfilter.Raw}, `["eyJuIjoxLjUsInRleHQiOiI8YT4ifQ==","AAE="]`},
	} {
		got, err := inputOf(&dsl.Document{Schedule: tt.schedule})
		require.NoError(t, err)
		require.Equal(t, tt.want, string(got))
	}
	d.Events[1].Data, d.Events[1].DataBase64 = nil, false
	require.Equal(t, inbox.Done, deliver(t, g, d, 2).Result)
	got, err := g.started[1].InputOf(&dsl.Document{Schedule: &dsl.Schedule{Read: eventfilter.Data}})
	require.NoError(t, err)
	require.JSONEq(t, `[{"n":1.50,"text":"<a>"},null]`, string(got))
}

// A run that an event about a failure starts is marked, so that its failure starts nothing.
func TestDeliverStartsAfterFailure(t *testing.T) {
	t.Parallel()
	g := &targets{}
	failed := anEvent(2, "{}")
	failed.Type = event.RunFailed
	d := event.Delivery{ID: "d", Project: shop, Kind: event.Start, Workflow: "a/b", RunID: "run-1",
		Events: []event.Event{anEvent(1, "{}"), failed}}
	require.Equal(t, inbox.Done, deliver(t, g, d, 1).Result)
	require.True(t, g.started[0].AfterFailure)
}

// TestDeliverStartsOnTimer: the run of a timer has no input; the events of another workflow's timer are like other
// events.
func TestDeliverStartsOnTimer(t *testing.T) {
	t.Parallel()
	g := &targets{}
	fired := event.Event{Position: 1, ID: "x", Source: event.TimerSource(shop, "a/b"), Type: event.ScheduleFired}
	d := event.Delivery{Project: shop, Kind: event.Start, Workflow: "a/b", Events: []event.Event{fired}}
	require.Equal(t, inbox.Done, deliver(t, g, d, 1).Result)
	d.Workflow = "a/other"
	require.Equal(t, inbox.Done, deliver(t, g, d, 1).Result)
	require.Equal(t, []string{run.TriggerSchedule, run.TriggerEvent}, []string{g.started[0].Trigger, g.started[1].Trigger})
	require.Nil(t, g.started[0].InputOf)
	require.Nil(t, g.started[0].Input)
	require.NotNil(t, g.started[1].InputOf)
}

func TestDeliverWakes(t *testing.T) {
	t.Parallel()
	g := &targets{}
	d := event.Delivery{Project: shop, Kind: event.Wake, RunID: "run-1", Listener: "l-1",
		Events: []event.Event{anEvent(7, "1.0")}}
	require.Equal(t, inbox.Outcome{Result: inbox.Done}, deliver(t, g, d, 1))
	require.Equal(t, []string{`run-1 l-1 7 {"specversion":"1.0","id":"e-7","source":"/s","type":"paid","data":1.0}`},
		g.woken)
	for _, gone := range []error{run.ErrNotKnown, fmt.Errorf("signal: %w", run.ErrClosed)} {
		g.answer = gone
		require.Equal(t, inbox.Outcome{Result: inbox.Done, Reason: "the run has ended"}, deliver(t, g, d, 1))
	}
	g.answer = apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal is away")
	require.Equal(t, inbox.Retry, deliver(t, g, d, 1).Result)
}

func TestDeliverWithoutEvents(t *testing.T) {
	t.Parallel()
	require.Equal(t, inbox.Dead, deliver(t, &targets{}, event.Delivery{Kind: event.Start}, 1).Result)
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	d := event.Delivery{Project: shop, Kind: event.Start, Workflow: "a/b", Events: []event.Event{anEvent(1, "1")}}
	tests := map[string]struct {
		err     error
		attempt int
		want    inbox.Result
		least   time.Duration
		most    time.Duration
		reason  string
	}{
		"temporal away": {
			apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "away"), 1, inbox.Retry, time.Second / 2, time.Second,
			"away"},
		"third attempt": {
			apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "away"), 3, inbox.Retry, 2 * time.Second,
			4 * time.Second, "away"},
		"many attempts": {
			apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "away"), 10_000, inbox.Retry, 30 * time.Second,
			time.Minute, "away"},
		"with a retry time": {
			apperror.New(apperror.Unavailable, apperror.StoreUnavailable, "away").WithRetry(20 * time.Second), 1, inbox.Retry,
			20 * time.Second, 20 * time.Second, "away"},
		"with a long retry time": {
			apperror.New(apperror.Unavailable, apperror.StoreUnavailable, "away").WithRetry(time.Hour), 1, inbox.Retry,
			time.Minute, time.Minute, "away"},
		"a full queue": {
			apperror.New(apperror.Exhausted, apperror.QueueFull, "full").WithRetry(time.Second), 99, inbox.Retry,
			30 * time.Second, time.Minute, "full"},
		"temporal over its limits": {
			apperror.New(apperror.Exhausted, apperror.EngineRefused, "limits").WithRetry(time.Second), 99, inbox.Retry,
			30 * time.Second, time.Minute, "limits"},
		"workers of another build": {
			apperror.New(apperror.Refused, apperror.ContractMismatch, "mismatch"), 99, inbox.Retry, 30 * time.Second,
			time.Minute, "mismatch"},
		"deadline": {
			fmt.Errorf("start: %w", context.DeadlineExceeded), 99, inbox.Retry, 30 * time.Second, time.Minute,
			"start: context deadline exceeded"},
		"canceled": {
			fmt.Errorf("start: %w", context.Canceled), 99, inbox.Retry, 30 * time.Second, time.Minute,
			"start: context canceled"},
		"a wrong input": {
			apperror.New(apperror.Invalid, apperror.InvalidInput, "no number"), 1, inbox.Dead, 0, 0, "no number"},
		"an input that is too large": {
			apperror.New(apperror.Exhausted, apperror.InputTooLarge, "too large"), 1, inbox.Dead, 0, 0, "too large"},
		"paused": {
			apperror.New(apperror.Refused, apperror.WorkflowPaused, "paused"), 1, inbox.Dead, 0, 0, "paused"},
		"deleted": {
			apperror.New(apperror.NotFound, apperror.WorkflowNotFound, "gone"), 1, inbox.Dead, 0, 0, "gone"},
		"an ID of another request": {
			apperror.New(apperror.Exists, apperror.RequestIDReused, "used"), 1, inbox.Dead, 0, 0, "used"},
		"unknown error":                   {errors.New("what?"), 9, inbox.Retry, 30 * time.Second, time.Minute, "what?"},
		"last attempt with unknown error": {errors.New("what?"), 10, inbox.Dead, 0, 0, "given up after 10 attempts: what?"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 20 { // jitter
				got := deliver(t, &targets{answer: tt.err}, d, tt.attempt)
				require.Equal(t, tt.want, got.Result)
				require.Equal(t, tt.reason, got.Reason)
				require.GreaterOrEqual(t, got.After, tt.least)
				require.LessOrEqual(t, got.After, tt.most)
			}
		})
	}
}

// wakes returns deliveries of events to a run, from position 1 on, each with data of that many bytes.
func wakes(runID string, count, size int) []inbox.Delivery {
	list := make([]inbox.Delivery, count)
	for i := range list {
		position := int64(i + 1)
		list[i] = inbox.Delivery{ID: fmt.Sprint("d", position), Lane: runID, Attempt: 1, Item: event.Delivery{
			Project: shop, Position: position, Kind: event.Wake, RunID: runID, Listener: "l",
			Events: []event.Event{anEvent(position, `"`+strings.Repeat("x", size)+`"`)},
		}}
	}
	return list
}

func TestEventsForOneRunShareASignal(t *testing.T) {
	t.Parallel()
	rejected := apperror.New(apperror.Refused, apperror.EngineRefused, "too large")
	away := apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "away")
	sealedEvent := wakes("r", 5, 1)
	hidden := sealedEvent[2].Item.(event.Delivery)
	hidden.Events[0].Original = &event.Original{KeyID: "k1"}
	for name, tt := range map[string]struct {
		list    []inbox.Delivery
		targets targets
		// done and signals are the number of deliveries that were made, and of signals; last is the result of the last
		// outcome.
		done, signals int
		last          inbox.Result
	}{
		"all":                 {list: wakes("r", 5, 1), done: 5, signals: 1, last: inbox.Done},
		"large events":        {list: wakes("r", 5, 100<<10), done: 2, signals: 1, last: inbox.Done},
		"before a sealed one": {list: sealedEvent, done: 2, signals: 1, last: inbox.Done},
		"another run": {
			list: append(wakes("r", 2, 1), wakes("s", 2, 1)...), done: 2, signals: 1, last: inbox.Done},
		"the run has ended": {
			list: wakes("r", 3, 1), targets: targets{answer: run.ErrClosed}, done: 3, signals: 1, last: inbox.Done},
		"unavailable": {
			list: wakes("r", 3, 1), targets: targets{together: away}, done: 1, signals: 1, last: inbox.Retry},
		"rejected as one, then made": {
			list: wakes("r", 3, 1), targets: targets{together: rejected}, done: 1, signals: 2, last: inbox.Done},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := tt.targets
			r := dispatcher.NewRouter(dispatcher.RouterOptions{Runs: &g, Waker: &g, Turns: turnsOf{semaphore.NewShared(1)}})
			outcomes := r.DeliverMany(t.Context(), inbox.Name{Project: shop, TaskQueue: "q"}, tt.list)
			require.Len(t, outcomes, tt.done)
			require.Equal(t, tt.last, outcomes[tt.done-1].Result, outcomes)
			require.Equal(t, tt.signals, g.signals)
			if tt.last == inbox.Done && g.answer == nil {
				require.Len(t, g.woken, tt.done)
				require.Contains(t, g.woken[0], "r l 1 {")
			}
		})
	}
}

// TestDeliveriesWaitForATurnOfTheirProject has one turn, which another project uses.
func TestDeliveriesWaitForATurnOfTheirProject(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, turns := &targets{}, turnsOf{semaphore.NewShared(1)}
		r := dispatcher.NewRouter(dispatcher.RouterOptions{Runs: g, Waker: g, Turns: turns})
		name := inbox.Name{Project: shop, TaskQueue: "q"}
		one := inbox.Delivery{ID: "d", Attempt: 1, Item: event.Delivery{
			ID: "d", Project: shop, Kind: event.Wake, RunID: "r", Events: []event.Event{anEvent(1, `1`)}}}
		release, err := turns.Acquire(t.Context(), "other", "start")
		require.NoError(t, err)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Equal(t, inbox.Released, r.Deliver(short, name, one).Result, "it does not count as an attempt")
		require.Empty(t, r.DeliverMany(short, name, []inbox.Delivery{one}))
		require.Zero(t, g.signals)
		release(true)
		require.Equal(t, inbox.Done, r.Deliver(t.Context(), name, one).Result)
		require.Equal(t, inbox.Done, r.DeliverMany(t.Context(), name, []inbox.Delivery{one})[0].Result, "it was given back")
		require.Equal(t, 2, g.signals)
		require.True(t, turns.Enter("other", time.Now()).Wait(0))
	})
}

// emitters are the rows of runs that emit events.
type emitters map[string]run.Run

func (e emitters) GetRun(_ context.Context, _, id string) (run.Run, error) {
	r, ok := e[id]
	if !ok {
		return r, apperror.New(apperror.NotFound, apperror.RunNotFound, "no run %s", id)
	}
	return r, nil
}

// TestLineageOfStarts: a run descends from those that emitted its events; a run that the clock starts has no
// generation, or that of the run that it follows.
func TestLineageOfStarts(t *testing.T) {
	t.Parallel()
	rows := emitters{
		"r1": {ID: "r1", Workflow: "a/one"},
		"r2": {ID: "r2", Workflow: "a/two", Lineage: run.Lineage{Generation: 4, Workflows: []string{"a/one"}}},
		"r3": {ID: "r3", Workflow: "a/b"},
		"r4": {ID: "r4", Workflow: "a/b", Lineage: run.Lineage{Generation: 4, Workflows: []string{"a/one"}}},
	}
	emitted := func(id string) event.Event {
		e := anEvent(1, `{}`)
		e.Actor = auth.Run(id).Name
		return e
	}
	fired := func(id string) event.Event {
		e := anEvent(1, `{}`)
		e.ID, e.Type, e.Source = id, event.ScheduleFired, event.TimerSource(shop, "a/b")
		return e
	}
	for name, tt := range map[string]struct {
		events []event.Event
		want   run.Lineage
	}{
		"a person's event": {[]event.Event{anEvent(1, `{}`)}, run.Lineage{}},
		"emitted":          {[]event.Event{emitted("r1")}, run.Lineage{Generation: 1, Workflows: []string{"a/one"}}},
		"several":          {[]event.Event{emitted("r1"), anEvent(2, `{}`), emitted("r2")}, run.Lineage{Generation: 5, Workflows: []string{"a/one", "a/two"}}},
		"a deleted run":    {[]event.Event{emitted("gone")}, run.Lineage{}},
		"by the clock":     {[]event.Event{fired("2026-11-20T03:00:00Z")}, run.Lineage{}},
		"after a run":      {[]event.Event{fired("2026-11-20T03:00:00Z/r3")}, run.Lineage{Workflows: []string{"a/b"}}},
		"after a child": {[]event.Event{fired("2026-11-20T03:00:00Z/r4")},
			run.Lineage{Generation: 4, Workflows: []string{"a/b", "a/one"}}},
		"after a deleted run": {[]event.Event{fired("2026-11-20T03:00:00Z/gone")}, run.Lineage{Workflows: []string{"a/b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &targets{}
			r := dispatcher.NewRouter(dispatcher.RouterOptions{Runs: g, Waker: g, Rows: rows,
				Turns: turnsOf{semaphore.NewShared(1)}})
			outcome := r.Deliver(t.Context(), inbox.Name{Project: shop, TaskQueue: "q"}, inbox.Delivery{ID: "d", Attempt: 1,
				Item: event.Delivery{ID: "d", Project: shop, Kind: event.Start, Workflow: "a/b", RunID: "r", Events: tt.events}})
			require.Equal(t, inbox.Done, outcome.Result)
			require.Equal(t, tt.want, g.started[0].Lineage)
		})
	}
}
