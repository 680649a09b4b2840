package storetest

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/webhook"
)

// unchanged completes an event with nothing.
func unchanged(e event.Event) event.Event { return e }

// moveFailures moves all events of the outbox into the inbox, two at a time, and returns the inbox, oldest first.
func moveFailures(t *testing.T, s Store) (list []event.Event) {
	t.Helper()
	for more := true; more; {
		moved, _, err := s.Outbox().Move(t.Context(), here, 2, unchanged)
		require.NoError(t, err)
		more = moved == 2
	}
	waiting, err := s.Outbox().Waiting(t.Context())
	require.NoError(t, err)
	require.Empty(t, waiting)
	backlog, err := s.Outbox().Backlog(t.Context())
	require.NoError(t, err)
	require.Equal(t, event.Unpublished{}, backlog)
	newest, err := s.Events().ListEvents(t.Context(), event.ListFilter{Project: here, Limit: 100})
	require.NoError(t, err)
	for _, e := range newest {
		full, err := s.Events().GetEvent(t.Context(), here, e.Position)
		require.NoError(t, err)
		list = append([]event.Event{full}, list...)
	}
	return list
}

// failRun inserts a run and applies its failure.
func failRun(t *testing.T, s Store, r run.Run) {
	t.Helper()
	insert(t, s, r)
	u := state(r.ID, 2, run.Failed)
	u.State.EndedAt, u.State.Error = at(9),
		&run.Error{Type: "x", Status: 503, Title: "Unavailable", Detail: "very", Instance: "/do/0/call"}
	apply(t, s, u)
}

func testFailureEvents(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	putWebhook(t, s, newWebhook("w", event.RunFailed, event.RunTimedOut))
	child := newRun("a", 1)
	child.Parent = run.Parent{RunID: "p", Path: "/do/0/nested", Depth: 1}
	failRun(t, s, child)
	waiting, err := s.Outbox().Waiting(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{here}, waiting)
	backlog, err := s.Outbox().Backlog(ctx)
	require.NoError(t, err)
	require.Equal(t, int64(1), backlog.Count)
	require.GreaterOrEqual(t, backlog.Oldest, time.Duration(0))

	// The other ways in which a run may end.
	queued := queuedRun("b", 2)
	enqueue(t, s, queued)
	finished, err := s.FinishQueued(ctx, run.Run{ID: "b", Status: run.Failed, EndedAt: at(10)},
		entry(audit.RunQueueExpired, here, "b"))
	require.NoError(t, err)
	require.True(t, finished)
	insert(t, s, newRun("c", 3))
	finished, err = s.FinishMissing(ctx, "c", run.TimedOut, &run.Error{Type: "t", Title: "Timeout"}, at(11),
		entry("run.finish", here, "c"))
	require.NoError(t, err)
	require.True(t, finished)
	for i, status := range []run.Status{run.Completed, run.Canceled, run.Terminated} {
		id := string(status)
		insert(t, s, newRun(id, 4+i))
		apply(t, s, state(id, 2, status))
	}

	list := moveFailures(t, s)
	require.Len(t, list, 3)
	require.Equal(t, []string{event.RunFailed, event.RunFailed, event.RunTimedOut},
		[]string{list[0].Type, list[1].Type, list[2].Type})
	require.Equal(t, []string{"a-failed", "/projects/" + here + "/runs", "a"},
		[]string{list[0].ID, list[0].Source, list[0].Subject})
	require.JSONEq(t, fmt.Sprintf(
		`{"project":%q,"runId":"a","workflow":%q,"version":%q,"status":"failed","trigger":%q,"parentRunId":"p",
"error":{"type":"x","status":503,"title":"Unavailable"},"task":{"name":"call","pointer":"/do/0/call"},"createdAt":%q,"startedAt":%q,"endedAt":%q}`,
		here, child.Workflow, child.Version, child.Trigger, stamp(1), stamp(1), stamp(9)), string(list[0].Data))
	require.JSONEq(t, fmt.Sprintf(
		`{"project":%q,"runId":"b","workflow":%q,"version":%q,"status":"failed","trigger":%q,"createdAt":%q,"endedAt":%q}`,
		here, queued.Workflow, queued.Version, queued.Trigger, stamp(2), stamp(10)), string(list[1].Data))

	// Late steps of a run that has ended report nothing.
	late := state("a", 1, run.Running)
	late.Steps = []run.Step{{Number: 1, Status: "completed", Position: 1, StartedAt: at(1)}}
	apply(t, s, late, state("a", 3, run.Failed))
	require.Len(t, moveFailures(t, s), 3)
}

// stamp is a time of the suite in JSON.
func stamp(n int) string {
	text, _ := json.Marshal(at(n).UTC()) //nolint:errchkjson // times always encode
	return string(text[1 : len(text)-1])
}

func testUnwantedFailures(t *testing.T, open Opener) {
	s := open(t)
	putWebhook(t, s, newWebhook("others", "io.signalbox.connection.*", event.RunTimedOut))
	failRun(t, s, newRun("a", 1))
	require.Empty(t, moveFailures(t, s), "nothing receives it")

	paused := newWebhook("paused", "*")
	paused.PausedAt = at(1)
	putWebhook(t, s, paused)
	failRun(t, s, newRun("b", 2))
	require.Empty(t, moveFailures(t, s), "the webhook is paused")

	publish(t, s, triggered("x/any", "1", `{"mode":"any"}`))
	insert(t, s, newRun("any", 3))
	listen(t, s, listener("la", "any"))
	failRun(t, s, newRun("c", 3))
	require.Empty(t, moveFailures(t, s), "neither a trigger nor a listener names the type")

	insert(t, s, newRun("waits", 4))
	listen(t, s, listener("l", "waits", event.RunFailed))
	failRun(t, s, newRun("d", 4))
	require.Len(t, moveFailures(t, s), 1, "a listener names the type")
	require.NoError(t, s.Events().Unlisten(t.Context(), here, "l"))
	failRun(t, s, newRun("e", 5))
	require.Len(t, moveFailures(t, s), 1)

	publish(t, s, triggered("x/failed", "1",
		`{"mode":"one","filters":[{"with":{"type":{"literal":"io.signalbox.run.failed"}}}]}`))
	failRun(t, s, newRun("f", 6))
	require.Len(t, moveFailures(t, s), 2, "a trigger names the type")

	putWebhook(t, s, newWebhook("all", "*"))
	insert(t, s, newRun("g", 7))
	apply(t, s, state("g", 2, run.TimedOut))
	require.Len(t, moveFailures(t, s), 3)
}

