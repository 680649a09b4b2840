package dsl_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/signalbox-dev/signalbox/dsl"
)

// TestViolations holds each file of testdata/violations against the violations written in it. With UPDATE=1 in the
// environment it writes them there, for a person to read through.
func TestViolations(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/violations/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			require.Len(t, archive.Files, 2)
			doc, violations := dsl.Parse(archive.Files[0].Data)
			require.Equal(t, violations.HasErrors(), doc == nil)
			got := ""
			if len(violations) > 0 {
				got = violations.Error() + "\n"
			}
			if os.Getenv("UPDATE") == "1" {
				archive.Files[1].Data = []byte(got)
				require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o600))
			}
			require.Equal(t, string(archive.Files[1].Data), got)
		})
	}
}

// TestEveryCodeHasACase keeps the cases complete.
func TestEveryCodeHasACase(t *testing.T) {
	t.Parallel()
	seen := map[dsl.Code]bool{}
	files, err := filepath.Glob("testdata/violations/*.txtar")
	require.NoError(t, err)
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		require.NoError(t, err)
		_, violations := dsl.Parse(archive.Files[0].Data)
		for _, p := range violations {
			seen[p.Code] = true
			require.NotEmpty(t, p.Message, file)
			require.Positive(t, p.Pos.Line, file)
			require.Positive(t, p.Pos.Column, file)
		}
	}
	for _, code := range dsl.Codes() {
		require.True(t, seen[code] || code == dsl.CodeLimit, "no case for the code %q", code)
	}
}
