package docformat_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl/docformat"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, source, want string }{
		{"indentation", "do:\n- a:\n      set:\n          n:   1\n", "do:\n  - a:\n      set:\n        n: 1\n"},
		{"flow and quotes", "a: {b:  'x',c: \"y\" , d: [1,2]}\n", "a: {b: 'x', c: \"y\", d: [1, 2]}\n"},
		{"comments", "# head\n\n\n\na: 1     # line\n# foot\n", "# head\n\na: 1 # line\n# foot\n"},
		{"empty lines", "a: 1\n\n\nb:\n\n  c: 2\n\n", "a: 1\n\nb:\n\n  c: 2\n"},
		{"block scalars", "a: |\n    one\n\n    two\n\nb: 1", "a: |\n  one\n\n  two\n\nb: 1\n"},
		{"line ends", "a: 1\r\nb: 2\r\n", "a: 1\nb: 2\n"},
		{"JSON", `{"b": [1, 2], "a": {}}`, "{\n  \"b\": [\n    1,\n    2\n  ],\n  \"a\": {}\n}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := docformat.Format([]byte(tt.source))
			require.NoError(t, err)
			require.Equal(t, tt.want, string(got))
			again, err := docformat.Format(got)
			require.NoError(t, err)
			require.Equal(t, tt.want, string(again), "the layout is stable")
		})
	}
	_, err := docformat.Format([]byte("a: ["))
	require.ErrorContains(t, err, "1:4: not valid YAML")
}

// The layout of the examples is stable, and loses nothing of them.
func TestExamplesKeepTheirContent(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../examples/workflows/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		once, err := docformat.Format(source)
		require.NoError(t, err, path)
		twice, err := docformat.Format(once)
		require.NoError(t, err, path)
		require.Equal(t, string(once), string(twice), path)
	}
}

func FuzzFormat(f *testing.F) {
	f.Add("a: |\n  x\n\n  y\n# c\nb: {c: 1}\n")
	f.Add("a: 'x\n\n  y'\n")
	f.Fuzz(func(t *testing.T, source string) {
		once, err := docformat.Format([]byte(source))
		if err != nil {
			return
		}
		if twice, err := docformat.Format(once); err == nil {
			require.NotEmpty(t, twice)
		}
	})
}
