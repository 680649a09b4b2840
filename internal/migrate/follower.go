package migrate

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/backoff"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/migrate/internal/legacy"
)

// source is the older engine's database.
type source interface {
	// Pass copies what is new or changed, or the next part of it, and cancels what cannot continue. Changes before an
	// error are kept.
	Pass(ctx context.Context) (legacy.Pass, error)
}

// elector elects one process.
type elector interface {
	// Exclusive runs fn unless another caller, in any process, runs work of that name.
	Exclusive(ctx context.Context, name string, fn func(context.Context) error) (ran bool, err error)
}

// Metrics counts the results.
type Metrics interface {
	// Begin exports all series, at 0.
	Begin(ctx context.Context)
	// Imported adds runs by result: new, changed or settled (signalbox_migration_runs_total).
	Imported(ctx context.Context, kind string, runs int64)
	// Failed adds a pass that could not be completed (signalbox_migration_failures_total).
	Failed(ctx context.Context)
}

const (
	// lockName is the name of the lock that elects one process.
	lockName = "cutover"
	// delayFactor is the minimum ratio of the delay after a pass to the duration of the pass: others use the source too.
	delayFactor = 10
	// longest is the longest delay after failures.
	longest = 5 * time.Minute
)

// follower makes the passes over a source while it may still be written to, in one elected process. It waits while the
// source is unavailable, and reports.
type follower struct {
	*loop.Loop

	elector  elector
	source   source
	interval time.Duration // between two passes
	metrics  Metrics

	// unavailable: the last pass failed. leftOut is the last reason for leaving out a run. Each is logged once.
	unavailable bool
	leftOut     string
}

// newFollower returns a follower. It reads nothing before Start.
func newFollower(e elector, s source, interval time.Duration, m Metrics) *follower {
	f := &follower{elector: e, source: s, interval: interval, metrics: m}
	f.Loop = loop.New(f.poll)
	return f
}

// Start exports the metrics and starts the passes.
func (f *follower) Start(ctx context.Context) error {
	f.metrics.Begin(ctx)
	return f.Loop.Start(ctx)
}

// poll follows the source while this process holds the lock, and tries to get the lock otherwise.
func (f *follower) poll(ctx, _ context.Context) time.Duration {
	ctx = auth.WithActor(ctx, auth.System())
	_, err := f.elector.Exclusive(ctx, lockName, f.follow)
	if err != nil && ctx.Err() == nil {
		logger.FromContext(ctx).DebugContext(ctx, "The older engine's database could not be followed", "error", err)
	}
	return f.interval
}

// follow makes passes until ctx ends.
func (f *follower) follow(ctx context.Context) error {
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
func (f *follower) delay(p legacy.Pass, failures int, took time.Duration) time.Duration {
	switch {
	case failures > 0:
		return backoff.Delay(f.interval, max(longest, f.interval), failures)
	case p.First && !p.Busy:
		return min(took, f.interval) // half of the time is for other readers of the source
	}
	return max(f.interval, delayFactor*took)
}

// report logs and counts the result of a pass.
func (f *follower) report(ctx context.Context, p legacy.Pass, err error) {
	log := logger.FromContext(ctx)
	for _, of := range []struct {
		kind string
		runs int64
	}{{"new", p.New}, {"changed", p.Changed}, {"settled", p.Canceled}} {
		if of.runs > 0 {
			f.metrics.Imported(ctx, of.kind, of.runs)
		}
	}
	if p.New+p.Changed > 0 {
		log.InfoContext(ctx, "Runs of the older engine were imported", "new", p.New, "changed", p.Changed,
			"settled", p.Canceled)
	}
	if p.LeftOut > 0 && p.Why != f.leftOut {
		log.WarnContext(ctx, "Runs of the older engine cannot be imported and are left out", "runs", p.LeftOut,
			"first", p.Why)
		f.leftOut = p.Why
	}
	switch {
	case err != nil:
		f.metrics.Failed(ctx)
		if !f.unavailable {
			log.WarnContext(ctx, "The older engine's database cannot be followed, will try again; everything else continues",
				"error", err)
		}
	case f.unavailable:
		log.InfoContext(ctx, "The older engine's database is followed again")
	}
	f.unavailable = err != nil
}
