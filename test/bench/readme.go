package main

import (
	"fmt"
	"strings"
)

// shown is one row of the README's table: a row of the page, and the columns that have its figures.
type shown struct {
	what, section, row string
	signalbox, bare    int // columns from 0; no figure where it is 0
}

func shownRows() []shown {
	return []shown{
		{"one-step runs, API to recorded result, 32 callers", "The platform", "one-step runs per second", 1, 2},
		{"one run at a time, median", "The platform", "a one-step run ", 1, 2},
		{"100 steps that compute, each with a row, median", "The platform",
			"100 steps of `set`; by hand, as many rows with one insertion", 1, 2},
		{"events that start a run which ends", "Events", "events accepted and routed, each of which starts a run", 2, 3},
		{"events accepted and routed, none starts a run", "Events", "events accepted and routed, none of which", 2, 0},
		{"from an event to the first execution of its run, median", "Events", "from sending an event to the first execution",
			2, 0},
		{"after Temporal was killed and restarted, until the first workflow ends, median of all outages", "The connection",
			"all", 1, 2},
	}
}

const (
	summaryHead = "| what | Signalbox | bare SDK |\n|---|---|---|\n"
	summaryEnd  = "\n\n"
)

// summary returns the README's table of a page.
func summary(page string) (string, error) {
	var b strings.Builder
	b.WriteString(summaryHead)
	for _, s := range shownRows() {
		cells, err := cellsOf(page, s)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", s.what, median(cells, s.signalbox), median(cells, s.bare))
	}
	return strings.ReplaceAll(b.String(), "|  |\n", "| |\n"), nil
}

// cellsOf returns the cells of a row of a section, by the first words of the row.
func cellsOf(page string, s shown) ([]string, error) {
	_, rest, _ := strings.Cut(page, "\n## "+s.section+"\n")
	text, _, _ := strings.Cut(rest, "\n## ")
	for row := range strings.Lines(text) {
		if !strings.HasPrefix(row, "| "+s.row) {
			continue
		}
		cells := strings.Split(strings.Trim(row, "|\n"), "|")
		if len(cells) <= max(s.signalbox, s.bare) {
			return nil, fmt.Errorf("the row %q of the page of benchmarks has too few columns", s.row)
		}
		return cells, nil
	}
	return nil, fmt.Errorf("the page of benchmarks has no row %q under %q", s.row, s.section)
}

// median returns the first of the figures in a cell, with their unit: "1.2 ms" of "1.2, 3.4 ms" and of "1.2ms, 3.4ms".
func median(cells []string, column int) string {
	if column == 0 {
		return ""
	}
	first, rest, several := strings.Cut(strings.TrimSpace(cells[column]), ", ")
	if several && strings.HasSuffix(rest, " ms") {
		return first + " ms"
	}
	for _, unit := range []string{"ms", "s"} {
		if number, found := strings.CutSuffix(first, unit); found && number != "" && number[len(number)-1] >= '0' &&
			number[len(number)-1] <= '9' {
			return number + " " + unit
		}
	}
	return first
}

// withSummary returns the README with the table of a page.
func withSummary(readme, page string) (string, error) {
	table, err := summary(page)
	if err != nil {
		return "", err
	}
	before, rest, found := strings.Cut(readme, summaryHead)
	_, after, closed := strings.Cut(rest, summaryEnd)
	if !found || !closed {
		return "", fmt.Errorf("the README has no table %q", summaryHead)
	}
	return before + table + "\n" + after, nil
}
