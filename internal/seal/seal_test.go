package seal_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/seal"
)

// write writes a file of a key.
func write(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "some.key")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

func TestWhatIsSealedOpensWithTheSameContext(t *testing.T) {
	t.Parallel()
	ring := seal.Random("first")
	for _, plain := range []string{"", "x", `{"password":"correct horse"}`, string(bytes.Repeat([]byte("long "), 100_000))} {
		sealed, err := ring.Seal([]byte(plain), "run", "r1", "input")
		require.NoError(t, err)
		require.NotContains(t, string(sealed), "correct horse")
		id, err := seal.KeyOf(sealed)
		require.NoError(t, err)
		require.Equal(t, "first", id)
		opened, err := ring.Open(sealed, "run", "r1", "input")
		require.NoError(t, err)
		require.Equal(t, plain, string(opened))
		again, err := ring.Seal([]byte(plain), "run", "r1", "input")
		require.NoError(t, err)
		require.NotEqual(t, sealed, again, "equal values are not seen to be equal")
	}
}

func TestWhatBelongsElsewhereDoesNotOpen(t *testing.T) {
	t.Parallel()
	ring := seal.Random("first")
	sealed, err := ring.Seal([]byte("secret"), "run", "r1", "input")
	require.NoError(t, err)
	for _, about := range [][]string{nil, {"run", "r2", "input"}, {"run", "r1"}, {"run", "r", "1input"}, {"run", "r1", "input", ""}} {
		_, err := ring.Open(sealed, about...)
		require.ErrorIs(t, err, seal.ErrForged, "%v", about)
	}
	_, err = seal.Random("first").Open(sealed, "run", "r1", "input")
	require.ErrorIs(t, err, seal.ErrForged, "another key of the same ID")
	for i := range sealed {
		damaged := bytes.Clone(sealed)
		damaged[i] ^= 1
		_, err := ring.Open(damaged, "run", "r1", "input")
		require.Error(t, err, "byte %d", i)
		_, err = ring.Open(sealed[:i], "run", "r1", "input")
		require.Error(t, err, "the first %d bytes", i)
	}
}

func TestKeysRotate(t *testing.T) {
	t.Parallel()
	before, after := write(t, seal.Generate()), write(t, seal.Generate())
	old, err := seal.Open("", []seal.KeyFile{{ID: "old", File: before}})
	require.NoError(t, err)
	require.Equal(t, "old", old.Active(), "the only one")
	sealed, err := old.Seal([]byte("secret"), "x")
	require.NoError(t, err)

	both, err := seal.Open("new", []seal.KeyFile{{ID: "old", File: before}, {ID: "new", File: after}})
	require.NoError(t, err)
	opened, err := both.Open(sealed, "x")
	require.NoError(t, err)
	require.Equal(t, "secret", string(opened))
	fresh, err := both.Seal([]byte("secret"), "x")
	require.NoError(t, err)

	alone, err := seal.Open("new", []seal.KeyFile{{ID: "new", File: after}})
	require.NoError(t, err)
	_, err = alone.Open(fresh, "x")
	require.NoError(t, err)
	_, err = alone.Open(sealed, "x")
	var missing *seal.MissingKeyError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, "old", missing.ID)
	require.ErrorContains(t, err, `key "old", which is not in encryption.keys`)
}

func TestARingThatOpensOnly(t *testing.T) {
	t.Parallel()
	ring := seal.Random("k")
	require.True(t, ring.Seals())
	require.False(t, ring.Opening().Seals())
	sealed, err := ring.Seal([]byte("secret"))
	require.NoError(t, err)
	opened, err := ring.Opening().Open(sealed)
	require.NoError(t, err)
	require.Equal(t, "secret", string(opened))
}

func TestFilesThatAreNoKeys(t *testing.T) {
	t.Parallel()
	good := write(t, seal.Generate())
	_, err := seal.Open("a", []seal.KeyFile{
		{ID: "a", File: "/nowhere/a.key"}, {ID: "b", File: write(t, []byte("not base64!"))}, {ID: "c", File: write(t, []byte("c2hvcnQ="))},
		{ID: "d", File: good}, {ID: "e", File: good},
	})
	require.ErrorContains(t, err, `key "a" cannot be read`)
	require.ErrorContains(t, err, `key "b" in `)
	require.ErrorContains(t, err, "is not base64; make one with `head -c 32 /dev/urandom | base64`")
	require.ErrorContains(t, err, "has 5 bytes, not 32")
	require.ErrorContains(t, err, `keys "d" and "e" are the same`)
	_, err = seal.Open("z", []seal.KeyFile{{ID: "d", File: good}})
	require.ErrorContains(t, err, `the active key "z" is none of the keys`)
	_, err = seal.New("a", map[string][]byte{"a": []byte("short")})
	require.ErrorContains(t, err, "has 5 bytes")
}

func BenchmarkSeal(b *testing.B) {
	ring := seal.Random("k")
	plain := bytes.Repeat([]byte("x"), 1<<10)
	for b.Loop() {
		sealed, _ := ring.Seal(plain, "run")
		_, _ = ring.Open(sealed, "run")
	}
}

func TestDigestsAreComparedWithTheKeyThatMadeThem(t *testing.T) {
	t.Parallel()
	ring, other := seal.Random("k1"), seal.Random("k1")
	digest, err := ring.Digest([]byte("1234"))
	require.NoError(t, err)
	require.NotContains(t, digest, "1234")
	for value, want := range map[string]bool{"1234": true, "1235": false, "": false} {
		same, known := ring.Matches(digest, []byte(value))
		require.Equal(t, []bool{want, true}, []bool{same, known})
	}
	same, _ := other.Matches(digest, []byte("1234"))
	require.False(t, same, "the same value under another key")
	for _, bad := range []string{"", "k1", "k2:abc", "k1:?"} {
		_, known := ring.Matches(bad, []byte("1234"))
		require.False(t, known, bad)
	}
}
