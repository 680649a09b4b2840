package supervise

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/pace"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/terms"
	"github.com/signalbox-dev/signalbox/lease"
)

const (
	listTimeout  = 30 * time.Second
	storeTimeout = 5 * time.Second
	// askTimeout is how long a dispatcher may take to answer.
	askTimeout = 3 * time.Second
	// readyEvery is the pace at which is asked whether Temporal can be used.
	readyEvery = 250 * time.Millisecond
	// soonest is the least pause between two cycles, spread that within which several processes come to the same thing.
	soonest = time.Second
	spread  = time.Second
)

// Inbox is what is asked of it.
type Inbox interface {
	Progress(ctx context.Context, names ...inbox.Name) ([]inbox.Progress, error)
}

// Pace bounds the requests to Temporal; Wait tells whether to go on.
type Pace interface {
	Wait(ctx context.Context) bool
}

// Recorder is told what happened, and waits for nothing.
type Recorder interface {
	// Terminated: a run was terminated, or with an error could not be.
	Terminated(t terms.Termination, err error)
	// Cleaned: what was left of a dispatcher is gone; quiet is the time since its last sign of life, 0 where that is not known.
	Cleaned(name inbox.Name, quiet time.Duration)
	// CleanupFailed: an entry could not be removed.
	CleanupFailed(name inbox.Name)
	// Cycled: a cycle ended.
	Cycled(c Cycle)
}

// Cycle is what is told of a cycle.
type Cycle struct {
	Err  error
	Took time.Duration
	// The others are of a cycle without an error. Stale and Duplicates are by project, with those that have none.
	Stale, Duplicates map[string]int
	Lag               map[string]time.Duration
	Pending           map[string]int64
	Postponed         int
}

// Rules are the pace of cycles and the thresholds.
type Rules struct {
	plan.Rules
	// Interval is the pace, Confirm the time between both readings.
	Interval, Confirm time.Duration
}

// Options are what a supervisor works with.
type Options struct {
	ServerID string
	Leases   lease.Store
	Inbox    Inbox
	Temporal Temporal
	// Beats returns the heartbeats as the process has them: they decide when a cycle is due. Listed is given what a cycle has listed.
	Beats  func(ctx context.Context) ([]lease.Entry, error)
	Listed func([]lease.Entry)
	// Ready returns nil when Temporal can be used: no cycle is made by itself before.
	Ready func() error
	Rules Rules
	// Guard are the terms of a lease that is taken to terminate.
	Guard  lease.Terms
	Pace   Pace
	Record Recorder
	Log    *slog.Logger
}

// Supervisor is the supervisor of a process.
type Supervisor struct {
	o Options
	// busy holds a value while a cycle is under way.
	busy chan struct{}
	// told are the alerts of the last cycle, which are not logged again; it is only used while busy.
	told map[plan.Alert]bool
	// seen are the heartbeats as they were last looked at; it is only used by Run.
	seen beats
}

// New returns a supervisor. It does nothing before Run, or without Reconcile.
func New(o Options) *Supervisor {
	return &Supervisor{o: o, busy: make(chan struct{}, 1), told: map[plan.Alert]bool{}}
}

// Run makes cycles until ctx ends: at once, at their pace, and whenever the next one is due to become stale.
func (s *Supervisor) Run(ctx context.Context) {
	for s.ready(ctx) {
		next, err := s.background(ctx)
		if err != nil && ctx.Err() == nil {
			s.o.Log.WarnContext(ctx, "Dispatchers could not be supervised; trying again", "error", err)
		}
		s.rest(ctx, next)
	}
}

// ready waits until Temporal can be used, and tells whether ctx still goes on.
func (s *Supervisor) ready(ctx context.Context) bool {
	for s.o.Ready() != nil {
		if !pace.Sleep(ctx, readyEvery) {
			return false
		}
	}
	return ctx.Err() == nil
}

// background makes a cycle, and returns when the next one is due before its time; 0: it is not.
func (s *Supervisor) background(ctx context.Context) (time.Duration, error) {
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	_, o, err := s.cycle(ctx, false)
	if err != nil {
		if s.seen.gone == nil {
			s.seen = s.pulse(ctx)
		}
		return s.o.Rules.Interval / 4, err
	}
	s.seen = s.judge(o.reading.Entries)
	return o.plan.Next, nil
}

// Reconcile makes one cycle now, and waits for one that is under way in this process. A dry run reads twice as well, and acts on nothing.
func (s *Supervisor) Reconcile(ctx context.Context, dryRun bool) (Report, error) {
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	case <-ctx.Done():
		return Report{}, fmt.Errorf("reconcile dispatchers: a cycle is under way: %w", context.Cause(ctx))
	}
	r, _, err := s.cycle(ctx, dryRun)
	return r, err
}

// rest waits for the next cycle: the interval, less up to a fifth, so that processes do not come together; or until something
// becomes stale. The heartbeats, which are few, are looked at in between: when one runs out, there may be much to do.
func (s *Supervisor) rest(ctx context.Context, next time.Duration) {
	interval := s.o.Rules.Interval
	until := time.Now().Add(interval - rand.N(interval/5+1)) //nolint:gosec // spreads load, guards nothing
	if next > 0 {
		until = earlier(until, time.Now().Add(max(next, soonest)+rand.N(spread))) //nolint:gosec // spreads load, guards nothing
	}
	for ctx.Err() == nil && time.Now().Before(until) {
		if !pace.Sleep(ctx, min(time.Until(until), s.seen.next+rand.N(spread))) { //nolint:gosec // spreads load, guards nothing
			return
		}
		now := s.pulse(ctx)
		for server := range now.gone {
			if !s.seen.gone[server] {
				return
			}
		}
		s.seen = now
	}
}

