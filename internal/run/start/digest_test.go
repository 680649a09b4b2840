package start_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/run/control"
	"github.com/signalbox-dev/signalbox/internal/run/start"
)

func TestReplaysOfOneRequestIDHaveTheSameArguments(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		first := b.begin(t)
		b.publish(t, "examples/hello", "2.0.0")
		req := replay(first.ID)
		req.RequestID, req.Patch = "once", json.RawMessage(`[{"op":"add","path":"/name","value":"Bob"}]`)
		r, created, err := b.Replay(b.ctx, req)
		require.NoError(t, err)
		require.True(t, created)

		req.Patch = json.RawMessage(` [ {"path":"/name", "op":"add", "value":"B\u006fb"} ] `)
		again, created, err := b.Replay(b.ctx, req)
		require.NoError(t, err)
		require.Equal(t, []any{r.ID, false}, []any{again.ID, created}, "white space and the order of members are ignored")

		for name, change := range map[string]func(*control.ReplayRequest){
			"patch": func(r *control.ReplayRequest) {
				r.Patch = json.RawMessage(`[{"op":"add","path":"/name","value":"Eve"}]`)
			},
			"no patch":       func(r *control.ReplayRequest) { r.Patch = nil },
			"input":          func(r *control.ReplayRequest) { r.Patch, r.Input = nil, json.RawMessage(`{"name":"Bob"}`) },
			"version":        func(r *control.ReplayRequest) { r.Version = "2.0.0" },
			"newest version": func(r *control.ReplayRequest) { r.Version = control.Latest },
		} {
			other := req
			change(&other)
			_, _, err = b.Replay(b.ctx, other)
			requireError(t, err, apperror.Exists, apperror.RequestIDReused, r.ID)
			require.NotEmpty(t, name)
		}
	})
}

func TestCallersWithOneRequestIDAndTwoInputsGetOneRun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		b.publish(t, "examples/hello", "1.0.0")
		for _, queued := range []bool{false, true} {
			service := b.Service
			if queued {
				b.away()
				service = b.queueing(t, b.store)
			}
			var mu sync.Mutex
			runs, refused := map[string]string{}, 0
			var callers sync.WaitGroup
			for i := range 16 {
				callers.Go(func() {
					req := request()
					req.RequestID = map[bool]string{false: "started", true: "queued"}[queued]
					name := []string{"Ada", "Bob"}[i%2]
					req.Input = json.RawMessage(`{"name":"` + name + `"}`)
					r, _, err := service.Start(b.ctx, req)
					mu.Lock()
					defer mu.Unlock()
					if apperror.Is(err, apperror.RequestIDReused) {
						refused++
						return
					}
					if err == nil {
						runs[r.ID] = string(b.row(t, r.ID).Input)
					}
				})
			}
			callers.Wait()
			require.Len(t, runs, 1)
			require.Equal(t, 8, refused, "callers with other arguments")
		}
	})
}

func TestDigestsSurviveKeyRotation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	old, next := bytes.Repeat([]byte{1}, keyring.KeySize), bytes.Repeat([]byte{2}, keyring.KeySize)
	with := func(active string, keys map[string][]byte) *start.Service {
		ring, err := keyring.New(active, keys)
		require.NoError(t, err)
		return b.process(t, b.store, func(o *start.Options) { o.Digests = ring })
	}
	req, other := request(), request()
	req.RequestID, other.RequestID = "once", "once"
	other.Input = json.RawMessage(`{"name":"Bob"}`)
	first, _, err := with("k1", map[string][]byte{"k1": old}).Start(b.ctx, req)
	require.NoError(t, err)
	stored := b.row(t, first.ID).RequestDigest
	require.True(t, strings.HasPrefix(stored, "k1:"), stored)

	rotated := with("k2", map[string][]byte{"k1": old, "k2": next})
	again, _, err := rotated.Start(b.ctx, req)
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID)
	_, _, err = rotated.Start(b.ctx, other)
	requireError(t, err, apperror.Exists, apperror.RequestIDReused, first.ID)

	// Without the key nothing can be compared: as for rows without a digest, workflow and version decide.
	gone := with("k2", map[string][]byte{"k2": next})
	for _, r := range []start.Request{req, other} {
		again, _, err = gone.Start(b.ctx, r)
		require.NoError(t, err)
		require.Equal(t, first.ID, again.ID)
	}

	// The same input under two request IDs has two digests.
	req.RequestID = "twice"
	second, _, err := rotated.Start(b.ctx, req)
	require.NoError(t, err)
	require.NotEqual(t, strings.TrimPrefix(stored, "k1:"), strings.TrimPrefix(b.row(t, second.ID).RequestDigest, "k2:"))
}
