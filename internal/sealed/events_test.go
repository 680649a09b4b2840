package sealed_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/match"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

const (
	here = project.Default
	hash = "sha256:aa"
)

// documents returns the document of all runs in this test, in which one location is sensitive.
type documents struct{}

func (documents) Document(context.Context, string) (*dsl.Document, error) {
	doc, problems := dsl.Parse(
		[]byte("document: {dsl: 1.0.3, namespace: a, name: b, version: 1.0.0, metadata: {sensitive: [/input/card]}}\n" +
			"do: [{a: {set: {n: 1}}}]\n"))
	if doc == nil {
		return nil, problems
	}
	return doc, nil
}

func newStore(t *testing.T) *store.Store {
	t.Helper()
	return openStore(t, storetest.SQLite(t))
}

func openStore(t *testing.T, dsn string) *store.Store {
	t.Helper()
	kept, err := store.Open(t.Context(),
		store.Options{Driver: store.SQLite, DSN: dsn, AutoMigrate: true, CallTimeout: time.Minute})
	require.NoError(t, err)
	last := context.WithoutCancel(t.Context())
	t.Cleanup(func() { require.NoError(t, kept.Stop(last)) })
	require.NoError(t, kept.Start(t.Context()))
	return kept
}

func over(kept *store.Store, keys *keyring.Ring) *sealed.Sealer {
	return sealed.New(keys, kept.Originals(), documents{})
}

func newEvent(id, data string) event.Event {
	return event.Event{ID: id, Source: "/s", Type: "t", Data: json.RawMessage(data), Status: event.Pending}
}

// TestDuplicatesAreCompared: a duplicate with other content is reported as different. Hidden values are compared for
// their publisher only.
func TestDuplicatesAreCompared(t *testing.T) {
	t.Parallel()
	kept, ctx := newStore(t), t.Context()
	events := over(kept, keyring.Random("k1")).Events(kept.Events(), match.New(match.Options{}).Search(100))
	publish := func(list ...event.Event) []event.Accepted {
		accepted, _, err := events.Publish(ctx, here, list)
		require.NoError(t, err)
		return accepted
	}
	by := func(actor, id, data string) event.Event {
		e := newEvent(id, data)
		e.Actor = actor
		return e
	}
	publish(by("ada", "open", `{"n": 1, "m": [2]}`), by("ada", "hidden", `{"n": 1, "password": "<planted-1>"}`))

	typed := by("ada", "open", `{"n": 1, "m": [2]}`)
	typed.Type = "other"
	again := by("ada", "open", `{"m":[2],"n":1}`)
	again.Time, again.Extensions = time.Unix(1, 0), json.RawMessage(`{"traceparent":"x"}`)
	const different = true
	for i, c := range []struct {
		e         event.Event
		different bool
	}{
		{again, !different},
		{by("bob", "open", `{"m":[2],"n":1}`), !different},
		{by("ada", "open", `{"m":[2],"n":2}`), different},
		{by("bob", "open", `{"m":[2],"n":2}`), different},
		{by("ada", "open", `null`), different},
		{typed, different},
		{by("ada", "hidden", `{"n": 1, "password": "<planted-1>"}`), !different},
		{by("ada", "hidden", `{"n": 1, "password": "<planted-2>"}`), different},
		{by("bob", "hidden", `{"n": 1, "password": "<planted-1>"}`), !different},
		{by("bob", "hidden", `{"n": 1, "password": "<planted-2>"}`), !different},
		{by("bob", "hidden", `{"n": 2, "password": "<planted-1>"}`), different},
	} {
		accepted := publish(c.e)
		require.True(t, accepted[0].Duplicate, i)
		require.Equal(t, c.different, accepted[0].Different, i)
	}

	// Within one request, the first event is the one that was accepted before.
	accepted := publish(by("ada", "new", `1`), by("ada", "new", `2`), by("ada", "new", `1`))
	require.Equal(t, []event.Accepted{
		{Position: 3}, {Position: 3, Duplicate: true, Different: true}, {Position: 3, Duplicate: true}}, accepted)
}

