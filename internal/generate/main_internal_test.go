package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const repository = "../.."

func TestReferencePagesAreFresh(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"access", "configuration", "controls", "errors", "metrics"} {
		sources := []string{repository}[:generators()[name].sources]
		fresh := filepath.Join(t.TempDir(), name)
		require.NoError(t, generateFile(t.Context(), append(append([]string{name}, sources...), fresh)))
		want, err := os.ReadFile(fresh)
		require.NoError(t, err)
		page, err := os.ReadFile(filepath.Join(repository, "docs/reference", name+".md"))
		require.NoError(t, err)
		require.Equal(t, string(want), string(page), "run: make generate")
	}
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"errors"}, {"errors", "a", "b"}, {"pages", "a"}} {
		require.Error(t, generateFile(t.Context(), args))
	}
}
