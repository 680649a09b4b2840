// Package migrate follows an older engine's database while old processes may still write to it, so that new data is copied within a
// minute and no run of that engine appears to be in progress.
//
//	f := migrate.New(store, source, migrate.Options{Interval: 30 * time.Second, Metrics: tel.Migration})
//	err := f.Start(ctx)
//
// One elected process does so. The source implements how a pass reads it and cancels runs of an engine that is gone; this package
// schedules the passes, waits while the source is unavailable, and reports. No other part waits for it: without the source, everything
// else works.
package migrate

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/backoff"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

// Pass is the result of one pass.
type Pass struct {
	// New and Changed count the copied runs; Canceled counts those of them that were open on an engine that is gone, and were canceled.
	New, Changed, Canceled int64
	// LeftOut counts the runs that cannot be imported; Why is the reason of the first.
	LeftOut int64
	Why     string
	// First: the source has not been read completely yet. Busy: an import was in progress and nothing was done.
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
	// Pass copies what is new or changed, or the next part of it, and cancels what cannot continue. Changes before an error are kept.
	Pass(ctx context.Context) (Pass, error)
}

// Store elects one process.
type Store interface {
	// Exclusive runs fn unless another caller, in any process, runs work of that name.
	Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error)
}

// Metrics counts the results.
type Metrics interface {
	// Imported adds runs by result: new, changed or settled (signalbox_migration_runs_total).
	Imported(ctx context.Context, kind string, runs int64)
	// Failed adds a pass that could not be completed (signalbox_migration_failures_total).
	Failed(ctx context.Context)
}

// Options are the interval and the metrics.
type Options struct {
	// Interval is the time between two passes.
	Interval time.Duration
	Metrics  Metrics
}

const (
	// lockName is the name of the lock that elects one process.
	lockName = "cutover"
	// delayFactor is the minimum ratio of the delay after a pass to the duration of the pass: others use the source too.
	delayFactor = 10
	// longest is the longest delay after failures.
	longest = 5 * time.Minute
)

// Follower makes the passes.
type Follower struct {
	*loop.Loop

	store  Store
	source Source
	opts   Options

	// unavailable: the last pass failed. leftOut is the last reason for leaving out a run. Each is logged once.
	unavailable bool
	leftOut     string
}

// New returns a follower. It reads nothing before Start.
func New(store Store, source Source, opts Options) *Follower {
	f := &Follower{store: store, source: source, opts: opts}
	f.Loop = loop.New(f.poll)
	return f
}

// poll follows the source while this process holds the lock, and tries to get the lock otherwise.
func (f *Follower) poll(ctx, _ context.Context) time.Duration {
	ctx = auth.WithActor(ctx, auth.System())
	_, err := f.store.Exclusive(ctx, lockName, f.follow)
	if err != nil && ctx.Err() == nil {
		logger.FromContext(ctx).DebugContext(ctx, "The older engine's database could not be followed", "error", err)
	}
	return f.opts.Interval
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
		f.report(ctx, p, err)
		failures++
		if err == nil {
			failures = 0
		}
		loop.Sleep(ctx, f.delay(p, failures, time.Since(begun)))
	}
	return ctx.Err()
}

// delay returns how long to wait after a pass.
func (f *Follower) delay(p Pass, failures int, took time.Duration) time.Duration {
	switch {
	case failures > 0:
		return backoff.Delay(f.opts.Interval, max(longest, f.opts.Interval), failures)
	case p.First && !p.Busy:
		return min(took, f.opts.Interval) // half of the time is for other readers of the source
	}
	return max(f.opts.Interval, delayFactor*took)
}

// report logs and counts the result of a pass.
func (f *Follower) report(ctx context.Context, p Pass, err error) {
	log := logger.FromContext(ctx)
	for _, of := range []struct {
		kind string
		runs int64
	}{{"new", p.New}, {"changed", p.Changed}, {"settled", p.Canceled}} {
		if of.runs > 0 {
			f.opts.Metrics.Imported(ctx, of.kind, of.runs)
		}
	}
	if p.New+p.Changed > 0 {
		log.InfoContext(ctx, "Runs of the older engine were imported", "new", p.New, "changed", p.Changed, "settled", p.Canceled)
	}
	if p.LeftOut > 0 && p.Why != f.leftOut {
		log.WarnContext(ctx, "Runs of the older engine cannot be imported and are left out", "runs", p.LeftOut, "first", p.Why)
		f.leftOut = p.Why
	}
	switch {
	case err != nil:
		f.opts.Metrics.Failed(ctx)
		if !f.unavailable {
			log.WarnContext(ctx, "The older engine's database cannot be followed, will try again; everything else continues", "error", err)
		}
	case f.unavailable:
		log.InfoContext(ctx, "The older engine's database is followed again")
	}
	f.unavailable = err != nil
}