func TestEventsAreStoredWithMarksAndDeliveredWithout(t *testing.T) {
	t.Parallel()
	kept, ctx := newStore(t), t.Context()
	keys := keyring.Random("k1")
	events := over(kept, keys).Events(kept.Events(), match.New(match.Options{}).Search(100))

	plain := newEvent("plain", `{"n": 1.0, "a":"b"}`)
	named := newEvent("named", `{"n": 1.0, "password":"<planted-1>", "note":"it is <planted-1>"}`)
	named.Extensions = json.RawMessage(`{"accesstoken":"planted-2","a":1}`)
	inBytes := newEvent("bytes", `"eyJ0b2tlbiI6ICJwbGFudGVkLTMifQ=="`) // {"token": "planted-3"}
	inBytes.DataBase64 = true
	none := newEvent("none", "")
	none.Data = nil
	list := []event.Event{plain, named, inBytes, none}
	_, _, err := events.Publish(ctx, here, list)
	require.NoError(t, err)
	require.Nil(t, list[1].Original, "the argument is unchanged")

	mark := `"` + redact.Mark + `"`
	for position, want := range map[int64]string{
		1: string(plain.Data),
		2: `{"n": 1.0, "password":` + mark + `, "note":"it is ` + redact.Mark + `"}`,
		3: `"eyJ0b2tlbiI6ICLin6ZyZWRhY3RlZOKfpyJ9"`,
		4: "",
	} {
		got, err := events.GetEvent(ctx, here, position)
		require.NoError(t, err)
		require.Equal(t, want, string(got.Data))
		if position == 2 {
			require.JSONEq(t, `{"accesstoken":`+mark+`,"a":1}`, string(got.Extensions))
		}
	}
	batch, err := events.Unrouted(ctx, here, 10)
	require.NoError(t, err)
	require.Len(t, batch.Events, 4)
	for i, got := range batch.Events {
		require.Equal(t, string(list[i].Data), string(got.Data), "byte for byte")
		require.Equal(t, string(list[i].Extensions), string(got.Extensions))
		require.Nil(t, got.Original)
		require.Equal(t, i == 1 || i == 2, got.Opened)
	}

	// Without the key, events stay redacted and are still delivered.
	batch, err = over(kept, keyring.Random("k2")).Events(kept.Events(),
		match.New(match.Options{}).Search(100)).Unrouted(ctx, here, 10)
	require.NoError(t, err)
	require.Contains(t, string(batch.Events[1].Data), redact.Mark)
	require.Equal(t, "k1", batch.Events[1].Original.KeyID)
	require.Nil(t, batch.Events[0].Original)

	// A ring that only opens changes nothing.
	_, _, err = over(kept, keys.Opening()).Events(kept.Events(), match.New(match.Options{}).Search(100)).Publish(ctx, here,
		[]event.Event{newEvent("later", `{"token":"shown"}`)})
	require.NoError(t, err)
	got, err := events.GetEvent(ctx, here, 5)
	require.NoError(t, err)
	require.Equal(t, `{"token":"shown"}`, string(got.Data))
}

func TestEmittedEventsAreRedacted(t *testing.T) {
	t.Parallel()
	kept, ctx := newStore(t), t.Context()
	v := over(kept, keyring.Random("k1"))
	at := time.Unix(1767225600, 0)
	_, made, err := v.Rows(kept).InsertRun(ctx, run.Run{
		ID: "r1", Project: here, Workflow: "a/b", Version: "1.0.0", DocumentHash: hash,
		Input:  json.RawMessage(`{"card":"planted-card"}`),
		Status: run.Queued, QueuedReason: run.QueuedStarting, StatusAt: at, CreatedAt: at, RequestID: "r1",
		Trigger: run.TriggerAPI,
	}, audit.NewEntry(ctx, at, audit.RunStart, here, "r1", ""))
	require.NoError(t, err)
	require.True(t, made)

	e := newEvent("1", `{"card":"0000","note":"paid with planted-card"}`)
	e.RunID, e.Subject = "r1", "planted-card"
	stranger := newEvent("2", `{"note":"paid with planted-card"}`)
	_, _, err = v.Events(kept.Events(), match.New(match.Options{}).Search(100)).Publish(ctx, here,
		[]event.Event{e, stranger})
	require.NoError(t, err)
	got, err := kept.Events().GetEvent(ctx, here, 1)
	require.NoError(t, err)
	require.Equal(t, `{"card":"`+redact.Mark+`","note":"paid with `+redact.Mark+`"}`, string(got.Data))
	require.Equal(t, redact.Mark, got.Subject)
	got, err = kept.Events().GetEvent(ctx, here, 2)
	require.NoError(t, err)
	require.Equal(t, string(stranger.Data), string(got.Data))
	batch, err := v.Events(kept.Events(), match.New(match.Options{}).Search(100)).Unrouted(ctx, here, 10)
	require.NoError(t, err)
	require.Equal(t, "planted-card", batch.Events[0].Subject)
	require.Equal(t, string(e.Data), string(batch.Events[0].Data))
}

