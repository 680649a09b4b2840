// Package memory keeps a process under a soft memory limit, so that it sheds work before the kernel ends it.
//
//	limit := memory.Apply(int64(cfg.MemoryLimit), os.DirFS("/"))   // in main: sets the Go runtime's limit
//	m := memory.NewMonitor(memory.Options{Limit: limit, Log: log})
//	err := m.Start(ctx)
//	m.Level()          // Normal, High, Critical
//	err = m.Admit()    // an error while the process accepts no new runs
//
// Near the limit the Go runtime collects garbage more often, but it does not refuse allocations. A [Monitor] therefore
// compares the memory in use after the last collection with the limit: at [High], diagnosis and repair stop and caches
// are released; at [Critical], starts of runs are refused. Memory outside of the Go runtime is not measured.
package memory

import (
	"context"
	"log/slog"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

// Level is how close the memory use of a process is to its limit.
type Level int32

// The levels.
const (
	// Normal means that no work is shed.
	Normal Level = iota
	// High means that diagnosis and repair stop and caches are released.
	High
	// Critical means that starts of runs are refused as well.
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

// The shares of the limit at which a level starts. A level ends only when the use has fallen by slack below its share,
// so that work that is shed and resumed does not make the level oscillate.
const (
	highShare     = 0.70
	criticalShare = 0.85
	slack         = 0.05
)

const (
	// every is the interval between measurements.
	every = 250 * time.Millisecond
	// relieveEvery is the minimum interval between calls of Options.Relieve while the level is not Normal.
	relieveEvery = 5 * time.Second
	// retryAfter is the retry delay of refused starts.
	retryAfter = 5 * time.Second
)

// LevelAt returns the level for the bytes in use, given the previous level. Without a limit it is always Normal.
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

// Options configure a monitor.
type Options struct {
	Limit Limit
	// Used returns the bytes in use; nil: [InUse].
	Used func() int64
	// Relieve releases memory that can be rebuilt, such as caches; may be nil. While the level is not Normal, it is called
	// repeatedly, at intervals of some seconds.
	Relieve func()
	Log     *slog.Logger
}

// Monitor measures the memory of the process and reports its level.
type Monitor struct {
	*loop.Loop

	opts     Options
	level    atomic.Int32
	used     atomic.Int64
	relieved time.Time
}

// NewMonitor returns a monitor. It measures nothing before Start, and its level is Normal until then.
func NewMonitor(opts Options) *Monitor {
	if opts.Used == nil {
		opts.Used = InUse
	}
	if opts.Relieve == nil {
		opts.Relieve = func() {}
	}
	m := &Monitor{opts: opts}
	m.Loop = loop.New(m.relieve)
	return m
}

// Start begins to measure. Without a limit it does nothing.
func (m *Monitor) Start(ctx context.Context) error {
	if m.opts.Limit.Bytes <= 0 {
		return nil
	}
	m.measure(ctx)
	return m.Loop.Start(ctx)
}

// Level returns the last measured level.
func (m *Monitor) Level() Level { return Level(m.level.Load()) }

// Used returns the bytes in use as last measured, and the limit; ok is false for a process without a limit.
func (m *Monitor) Used() (used, limit int64, ok bool) {
	return m.used.Load(), m.opts.Limit.Bytes, m.opts.Limit.Bytes > 0
}

// Admit returns nil while the process accepts new runs, otherwise an [apperror.Exhausted].
func (m *Monitor) Admit() error {
	if m.Level() < Critical {
		return nil
	}
	return apperror.New(apperror.Exhausted, apperror.MemoryExhausted,
		"this server uses %d MiB of its memory limit of %d MiB (%s) and takes no new runs until it uses less; nothing was "+
			"started",
		m.used.Load()>>20, m.opts.Limit.Bytes>>20, m.opts.Limit.Source).WithRetry(retryAfter)
}

// Check returns why the process sheds work, or nil at the level Normal.
func (m *Monitor) Check(context.Context) error {
	if m.Level() == Normal {
		return nil
	}
	shed := "diagnosis and repair of runs are suspended"
	if m.Level() == Critical {
		shed += ", starts of runs are refused"
	}
	return apperror.New(apperror.Exhausted, apperror.MemoryExhausted, "memory use is %s: %d of %d MiB (%s); %s",
		m.Level(), m.used.Load()>>20, m.opts.Limit.Bytes>>20, m.opts.Limit.Source, shed)
}

func (m *Monitor) relieve(ctx, _ context.Context) time.Duration {
	if m.measure(ctx) != Normal && time.Since(m.relieved) >= relieveEvery {
		m.relieved = time.Now()
		m.opts.Relieve()
	}
	return every
}

// measure updates the level and logs its changes.
func (m *Monitor) measure(ctx context.Context) Level {
	used := m.opts.Used()
	before := m.Level()
	level := LevelAt(before, used, m.opts.Limit.Bytes)
	m.used.Store(used)
	m.level.Store(int32(level))
	switch {
	case level > before:
		m.opts.Log.WarnContext(ctx, "Memory use is close to its limit, work is shed", "level", level.String(),
			"used_bytes", used,
			"limit_bytes", m.opts.Limit.Bytes, "limit_source", m.opts.Limit.Source)
	case level < before:
		m.opts.Log.InfoContext(ctx, "Memory use has fallen", "level", level.String(), "used_bytes", used,
			"limit_bytes", m.opts.Limit.Bytes)
	}
	return level
}

// InUse returns the bytes that the Go runtime cannot release: the live heap after the last collection, and memory
// outside of the heap. Garbage that is not collected yet does not count; near the limit collections are frequent, so
// the value is recent there.
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
