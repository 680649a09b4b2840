package dev_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A watched folder is published at the start and as its files change: a changed file gets the next version, a new file
// in a new folder is found, an invalid file is reported with its line and does not stop the platform.
func TestWatchedFilesAreRepublished(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "greet.yaml")
	write := func(file, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	source := func(version, greeting string) string {
		return "document: {dsl: '1.0.3', namespace: tests, name: greet, version: '" + version +
			"'}\ndo: [{greet: {set: {text: " + greeting + "}}}]\n"
	}
	write(file, source("1.0.0", "hello"))
	r := start(t, nil, "--watch", folder, "--run", "greet")
	shows := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(r.out.String(), text) }, startsWithin, tick, text)
	}
	shows("published tests/greet@1.0.0 (" + file + ")")
	shows(`{"text":"hello"}`)

	write(file, source("1.0.0", "hi"))
	shows("published tests/greet@1.0.1 (" + file + ")")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, source("1.0.1", "hi"), string(content))

	write(file, "document: {dsl: '1.0.3', namespace: tests, name: greet, version: '1.0.1'}\ndo:\n  - greet: {sett: {}}\n")
	shows("error: publish " + file + ":3:12: ")

	// Editors write another file and rename it.
	write(file+"~", source("1.0.1", "again"))
	require.NoError(t, os.Rename(file+"~", file))
	shows("published tests/greet@1.0.2 (" + file + ")")

	inner := filepath.Join(folder, "inner")
	require.NoError(t, os.Mkdir(inner, 0o700))
	write(filepath.Join(inner, "other.yaml"), strings.Replace(source("1.0.0", "x"), "name: greet", "name: other", 1))
	shows("published tests/other@1.0.0 (" + filepath.Join(inner, "other.yaml") + ")")
	require.Equal(t, 1, strings.Count(r.out.String(), "greet@1.0.1"),
		"the version that was written into the file is not published again")
	r.stop(t)
}

func TestWatchRefusesWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	err := launch(t, nil, "--watch", "absent.yaml").refused(t)
	require.ErrorContains(t, err, "--watch: stat absent.yaml: no such file")
}
