package vault_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/vault"
	"github.com/signalbox-dev/signalbox/internal/seal"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/fresh"
)

const (
	here = project.Default
	hash = "sha256:aa"
)

// documents has the one of all runs here, in which a place is sensitive.
type documents struct{}

func (documents) Document(context.Context, string) (*dsl.Document, error) {
	doc, problems := dsl.Parse([]byte("document: {dsl: 1.0.3, namespace: a, name: b, version: 1.0.0, metadata: {sensitive: [/input/card]}}\n" +
		"do: [{a: {set: {n: 1}}}]\n"))
	if doc == nil {
		return nil, problems
	}
	return doc, nil
}

func newStore(t *testing.T) *store.Store {
	t.Helper()
	kept, err := store.Open(t.Context(), store.Options{
		Driver: store.SQLite, DSN: fresh.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute,
	})
	require.NoError(t, err)
	last := context.WithoutCancel(t.Context())
	t.Cleanup(func() { require.NoError(t, kept.Stop(last)) })
	require.NoError(t, kept.Start(t.Context()))
	return kept
}

func over(kept *store.Store, keys *seal.Ring) *vault.Vault {
	return vault.New(keys, kept.Originals(), documents{})
}

func newEvent(id, data string) event.Event {
	return event.Event{ID: id, Source: "/s", Type: "t", Data: json.RawMessage(data), Status: event.Pending}
}

func TestEventsAreKeptWithMarksAndDeliveredWithout(t *testing.T) {
	t.Parallel()
	kept, ctx := newStore(t), t.Context()
	keys := seal.Random("k1")
	events := over(kept, keys).Events(kept.Events())

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
	require.Nil(t, list[1].Original, "what was given stays as it is")

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

	// Another key opens nothing, and holds nothing up.
	batch, err = over(kept, seal.Random("k2")).Events(kept.Events()).Unrouted(ctx, here, 10)
	require.NoError(t, err)
	require.Contains(t, string(batch.Events[1].Data), redact.Mark)
	require.Equal(t, "k1", batch.Events[1].Original.KeyID)
	require.Nil(t, batch.Events[0].Original)

	// A ring that only opens leaves everything as it is.
	_, _, err = over(kept, keys.Opening()).Events(kept.Events()).Publish(ctx, here, []event.Event{newEvent("later", `{"token":"shown"}`)})
	require.NoError(t, err)
	got, err := events.GetEvent(ctx, here, 5)
	require.NoError(t, err)
	require.Equal(t, `{"token":"shown"}`, string(got.Data))
}

func TestWhatARunEmitsHasNothingThatIsSensitiveInIt(t *testing.T) {
	t.Parallel()
	kept, ctx := newStore(t), t.Context()
	v := over(kept, seal.Random("k1"))
	at := time.Unix(1767225600, 0)
	_, made, err := v.Rows(kept).InsertRun(ctx, run.Run{
		ID: "r1", Project: here, Workflow: "a/b", Version: "1.0.0", DocumentHash: hash, Input: json.RawMessage(`{"card":"planted-card"}`),
		Status: run.Queued, QueuedReason: run.QueuedStarting, StatusAt: at, CreatedAt: at, RequestID: "r1", Trigger: run.TriggerAPI,
	}, audit.NewEntry(ctx, at, audit.RunStart, here, "r1", ""))
	require.NoError(t, err)
	require.True(t, made)

	e := newEvent("1", `{"card":"0000","note":"paid with planted-card"}`)
	e.RunID, e.Subject = "r1", "planted-card"
	stranger := newEvent("2", `{"note":"paid with planted-card"}`)
	_, _, err = v.Events(kept.Events()).Publish(ctx, here, []event.Event{e, stranger})
	require.NoError(t, err)
	got, err := kept.Events().GetEvent(ctx, here, 1)
	require.NoError(t, err)
	require.Equal(t, `{"card":"`+redact.Mark+`","note":"paid with `+redact.Mark+`"}`, string(got.Data))
	require.Equal(t, redact.Mark, got.Subject)
	got, err = kept.Events().GetEvent(ctx, here, 2)
	require.NoError(t, err)
	require.Equal(t, string(stranger.Data), string(got.Data))
	batch, err := v.Events(kept.Events()).Unrouted(ctx, here, 10)
	require.NoError(t, err)
	require.Equal(t, "planted-card", batch.Events[0].Subject)
	require.Equal(t, string(e.Data), string(batch.Events[0].Data))
}