// beats are the processes whose heartbeats have run out, and in what time the next one may.
type beats struct {
	gone map[string]bool
	next time.Duration
}

// pulse looks at the heartbeats. What cannot be read is the next cycle's to tell.
func (s *Supervisor) pulse(ctx context.Context) beats {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	entries, err := s.o.Beats(ctx)
	if err != nil {
		return beats{gone: s.seen.gone, next: s.o.Rules.StaleAfter}
	}
	return s.judge(entries)
}

func (s *Supervisor) judge(entries []lease.Entry) beats {
	stale := s.o.Rules.StaleAfter
	found := beats{gone: map[string]bool{}, next: stale}
	for i := range entries {
		e := &entries[i]
		server, ok := contract.ServerOf(e.Key)
		left := stale - e.Age()
		if e.State == lease.Held {
			left = max(left, e.Remaining())
		}
		switch {
		case !ok || e.State == lease.Resigned:
		case left <= 0:
			found.gone[server] = true
		default:
			found.next = min(found.next, left)
		}
	}
	found.next = max(found.next, soonest)
	return found
}

// observed is what a cycle's first reading came to.
type observed struct {
	reading plan.Reading
	plan    plan.Plan
}

// cycle makes a cycle.
func (s *Supervisor) cycle(ctx context.Context, dryRun bool) (Report, observed, error) {
	began := time.Now()
	reading, err := s.observe(ctx)
	if err != nil {
		return s.ended(ctx, began, Report{DryRun: dryRun}, observed{}, Cycle{Err: err})
	}
	o := observed{reading, plan.Make(reading, s.o.Rules.Rules)}
	result, told := report(o.plan), summary(o.plan, reading)
	result.DryRun = dryRun
	if !dryRun {
		s.tell(ctx, o.plan.Alerts)
	}
	if len(o.plan.Terminate)+len(o.plan.Delete) > 0 {
		second, err := s.again(ctx, suspectsOf(o.plan))
		if err != nil {
			return s.ended(ctx, began, result, o, Cycle{Err: fmt.Errorf("confirm what is stale: %w", err)})
		}
		confirmed := plan.Make(second, s.o.Rules.Rules)
		result.confirm(confirmed)
		if !dryRun {
			told.Err = s.act(ctx, confirmed, &result)
			told.settle(o.plan, result)
		}
	}
	return s.ended(ctx, began, result, o, told)
}

// ended tells of a cycle's end.
func (s *Supervisor) ended(ctx context.Context, began time.Time, r Report, o observed, c Cycle) (Report, observed, error) {
	r.Took = time.Since(began)
	c.Took = r.Took
	if !r.DryRun && (c.Err == nil || ctx.Err() == nil) {
		if c.Postponed > 0 {
			s.o.Log.WarnContext(ctx, "Supervisor leaves cleanups to a later cycle", "postponed", c.Postponed)
		}
		s.o.Record.Cycled(c)
	}
	return r, o, c.Err
}

// summary counts by project. Projects without any are in it, so that their figures fall back to 0.
func summary(p plan.Plan, reading plan.Reading) Cycle {
	c := Cycle{Stale: map[string]int{}, Duplicates: p.Duplicates, Lag: map[string]time.Duration{}, Pending: map[string]int64{}, Postponed: len(p.Postponed) + len(p.Later)}
	for _, row := range reading.Progress {
		c.Stale[row.Name.Project] += 0
		c.Lag[row.Name.Project] = max(c.Lag[row.Name.Project], row.Lag)
		c.Pending[row.Name.Project] += row.Pending
	}
	for i := range p.Verdicts {
		v := &p.Verdicts[i]
		if v.Belongs == contract.NotMine {
			continue
		}
		c.Stale[v.Name.Project] += 0
		if v.Class == plan.Stale || v.Superseded {
			c.Stale[v.Name.Project]++
		}
	}
	return c
}

// settle takes what is stale no more out of the counts: what was terminated, what ended by itself, and what a second reading found to be well.
// It also counts what was postponed in the meantime.
func (c *Cycle) settle(first plan.Plan, r Report) {
	open := map[inbox.Name]map[string]bool{} // workflow IDs
	for i := range first.Verdicts {
		if v := &first.Verdicts[i]; v.Belongs != contract.NotMine {
			if open[v.Name] == nil {
				open[v.Name] = map[string]bool{}
			}
			open[v.Name][v.WorkflowID] = true
		}
	}
	c.Postponed = 0
	for i := range r.Items {
		it := &r.Items[i]
		switch {
		case it.Action == Postpone:
			c.Postponed++
		case it.Action == Terminate && (it.Applied || it.Error == "" || it.unconfirmed):
			c.Stale[it.Name.Project]--
			if len(open[it.Name]) > 1 && !it.unconfirmed {
				delete(open[it.Name], it.WorkflowID)
				c.Duplicates[it.Name.Project]--
			}
		}
	}
}

// tell logs the alerts that the cycle before did not have.
func (s *Supervisor) tell(ctx context.Context, alerts []plan.Alert) {
	now := map[plan.Alert]bool{}
	for _, a := range alerts {
		now[a] = true
		if !s.told[a] {
			s.o.Log.WarnContext(ctx, "Dispatchers need somebody's eyes", "trouble", a.Trouble, "project", a.Project, "subject", a.Subject, "what", a.Text)
		}
	}
	s.told = now
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
