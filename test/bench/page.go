package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/signalbox-dev/signalbox/test/platform"
)

const head = `# Benchmarks

For people who choose and size: how fast Signalbox is, beside the bare Temporal SDK, and how each figure was measured.

Made by ` + "`make bench`" + `; the program is [test/bench](../test/bench). Compared sides run in one run; rounds of all
sides alternate, and figures are medians unless they say otherwise.
`

// section is a part of the page that can be measured alone.
type section struct {
	name  string // for -only
	title string
	// measure returns the function that writes the section's body.
	measure func(platform.T) func(line func(format string, args ...any))
}

// heading begins a section.
func (s section) heading() string { return "## " + s.title + "\n" }

// write measures a section and returns its text.
func (s section) write(t platform.T) string {
	body := s.measure(t)
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	b.WriteString(s.heading())
	line("")
	line("Machine: %s.", machine())
	line("")
	body(line)
	return b.String()
}

// kept returns the text of a section in an existing page; empty if it is missing.
func (s section) kept(page string) string {
	_, rest, found := strings.Cut(page, "\n"+s.heading())
	if !found {
		return ""
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return s.heading() + strings.TrimRight(text, "\n") + "\n"
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
