package dsl_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/signalbox-dev/signalbox/dsl"
)

// FuzzParse finds panics, documents without violations that differ after a parse of their canonical form, and
// violations without a position.
func FuzzParse(f *testing.F) {
	f.Add([]byte(richDocument))
	files, err := filepath.Glob("testdata/violations/*.txtar")
	require.NoError(f, err)
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		require.NoError(f, err)
		f.Add(archive.Files[0].Data)
	}
	for _, s := range []string{
		"", "{}", "[", "{\"a\":", "a: &a [*a]", "? a\n: b", "--- |\n x", "!!map {}", "<<: {a: 1}", "%YAML 1.2\n---\na: 1",
		"a: 0o17\nb: 0x\nc: -.inf\nd: +1\ne: 1e5\nf: .5\ng: 5.", "\ufeffa: 1", "a: \"\\ud800\"",
		`{"a":"\ud83d\ude00","a":1e400}`} {
		f.Add([]byte(s))
	}
	if dir := os.Getenv("OWS_DIR"); dir != "" {
		examples, err := filepath.Glob(filepath.Join(dir, "examples", "*.yaml"))
		require.NoError(f, err)
		for _, file := range examples {
			data, err := os.ReadFile(file)
			require.NoError(f, err)
			f.Add(data)
		}
	}
	limits := dsl.DefaultLimits()
	limits.MaxBytes = 1 << 16
	f.Fuzz(func(t *testing.T, source []byte) {
		doc, violations := dsl.Parse(source, dsl.WithLimits(limits))
		require.Equal(t, doc == nil, violations.HasErrors())
		_, again := dsl.Parse(source, dsl.WithLimits(limits))
		require.Equal(t, violations, again, "the same violations every time")
		if doc == nil {
			return
		}
		canonical, rest := dsl.Parse(doc.Canonical(), dsl.WithLimits(limits))
		require.NotNil(t, canonical, rest)
		require.Equal(t, doc.Hash(), canonical.Hash())
	})
}
