// Command bench compares the real platform with the bare Temporal SDK on the same Temporal, in interleaved rounds on one
// machine, and writes the results as a page:
//
//	make bench
//	go run ./bench -only connection -out ../docs/benchmarks.md   # in the folder test: measures one section, keeps the others
//	go run ./bench -only connection -short                       # a quick check; its figures mean little
//
// The reference is a program that uses the SDK alone, with eager start, no rows and no API, which is the upper bound of
// what is possible; for the connection, an unmanaged client and worker of the SDK; for events, starts by the SDK alone; for
// quotas, the same runs without one. It measures ratios; absolute figures depend on the machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/signalbox-dev/signalbox/test/bench/connection"
	"github.com/signalbox-dev/signalbox/test/bench/events"
	"github.com/signalbox-dev/signalbox/test/bench/lists"
	"github.com/signalbox-dev/signalbox/test/bench/quotas"
	"github.com/signalbox-dev/signalbox/test/bench/storage"
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

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func run() error {
	out := flag.String("out", "", "file to write the page to; standard output when empty")
	only := flag.String("only", "", "the one section to measure, platform, connection, events, lists, studio, quotas or storage; the others stay as they are in the file")
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
	d := storage.Full()
	if *short {
		p = plan{rounds: 1, latencyRuns: 5, rateRuns: 60, callers: 32, openRuns: 100, starts: 1}
		c = connection.Short()
		e = events.Short()
		l = lists.Short()
		q = quotas.Short()
		d = storage.Short()
	}
	text, err := write(ctx, []section{
		{"platform", "The platform", func(t platform.T) func(line func(string, ...any)) { return measure(t, p).markdown }},
		{"connection", "The connection", func(t platform.T) func(line func(string, ...any)) { return connection.Measure(t, c, progress).Markdown }},
		{"events", "Events and dispatchers", func(t platform.T) func(line func(string, ...any)) { return events.Measure(t, e, progress).Markdown }},
		{"lists", "Lists of runs", func(t platform.T) func(line func(string, ...any)) { return lists.Measure(t, l, progress).Markdown }},
		{"studio", "Run Studio", func(t platform.T) func(line func(string, ...any)) { return measureStudio(t, *short) }},
		{"quotas", "Quotas", func(t platform.T) func(line func(string, ...any)) { return quotas.Measure(t, q, progress).Markdown }},
		{"storage", "Storage", func(t platform.T) func(line func(string, ...any)) { return storage.Measure(t, d, progress).Markdown }},
	}, *only, *out)
	if err != nil {
		return err
	}
	if *out == "" {
		_, err := os.Stdout.WriteString(text)
		return err
	}
	if err := os.WriteFile(*out, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	fmt.Fprintf(os.Stderr, "bench: results are in %s\n", *out)
	return nil
}

// write measures the sections, or only the one named, and returns the page. It turns the platform package's panics into errors.
func write(ctx context.Context, sections []section, only, path string) (string, error) {
	old, err := before(path)
	if err != nil {
		return "", err
	}
	scope := platform.NewScope(ctx, "bench")
	defer scope.Close()
	parts := []string{head}
	measured := false
	for _, s := range sections {
		part := s.kept(old)
		if only == "" || only == s.name {
			measured = true
			if err := platform.Try(func() { part = s.write(scope) }); err != nil {
				return "", err
			}
		}
		if part != "" {
			parts = append(parts, part)
		}
	}
	if !measured {
		return "", fmt.Errorf("-only %s: unknown section", only)
	}
	return strings.Join(parts, "\n"), nil
}

// measure measures the platform.
func measure(t platform.T, p plan) report {
	scope := platform.NewScope(t.Context(), t.Name())
	defer scope.Close()
	r := report{plan: p}
	temporal := platform.StartTemporal(scope)
	server := platform.StartServer(scope, platform.ServerOptions{Temporal: temporal.Address, Store: platform.SQLite(scope)})
	r.idleMemory = server.Memory(scope)

	progress("one-step runs")
	sides := newSides(scope, server, temporal)
	r.latency, r.rate, r.cpu = sides.oneStep(scope, p)
	progress("100-step runs")
	r.steps = sides.hundredSteps(scope, p)
	progress("memory with open runs")
	r.openMemory = openRuns(scope, server, p)
	progress("start of dev")
	r.ready = devStarts(scope, p)
	r.sizes = sizes(scope)
	return r
}

func progress(what string) { fmt.Fprintf(os.Stderr, "bench: %s\n", what) }
