package storetest

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/webhook"
)

// lease is longer than any test.
const lease = time.Hour

func newWebhook(id string, types ...string) webhook.Webhook {
	return webhook.Webhook{
		ID: id, Project: here, Name: id, URL: "https://example.com/", Format: webhook.CloudEvents,
		Filter: webhook.Filter{Types: types},
		Sealed: []byte{1, 0, 2}, Creator: "ada", Updater: "ada", CreatedAt: at(1), UpdatedAt: at(1),
	}
}

// putWebhook writes a webhook whose deliveries begin after the newest event.
func putWebhook(t *testing.T, s Store, w webhook.Webhook) {
	t.Helper()
	require.NoError(t, s.Webhooks().ChangeWebhook(t.Context(), w.Project, func([]webhook.Webhook) (webhook.Change, error) {
		return webhook.Change{To: &w, Head: true, Entry: entry(audit.WebhookCreate, w.Project, w.Name)}, nil
	}))
}

// changeWebhook changes the webhook with an ID.
func changeWebhook(t *testing.T, s Store, id string, change func(w *webhook.Webhook) webhook.Change) {
	t.Helper()
	require.NoError(t, s.Webhooks().ChangeWebhook(t.Context(), here, func(list []webhook.Webhook) (webhook.Change, error) {
		for _, w := range list {
			if w.ID == id {
				c := change(&w)
				c.To, c.Entry = &w, entry(audit.WebhookUpdate, here, id)
				return c, nil
			}
		}
		return webhook.Change{}, fmt.Errorf("no webhook %s", id)
	}))
}

func publishTyped(t *testing.T, s Store, types ...string) {
	t.Helper()
	var list []event.Event
	for _, typ := range types {
		list = append(list, event.Event{
			ID: fmt.Sprintf("%s-%d", typ, time.Now().UnixNano()), Source: "/test", Type: typ, Data: json.RawMessage(`{"n":1}`)})
	}
	_, _, err := s.Events().Publish(t.Context(), here, list)
	require.NoError(t, err)
}

// matchAll matches all events of the project and returns the number of new deliveries.
func matchAll(t *testing.T, s Store) (made int) {
	t.Helper()
	for more := true; more; {
		var n int
		var err error
		n, more, err = s.Webhooks().Match(t.Context(), here, 2, webhook.NewMatcher)
		require.NoError(t, err)
		made += n
	}
	return made
}

func getWebhook(t *testing.T, s Store, id string) webhook.Webhook {
	t.Helper()
	list, err := s.Webhooks().ListWebhooks(t.Context(), here)
	require.NoError(t, err)
	for _, w := range list {
		if w.ID == id {
			return w
		}
	}
	require.Fail(t, "no webhook", id)
	return webhook.Webhook{}
}