// TestSecretsOfAnEventAreHiddenInTheRunItStarts checks that a run hides the secrets of its event, independent of its
// document, and that the secrets sent with an emitted event are hidden in its row.
func TestSecretsOfAnEventAreHiddenInTheRunItStarts(t *testing.T) {
	t.Parallel()
	kept, ctx := newStore(t), t.Context()
	keys := keyring.Random("k1")
	v := over(kept, keys)
	insert(t, v, kept, "r1", hash, "", `{}`)
	e := newEvent("1", `{"note":"it is planted-at-once"}`)
	e.RunID, e.Sensitive = "r1", []string{"planted-at-once", "not-in-the-event"}
	// by another process
	_, _, err := over(kept, keys).Events(kept.Events(), match.New(match.Options{}).Search(100)).Publish(ctx, here,
		[]event.Event{e})
	require.NoError(t, err)
	got, err := kept.Events().GetEvent(ctx, here, 1)
	require.NoError(t, err)
	require.Equal(t, `{"note":"it is `+redact.Mark+`"}`, string(got.Data))
	batch, err := v.Events(kept.Events(), match.New(match.Options{}).Search(100)).Unrouted(ctx, here, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"planted-at-once"}, batch.Events[0].Sensitive)

	_, _, err = v.Rows(kept).InsertRun(ctx, run.Run{
		ID: "r2", Project: here, Workflow: "a/b", Version: "1.0.0", DocumentHash: hash, Input: batch.Events[0].Data,
		Secrecy: redact.Inherited{Texts: []string{"planted-at-once", "not-in-the-input"}},
		Status:  run.Queued, QueuedReason: run.QueuedStarting, StatusAt: at, CreatedAt: at, RequestID: "r2",
		Trigger: run.TriggerEvent,
	}, audit.NewEntry(ctx, at, audit.RunStart, here, "r2", ""))
	require.NoError(t, err)
	r, err := kept.GetRun(ctx, here, "r2")
	require.NoError(t, err)
	require.Equal(t, string(got.Data), string(r.Input))
	seen := &starts{}
	_, err = over(kept, keys).Engine(seen).Start(ctx, r)
	require.NoError(t, err)
	require.Equal(t, `{"note":"it is planted-at-once"}`, string(seen.run.Input))
	require.Equal(t, redact.Inherited{Texts: []string{"planted-at-once"}}, seen.run.Secrecy)
	found, err := over(kept, keys).Sensitive(ctx, "r2", json.RawMessage(`["planted-at-once"]`))
	require.NoError(t, err)
	require.Equal(t, []string{"planted-at-once"}, found)
}

// starts is an engine that records the runs that it is to start.
type starts struct {
	run.Engine

	run run.Run
}

func (s *starts) Start(_ context.Context, r run.Run) (string, error) {
	s.run = r
	return "e1", nil
}

