// Package storage measures how many rows and bytes runs add to the database, with its indexes.
package storage

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// callers is the number of concurrent callers that start runs.
const callers = 8

// largest is the number of tables that the page names for each kind of run.
const largest = 4

// Plan is the number of runs of each kind.
type Plan struct{ Runs int }

// Full is the plan for the page.
func Full() Plan { return Plan{Runs: 400} }

// Short is the plan for a quick check.
func Short() Plan { return Plan{Runs: 20} }

// kind is one kind of run.
type kind struct {
	what, tasks string
	input       func() string
}

func kinds() []kind {
	const greet = "  - greet:\n      set: {message: \"${ \\\"Hello, \\\" + .name }\"}\n"
	var hundred strings.Builder
	for i := range 100 {
		fmt.Fprintf(&hundred, "  - s%d: {set: {n: '${ .n + 1 }'}}\n", i)
	}
	const keep = "  - keep: {set: '${ . }'}\n"
	return []kind{
		{"1 step", greet, func() string { return `{"name":"Ada"}` }},
		{"100 steps", hundred.String(), func() string { return `{"n":0}` }},
		{"1 step that returns its input of 8 KiB", keep, func() string { return text(8 << 10) }},
		{"1 step that returns its input of 100 KiB", keep, func() string { return text(100 << 10) }},
	}
}

// text returns an input of about so many bytes, of which no two are equal and none compresses well.
func text(size int) string {
	var b strings.Builder
	for b.Len() < size {
		b.WriteString(rand.Text())
	}
	return `{"text":"` + b.String() + `"}`
}

// table is what one table has.
type table struct{ rows, bytes int64 }

// size is the size of a database by table, with indexes and values beside the rows.
type size map[string]table

// growth is what runs of one kind have added.
type growth struct {
	store, what string
	runs        int64
	added       size
}

// Report has all measurements.
type Report struct{ growths []growth }

// Measure executes a plan. It calls progress with the name of each part that begins.
func Measure(t platform.T, p Plan, progress func(string)) Report {
	var r Report
	stores := []func(platform.T) platform.Store{platform.SQLite}
	if platform.HasPostgres() {
		stores = append(stores, platform.Postgres)
	}
	for _, k := range kinds() {
		for _, store := range stores {
			r.growths = append(r.growths, measure(t, p, store, k, progress))
		}
	}
	return r
}

// measure runs one kind on a new platform, so that the indexes of all kinds begin empty.
func measure(t platform.T, p Plan, store func(platform.T) platform.Store, k kind, progress func(string)) growth {
	scope := platform.NewScope(t.Context(), t.Name())
	defer scope.Close()
	kept := store(scope)
	progress("storage of " + k.what + " on " + kept.Driver)
	server := platform.StartServer(scope,
		platform.ServerOptions{Temporal: platform.StartTemporal(scope).Address, Store: kept})
	workflow := server.Publish(scope, platform.Document("measured", k.tasks))
	before := sizeOf(scope, kept)
	err := platform.Concurrently(p.Runs, callers, func() error {
		return server.Completes(scope.Context(), workflow, k.input())
	})
	if err != nil {
		scope.Fatalf("start: %v", err)
	}
	server.Terminate() // which writes what is pending
	return growth{store: kept.Driver, what: k.what, runs: int64(p.Runs), added: sizeOf(scope, kept).minus(before)}
}

func (s size) minus(before size) size {
	grown := size{}
	for name, now := range s {
		grown[name] = table{now.rows - before[name].rows, now.bytes - before[name].bytes}
	}
	return grown
}

func (s size) total() (sum table) {
	for _, one := range s {
		sum.rows += one.rows
		sum.bytes += one.bytes
	}
	return sum
}

// Markdown writes the section's body, one line per call.
func (r Report) Markdown(line func(format string, args ...any)) {
	line("What one completed run adds to the database, with indexes and, in Postgres, the space of the rows that were " +
		"replaced while it was open.")
	line("")
	line("| run | store | rows | bytes | of which |")
	line("|---|---|---|---|---|")
	for _, g := range r.growths {
		all := g.added.total()
		line("| %s | %s | %.1f | %d | %s |", g.what, g.store, float64(all.rows)/float64(g.runs), all.bytes/g.runs, g.parts())
	}
	if len(r.growths) > 0 {
		line("")
		line("%d runs of each kind.", r.growths[0].runs)
	}
}

// parts lists the tables that grew most, with bytes per run.
func (g growth) parts() string {
	names := slices.SortedFunc(maps.Keys(g.added), func(a, b string) int {
		return int(g.added[b].bytes - g.added[a].bytes)
	})
	var parts []string
	for _, name := range names[:min(largest, len(names))] {
		if per := g.added[name].bytes / g.runs; per > 0 {
			parts = append(parts, fmt.Sprintf("`%s` %d", name, per))
		}
	}
	return strings.Join(parts, ", ")
}