func testWebhooks(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	_, err := s.Webhooks().ListWebhooks(ctx, "none")
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, "none")
	err = s.Webhooks().ChangeWebhook(ctx, "none", func([]webhook.Webhook) (webhook.Change, error) {
		return webhook.Change{}, nil
	})
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, "none")

	publishTyped(t, s, "before")
	w := newWebhook("b", "a", "b*")
	w.Filter.With = json.RawMessage(`{"data":{"n":1}}`)
	w.PreviousUntil = at(9)
	putWebhook(t, s, w)
	putWebhook(t, s, newWebhook("a", "*"))
	list, err := s.Webhooks().ListWebhooks(ctx, here)
	require.NoError(t, err)
	w.Since = 1
	require.Equal(t, []webhook.Webhook{{
		ID: "a", Project: here, Name: "a", URL: "https://example.com/", Format: webhook.CloudEvents,
		Filter: webhook.Filter{Types: []string{"*"}},
		Sealed: []byte{1, 0, 2}, Since: 1, Creator: "ada", Updater: "ada", CreatedAt: at(1), UpdatedAt: at(1),
	}, w}, list)

	replaced, err := s.Webhooks().ReplaceSealed(ctx, func(w webhook.Webhook) ([]byte, error) {
		if w.ID == "a" {
			return w.Sealed, nil
		}
		changeWebhook(t, s, "b", func(w *webhook.Webhook) webhook.Change {
			w.Sealed = []byte{2}
			return webhook.Change{}
		})
		return []byte{9}, nil
	})
	require.NoError(t, err)
	require.Equal(t, 1, replaced)
	require.Equal(t, []byte{2}, getWebhook(t, s, "b").Sealed, "a change in the meantime stays")
	_, err = s.Webhooks().ReplaceSealed(ctx, func(w webhook.Webhook) ([]byte, error) {
		return append([]byte(w.ID), w.Sealed...), nil
	})
	require.NoError(t, err)
	require.Equal(t, []byte{'b', 2}, getWebhook(t, s, "b").Sealed)

	changeWebhook(t, s, "b", func(w *webhook.Webhook) webhook.Change {
		w.URL, w.Sealed, w.Updater, w.UpdatedAt, w.PausedAt, w.PauseReason = "https://example.org/", []byte{3}, "bob", at(5),
			at(5), "later"
		return webhook.Change{Stop: true}
	})
	changed := getWebhook(t, s, "b")
	require.Equal(t, []any{"https://example.org/", []byte{3}, "bob", "later", true, int64(1)},
		[]any{changed.URL, changed.Sealed, changed.Updater, changed.PauseReason, changed.Paused(), changed.Since})

	err = s.Webhooks().ChangeWebhook(ctx, here, func(list []webhook.Webhook) (webhook.Change, error) {
		require.Len(t, list, 2)
		return webhook.Change{ID: "a", Entry: entry(audit.WebhookDelete, here, "a")}, nil
	})
	require.NoError(t, err)
	list, err = s.Webhooks().ListWebhooks(ctx, here)
	require.NoError(t, err)
	require.Len(t, list, 1)
	entries, err := s.ListAudit(ctx, audit.Filter{Project: here, Action: audit.WebhookDelete, Limit: 10})
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func testWebhookMatching(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	publishTyped(t, s, "order.paid")
	projects, err := s.Webhooks().Unmatched(ctx)
	require.NoError(t, err)
	require.Empty(t, projects, "a project without webhooks")

	putWebhook(t, s, newWebhook("orders", "order.*"))
	require.Zero(t, matchAll(t, s), "an event before the webhook")
	receiving, err := s.Webhooks().Receiving(ctx, "other", "order.paid")
	require.NoError(t, err)
	require.Equal(t, []string{here}, receiving)
	receiving, err = s.Webhooks().Receiving(ctx, "other")
	require.NoError(t, err)
	require.Empty(t, receiving)
	publishTyped(t, s, "order.paid", "other", "order.failed", "order.paid", "other")
	projects, err = s.Webhooks().Unmatched(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{here}, projects)

	// Several processes match at the same time.
	stores := []Store{s, open(t), open(t)}
	made := make([]int, len(stores))
	var joined sync.WaitGroup
	for i := range stores {
		joined.Go(func() { made[i] = matchAll(t, stores[i]) })
	}
	joined.Wait()
	require.Equal(t, 3, made[0]+made[1]+made[2])
	projects, err = s.Webhooks().Unmatched(ctx)
	require.NoError(t, err)
	require.Empty(t, projects)

	list, err := s.Webhooks().ListDeliveries(ctx, webhook.DeliveryFilter{Webhook: "orders", Limit: 10})
	require.NoError(t, err)
	positions := map[int64]string{}
	for _, d := range list {
		require.Equal(t, webhook.DeliveryID("orders", d.Position), d.ID)
		positions[d.Position] = d.EventType
	}
	require.Equal(t, map[int64]string{2: "order.paid", 4: "order.failed", 5: "order.paid"}, positions)

	changeWebhook(t, s, "orders", func(w *webhook.Webhook) webhook.Change {
		w.PausedAt = at(5)
		return webhook.Change{Stop: true}
	})
	publishTyped(t, s, "order.paid")
	require.Zero(t, matchAll(t, s), "an event while the webhook is paused")
	changeWebhook(t, s, "orders", func(w *webhook.Webhook) webhook.Change {
		w.PausedAt = time.Time{}
		return webhook.Change{Head: true, Resume: true}
	})
	publishTyped(t, s, "order.paid")
	require.Equal(t, 1, matchAll(t, s))
}

