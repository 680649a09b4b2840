// Command bench compares the real platform with the bare Temporal SDK on the same Temporal, in interleaved rounds on
// one machine, and writes the results as a page:
//
//	make bench
//	go run ./bench -only connection -out ../docs/benchmarks.md   # in the folder test: measures one section, keeps the others
//	go run ./bench -only connection -short                       # a quick check; its figures mean little
//
// The reference is a program that uses the SDK alone, with eager start and without an API (see the package bare); for
// the connection, an unmanaged client and worker of the SDK; for quotas and tracing, the same runs without them. It
// measures ratios; absolute figures depend on the machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/test/bench/actions"
	"github.com/signalbox-dev/signalbox/test/bench/bare"
	"github.com/signalbox-dev/signalbox/test/bench/connection"
	"github.com/signalbox-dev/signalbox/test/bench/crashes"
	"github.com/signalbox-dev/signalbox/test/bench/events"
	"github.com/signalbox-dev/signalbox/test/bench/lists"
	"github.com/signalbox-dev/signalbox/test/bench/projects"
	"github.com/signalbox-dev/signalbox/test/bench/quotas"
	"github.com/signalbox-dev/signalbox/test/bench/restores"
	"github.com/signalbox-dev/signalbox/test/bench/storage"
	"github.com/signalbox-dev/signalbox/test/bench/tracing"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// plan sets the amount of measurement of the platform.
type plan struct {
	rounds      int
	latencyRuns int // per round, in sequence
	rateRuns    int // per round, concurrently
	callers     int
	openRuns    int
	starts      int
}

// healthy bounds how long a single run may take.
const healthy = time.Minute

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func run() error {
	out := flag.String("out", "", "file to write the page to; standard output when empty")
	readme := flag.String("readme", "", "file with a table of some of the figures, which is replaced; none when empty")
	only := flag.String("only", "", "the one section to measure, such as events; the others stay as they are in the file")
	rounds := flag.Int("rounds", 5, "interleaved rounds")
	short := flag.Bool("short", false, "one round of everything, to see that it works")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	p := plan{rounds: *rounds, latencyRuns: 60, rateRuns: 600, callers: 32, openRuns: 1000, starts: 5}
	c := connection.Full(*rounds)
	e := events.Full(*rounds)
	l := lists.Full()
	q := quotas.Full(*rounds)
	r := tracing.Full(*rounds)
	k := crashes.Full()
	d := storage.Full()
	b := restores.Full()
	a := actions.Full()
	j := projects.Full()
	if *short {
		p = plan{rounds: 1, latencyRuns: 5, rateRuns: 60, callers: 32, openRuns: 100, starts: 1}
		c = connection.Short()
		e = events.Short()
		l = lists.Short()
		q = quotas.Short()
		r = tracing.Short()
		k = crashes.Short()
		d = storage.Short()
		b = restores.Short()
		a = actions.Short()
		j = projects.Short()
	}
	old, err := before(*out)
	if err != nil {
		return err
	}
	text, err := write(ctx, []section{
		{"platform", "The platform", func(t platform.T) measured { return measure(t, p) }},
		{"events", "Events", func(t platform.T) measured { return events.Measure(t, e, progress) }},
		{"waiting", "Runs that wait", func(t platform.T) measured { return events.MeasureWaiting(t, e, progress) }},
		{"quotas", "Quotas", func(t platform.T) measured { return quotas.Measure(t, q, progress) }},
		{"tracing", "Tracing", func(t platform.T) measured { return tracing.Measure(t, r, progress) }},
		{"connection", "The connection", func(t platform.T) measured { return connection.Measure(t, c, progress) }},
		{"crashes", "Workers that crash", func(t platform.T) measured { return crashes.Measure(t, k, progress) }},
		{"lists", "Lists of runs", func(t platform.T) measured { return lists.Measure(t, l, progress) }},
		{"restores", "Restores", func(t platform.T) measured { return restores.Measure(t, b, progress) }},
		{"studio", "Run Studio", func(t platform.T) measured { return measureStudio(t, *short) }},
		{"actions", "Actions of Temporal", func(t platform.T) measured { return actions.Measure(t, a, progress) }},
		{"projects", "Projects in which nothing happens", func(t platform.T) measured { return projects.Measure(t, j, progress) }},
		{"storage", "Storage", func(t platform.T) measured { return storage.Measure(t, d, progress) }},
	}, *only, old, otherLoad)
	if err != nil {
		return err
	}
	return publish(text, *out, *readme)
}

// write measures the sections, or only the one named, with the load by other programs, and returns the page. It turns
// the platform package's panics into errors.
func write(ctx context.Context, sections []section, only, old string, load func(platform.T) float64) (string, error) {
	scope := platform.NewScope(ctx, "bench")
	defer scope.Close()
	parts := make([]part, len(sections))
	found := false
	for i, s := range sections {
		if only != "" && only != s.name {
			parts[i] = s.kept(old)
			continue
		}
		found = true
		began := time.Now()
		if err := platform.Try(func() { parts[i] = s.write(scope, load) }); err != nil {
			return "", err
		}
		fmt.Fprintf(os.Stderr, "bench: the section %s took %s\n", s.name, time.Since(began).Round(time.Second))
	}
	if !found {
		names := make([]string, len(sections))
		for i, s := range sections {
			names[i] = s.name
		}
		return "", fmt.Errorf("-only %s: unknown section; the sections are %s", only, strings.Join(names, ", "))
	}
	return page(sections, parts), nil
}

// publish writes the page, and the table of the README.
func publish(text, out, readme string) error {
	if out == "" {
		_, err := os.Stdout.WriteString(text)
		return err
	}
	if err := os.WriteFile(out, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	fmt.Fprintf(os.Stderr, "bench: results are in %s\n", out)
	if readme == "" {
		return nil
	}
	old, err := os.ReadFile(readme)
	if err != nil {
		return fmt.Errorf("read the README: %w", err)
	}
	updated, err := withSummary(string(old), text)
	if err != nil {
		return err
	}
	if err := os.WriteFile(readme, []byte(updated), 0o644); err != nil {
		return fmt.Errorf("write the README: %w", err)
	}
	return nil
}

// measure measures the platform.
func measure(t platform.T, p plan) report {
	scope := platform.NewScope(t.Context(), t.Name())
	defer scope.Close()
	r := report{plan: p}
	temporal := platform.StartTemporal(scope)
	server := platform.StartServer(scope,
		platform.ServerOptions{Temporal: temporal.Address, Store: platform.SQLite(scope)})
	r.idleMemory = server.Memory(scope)

	progress("one-step runs")
	w := works{server: server, temporal: temporal, bare: bare.Start(scope, temporal)}
	r.single, r.concurrent = w.oneStep(scope, p)
	progress("100-step runs")
	r.steps = w.hundredSteps(scope, p)
	r.larger = w.larger(scope, p)
	progress("memory with open runs")
	r.openMemory = openRuns(scope, server, p)
	progress("start of dev")
	r.ready = devStarts(scope, p)
	r.sizes = sizes(scope)
	return r
}

func progress(what string) { fmt.Fprintf(os.Stderr, "bench: %s\n", what) }