// The failures of runs that follow from failures are marked, also those of their children and replays.
func testAfterFailure(t *testing.T, open Opener) {
	s := open(t)
	putWebhook(t, s, newWebhook("w", "io.signalbox.*"))
	handler := newRun("handler", 1)
	handler.AfterFailure = true
	child, replay, other := newRun("child", 2), newRun("replay", 3), newRun("other", 4)
	child.Parent = run.Parent{RunID: "handler", Path: "/do/0/nested", Depth: 1}
	replay.ReplayOf = "child"
	other.ReplayOf = "none"
	for _, r := range []run.Run{handler, child, replay, other} {
		failRun(t, s, r)
	}
	marked := map[string]bool{}
	for _, e := range moveFailures(t, s) {
		marked[e.Subject] = e.AfterFailure()
	}
	require.Equal(t, map[string]bool{"handler": true, "child": true, "replay": true, "other": false}, marked)
	require.Empty(t, get(t, s, "handler").ReplayOf)
}

func testDeadLetterEvents(t *testing.T, open Opener) {
	s := open(t)
	o := fence(t, s, "host-1")
	putWebhook(t, s, newWebhook("w", event.DeliveryDeadLettered))
	give(t, s, newEvents("e", 2)...)
	route(t, s, o, routing(1, event.Routed, startOf(1, "x/one")), routing(2, event.Routed, wakeOf(2, "r2")))
	require.Len(t, due(t, s, o, 10), 2)
	writeResults(t, s, o, outcome("1 x/one", inbox.Dead, 0), outcome("2 r2", inbox.Done, 0))
	list := moveFailures(t, s)
	require.Len(t, list, 3)
	dead := list[2]
	require.Equal(t, []any{event.DeliveryDeadLettered, "1 x/one", false},
		[]any{dead.Type, dead.Subject, dead.AfterFailure()})
	var data struct {
		Project    string `json:"project"`
		DeliveryID string `json:"deliveryId"`
		Kind       string `json:"kind"`
		Workflow   string `json:"workflow"`
		RunID      string `json:"runId"`
		Reason     string `json:"reason"`
		Attempts   int    `json:"attempts"`
		Events     []struct {
			ID       string `json:"id"`
			Source   string `json:"source"`
			Position int64  `json:"position"`
		} `json:"events"`
	}
	require.NoError(t, json.Unmarshal(dead.Data, &data))
	require.Equal(t, []any{here, "1 x/one", "start", "x/one", "run-1-x/one", "reason of 1 x/one", 1},
		[]any{data.Project, data.DeliveryID, data.Kind, data.Workflow, data.RunID, data.Reason, data.Attempts})
	require.Len(t, data.Events, 1)
	require.Equal(t, []any{list[0].ID, list[0].Source, int64(1)},
		[]any{data.Events[0].ID, data.Events[0].Source, data.Events[0].Position})

	// A delivery that dies again is another event; one of an event that reports a failure is marked.
	_, err := s.Events().Redeliver(t.Context(), here, 1, nil, at(1), entry(audit.EventRedeliver, here, "1"))
	require.NoError(t, err)
	route(t, s, o, routing(3, event.Routed, startOf(3, "x/one")))
	require.Len(t, due(t, s, o, 10), 2)
	writeResults(t, s, o, outcome("1 x/one", inbox.Dead, 0), outcome("3 x/one", inbox.Dead, 0))
	list = moveFailures(t, s)
	require.Len(t, list, 5)
	marked := map[string]bool{}
	for _, e := range list[3:] {
		marked[e.Subject] = e.AfterFailure()
	}
	require.Equal(t, map[string]bool{"1 x/one": false, "3 x/one": true}, marked)
}

// Several processes move the same events while runs fail.
func testFailureEventsAtOnce(t *testing.T, open Opener) {
	s := open(t)
	putWebhook(t, s, newWebhook("w", "io.signalbox.run.*"))
	const runs, movers = 40, 4
	var failing, moving sync.WaitGroup
	over := make(chan struct{})
	for m := range movers {
		own := open(t)
		moving.Go(func() {
			for {
				_, _, err := own.Outbox().Move(t.Context(), here, 3+m, unchanged)
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
	for half := range 2 {
		failing.Go(func() {
			for i := range runs / 2 {
				failRun(t, s, newRun(fmt.Sprintf("r%d-%d", half, i), i))
			}
		})
	}
	failing.Wait()
	close(over)
	moving.Wait()
	list := moveFailures(t, s)
	seen := map[string]bool{}
	for i, e := range list {
		require.Equal(t, int64(i+1), e.Position)
		seen[e.Subject] = true
	}
	require.Len(t, list, runs)
	require.Len(t, seen, runs)
	require.Equal(t, runs, matchAll(t, s))
	require.Zero(t, func() int {
		made, _, _ := s.Webhooks().Match(t.Context(), here, runs, webhook.NewMatcher)
		return made
	}())
}