func attempted(message string, code int) webhook.Attempt {
	return webhook.Attempt{Time: at(2), Duration: time.Second, HTTPStatus: code, Error: message, Response: "said"}
}

func testWebhookDeliveries(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	hooks := s.Webhooks()
	putWebhook(t, s, newWebhook("w", "*"))
	publishTyped(t, s, "a", "b", "c")
	require.Equal(t, 3, matchAll(t, s))
	waiting, err := hooks.Waiting(ctx, 5)
	require.NoError(t, err)
	require.Equal(t, []string{"w"}, waiting)

	claims, err := hooks.Claim(ctx, "w", 2, lease)
	require.NoError(t, err)
	require.Len(t, claims, 2)
	require.Equal(t, 1, claims[0].Delivery.Attempts)
	require.JSONEq(t, `{"n":1}`, string(member(t, claims[0].Delivery.Event, "data")))
	again, err := hooks.Claim(ctx, "w", 2, lease)
	require.NoError(t, err)
	require.Empty(t, again, "two of its deliveries are claimed")

	finished, err := hooks.Finish(ctx, claims[0], webhook.Outcome{Attempt: attempted("", 204), Status: webhook.Delivered})
	require.NoError(t, err)
	require.True(t, finished)
	finished, err = hooks.Finish(ctx, claims[0], webhook.Outcome{Attempt: attempted("late", 500), Status: webhook.Pending})
	require.NoError(t, err)
	require.False(t, finished, "the claim has ended")
	require.False(t, getWebhook(t, s, "w").SucceededAt.IsZero())

	_, err = hooks.Finish(ctx, claims[1],
		webhook.Outcome{Attempt: attempted("answered 500", 500), Status: webhook.Pending, Retry: lease})
	require.NoError(t, err)
	d, err := hooks.GetDelivery(ctx, here, claims[1].Delivery.ID)
	require.NoError(t, err)
	require.Equal(t, []any{webhook.Pending, 1, 1, "answered 500", 500, "w",
		[]webhook.Attempt{attempted("answered 500", 500)}},
		[]any{d.Status, d.Attempts, d.Failures, d.Reason, d.HTTPStatus, d.WebhookName, d.History})
	failing := getWebhook(t, s, "w")
	require.Equal(t, []any{false, "answered 500", int64(2)},
		[]any{failing.FailingSince.IsZero(), failing.LastError, failing.Pending})

	backlogs, err := hooks.Backlogs(ctx)
	require.NoError(t, err)
	require.Equal(t, []any{here, int64(2), int64(1), int64(0)},
		[]any{backlogs[0].Project, backlogs[0].Pending, backlogs[0].Failing, backlogs[0].Paused})
	require.Positive(t, backlogs[0].Oldest)

	// A pause by the platform takes the due times; a redelivery waits, and continuing makes all due.
	claims, err = hooks.Claim(ctx, "w", 2, lease)
	require.NoError(t, err)
	require.Len(t, claims, 1, "one at a time while it fails")
	gone := entry(audit.WebhookDisable, here, "w")
	_, err = hooks.Finish(ctx, claims[0],
		webhook.Outcome{Attempt: attempted("gone", 410), Status: webhook.Pending, Pause: "410 Gone", Entry: &gone})
	require.NoError(t, err)
	paused := getWebhook(t, s, "w")
	require.Equal(t, []any{true, "410 Gone"}, []any{paused.Paused(), paused.PauseReason})
	waiting, err = hooks.Waiting(ctx, 5)
	require.NoError(t, err)
	require.Empty(t, waiting)
	require.NoError(t, hooks.Redeliver(ctx, here, d.ID, entry(audit.WebhookRedeliver, here, d.ID)))
	d, err = hooks.GetDelivery(ctx, here, d.ID)
	require.NoError(t, err)
	require.True(t, d.NextAt.IsZero())
	changeWebhook(t, s, "w", func(w *webhook.Webhook) webhook.Change {
		w.PausedAt, w.FailingSince = time.Time{}, time.Time{}
		return webhook.Change{Head: true, Resume: true}
	})
	claims, err = hooks.Claim(ctx, "w", 4, lease)
	require.NoError(t, err)
	require.Len(t, claims, 2)
	require.NoError(t, hooks.Redeliver(ctx, here, claims[0].Delivery.ID, entry(audit.WebhookRedeliver, here, "")),
		"a claimed delivery stays unchanged")

	page, err := hooks.ListDeliveries(ctx,
		webhook.DeliveryFilter{Webhook: "w", Statuses: []webhook.Status{webhook.Pending, webhook.Dead}, Limit: 1})
	require.NoError(t, err)
	rest, err := hooks.ListDeliveries(ctx, webhook.DeliveryFilter{
		Webhook: "w", Statuses: []webhook.Status{webhook.Pending}, Limit: 5,
		After: &webhook.DeliveryCursor{At: page[0].CreatedAt, ID: page[0].ID},
	})
	require.NoError(t, err)
	require.Len(t, rest, 1)
	_, err = hooks.GetDelivery(ctx, here, "none")
	requireError(t, err, apperror.NotFound, apperror.DeliveryNotFound, "none")
	err = hooks.Redeliver(ctx, here, "none", entry(audit.WebhookRedeliver, here, "none"))
	requireError(t, err, apperror.NotFound, apperror.DeliveryNotFound, "none")
}

