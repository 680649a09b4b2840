package storetest

import (
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/sealingkey"
)

// sealedWith is the beginning of a value that was sealed with a key.
func sealedWith(key string) []byte { return append(append([]byte{1, byte(len(key))}, key...), 0xff) }

func testSealingKeys(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	keys := func() []sealingkey.Key {
		t.Helper()
		list, err := s.SealingKeys(ctx)
		require.NoError(t, err)
		return list
	}
	uses := func() sealingkey.Uses {
		t.Helper()
		found, err := s.SealingKeyUses(ctx)
		require.NoError(t, err)
		return found
	}
	require.Empty(t, keys())
	require.Empty(t, uses())

	require.NoError(t, s.RecordSealingKey(ctx, "k1", "f1"))
	first := keys()
	require.Len(t, first, 1)
	require.Equal(t, sealingkey.Key{ID: "k1", Fingerprint: "f1", FirstAt: first[0].FirstAt, LastAt: first[0].LastAt},
		first[0])
	require.WithinDuration(t, first[0].FirstAt, first[0].LastAt, time.Second)
	require.Eventually(t, func() bool {
		require.NoError(t, s.RecordSealingKey(ctx, "k1", "another key"))
		return keys()[0].LastAt.After(first[0].LastAt)
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, "f1", keys()[0].Fingerprint, "the first one is the key that has sealed values")
	require.Equal(t, first[0].FirstAt, keys()[0].FirstAt)

	// Open runs need each key that was active since they were created, or later.
	for id, status := range map[string]run.Status{"running": run.Running, "done": run.Completed} {
		insert(t, s, newRun(id, 1))
		apply(t, s, state(id, 3, status))
	}
	queued, later := newRun("queued", 2), newRun("later", 3)
	later.CreatedAt = keys()[0].LastAt.Add(sealingkey.Late + time.Second)
	insert(t, s, queued)
	insert(t, s, later)
	require.Equal(t, sealingkey.Uses{"k1": {Runs: 2}}, uses())

	// Events need it until they are delivered.
	secret, plain, routed := newEvent("1"), newEvent("2"), newEvent("3")
	secret.Original, routed.Original = &event.Original{KeyID: "k1", Sealed: sealedWith("k1")},
		&event.Original{KeyID: "k2", Sealed: sealedWith("k2")}
	give(t, s, secret, plain, routed)
	require.Equal(t, sealingkey.Uses{"k1": {Runs: 2, Events: 1}, "k2": {Events: 1}}, uses())
	o := fence(t, s, "host")
	route(t, s, o, routing(1, event.Unmatched), routing(2, event.Unmatched), routing(3, event.Routed, startOf(3, "a/a")))
	require.Equal(t, sealingkey.Uses{"k1": {Runs: 2}, "k2": {Events: 1}}, uses())
	require.Len(t, due(t, s, o, 1), 1)
	writeResults(t, s, o, outcome("3 a/a", inbox.Done, 0))
	require.Equal(t, sealingkey.Uses{"k1": {Runs: 2}}, uses())

	// Incomplete sets, and webhooks.
	publish(t, s, triggered("a/all", "1",
		`{"mode":"all","filters":[{"with":{"type":{"literal":"one"}}},{"with":{"type":{"literal":"two"}}}]}`))
	one := newEvent("4")
	one.Type = "one"
	give(t, s, one)
	collected := routing(4, event.Routed)
	collected.Partials = []event.Partial{
		{Project: here, Workflow: "a/all", Key: "\u27e6sealed\u27e7" + base64.StdEncoding.EncodeToString(sealedWith("k2")),
			Positions: []int64{4, 0}},
		{Project: here, Workflow: "a/all", Key: "of an earlier release", Positions: []int64{4, 0}},
	}
	route(t, s, o, collected)
	hook := newWebhook("hook")
	hook.Sealed = sealedWith("k2")
	putWebhook(t, s, hook)
	require.Equal(t, sealingkey.Uses{"k1": {Runs: 2}, "k2": {Sets: 1, Webhooks: 1}}, uses())

	// A start that follows a run waits for the pause after it.
	for name, timer := range map[string]string{"x/hourly": `{"after":3600000000000}`, "x/cron": `{"cron":"* * * * *"}`} {
		v := version(name, "1", "sha256:"+name, 1)
		v.Project, v.Timer = here, json.RawMessage(timer)
		publish(t, s, v)
	}
	require.Equal(t, sealingkey.Uses{"k1": {Runs: 2, Starts: 1}, "k2": {Sets: 1, Webhooks: 1}}, uses())
}
