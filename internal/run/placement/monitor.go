package placement

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/routine"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

const (
	// compareEvery is how often the places are compared. Workers that have just stopped or moved are no difference, so it takes two
	// comparisons in a row to find one.
	compareEvery = 2 * time.Second
	// readFor bounds a question to the database.
	readFor = time.Second
)

// Registry knows the live workers.
type Registry interface {
	// Live returns them as they were a second ago at most; false where they are not known.
	Live(ctx context.Context) ([]worker.Worker, bool)
	// Check returns why no live worker would execute a run of the project.
	Check(ctx context.Context, project string) error
}

// Store keeps where the runs are.
type Store interface {
	RunsHome(ctx context.Context) (run.Home, error)
}

// Options are what a monitor needs.
type Options struct {
	Store    Store
	Registry Registry
	// Here returns the place where this process is connected, without a namespace ID until Temporal was reached. It must not block.
	Here func() run.Place
	// Works is whether this process executes runs.
	Works bool
}

// Monitor compares places for one process.
type Monitor struct {
	opts Options

	home     atomic.Pointer[run.Home] // nil until it was read
	mismatch atomic.Pointer[Mismatch]
	routine  routine.Routine
}

// New returns a monitor that compares nothing before Start, but for Check.
func New(opts Options) *Monitor {
	m := &Monitor{opts: opts}
	m.mismatch.Store(&Mismatch{})
	return m
}

// Start begins to compare.
func (m *Monitor) Start(ctx context.Context) error {
	m.routine.Start(ctx, func(ctx, _ context.Context) { m.loop(ctx) })
	return nil
}

// Stop ends it and joins it.
func (m *Monitor) Stop(ctx context.Context) error {
	m.routine.Stop(ctx)
	return nil
}

// Mismatch returns how this process and the others differ, both sides by name, with what to do; empty while they do not.
func (m *Monitor) Mismatch() string { return m.mismatch.Load().Detail }

// Healthy returns the mismatch as an error; it reads nothing.
func (m *Monitor) Healthy(context.Context) error {
	if text := m.Mismatch(); text != "" {
		return errors.New(text)
	}
	return nil
}

// Check returns a [fault.Refused] while runs must not be started by this process, or no live worker would execute one of the project. A
// database that does not answer is no reason to refuse.
func (m *Monitor) Check(ctx context.Context, project string) error {
	if m.home.Load() == nil {
		m.read(ctx)
	}
	if f, known := m.facts(ctx); known {
		if err := Refusal(f); err != nil {
			return err
		}
	}
	return m.opts.Registry.Check(ctx, project)
}

// read reads where the runs are.
func (m *Monitor) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readFor)
	defer cancel()
	if found, err := m.opts.Store.RunsHome(ctx); err == nil {
		m.home.Store(&found)
	}
}

// facts returns what there is to compare; false while a part of it is not known.
func (m *Monitor) facts(ctx context.Context) (Facts, bool) {
	at := m.home.Load()
	live, known := m.opts.Registry.Live(ctx)
	if at == nil || !known {
		return Facts{}, false
	}
	return Facts{Here: m.opts.Here(), Home: *at, Workers: live, Works: m.opts.Works}, true
}

func (m *Monitor) loop(ctx context.Context) {
	ticker := time.NewTicker(compareEvery)
	defer ticker.Stop()
	var before Mismatch
	for {
		m.read(ctx)
		if f, known := m.facts(ctx); known {
			now := Compare(f)
			m.note(ctx, before, now)
			before = now
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// note takes what two comparisons in a row found, and logs what has changed: other workers at the same place are no news.
func (m *Monitor) note(ctx context.Context, before, now Mismatch) {
	told := m.mismatch.Load()
	if now.Other != before.Other || now.RunsThere != before.RunsThere {
		return
	}
	m.mismatch.Store(&now)
	log := logger.FromContext(ctx)
	switch {
	case now.Other == told.Other && now.RunsThere == told.RunsThere:
	case now == (Mismatch{}):
		log.InfoContext(ctx, "All processes on this database use one Temporal again")
	default:
		log.ErrorContext(ctx, "Processes on this database use different Temporals", "detail", now.Detail)
	}
}