// member returns a member of a JSON object.
func member(t *testing.T, object json.RawMessage, name string) json.RawMessage {
	t.Helper()
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(object, &members))
	return members[name]
}

func testWebhookClaimsAtOnce(t *testing.T, open Opener) {
	s := open(t)
	putWebhook(t, s, newWebhook("w", "*"))
	publishTyped(t, s, "a", "b", "c", "d", "e", "f")
	require.Equal(t, 6, matchAll(t, s))
	stores := []Store{s, open(t), open(t)}
	claims := make([][]webhook.Claim, len(stores))
	var joined sync.WaitGroup
	for i := range stores {
		joined.Go(func() {
			var err error
			claims[i], err = stores[i].Webhooks().Claim(t.Context(), "w", 4, lease)
			require.NoError(t, err)
		})
	}
	joined.Wait()
	seen := map[string]bool{}
	for _, list := range claims {
		for _, c := range list {
			require.False(t, seen[c.Delivery.ID], "claimed twice")
			seen[c.Delivery.ID] = true
		}
	}
	require.Len(t, seen, 4, "no more than four over all processes")

	// A claim that ends without an outcome makes the delivery due again.
	putWebhook(t, s, newWebhook("short", "g"))
	publishTyped(t, s, "g")
	require.Equal(t, 2, matchAll(t, s))
	first, err := s.Webhooks().Claim(t.Context(), "short", 1, time.Microsecond)
	require.NoError(t, err)
	require.Len(t, first, 1)
	require.Eventually(t, func() bool {
		second, err := s.Webhooks().Claim(t.Context(), "short", 1, lease)
		return err == nil && len(second) == 1 && second[0].Delivery.ID == first[0].Delivery.ID &&
			second[0].Delivery.Attempts == 2
	}, 10*time.Second, time.Millisecond)
	finished, err := s.Webhooks().Finish(t.Context(), first[0],
		webhook.Outcome{Attempt: attempted("", 200), Status: webhook.Delivered})
	require.NoError(t, err)
	require.False(t, finished)
}

