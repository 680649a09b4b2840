package main

import (
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
	require.NotContains(t, text, "0.1 s", "a figure that has grown since")
}
