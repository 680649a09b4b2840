// Package processor measures how much of the machine's processors this process gets: the limit of its control group,
// how often the kernel throttled it, and how long its threads waited.
//
//	m := processor.NewMonitor(processor.Options{Root: os.DirFS("/"), Log: log})
//	err := m.Start(ctx)
//	m.State()   // of the last minute
//	m.Totals()  // since the start, for metrics
//
// It reads control groups of versions 1 and 2 and /proc, as Linux has them. What cannot be read is unknown, which
// differs from 0.
package processor

import (
	"context"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/loop"
)

const (
	// every is the interval of the samples, window how far back a state goes.
	every  = 5 * time.Second
	window = time.Minute
)

// Options configure a monitor.
type Options struct {
	// Root is the file system with /proc and /sys.
	Root fs.FS
	Log  *slog.Logger
}

// Totals are the counters of the last sample.
type Totals struct {
	// Group is nil where the control group is unknown. Its counters are those of the group, and may begin before the
	// process.
	Group *Group
	// Waited is the time that threads of the process were ready and waited for a processor, since the start; nil where it
	// is unknown.
	Waited *time.Duration
}

// moment is a sample with the time that threads had waited until then.
type moment struct {
	Sample

	waited *time.Duration
}

// Monitor measures repeatedly.
type Monitor struct {
	*loop.Loop

	opts  Options
	short bool

	mu sync.Mutex
	// moments are those of the last minute, the oldest first.
	moments []moment
}

// NewMonitor returns a monitor. It measures nothing before Start, and its state is unknown until then.
func NewMonitor(opts Options) *Monitor {
	m := &Monitor{opts: opts}
	m.Loop = loop.New(m.measure)
	return m
}

// Start takes the first sample and warns of a limit below [Minimum].
func (m *Monitor) Start(ctx context.Context) error {
	m.add(Read(m.opts.Root, time.Now()))
	if s := m.State(); s.BelowMinimum() {
		m.opts.Log.WarnContext(ctx,
			"The control group allows the process less processor time than it requires; raise the limit",
			"limit", *s.Limit, "required", Minimum)
	}
	return m.Loop.Start(ctx)
}

// State returns the state of the last minute.
func (m *Monitor) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.moments) == 0 {
		return State{}
	}
	from, to := m.moments[0], m.moments[len(m.moments)-1]
	var waited *time.Duration
	if from.waited != nil && to.waited != nil {
		d := *to.waited - *from.waited
		waited = &d
	}
	return Between(from.Sample, to.Sample, waited)
}

// Totals returns the counters of the last sample.
func (m *Monitor) Totals() Totals {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.moments) == 0 {
		return Totals{}
	}
	last := m.moments[len(m.moments)-1]
	return Totals{Group: last.Group, Waited: last.waited}
}

// measure takes a sample and logs when a shortage of processor time begins and ends.
func (m *Monitor) measure(ctx, _ context.Context) time.Duration {
	m.add(Read(m.opts.Root, time.Now()))
	s := m.State()
	switch short := s.Short(); {
	case short && !m.short:
		m.opts.Log.WarnContext(ctx, "The process is short of processor time; its work takes longer", "state", "it "+s.Gets())
	case !short && m.short:
		m.opts.Log.InfoContext(ctx, "The process gets the processor time that it needs again")
	}
	m.short = s.Short()
	return every
}

func (m *Monitor) add(s Sample) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := moment{Sample: s}
	if s.Waits != nil {
		total := time.Duration(0)
		if n := len(m.moments); n > 0 && m.moments[n-1].waited != nil {
			total = *m.moments[n-1].waited + waitedSince(m.moments[n-1].Waits, s.Waits)
		}
		next.waited = &total
	}
	if n := len(m.moments); n > 0 {
		m.moments[n-1].Waits = nil // only the newest ones are compared
	}
	for len(m.moments) > 1 && s.At.Sub(m.moments[1].At) >= window {
		m.moments = m.moments[1:]
	}
	m.moments = append(m.moments, next)
}

// waitedSince returns how long threads have waited between two samples. What a thread waited that ended in between is
// unknown.
func waitedSince(from, to map[int]time.Duration) (sum time.Duration) {
	for thread, waited := range to {
		sum += max(waited-from[thread], 0)
	}
	return sum
}