func TestExpectedValuesOfListenersAreSealed(t *testing.T) {
	t.Parallel()
	kept, ctx := newStore(t), t.Context()
	old, next := bytes.Repeat([]byte{1}, keyring.KeySize), bytes.Repeat([]byte{2}, keyring.KeySize)
	before, err := keyring.New("k1", map[string][]byte{"k1": old})
	require.NoError(t, err)
	rotated, err := keyring.New("k2", map[string][]byte{"k1": old, "k2": next})
	require.NoError(t, err)
	gone, err := keyring.New("k2", map[string][]byte{"k2": next})
	require.NoError(t, err)
	v := over(kept, before)
	insert(t, v, kept, "r1", hash, "", `{}`)
	given := event.Listener{ID: "l1", Project: here, RunID: "r1",
		Spec: event.Spec{Mode: event.One, Filters: []event.Filter{{
			Correlate: map[string]event.Key{
				"who": {From: ".data.who", Expect: json.RawMessage(`"ada@example.com"`)}, "any": {From: ".data.n"}},
		}}}}
	_, err = v.Events(kept.Events(), match.New(match.Options{}).Search(100)).Listen(ctx, given)
	require.NoError(t, err)
	require.JSONEq(t, `"ada@example.com"`, string(given.Spec.Filters[0].Correlate["who"].Expect),
		"the argument is unchanged")
	later := given
	later.ID = "l2"
	_, err = over(kept, before.Opening()).Events(kept.Events(), match.New(match.Options{}).Search(100)).Listen(ctx, later)
	require.NoError(t, err)
	l, found, err := kept.Events().GetListener(ctx, here, "l1")
	require.NoError(t, err)
	require.True(t, found)
	require.NotContains(t, string(l.Spec.Filters[0].Correlate["who"].Expect), "ada")
	_, _, err = v.Events(kept.Events(), match.New(match.Options{}).Search(100)).Publish(ctx, here,
		[]event.Event{newEvent("1", `{"who":"ada@example.com","n":1}`)})
	require.NoError(t, err)
	for _, tt := range []struct {
		keys *keyring.Ring
		open bool
	}{{before, true}, {rotated, true}, {before.Opening(), true}, {gone, false}} {
		reader := over(kept, tt.keys)
		for range 2 {
			l, found, err := reader.Events(kept.Events(), match.New(match.Options{}).Search(100)).GetListener(ctx, here, "l1")
			require.NoError(t, err)
			require.True(t, found)
			keys := l.Spec.Filters[0].Correlate
			require.Equal(t, tt.open, string(keys["who"].Expect) == `"ada@example.com"`)
			require.Nil(t, keys["any"].Expect)
			ids := waiting(t, reader.Events(kept.Events(), match.New(match.Options{}).Search(100)))
			require.Equal(t, tt.open, slices.Contains(ids, "l1"), "%v", ids)
		}
	}
}

// waiting returns the IDs of the listeners that match the events.
func waiting(t *testing.T, events *sealed.Events) (ids []string) {
	t.Helper()
	batch, err := events.Unrouted(t.Context(), here, 10)
	require.NoError(t, err)
	require.Empty(t, batch.Listeners, "they are found by the values that they expect")
	evaluation := match.New(match.Options{}).Evaluate(batch)
	found, err := events.FindListeners(t.Context(), here, evaluation.Lookups())
	require.NoError(t, err)
	for _, l := range found.Listeners {
		ids = append(ids, l.ID)
	}
	var woken []string
	for _, d := range evaluation.Routings(found)[0].Deliveries {
		woken = append(woken, d.Listener)
	}
	require.Equal(t, woken, ids)
	require.Contains(t, ids, "l2", "its values are not sealed")
	return ids
}

func TestExpectedValuesOfListenersAreShownWithMarks(t *testing.T) {
	t.Parallel()
	kept, ctx := newStore(t), t.Context()
	keys := keyring.Random("k1")
	v := over(kept, keys)
	insert(t, v, kept, "r1", hash, "", `{"card": "4111-1111"}`)
	expect := func(value string) event.Key { return event.Key{From: ".data.x", Expect: json.RawMessage(value)} }
	given := event.Listener{ID: "l1", Project: here, RunID: "r1",
		Spec: event.Spec{Mode: event.One, Filters: []event.Filter{{
			Correlate: map[string]event.Key{
				"order": expect(`4711`), "password": expect(`"planted"`), "note": expect(`"of 4111-1111"`), "first": {From: ".id"},
			},
		}, {}}}}
	_, err := v.Events(kept.Events(), match.New(match.Options{}).Search(100)).Listen(ctx, given)
	require.NoError(t, err)
	stored, found, err := kept.Events().GetListener(ctx, here, "l1")
	require.NoError(t, err)
	require.True(t, found)
	for name, tt := range map[string]struct {
		keys *keyring.Ring
		want map[string]string
	}{
		"opened": {keys, map[string]string{
			"order": `4711`, "password": `"` + redact.Mark + `"`, "note": `"of ` + redact.Mark + `"`, "first": ""}},
		// Without the key the secrets are unknown, too.
		"another key": {keyring.Random("k2"), map[string]string{"order": "", "password": "", "note": "", "first": ""}},
	} {
		shown, err := over(kept, tt.keys).Listeners(ctx, "r1", []event.Listener{stored})
		require.NoError(t, err, name)
		require.Len(t, shown[0].Spec.Filters, 2)
		for key, want := range tt.want {
			require.Equal(t, want, string(shown[0].Spec.Filters[0].Correlate[key].Expect), "%s: %s", name, key)
		}
	}
	require.NotContains(t, string(stored.Spec.Filters[0].Correlate["order"].Expect), "4711", "the argument is unchanged")
}