func testWebhookRetention(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	putWebhook(t, s, newWebhook("w", "*"))
	publishTyped(t, s, "a", "b")
	require.Equal(t, 2, matchAll(t, s))
	claims, err := s.Webhooks().Claim(ctx, "w", 1, lease)
	require.NoError(t, err)
	_, err = s.Webhooks().Finish(ctx, claims[0], webhook.Outcome{Attempt: attempted("no", 500), Status: webhook.Dead})
	require.NoError(t, err)
	deleted, err := s.DeleteWebhookDeliveries(ctx, time.Now().Add(-time.Hour), 10)
	require.NoError(t, err)
	require.Zero(t, deleted)
	deleted, err = s.DeleteWebhookDeliveries(ctx, time.Now().Add(time.Hour), 10)
	require.NoError(t, err)
	require.EqualValues(t, 1, deleted, "an unfinished delivery is kept")
}

func testFailingWebhooks(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	putWebhook(t, s, newWebhook("bad", "a"))
	putWebhook(t, s, newWebhook("good", "b"))
	list := func(since time.Time) []problem.FailingWebhook {
		t.Helper()
		found, err := s.Problems().FailingWebhooks(ctx, []string{here, "none"}, since)
		require.NoError(t, err)
		return found
	}
	finish := func(id string, o webhook.Outcome) {
		t.Helper()
		claims, err := s.Webhooks().Claim(ctx, id, 1, lease)
		require.NoError(t, err)
		require.Len(t, claims, 1)
		_, err = s.Webhooks().Finish(ctx, claims[0], o)
		require.NoError(t, err)
	}
	publishTyped(t, s, "a", "a", "a", "b")
	require.Equal(t, 4, matchAll(t, s))
	finish("good", webhook.Outcome{Attempt: attempted("", 204), Status: webhook.Delivered})
	finish("bad", webhook.Outcome{Attempt: attempted("answered 500", 500), Status: webhook.Pending, Retry: lease})
	require.Empty(t, list(time.Now().Add(-time.Hour)), "it fails since a moment ago")
	later := time.Now().Add(time.Hour)
	w := list(later)[0]
	require.Equal(t, []any{here, "bad", "answered 500", int64(3), int64(0)},
		[]any{w.Project, w.Name, w.Error, w.Pending, w.Dead})
	require.False(t, w.Since.IsZero())
	require.True(t, w.PausedAt.IsZero())

	// Tests that fail are no failures; deliveries that were given up are.
	claim, err := s.Webhooks().InsertTest(ctx,
		webhook.Delivery{ID: "test", Project: here, Webhook: "bad", Event: json.RawMessage(`{}`)}, lease,
		entry(audit.WebhookTest, here, "bad"))
	require.NoError(t, err)
	_, err = s.Webhooks().Finish(ctx, claim, webhook.Outcome{Attempt: attempted("no", 500), Status: webhook.Dead})
	require.NoError(t, err)
	require.Zero(t, list(later)[0].Dead)
	finish("bad", webhook.Outcome{Attempt: attempted("given up", 500), Status: webhook.Dead})
	w = list(time.Now().Add(-time.Hour))[0]
	require.Equal(t, []any{true, int64(2), int64(1)}, []any{w.Since.IsZero(), w.Pending, w.Dead})
	require.Equal(t, w.FirstDead, w.LastDead)
	require.False(t, w.LastDead.IsZero())

	gone := entry(audit.WebhookDisable, here, "bad")
	finish("bad", webhook.Outcome{
		Attempt: attempted("gone", 410), Status: webhook.Pending, Pause: "410 Gone", Entry: &gone})
	w = list(later)[0]
	require.Equal(t, []any{"410 Gone", false, int64(2)}, []any{w.PauseReason, w.PausedAt.IsZero(), w.Pending})
	changeWebhook(t, s, "bad", func(w *webhook.Webhook) webhook.Change {
		w.PausedAt, w.PauseReason, w.FailingSince = time.Time{}, "", time.Time{}
		return webhook.Change{Resume: true}
	})
	require.True(t, list(later)[0].PausedAt.IsZero())
	changeWebhook(t, s, "good", func(w *webhook.Webhook) webhook.Change {
		w.PausedAt, w.PauseReason = at(1), "by a person"
		return webhook.Change{Stop: true}
	})
	require.Len(t, list(later), 1, "a pause by a person is no problem")
}
