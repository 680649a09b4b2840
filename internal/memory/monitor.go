// Package memory keeps a process under a soft memory limit, so that it sheds work before the kernel ends it.
//
//	limit := memory.Apply(int64(cfg.MemoryLimit), os.DirFS("/"))   // in main: sets the Go runtime's limit
//	m := memory.NewMonitor(memory.Options{Limit: limit, Log: log})
//	err := m.Start(ctx)
//	m.Level()          // Normal, High, Critical
//	err = m.Admit()    // a fault while the process takes no new runs
//
// The Go runtime collects garbage more often as it comes near the limit, but does not refuse allocations. A [Monitor] therefore
// compares what is in use after the last collection with the limit: at [High] diagnosis and repair stop and caches are given
// back, at [Critical] starts of runs are refused. Memory that the runtime does not count is not measured.
package memory

import (
	"context"
	"log/slog"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-dev/signalbox/internal/fault"
)

// Level is how close a process is to its limit.
type Level int32

// The levels.
const (
	// Normal: nothing is shed.
	Normal Level = iota
	// High: diagnosis and repair stop, caches are given back.
	High
	// Critical: starts of runs are refused, too.
	Critical
)

// String returns the level's name in logs, metrics and health.
func (l Level) String() string {
	switch l {
	case High:
		return "high"
	case Critical:
		return "critical"
	default:
		return "normal"
	}
}

// The shares of the limit from which a level holds. A level is left only when the use has fallen by slack below its share, so
// that work that is shed and resumed does not make the level oscillate.
const (
	highShare     = 0.70
	criticalShare = 0.85
	slack         = 0.05
)

const (
	// every is the time between two measurements.
	every = 250 * time.Millisecond
	// relieveEvery is the least time between two calls of Options.Relieve while the level is not Normal.
	relieveEvery = 5 * time.Second
	// retryAfter is the delay that callers are given when their start is refused.
	retryAfter = 5 * time.Second
)

// LevelAt returns the level for the bytes in use, after the level before. Without a limit it is always Normal.
func LevelAt(before Level, used, limit int64) Level {
	if limit <= 0 {
		return Normal
	}
	share := float64(used) / float64(limit)
	reached := func(level Level, at float64) bool {
		if before >= level {
			at -= slack
		}
		return share >= at
	}
	switch {
	case reached(Critical, criticalShare):
		return Critical
	case reached(High, highShare):
		return High
	default:
		return Normal
	}
}

// Options shape a monitor.
type Options struct {
	Limit Limit
	// Used returns the bytes in use; nil: [InUse].
	Used func() int64
	// Relieve gives memory back that can be made again, such as caches; may be nil. It is called repeatedly, at intervals of
	// some seconds, while the level is not Normal.
	Relieve func()
	Log     *slog.Logger
}

// Monitor measures the memory of the process and reports its level.
type Monitor struct {
	opts   Options
	level  atomic.Int32
	used   atomic.Int64
	cancel context.CancelFunc
	joined sync.WaitGroup
}

// NewMonitor returns a monitor. It measures nothing before Start, and its level is Normal until then.
func NewMonitor(opts Options) *Monitor {
	if opts.Used == nil {
		opts.Used = InUse
	}
	if opts.Relieve == nil {
		opts.Relieve = func() {}
	}
	return &Monitor{opts: opts, cancel: func() {}}
}

// Start begins to measure. Without a limit there is nothing to compare with, and it does nothing.
func (m *Monitor) Start(ctx context.Context) error {
	if m.opts.Limit.Bytes <= 0 {
		return nil
	}
	ctx, m.cancel = context.WithCancel(context.WithoutCancel(ctx))
	m.measure(ctx)
	m.joined.Go(func() { m.loop(ctx) })
	return nil
}

// Stop ends the measuring and joins it.
func (m *Monitor) Stop(context.Context) error {
	m.cancel()
	m.joined.Wait()
	return nil
}

// Level returns the level as it was last measured.
func (m *Monitor) Level() Level { return Level(m.level.Load()) }

// Used returns the bytes in use as last measured, and the limit; ok is false for a process without a limit.
func (m *Monitor) Used() (used, limit int64, ok bool) {
	return m.used.Load(), m.opts.Limit.Bytes, m.opts.Limit.Bytes > 0
}

// Admit returns nil while the process may take a new run, otherwise a [fault.Exhausted].
func (m *Monitor) Admit() error {
	if m.Level() < Critical {
		return nil
	}
	return fault.New(fault.Exhausted, fault.MemoryExhausted,
		"this server uses %d MiB of its memory limit of %d MiB (%s) and takes no new runs until it uses less; nothing was started",
		m.used.Load()>>20, m.opts.Limit.Bytes>>20, m.opts.Limit.Source).WithRetry(retryAfter)
}

// Check returns why the process sheds work, nil at the level Normal.
func (m *Monitor) Check(context.Context) error {
	if m.Level() == Normal {
		return nil
	}
	shed := "diagnosis and repair of runs are suspended"
	if m.Level() == Critical {
		shed += ", starts of runs are refused"
	}
	return fault.New(fault.Exhausted, fault.MemoryExhausted, "memory use is %s: %d of %d MiB (%s); %s",
		m.Level(), m.used.Load()>>20, m.opts.Limit.Bytes>>20, m.opts.Limit.Source, shed)
}

func (m *Monitor) loop(ctx context.Context) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var relieved time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if m.measure(ctx) != Normal && now.Sub(relieved) >= relieveEvery {
				relieved = now
				m.opts.Relieve()
			}
		}
	}
}

// measure brings the level up to date and logs its changes.
func (m *Monitor) measure(ctx context.Context) Level {
	used := m.opts.Used()
	before := m.Level()
	level := LevelAt(before, used, m.opts.Limit.Bytes)
	m.used.Store(used)
	m.level.Store(int32(level))
	switch {
	case level > before:
		m.opts.Log.WarnContext(ctx, "Memory use is close to its limit, work is shed", "level", level.String(), "used_bytes", used,
			"limit_bytes", m.opts.Limit.Bytes, "limit_source", m.opts.Limit.Source)
	case level < before:
		m.opts.Log.InfoContext(ctx, "Memory use has fallen", "level", level.String(), "used_bytes", used, "limit_bytes", m.opts.Limit.Bytes)
	}
	return level
}

// InUse returns the bytes that the Go runtime cannot give back: what the last collection found alive, and what is not heap. Garbage
// that waits for a collection does not count; near the limit collections follow each other closely, so the figure is fresh there.
func InUse() int64 {
	const (
		live = iota
		total
		objects
		free
		released
		unused
	)
	samples := []metrics.Sample{
		live:     {Name: "/gc/heap/live:bytes"},
		total:    {Name: "/memory/classes/total:bytes"},
		objects:  {Name: "/memory/classes/heap/objects:bytes"},
		free:     {Name: "/memory/classes/heap/free:bytes"},
		released: {Name: "/memory/classes/heap/released:bytes"},
		unused:   {Name: "/memory/classes/heap/unused:bytes"},
	}
	metrics.Read(samples)
	value := func(i int) int64 { return int64(samples[i].Value.Uint64()) } //nolint:gosec // sizes of memory fit
	overhead := value(total) - value(objects) - value(free) - value(released) - value(unused)
	return value(live) + max(overhead, 0)
}
