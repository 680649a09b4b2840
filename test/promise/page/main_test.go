package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/promise"
)

func TestTablesHaveFullRunsOnly(t *testing.T) {
	t.Parallel()
	text := tables([]promise.Figure{
		{Promise: "P-2", What: "later", Trials: 3, Figure: "2 s", Test: "TestB", Full: true, Seed: 7},
		{Promise: "P-2", What: "later", Trials: 5, Figure: "3 s", Test: "TestB", Full: true, Seed: 8},
		{Promise: "P-1", What: "a | b", Aim: "1 s", Trials: 40, Figure: "0.5 s", Test: "TestA", Full: true},
		{Promise: "P-1", What: "a | b", Aim: "1 s", Trials: 2, Figure: "0.1 s", Test: "TestA", Full: true},
		{Promise: "P-0", What: "not in full", Trials: 1, Figure: "1 s", Test: "TestC"},
	}, 2)
	require.Contains(t, text, "with 2 processors")
	require.Contains(t, text,
		"| P-1 | a \\| b | 1 s | 40 | 0.5 s |  | `TestA` |\n| P-2 | later |  | 3 | 2 s | 7 | `TestB` |\n"+
			"| P-2 | later |  | 5 | 3 s | 8 | `TestB` |\n", "of each seed")
	require.NotContains(t, text, "not in full")
	require.NotContains(t, text, "0.1 s", "an earlier figure of the same test")
}

// Of each alert and fault the latest figure is listed, with whole seconds.
func TestAlertsHaveTheirOwnPage(t *testing.T) {
	t.Parallel()
	alert := func(fault, name string, delivered time.Duration, full bool) promise.Figure {
		return promise.Figure{Promise: "R12", What: fault + name, Full: full, Alert: &promise.Alert{
			Name: name, Severity: "page", Fault: fault, Fired: delivered - 10*time.Second, Delivered: delivered,
			Resolved: 3 * time.Minute,
		}}
	}
	all := []promise.Figure{
		alert("Redis killed", "LeasesUnavailable", time.Hour, true),
		alert("Redis killed", "LeasesUnavailable", 89600*time.Millisecond, true),
		alert("Redis killed", "LeasesUnavailable", time.Second, false),
		alert("a disk full", "StoreUnavailable", time.Minute, true),
	}
	text := alertsPage(all, 2)
	require.Contains(t, text, "|---|---|---|---|---|---|\n| a disk full | "+
		"[StoreUnavailable](runbooks/StoreUnavailable.md) | page | 50s | 1m0s | 3m0s |\n"+
		"| Redis killed | [LeasesUnavailable](runbooks/LeasesUnavailable.md) | page | 1m20s | 1m30s | 3m0s |\n\n")
	require.NotContains(t, tables(all, 2), "R12")
}

func TestPromisesWithoutFullLengthFiguresAreListed(t *testing.T) {
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
	figure := func(code, test string, full bool) promise.Figure {
		return promise.Figure{Promise: code, Test: test, Full: full}
	}
	text := missing([]promise.Figure{figure("P-1", "TestB/sqlite", true), figure("P-2", "TestA", false)}, known)
	require.Contains(t, text, "| P-2 | `make prove RUN='^(TestA)'` |\n")
	require.NotContains(t, text, "P-1")
	require.Contains(t, missing([]promise.Figure{figure("P-1", "TestBoth", true), figure("P-2", "TestA", true)}, known),
		"| P-1 | `make prove RUN='^(TestB)'` |\n")
	require.Empty(t, missing([]promise.Figure{figure("P-1", "TestB", true), figure("P-2", "TestA", true)}, known))
}

func TestNewFiguresReplaceThoseOfTheSameTest(t *testing.T) {
	t.Parallel()
	merged := merge([]promise.Figure{
		{Promise: "P-1", What: "renamed since", Test: "TestA", Trials: 40, Full: true},
		{Promise: "P-2", What: "b", Test: "TestB", Full: true},
	}, []promise.Figure{
		{Promise: "P-1", What: "a", Test: "TestA", Trials: 20, Full: true},
		{Promise: "P-2", What: "b", Test: "TestB", Figure: "a short run"},
	})
	require.Equal(t, []promise.Figure{
		{Promise: "P-1", What: "a", Test: "TestA", Trials: 20, Full: true},
		{Promise: "P-2", What: "b", Test: "TestB", Full: true}}, merged)
}

func TestTablesOfReliabilityAreReplaced(t *testing.T) {
	t.Parallel()
	page := "# Reliability\n" + firstLine + "earlier table\n" + lastLine + "after\n"
	text, err := fill(page, []promise.Figure{
		{Promise: "P-D5", What: "owner killed", Aim: "20 s", Trials: 40, Figure: "15 s", Test: "TestOwnerKilled",
			Full: true}}, map[string][]string{"P-D5": {"TestOwnerKilled", "TestOther"}}, 2)
	require.NoError(t, err)
	require.Contains(t, text, "| P-D5 | owner killed | 20 s | 40 | 15 s |  | `TestOwnerKilled` |\n")
	require.Equal(t, 1, strings.Count(text, "| owner killed |"), "in one table")
	require.Contains(t, text, "### Other promises\n\nNot run at full length yet.\n")
	require.Contains(t, text, "| P-D5 | `make prove RUN='^(TestOther)'` |\n")
	require.Contains(t, text, "### Runs\n\nNot run at full length yet.\n")
	require.NotContains(t, text, "earlier table")
	require.Contains(t, text, lastLine+"after\n")
	again, err := fill(text, nil, nil, 2)
	require.NoError(t, err)
	require.NotContains(t, again, "owner killed")
	_, err = fill("# Reliability\n", nil, nil, 2)
	require.ErrorContains(t, err, "are missing")
}

// Each code under which a test records figures is explained, and no other is.
func TestEveryPromiseIsExplained(t *testing.T) {
	t.Parallel()
	known, err := recorded("../..")
	require.NoError(t, err)
	explained := map[string]bool{}
	for _, m := range promised() {
		explained[m.code] = true
		require.Contains(t, known, m.code, "no test records a figure of it")
	}
	for code, tests := range known {
		require.True(t, explained[code], "%s, recorded by %v, is not explained in meaning.go", code, tests)
	}
}
