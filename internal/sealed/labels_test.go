package sealed_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// TestLabelsAreMasked has a run whose input names the sensitive location /card, and texts that it inherits from an
// event.
func TestLabelsAreMasked(t *testing.T) {
	t.Parallel()
	kept := newStore(t)
	v := over(kept, keyring.Random("k1"))
	r := run.Run{
		ID: "r1", Project: here, Workflow: "a/b", Version: "1.0.0", DocumentHash: hash,
		Input:  json.RawMessage(`{"card":"planted-card","said":"planted-word"}`),
		Status: run.Queued, QueuedReason: run.QueuedStarting, StatusAt: at, CreatedAt: at, RequestID: "r1",
		Trigger: run.TriggerEvent,
		Secrecy: redact.Inherited{Texts: []string{"planted-word"}},
	}
	shown, sensitive, err := v.Mask(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, `{"card":"`+redact.Mark+`","said":"`+redact.Mark+`"}`, string(shown))
	for text, want := range map[string]bool{"order 4711": false, "xplanted-cardx": true, "planted-word": true} {
		require.Equal(t, want, sensitive(text), text)
	}
	shown, sensitive, err = over(kept, keyring.Random("k1").Opening()).Mask(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, string(r.Input), string(shown), "a process that seals nothing hides nothing")
	require.False(t, sensitive("planted-card"))

	r.Labels = map[string]string{"order": "4711", "text": "a planted-card"}
	_, made, err := v.Rows(kept).InsertRun(t.Context(), r, audit.NewEntry(t.Context(), at, audit.RunStart, here, "r1", ""))
	require.NoError(t, err)
	require.True(t, made)
	stored, err := kept.GetRun(t.Context(), here, "r1")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"order": "4711", "text": "a " + redact.Mark}, stored.Labels)
	require.Equal(t, "a planted-card", r.Labels["text"], "the given run stays unchanged")
}
