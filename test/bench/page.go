package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/signalbox-dev/signalbox/test/bench/figure"
	"github.com/signalbox-dev/signalbox/test/platform"
)

const head = `# Benchmarks

For people who choose and size: how fast Signalbox is, beside the bare Temporal SDK, and how each figure was measured.

Made by ` + "`make bench`" + ` in about half an hour, or one section at a time by ` + "`make bench ONLY=NAME`" + `, with the name
%s. The program is [test/bench](../test/bench).
Compared sides run in one run; rounds of all sides alternate, ratios are computed round by round, and figures are medians unless they say
otherwise. Processor time is read from ` + "`/proc`" + `.
`

// aims is the table of the figures that have aims beside the bare SDK. Its rows name the section that measured them.
const (
	aimsHeading = "## Figures with aims\n"
	aimsHead    = `
Seen is the median of the rounds, and in parentheses the smallest and the largest round.

| figure | aim | seen | | measured in |
|---|---|---|---|---|
`
	aimsFoot = `
The bare SDK has no API, and writes no row but those that a workflow writes itself: what Signalbox adds costs time. Each section states
where the bare SDK was better; choose it where that decides. What the time buys is in the [comparison](comparison.md).

Zigflow (` + "`github.com/zigflow/zigflow`" + `), which also runs this language on Temporal, is not measured here: the module proxy of the
machine that measured does not serve it (v0.9.1 and v0.11.2: 403 Forbidden), so that it could not be built.
`
)

// section is a part of the page that can be measured alone.
type section struct {
	name  string // for -only
	title string
	// measure returns the functions that write the section's body, and its rows of the table of aims.
	measure func(platform.T) measured
}

// measured is the result of a section.
type measured interface {
	Markdown(line func(format string, args ...any))
}

// aimed is a result with rows in the table of aims.
type aimed interface{ Aims() []figure.Aim }

// heading begins a section.
func (s section) heading() string { return "## " + s.title + "\n" }

// link refers to the section on its page.
func (s section) link() string {
	return "[" + s.title + "](#" + strings.ToLower(strings.ReplaceAll(s.title, " ", "-")) + ")"
}

// part is the text of a section, with its rows of the table of aims.
type part struct{ text, aims string }

// write measures a section, and the load by other programs before and after that, and returns its part.
func (s section) write(t platform.T, load func(platform.T) float64) part {
	before := load(t)
	result := s.measure(t)
	after := load(t)
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	b.WriteString(s.heading())
	line("")
	line("Machine: %s. %s", machine(), shared(before, after))
	line("")
	result.Markdown(line)
	p := part{text: b.String()}
	if a, ok := result.(aimed); ok {
		for _, row := range a.Aims() {
			p.aims += fmt.Sprintf("| %s | %s | %s | %s | %s |\n", row.What, row.Aim, row.Seen, figure.Verdict(row.Met), s.link())
		}
	}
	return p
}

// kept returns the part of a section in an existing page; empty if it is missing.
func (s section) kept(page string) part {
	_, rest, found := strings.Cut(page, "\n"+s.heading())
	if !found {
		return part{}
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	p := part{text: s.heading() + strings.TrimRight(text, "\n") + "\n"}
	_, rest, _ = strings.Cut(page, "\n"+aimsHeading)
	rows, _, _ := strings.Cut(rest, "\n## ")
	for row := range strings.Lines(rows) {
		if strings.HasSuffix(row, "| "+s.link()+" |\n") {
			p.aims += row
		}
	}
	return p
}

// page puts the parts of all sections together.
func page(sections []section, parts []part) string {
	names := make([]string, len(sections))
	texts := []string{}
	var aims strings.Builder
	for i, s := range sections {
		names[i] = "`" + s.name + "`"
		aims.WriteString(parts[i].aims)
		if parts[i].text != "" {
			texts = append(texts, parts[i].text)
		}
	}
	last := len(names) - 1
	top := []string{fmt.Sprintf(head, strings.Join(names[:last], ", ")+" or "+names[last])}
	if aims.Len() > 0 {
		top = append(top, aimsHeading+aimsHead+aims.String()+aimsFoot)
	}
	return strings.Join(append(top, texts...), "\n")
}

// shared describes the load by other programs, as shares of the processors before and after a section was measured.
func shared(before, after float64) string {
	const quiet = 0.1
	text := fmt.Sprintf("Other programs used %.0f %% of its processors before the measurement, and %.0f %% after it",
		100*before, 100*after)
	if before < quiet && after < quiet {
		return text + "."
	}
	return text + ": it was busy, so that times are longer, and rates lower, than on a quiet one. Ratios of alternating " +
		"rounds remain comparable, within their spread, and processor time varies least."
}

// before returns the existing page; empty if there is none.
func before(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	page, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the page: %w", err)
	}
	return string(page), nil
}
