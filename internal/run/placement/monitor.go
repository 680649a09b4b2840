package placement

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

const (
	// compareEvery is the interval between comparisons. Workers that have just stopped or moved must not count as a
	// difference, so only two equal comparisons in a row do.
	compareEvery = 2 * time.Second
	// readFor is the timeout of a query of the database.
	readFor = time.Second
)

// Registry returns the live workers.
type Registry interface {
	// Live returns the live workers, at most a second old; false where they are not known.
	Live(ctx context.Context) ([]worker.Worker, bool)
	// LiveNow returns the workers that are live now.
	LiveNow(ctx context.Context) ([]worker.Worker, bool)
	// Check returns why none of the live workers would execute a run of the project.
	Check(project string, live []worker.Worker) error
}

// Store reads the recorded Temporal that holds the runs.
type Store interface {
	RunsCluster(ctx context.Context) (run.RunsCluster, error)
}

// Options configure a monitor.
type Options struct {
	Store    Store
	Registry Registry
	// Here returns the Temporal that this process is connected to, without a namespace ID until it was reached. It must
	// not block.
	Here func() run.ClusterID
	// ExecutesRuns reports whether this process executes runs.
	ExecutesRuns bool
}

// Monitor compares the Temporals for one process.
type Monitor struct {
	*loop.Loop

	opts Options

	recorded atomic.Pointer[run.RunsCluster] // nil until it was read
	mismatch atomic.Pointer[Mismatch]
	before   Mismatch // of the last comparison
}

// New returns a monitor. Before Start, only Check compares anything.
func New(opts Options) *Monitor {
	m := &Monitor{opts: opts}
	m.mismatch.Store(&Mismatch{})
	m.Loop = loop.New(m.compare)
	return m
}

// Mismatch returns how this process and the others differ, with both Temporals and the remedy; empty while they do not.
func (m *Monitor) Mismatch() string { return m.mismatch.Load().Detail }

// Healthy returns the mismatch as an error. It performs no I/O.
func (m *Monitor) Healthy(context.Context) error {
	if text := m.Mismatch(); text != "" {
		return errors.New(text)
	}
	return nil
}

// Check returns an [apperror.Refused] while this process must not start runs, or no live worker would execute one of
// the project. An unavailable database is no reason to refuse.
func (m *Monitor) Check(ctx context.Context, project string) error {
	if m.recorded.Load() == nil {
		m.read(ctx)
	}
	live, known := m.opts.Registry.Live(ctx)
	if !known || m.check(project, live) == nil {
		return nil
	}
	if live, known = m.opts.Registry.LiveNow(ctx); !known {
		return nil
	}
	return m.check(project, live)
}

func (m *Monitor) check(project string, live []worker.Worker) error {
	if recorded := m.recorded.Load(); recorded != nil {
		if err := Refusal(m.facts(*recorded, live)); err != nil {
			return err
		}
	}
	return m.opts.Registry.Check(project, live)
}

// read reads the recorded Temporal.
func (m *Monitor) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readFor)
	defer cancel()
	if found, err := m.opts.Store.RunsCluster(ctx); err == nil {
		m.recorded.Store(&found)
	}
}

// facts returns the input of a comparison.
func (m *Monitor) facts(recorded run.RunsCluster, live []worker.Worker) Facts {
	return Facts{Here: m.opts.Here(), Recorded: recorded, Workers: live, ExecutesRuns: m.opts.ExecutesRuns}
}

func (m *Monitor) compare(ctx, _ context.Context) time.Duration {
	m.read(ctx)
	if live, known := m.opts.Registry.Live(ctx); known && m.recorded.Load() != nil {
		now := Compare(m.facts(*m.recorded.Load(), live))
		m.record(ctx, m.before, now)
		m.before = now
	}
	return compareEvery
}

// record stores a mismatch found by two comparisons in a row, and logs it when it has changed. Other workers in the
// same Temporal are no change.
func (m *Monitor) record(ctx context.Context, before, now Mismatch) {
	stored := m.mismatch.Load()
	if now.Other != before.Other || now.RunsThere != before.RunsThere {
		return
	}
	m.mismatch.Store(&now)
	log := logger.FromContext(ctx)
	switch {
	case now.Other == stored.Other && now.RunsThere == stored.RunsThere:
	case now == (Mismatch{}):
		log.InfoContext(ctx, "All processes on this database use one Temporal again")
	default:
		log.ErrorContext(ctx, "Processes on this database use different Temporals", "detail", now.Detail)
	}
}
