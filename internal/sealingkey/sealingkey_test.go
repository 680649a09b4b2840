package sealingkey_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/sealingkey"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// records are the records of a database.
type records struct {
	mu   sync.Mutex
	keys []sealingkey.Key
	uses sealingkey.Uses
	away error
	made int
}

func (r *records) RecordSealingKey(_ context.Context, id, fingerprint string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made++
	for i := range r.keys {
		if r.keys[i].ID == id {
			r.keys[i].LastAt = time.Now()
			return r.away
		}
	}
	r.keys = append(r.keys, sealingkey.Key{ID: id, Fingerprint: fingerprint, FirstAt: time.Now(), LastAt: time.Now()})
	return r.away
}

func (r *records) SealingKeys(context.Context) ([]sealingkey.Key, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]sealingkey.Key(nil), r.keys...), r.away
}

func (r *records) SealingKeyUses(context.Context) (sealingkey.Uses, error) {
	copied := sealingkey.Uses{}
	maps.Copy(copied, r.uses)
	return copied, r.away
}

func ring(t *testing.T, active string, keys map[string]byte) *keyring.Ring {
	t.Helper()
	contents := map[string][]byte{}
	for id, b := range keys {
		contents[id] = bytes.Repeat([]byte{b}, keyring.KeySize)
	}
	r, err := keyring.New(active, contents)
	require.NoError(t, err)
	return r
}

func fingerprint(t *testing.T, r *keyring.Ring, id string) string {
	t.Helper()
	text, known := r.Fingerprint(id)
	require.True(t, known)
	return text
}

func TestCheck(t *testing.T) {
	t.Parallel()
	both := ring(t, "k2", map[string]byte{"k1": 1, "k2": 2})
	recorded := []sealingkey.Key{
		{ID: "k1", Fingerprint: fingerprint(t, both, "k1")}, {ID: "k2", Fingerprint: fingerprint(t, both, "k2")}}
	needed := sealingkey.Uses{"k1": {Runs: 3, Webhooks: 1}, "k2": {Runs: 5}}
	second := ring(t, "k2", map[string]byte{"k2": 2})

	require.NoError(t, sealingkey.Check(t.Context(), &records{}, second), "nothing was sealed yet")
	require.NoError(t, sealingkey.Check(t.Context(), &records{keys: recorded, uses: needed}, both))
	require.NoError(t, sealingkey.Check(t.Context(), &records{keys: recorded, uses: sealingkey.Uses{"k2": {Runs: 5}}},
		second), "nothing needs k1")

	err := sealingkey.Check(t.Context(), &records{keys: recorded, uses: needed}, second)
	require.EqualError(t, err, "encryption.keys: the key \"k1\" is missing, which 3 open runs, 1 webhook still need; "+
		"put it back, and remove it when `signalbox system keys` shows that nothing needs it")

	wrong := ring(t, "k2", map[string]byte{"k1": 1, "k2": 3})
	err = sealingkey.Check(t.Context(), &records{keys: recorded}, wrong)
	require.EqualError(t, err,
		"encryption.keys: the key \"k2\" is not the one that sealed values here: its fingerprint is "+
			fingerprint(t, wrong, "k2")+", that of the other one "+recorded[1].Fingerprint+
			"; configure that one, or give this one an ID of its own")

	away := errors.New("the database is away")
	require.ErrorIs(t, sealingkey.Check(t.Context(), &records{away: away}, both), away)
}

func TestList(t *testing.T) {
	t.Parallel()
	now := time.Now()
	keys := ring(t, "k2", map[string]byte{"k1": 1, "k2": 2})
	store := &records{
		keys: []sealingkey.Key{{ID: "k1", LastAt: now.Add(-time.Hour)}, {ID: "k2", LastAt: now},
			{ID: "k0", LastAt: now.Add(-2 * time.Hour)}},
		uses: sealingkey.Uses{"k1": {Runs: 1}, "never recorded": {Webhooks: 1}},
	}
	list, err := sealingkey.List(t.Context(), store, keys)
	require.NoError(t, err)
	require.Equal(t, []sealingkey.State{
		{Key: store.keys[1], Active: true, Configured: true},
		{Key: store.keys[0], Use: sealingkey.Use{Runs: 1}, Configured: true},
		{Key: store.keys[2]},
		{Key: sealingkey.Key{ID: "never recorded"}, Use: sealingkey.Use{Webhooks: 1}},
	}, list)
	list, err = sealingkey.List(t.Context(), store, keys.Opening())
	require.NoError(t, err)
	require.False(t, list[0].Active, "this process seals nothing")
}

func TestRecorder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := logger.WithContext(t.Context(), slog.New(slog.DiscardHandler))
		store := &records{}
		keys := ring(t, "k1", map[string]byte{"k1": 1})
		r := sealingkey.NewRecorder(store, keys)
		require.NoError(t, r.Start(ctx))
		begin := time.Now()
		require.Equal(t, []sealingkey.Key{{ID: "k1", Fingerprint: fingerprint(t, keys, "k1"), FirstAt: begin, LastAt: begin}},
			store.keys)
		<-time.After(time.Hour)
		require.Less(t, time.Since(store.keys[0].LastAt), sealingkey.Late)
		require.NoError(t, r.Stop(ctx))
		require.Equal(t, time.Now(), store.keys[0].LastAt, "a stopped process has sealed until now")

		// A refused process records nothing: what it has may be a mistake.
		store.uses = sealingkey.Uses{"k1": {Runs: 1}}
		_, isRefused := errors.AsType[*sealingkey.RefusedError](
			sealingkey.NewRecorder(store, ring(t, "k2", map[string]byte{"k2": 2})).Start(ctx))
		require.True(t, isRefused)
		require.Len(t, store.keys, 1)

		// Nor does one that only opens values.
		made := store.made
		opening := sealingkey.NewRecorder(store, keys.Opening())
		require.NoError(t, opening.Start(ctx))
		require.NoError(t, opening.Stop(ctx))
		require.Equal(t, made, store.made)
	})
}
