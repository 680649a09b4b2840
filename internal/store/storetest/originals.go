package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run"
)

func testOriginals(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	original := func(what string, number int64, key string) run.Original {
		return run.Original{What: what, Number: number, KeyID: key, Sealed: []byte{0, 1, byte(number), 0xff}}
	}
	hidden, plain := newRun("hidden", 1), newRun("plain", 2)
	input, secrets := original(run.OriginalInput, 0, "k1"), original(run.OriginalSecrets, 7, "k1")
	hidden.Redacted, hidden.Originals = true, []run.Original{input, secrets}
	require.True(t, insert(t, s, hidden).Redacted)
	require.False(t, insert(t, s, plain).Redacted)

	list, err := s.Originals().Secrecies(ctx, []string{hidden.ID, plain.ID, "nobody"})
	require.NoError(t, err)
	require.ElementsMatch(t, []run.Secrecy{
		{RunID: hidden.ID, Project: hidden.Project, DocumentHash: hidden.DocumentHash, Secrets: []run.Original{secrets}},
		{RunID: plain.ID, Project: plain.Project, DocumentHash: plain.DocumentHash},
	}, list)
	found, err := s.Originals().SealedOf(ctx, hidden.ID, run.OriginalInput, -1, 0)
	require.NoError(t, err)
	require.Equal(t, []run.Original{input}, found)
	for _, beside := range [][2]int64{{-1, 6}, {7, 9}} {
		found, err = s.Originals().SealedOf(ctx, hidden.ID, run.OriginalSecrets, beside[0], beside[1])
		require.NoError(t, err)
		require.Empty(t, found, "the first bound is left out, the second is not")
	}

	// An original that is found later marks the run.
	late := original(run.OriginalSecrets, 1, "k2")
	apply(t, s, run.Update{RunID: plain.ID, Secrets: &late})
	found, err = s.Originals().SealedOf(ctx, plain.ID, run.OriginalSecrets, -1, 9)
	require.NoError(t, err)
	require.Equal(t, []run.Original{late}, found)
}
