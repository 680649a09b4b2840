// Package cutover follows an older engine's database while old processes may still write to it, so that what they add is here within a
// minute and no run of theirs looks as if somebody were working on it.
//
//	f := cutover.New(store, source, cutover.Options{Interval: 30 * time.Second, Metrics: tel.Cutover})
//	err := f.Start(ctx)
//
// One process of all does so at a time. How a pass reads the source and settles what it finds is the source's business; this package
// knows when to make one, when to wait because the source is away, and whom to tell. Nothing waits for it: without the source, all else
// goes on.
package cutover

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/pause"
)

// Pass is what one look at the source did.
type Pass struct {
	// New and Changed are the runs that were copied; Settled are those of them that were open on an engine that is gone.
	New, Changed, Settled int64
	// LeftOut counts the runs that cannot be imported; Why is of the first.
	LeftOut int64
	Why     string
	// First tells that not all of the source has been read yet, Busy that an import was under way and nothing was done.
	First, Busy bool
}

// LeaveOut counts a run that cannot be imported.
func (p *Pass) LeaveOut(why string) {
	if p.LeftOut++; p.LeftOut == 1 {
		p.Why = why
	}
}

// Source is the older engine's database.
type Source interface {
	// Pass copies and settles what is new or has changed, or the next part of it. What it did before an error counts.
	Pass(ctx context.Context) (Pass, error)
}

// Store keeps processes apart.
type Store interface {
	// Exclusive runs fn unless somebody else, in any process, runs work of that name.
	Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error)
}

// Metrics counts.
type Metrics interface {
	// Imported adds runs by what became of them: new, changed or settled (signalbox_migration_runs_total).
	Imported(ctx context.Context, kind string, runs int64)
	// Failed adds a pass that could not be completed (signalbox_migration_failures_total).
	Failed(ctx context.Context)
}

// Options say how often to look, and whom to tell.
type Options struct {
	// Interval is the time between two passes.
	Interval time.Duration
	Metrics  Metrics
}

const (
	// exclusively is the name under which one process follows.
	exclusively = "cutover"
	// restFor is how much longer than a pass the pause after it is at least: the source belongs to others.
	restFor = 10
	// longest is the longest pause after failures.
	longest = 5 * time.Minute
)

// Follower makes the passes.
type Follower struct {
	store  Store
	source Source
	opts   Options
	cancel context.CancelFunc
	joined sync.WaitGroup

	// away tells that the source could not be read the last time, leftOut why a run was left out then: each is told once.
	away    bool
	leftOut string
}

// New returns a follower. Nothing is read before Start.
func New(store Store, source Source, opts Options) *Follower {
	return &Follower{store: store, source: source, opts: opts}
}

// Start begins to follow, in whichever process does so at a time.
func (f *Follower) Start(ctx context.Context) error {
	ctx, f.cancel = context.WithCancel(auth.WithActor(context.WithoutCancel(ctx), auth.System()))
	f.joined.Go(func() { f.loop(ctx) })
	return nil
}

// Stop ends it after the page that is under way.
func (f *Follower) Stop(context.Context) error {
	f.cancel()
	f.joined.Wait()
	return nil
}

func (f *Follower) loop(ctx context.Context) {
	for {
		_, err := f.store.Exclusive(ctx, exclusively, f.follow)
		if err != nil && ctx.Err() == nil {
			logger.FromContext(ctx).DebugContext(ctx, "The older engine's database could not be followed", "error", err)
		}
		if !pause.For(ctx, f.opts.Interval) {
			return
		}
	}
}

// follow makes passes until ctx ends.
func (f *Follower) follow(ctx context.Context) error {
	failures := 0
	for ctx.Err() == nil {
		begun := time.Now()
		p, err := f.source.Pass(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.tell(ctx, p, err)
		failures++
		if err == nil {
			failures = 0
		}
		pause.For(ctx, f.rest(p, failures, time.Since(begun)))
	}
	return ctx.Err()
}

// rest is how long to wait after a pass.
func (f *Follower) rest(p Pass, failures int, took time.Duration) time.Duration {
	switch {
	case failures > 0:
		d := f.opts.Interval
		for range failures - 1 {
			if d *= 2; d >= longest {
				return max(longest, f.opts.Interval)
			}
		}
		return d
	case p.First && !p.Busy:
		return min(took, f.opts.Interval) // half of the time for who else reads there
	}
	return max(f.opts.Interval, restFor*took)
}

// tell logs and counts what a pass did.
func (f *Follower) tell(ctx context.Context, p Pass, err error) {
	log := logger.FromContext(ctx)
	for _, of := range []struct {
		kind string
		runs int64
	}{{"new", p.New}, {"changed", p.Changed}, {"settled", p.Settled}} {
		if of.runs > 0 {
			f.opts.Metrics.Imported(ctx, of.kind, of.runs)
		}
	}
	if p.New+p.Changed > 0 {
		log.InfoContext(ctx, "Runs of the older engine were imported", "new", p.New, "changed", p.Changed, "settled", p.Settled)
	}
	if p.LeftOut > 0 && p.Why != f.leftOut {
		log.WarnContext(ctx, "Runs of the older engine cannot be imported and are left out", "runs", p.LeftOut, "first", p.Why)
		f.leftOut = p.Why
	}
	switch {
	case err != nil:
		f.opts.Metrics.Failed(ctx)
		if !f.away {
			log.WarnContext(ctx, "The older engine's database cannot be followed, will try again; everything else goes on", "error", err)
		}
	case f.away:
		log.InfoContext(ctx, "The older engine's database is followed again")
	}
	f.away = err != nil
}
