package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/bench/figure"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// result is a section without measurements.
type result struct {
	text string
	seen []figure.Aim
}

func (r result) Markdown(line func(string, ...any)) { line("%s", r.text) }
func (r result) Aims() []figure.Aim                 { return r.seen }

func fixed(name, title, text string, seen ...figure.Aim) section {
	return section{name, title, func(platform.T) measured { return result{text, seen} }}
}

func quiet(platform.T) float64 { return 0 }

// A section that is measured alone replaces its own text and its own figures with aims, and nothing else.
func TestMeasuringOneSectionKeepsTheOthers(t *testing.T) {
	t.Parallel()
	first := figure.Aim{What: "first", Aim: "< 2", Seen: "1", Met: true}
	second := figure.Aim{What: "second", Aim: "< 2", Seen: "3"}
	old, err := write(t.Context(),
		[]section{fixed("one", "Section one", "old text", first), fixed("two", "Section two", "second text", second)}, "", "",
		quiet)
	require.NoError(t, err)
	require.Contains(t, old, "| first | < 2 | 1 | met | [Section one](#section-one) |\n| second | < 2 | 3 | missed | "+
		"[Section two](#section-two) |\n")
	require.Contains(t, old, "by `make bench ONLY=NAME`, with the name\n`one` or `two`.")

	first.Seen, first.Met = "5", false
	sections := []section{fixed("one", "Section one", "new text", first), fixed("two", "Section two", "never measured")}
	updated, err := write(t.Context(), sections, "one", old, quiet)
	require.NoError(t, err)
	require.Contains(t, updated, "| first | < 2 | 5 | missed | [Section one](#section-one) |\n| second | < 2 | 3 | "+
		"missed | [Section two](#section-two) |\n")
	require.Contains(t, updated, "new text")
	require.Contains(t, updated, "second text")
	require.NotContains(t, updated, "old text")
	require.NotContains(t, updated, "never measured")

	_, err = write(t.Context(), sections, "three", old, quiet)
	require.ErrorContains(t, err, "-only three: unknown section; the sections are one, two")
}

func TestPageStatesWhetherTheMachineWasBusy(t *testing.T) {
	t.Parallel()
	require.Equal(t, "Other programs used 2 % of its processors before the measurement, and 4 % after it.",
		shared(.02, .04))
	require.Contains(t, shared(.02, .95), "95 % after it: it was busy, so that times are longer")
}

const samplePage = `# Benchmarks

## The platform

| what | Signalbox | bare SDK |
|---|---|---|
| one-step runs per second, 32 callers | 126/s | 146/s | 0.86 × |
| a one-step run | 11.2, 31.4, 40.0, 50.0 ms | 5.9, 29.7, 30.0, 31.0 ms |
| 100 steps of ` + "`set`" + `; by hand, as many rows with one insertion at the end | 17.3, 1.0 ms | 16.4, 2.0 ms |

## Events

| events accepted and routed, none of which starts a run | sqlite | 37454/s |  |  |
| events accepted and routed, each of which starts a run that ends | sqlite | 156/s | 150/s | 1.04 × |
| from sending an event to the first execution of its run: p50 | sqlite | 4.4ms, 8.8ms, 9ms |  |

## The connection

| all | 185.3ms, 368ms, 427ms | 5.16s, 11.91s, 12.5s | 0.04 × |
`

func TestReadmeTableHasTheFiguresOfThePage(t *testing.T) {
	t.Parallel()
	readme := "before\n\n" + summaryHead + "| old | 1 | 2 |\n\nafter\n"
	updated, err := withSummary(readme, samplePage)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(updated, "before\n\n"+summaryHead+
		"| one-step runs, API to recorded result, 32 callers | 126/s | 146/s |\n| one run at a time, median | 11.2 ms | "+
		"5.9 ms |\n"+
		"| 100 steps that compute, each with a row, median | 17.3 ms | 16.4 ms |\n"), updated)
	require.Contains(t, updated, "| from an event to the first execution of its run, median | 4.4 ms | |\n")
	require.True(t, strings.HasSuffix(updated, "| 185.3 ms | 5.16 s |\n\nafter\n"), updated)

	_, err = withSummary("no table", samplePage)
	require.ErrorContains(t, err, "the README has no table")
	_, err = withSummary(readme, strings.Replace(samplePage, "| a one-step run ", "| another run ", 1))
	require.ErrorContains(t, err, `no row "a one-step run `)
}

// The README shows what the page of benchmarks has. "make bench" writes both.
func TestReadmeAgreesWithBenchmarks(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	published, err := os.ReadFile("../../docs/benchmarks.md")
	require.NoError(t, err)
	updated, err := withSummary(string(readme), string(published))
	require.NoError(t, err)
	require.Equal(t, updated, string(readme),
		`docs/benchmarks.md has other figures than the README; "make bench ONLY=NAME" writes both`)
}
