package keyring_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/keyring"
)

// write writes a key file.
func write(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "some.key")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

func TestSealedValueOpensWithTheSameContext(t *testing.T) {
	t.Parallel()
	ring := keyring.Random("first")
	for _, plain := range []string{
		"", "x", `{"password":"correct horse"}`, string(bytes.Repeat([]byte("long "), 100_000))} {
		sealed, err := ring.Seal([]byte(plain), "run", "r1", "input")
		require.NoError(t, err)
		require.NotContains(t, string(sealed), "correct horse")
		id, err := keyring.KeyOf(sealed)
		require.NoError(t, err)
		require.Equal(t, "first", id)
		opened, err := ring.Open(sealed, "run", "r1", "input")
		require.NoError(t, err)
		require.Equal(t, plain, string(opened))
		again, err := ring.Seal([]byte(plain), "run", "r1", "input")
		require.NoError(t, err)
		require.NotEqual(t, sealed, again, "equal values have different sealed values")
	}
}

func TestValueOfAnotherContextDoesNotOpen(t *testing.T) {
	t.Parallel()
	ring := keyring.Random("first")
	sealed, err := ring.Seal([]byte("secret"), "run", "r1", "input")
	require.NoError(t, err)
	for _, about := range [][]string{
		nil, {"run", "r2", "input"}, {"run", "r1"}, {"run", "r", "1input"}, {"run", "r1", "input", ""}} {
		_, err := ring.Open(sealed, about...)
		require.ErrorIs(t, err, keyring.ErrForged, "%v", about)
	}
	_, err = keyring.Random("first").Open(sealed, "run", "r1", "input")
	require.ErrorIs(t, err, keyring.ErrForged, "another key of the same ID")
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
	before, after := write(t, keyring.Generate()), write(t, keyring.Generate())
	old, err := keyring.Open("", []keyring.KeyFile{{ID: "old", File: before}})
	require.NoError(t, err)
	require.Equal(t, "old", old.Active(), "the only one")
	sealed, err := old.Seal([]byte("secret"), "x")
	require.NoError(t, err)

	both, err := keyring.Open("new", []keyring.KeyFile{{ID: "old", File: before}, {ID: "new", File: after}})
	require.NoError(t, err)
	opened, err := both.Open(sealed, "x")
	require.NoError(t, err)
	require.Equal(t, "secret", string(opened))
	fresh, err := both.Seal([]byte("secret"), "x")
	require.NoError(t, err)

	require.True(t, both.Current(fresh))
	require.False(t, both.Current(sealed))
	require.False(t, both.Current(nil))

	alone, err := keyring.Open("new", []keyring.KeyFile{{ID: "new", File: after}})
	require.NoError(t, err)
	_, err = alone.Open(fresh, "x")
	require.NoError(t, err)
	_, err = alone.Open(sealed, "x")
	var missing *keyring.MissingKeyError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, "old", missing.ID)
	require.ErrorContains(t, err, `key "old", which is not in encryption.keys`)
}

func TestFingerprintsIdentifyKeys(t *testing.T) {
	t.Parallel()
	key, other := bytes.Repeat([]byte{1}, keyring.KeySize), bytes.Repeat([]byte{2}, keyring.KeySize)
	one, err := keyring.New("a", map[string][]byte{"a": key, "b": other})
	require.NoError(t, err)
	two, err := keyring.New("z", map[string][]byte{"z": key})
	require.NoError(t, err)
	a, known := one.Fingerprint("a")
	require.True(t, known)
	require.Len(t, a, 16)
	z, _ := two.Fingerprint("z")
	require.Equal(t, a, z, "it does not depend on the ID")
	b, _ := one.Fingerprint("b")
	require.NotEqual(t, a, b)
	_, known = one.Fingerprint("z")
	require.False(t, known)
}

func TestOpeningRingDoesNotSeal(t *testing.T) {
	t.Parallel()
	ring := keyring.Random("k")
	require.True(t, ring.Seals())
	require.False(t, ring.Opening().Seals())
	sealed, err := ring.Seal([]byte("secret"))
	require.NoError(t, err)
	opened, err := ring.Opening().Open(sealed)
	require.NoError(t, err)
	require.Equal(t, "secret", string(opened))
}

func TestInvalidKeyFiles(t *testing.T) {
	t.Parallel()
	good := write(t, keyring.Generate())
	_, err := keyring.Open("a", []keyring.KeyFile{
		{ID: "a", File: "/nowhere/a.key"}, {ID: "b", File: write(t, []byte("not base64!"))},
		{ID: "c", File: write(t, []byte("c2hvcnQ="))},
		{ID: "d", File: good}, {ID: "e", File: good},
	})
	require.ErrorContains(t, err, `key "a" cannot be read`)
	require.ErrorContains(t, err, `key "b" in `)
	require.ErrorContains(t, err, "is not base64; make one with `head -c 32 /dev/urandom | base64`")
	require.ErrorContains(t, err, "has 5 bytes, not 32")
	require.ErrorContains(t, err, `keys "d" and "e" are the same`)
	_, err = keyring.New("zeros", map[string][]byte{"zeros": make([]byte, keyring.KeySize)})
	require.ErrorContains(t, err, `key "zeros" is all zeros; make a random one`)
	_, err = keyring.Open("z", []keyring.KeyFile{{ID: "d", File: good}})
	require.ErrorContains(t, err, `the active key "z" is none of the keys`)
	_, err = keyring.New("a", map[string][]byte{"a": []byte("short")})
	require.ErrorContains(t, err, "has 5 bytes")
}

func TestKeyFilesOfEveryoneAreRefused(t *testing.T) {
	t.Parallel()
	file := write(t, keyring.Generate())
	require.NoError(t, os.Chmod(file, 0o644))
	_, err := keyring.Open("a", []keyring.KeyFile{{ID: "a", File: file}})
	require.ErrorContains(t, err,
		`key "a" cannot be used: "`+file+`" holds a secret and can be read by all users of the machine (mode 0644): run `)
	require.NotContains(t, err.Error(), keyring.MakeKey, "there is a key")
	require.NoError(t, os.Chmod(file, 0o440))
	_, err = keyring.Open("a", []keyring.KeyFile{{ID: "a", File: file}})
	require.NoError(t, err, "the group of a service may read it")
}

func BenchmarkSeal(b *testing.B) {
	ring := keyring.Random("k")
	plain := bytes.Repeat([]byte("x"), 1<<10)
	for b.Loop() {
		sealed, _ := ring.Seal(plain, "run")
		_, _ = ring.Open(sealed, "run")
	}
}

func TestDigestsAreComparedWithTheKeyThatMadeThem(t *testing.T) {
	t.Parallel()
	ring, other := keyring.Random("k1"), keyring.Random("k1")
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

func TestDigestsOfOneKeyAreCompared(t *testing.T) {
	t.Parallel()
	for pair, same := range map[[2]string]bool{
		{"k1:a", "k1:b"}: true, {"k1:a", "k2:a"}: false, {"a:k1:a", "a:k2:a"}: false, {"k1:a", "k1:x:a"}: false,
		{"", ""}: false, {"k1:a", ""}: false,
	} {
		require.Equal(t, same, keyring.SameKey(pair[0], pair[1]), pair)
	}
}
