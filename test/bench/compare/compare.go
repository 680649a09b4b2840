// Package compare measures the same work done by several sides: the time of each run, runs per second, and the
// processor time of the programs that do it. Rounds of the sides alternate, so that other load on the machine affects
// all of them; ratios are computed round by round.
package compare

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/test/bench/figure"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// Side is one way to do the work.
type Side struct {
	Name string
	// Begin prepares a round; it is not measured. It may be nil.
	Begin func(platform.T)
	// Run does the work once. It is called concurrently.
	Run func(context.Context) error
	// CPU returns the processor time that the program of the side has used so far: Signalbox's server, or the program with
	// the bare SDK.
	CPU func(platform.T) time.Duration
	// Temporal is the same of the Temporal that the side uses.
	Temporal func(platform.T) time.Duration
}

// Work is the amount of work.
type Work struct {
	Rounds  int
	Runs    int // of each side in each round
	Callers int // concurrent ones
	WarmUp  int // runs of each side before the first round, which are not measured
}

// Sample is one round of one side.
type Sample struct {
	Times         []float64 // of each run, in milliseconds
	Rate          float64   // runs per second
	CPU, Temporal float64   // processor time per run, in milliseconds
}

// Series are the rounds of one side.
type Series []Sample

// Measure does the work and returns the series of each side. Each round begins with another side.
func Measure(t platform.T, w Work, sides ...Side) []Series {
	t.Helper()
	for _, s := range sides {
		if w.WarmUp > 0 {
			s.measure(t, w.WarmUp, w.Callers)
		}
	}
	out := make([]Series, len(sides))
	for round := range w.Rounds {
		for i := range sides {
			at := (round + i) % len(sides)
			out[at] = append(out[at], sides[at].measure(t, w.Runs, w.Callers))
		}
	}
	return out
}

// measure does one round of a side.
func (s Side) measure(t platform.T, runs, callers int) Sample {
	t.Helper()
	if s.Begin != nil {
		s.Begin(t)
	}
	var mu sync.Mutex
	sample := Sample{Times: make([]float64, 0, runs)}
	own, temporal := s.CPU(t), s.Temporal(t)
	began := time.Now()
	err := platform.Concurrently(runs, callers, func() error {
		one := time.Now()
		if err := s.Run(t.Context()); err != nil {
			return err
		}
		took := time.Since(one)
		mu.Lock()
		defer mu.Unlock()
		sample.Times = append(sample.Times, milliseconds(took))
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	sample.Rate = float64(runs) / time.Since(began).Seconds()
	sample.CPU = milliseconds(s.CPU(t)-own) / float64(runs)
	sample.Temporal = milliseconds(s.Temporal(t)-temporal) / float64(runs)
	return sample
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Of returns the series for each of the parts that every run of s consisted of. Its times are still those of whole
// runs.
func (s Series) Of(parts int) Series {
	out := make(Series, len(s))
	for i, round := range s {
		n := float64(parts)
		out[i] = Sample{Times: round.Times, Rate: round.Rate * n, CPU: round.CPU / n, Temporal: round.Temporal / n}
	}
	return out
}

// Times returns the milliseconds of all runs.
func (s Series) Times() []float64 {
	var all []float64
	for _, round := range s {
		all = append(all, round.Times...)
	}
	return all
}

// Medians returns the median of the milliseconds of each round.
func (s Series) Medians() []float64 {
	return s.each(func(round Sample) float64 { return figure.Median(round.Times) })
}

// Rates returns runs per second of each round.
func (s Series) Rates() []float64 { return s.each(func(round Sample) float64 { return round.Rate }) }

// CPUValues returns the processor time of the side's program for a run, in milliseconds, of each round.
func (s Series) CPUValues() []float64 { return s.each(func(round Sample) float64 { return round.CPU }) }

// CPU returns the median of CPUValues.
func (s Series) CPU() float64 { return figure.Median(s.CPUValues()) }

// Temporal returns the processor time of Temporal for a run, in milliseconds: the median of the rounds.
func (s Series) Temporal() float64 {
	return figure.Median(s.each(func(round Sample) float64 { return round.Temporal }))
}

func (s Series) each(f func(Sample) float64) []float64 {
	out := make([]float64, len(s))
	for i, round := range s {
		out[i] = f(round)
	}
	return out
}

// CPUs writes the processor time for a run of a side and of the Temporal that it used, such as "4.2 + 5.1 ms".
func (s Series) CPUs() string { return fmt.Sprintf("%.1f + %.1f ms", s.CPU(), s.Temporal()) }

// Pair is a series of Signalbox beside one of the bare SDK.
type Pair struct{ Signalbox, Bare Series }

// Latency compares the medians of the rounds.
func (p Pair) Latency() figure.Spread { return figure.Ratio(p.Signalbox.Medians(), p.Bare.Medians()) }

// Rate compares the runs per second of the rounds.
func (p Pair) Rate() figure.Spread { return figure.Ratio(p.Signalbox.Rates(), p.Bare.Rates()) }

// LatencyHead writes the head of a table of [Pair.LatencyRow].
func LatencyHead(line func(format string, args ...any)) {
	line("| what | Signalbox: p50, p95, p99, longest | bare SDK: the same | p50 compared (smallest to largest of the " +
		"rounds) | processor time: Signalbox + Temporal | bare SDK + Temporal |")
	line("|---|---|---|---|---|---|")
}

// LatencyRow writes a row of times.
func (p Pair) LatencyRow(line func(format string, args ...any), what string) {
	line("| %s | %s | %s | %s | %s | %s |", what, figure.Four(p.Signalbox.Times()), figure.Four(p.Bare.Times()),
		p.Latency().Times(),
		p.Signalbox.CPUs(), p.Bare.CPUs())
}

// RateRow writes a row of runs per second, for the head of [RateHead].
func (p Pair) RateRow(line func(format string, args ...any), what string) {
	line("| %s | %.0f/s | %.0f/s | %s | %s | %s |", what, figure.Median(p.Signalbox.Rates()),
		figure.Median(p.Bare.Rates()), p.Rate().Times(),
		p.Signalbox.CPUs(), p.Bare.CPUs())
}

// RateHead writes the head of a table of [Pair.RateRow].
func RateHead(line func(format string, args ...any)) {
	line("| what | Signalbox | bare SDK | compared (smallest to largest of the rounds) | processor time: Signalbox + " +
		"Temporal | bare SDK + Temporal |")
	line("|---|---|---|---|---|---|")
}

// Compared is one comparison of Signalbox with the bare SDK.
type Compared struct {
	What string
	// By is how many times the figure of the bare SDK Signalbox has.
	By figure.Spread
	// Rate reports that more is better; otherwise it is a time, and less is better.
	Rate bool
}

// Leads states which side was better at what, by the median of the rounds.
func Leads(line func(format string, args ...any), all []Compared) {
	var bare, signalbox []string
	for _, c := range all {
		text := fmt.Sprintf("%s (%.2f ×)", c.What, c.By.Mid)
		switch {
		case c.By.Mid == 1: // equal
		case c.By.Mid < 1 == c.Rate:
			bare = append(bare, text)
		default:
			signalbox = append(signalbox, text)
		}
	}
	for _, side := range []struct {
		name  string
		leads []string
	}{{"The bare SDK", bare}, {"Signalbox", signalbox}} {
		if len(side.leads) > 0 {
			line("%s was better at: %s.", side.name, strings.Join(side.leads, "; "))
		}
	}
}
