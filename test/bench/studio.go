package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// measureStudio measures the pages of the web UI in Chromium; the program is ui/e2e/bench.ts, which prints a table.
func measureStudio(t platform.T, short bool) studio {
	if !platform.HasPostgres() {
		return studio{}
	}
	script, err := filepath.Abs(filepath.Join("..", "scripts", "ui.sh"))
	if err != nil {
		t.Fatalf("find the script of the web UI: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), script, "bench")
	cmd.Stderr = os.Stderr
	if short {
		cmd.Env = append(os.Environ(), "SHORT=1")
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("measure the web UI: %v", err)
	}
	// What precedes the table is of the packages' installation.
	_, table, found := strings.Cut(string(out), "| what |")
	if !found {
		t.Fatalf("measure the web UI: no table in %q", out)
	}
	return studio{table: "| what |" + strings.TrimRight(table, "\n")}
}

// studio is the table of the pages' figures; empty if they were not measured.
type studio struct{ table string }

// Markdown writes the section's body.
func (s studio) Markdown(line func(string, ...any)) {
	if s.table == "" {
		line("There was no Postgres to measure with.")
		return
	}
	line("Temporal, Postgres, an API server, a worker and Chromium on the same machine; 100,000 runs that have ended " +
		"and, for the lists, runs that")
	line("start, wait and end all the time. Medians, and in parentheses the longest of 15. A page is loaded with a warm " +
		"cache unless the line says so.")
	line("")
	line("%s", s.table)
}
