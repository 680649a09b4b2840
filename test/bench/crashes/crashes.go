// Package crashes measures how soon another worker owns a dispatcher after its owner crashed, and how soon a dispatcher
// without workers is cleaned up.
package crashes

import (
	"fmt"

	"github.com/signalbox-dev/signalbox/test/bench/figure"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// Plan sets the amount of measurement: Places is the number of environments in parallel, Crashes is the number of each
// kind in sequence.
type Plan struct{ Places, Crashes int }

// Full is the plan for the page: 40 crashes of each kind.
func Full() Plan { return Plan{Places: 8, Crashes: 5} }

// Short is the plan for a quick check.
func Short() Plan { return Plan{Places: 1, Crashes: 1} }

// Report has all measurements: durations since the crash.
type Report struct{ takeovers, cleanups promise.Times }

// Measure executes a plan. It calls progress with the name of each part that begins. Without Postgres it returns an
// empty report.
func Measure(t platform.T, p Plan, progress func(string)) Report {
	if !platform.HasPostgres() {
		return Report{}
	}
	progress("owners that crash")
	r := Report{takeovers: repeat(t, p, takeover)}
	progress("dispatchers without an owner")
	r.cleanups = repeat(t, p, cleanup)
	return r
}

// Markdown writes the section's body, one line per call.
func (r Report) Markdown(line func(format string, args ...any)) {
	if len(r.takeovers) == 0 {
		line("There was no Postgres to measure with.")
		return
	}
	line("Workers are killed (SIGKILL), with the default settings:")
	line("")
	line("| what | trials | p50, p95, longest | aim of p95 | |")
	line("|---|---|---|---|---|")
	for _, row := range []struct {
		what  string
		times promise.Times
		aim   float64
	}{
		{"owner killed, another worker lives: until it owns the dispatcher", r.takeovers, 10},
		{"the only worker of a project killed: until another project's supervisor has ended its dispatcher", r.cleanups, 30},
	} {
		line("| %s | %d | %s | %.0f s | %s |", row.what, len(row.times), three(row.times), row.aim,
			figure.Verdict(row.times.At(.95).Seconds() < row.aim))
	}
}

func three(d promise.Times) string {
	return fmt.Sprintf("%s, %s, %s", promise.Round(d.At(.5)), promise.Round(d.At(.95)), promise.Round(d.Worst()))
}
