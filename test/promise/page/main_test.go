package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/promise"
)

func TestPageListsFullRunsOnly(t *testing.T) {
	t.Parallel()
	text := page([]promise.Figure{
		{Promise: "P-2", What: "later", Trials: 3, Figure: "2 s", Test: "TestB", Full: true, Seed: 7},
		{Promise: "P-1", What: "a | b", Aim: "1 s", Trials: 40, Figure: "0.5 s", Test: "TestA", Full: true},
		{Promise: "P-1", What: "a | b", Aim: "1 s", Trials: 2, Figure: "0.1 s", Test: "TestA", Full: true},
		{Promise: "P-0", What: "not in full", Trials: 1, Figure: "1 s", Test: "TestC"},
	}, 2)
	require.Contains(t, text, "with 2 processors")
	require.Contains(t, text, "| P-1 | a \\| b | 1 s | 40 | 0.5 s |  | `TestA` |\n| P-2 | later |  | 3 | 2 s | 7 | `TestB` |\n")
	require.NotContains(t, text, "not in full")
	require.NotContains(t, text, "0.1 s", "an earlier figure of the same test")
}

func TestPageListsPromisesWithoutFullLengthFigures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a_test.go"), []byte(`package a
func TestA(t *testing.T) { measure(t) }
func TestB(t *testing.T) { record(t, promise.Figure{Promise: "P-1", What: "this"}) }
func TestC(t *testing.T) {}
func measure(t *testing.T) { record(t, promise.Figure{Promise: "P-2"}) }
func (w world) other(t *testing.T) { record(t, promise.Figure{What: "named elsewhere", Promise: "P-1"}); w.other(t) }
`), 0o600))
	known, err := recorded(dir)
	require.NoError(t, err)
	require.Equal(t, map[string][]string{"P-1": {"TestB"}, "P-2": {"TestA"}}, known)
	text := rest([]promise.Figure{{Promise: "P-1", Full: true}, {Promise: "P-2"}}, known)
	require.Contains(t, text, "| P-2 | `make prove RUN='^(TestA)'` |\n")
	require.NotContains(t, text, "P-1")
	require.Empty(t, rest([]promise.Figure{{Promise: "P-1", Full: true}, {Promise: "P-2", Full: true}}, known))
}
