package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/lease"
)

const (
	listTimeout  = 30 * time.Second
	storeTimeout = 5 * time.Second
	// askTimeout limits the wait for a dispatcher's answer.
	askTimeout = 3 * time.Second
	// readyEvery is the interval of checks for a client.
	readyEvery = 250 * time.Millisecond
	// minPause is the shortest pause between two cycles. spread is the random delay that keeps several processes from
	// acting on the same expiry at once.
	minPause = time.Second
	spread   = time.Second
)

// Inbox is the part of the inbox that the supervisor uses.
type Inbox interface {
	Progress(ctx context.Context, names ...inbox.Name) ([]inbox.Progress, error)
}

// Recorder receives the results. Its methods must not block.
type Recorder interface {
	// Terminated: a run was terminated, or with an error could not be.
	Terminated(t dispatchtype.Termination, err error)
	// Cleaned: the remains of a dispatcher were removed. quiet is the time since its last sign of life, 0 if unknown.
	Cleaned(name inbox.Name, quiet time.Duration)
	// CleanupFailed: an entry could not be deleted.
	CleanupFailed(name inbox.Name)
	// Cycled: a cycle has ended.
	Cycled(c Cycle)
}

// Cycle is the summary of a cycle.
type Cycle struct {
	Err      error
	Duration time.Duration
	// The other fields are set for a cycle without an error. Stale and Duplicates count by project, and include projects
	// with none.
	Stale, Duplicates map[string]int
	Lag               map[string]time.Duration
	Pending           map[string]int64
	Postponed         int
}

// Rules are the intervals of cycles and the thresholds of the plan.
type Rules struct {
	plan.Rules
	// Interval is the interval of cycles, Confirm the time between the two snapshots.
	Interval, Confirm time.Duration
}

// Options configure [New].
type Options struct {
	ServerID string
	Leases   lease.Store
	Inbox    Inbox
	Temporal Temporal
	// Heartbeats returns the heartbeats as the process has cached them: they determine when a cycle is due. Listed
	// receives the entries that a cycle has listed.
	Heartbeats func(ctx context.Context) ([]lease.Entry, error)
	Listed     func([]lease.Entry)
	// Ready returns nil while Temporal can be used: no periodic cycle starts before.
	Ready func() error
	Rules Rules
	// Guard is the lifetime of a lease that is acquired to terminate a dispatcher.
	Guard lease.Lifetime
	// Pace limits the rate of requests to Temporal.
	Pace   *rate.Limiter
	Record Recorder
	Log    *slog.Logger
}

// Supervisor runs the cycles of a process.
type Supervisor struct {
	o Options
	// busy holds a value while a cycle runs.
	busy chan struct{}
	// logged are the alerts of the last cycle, which are not logged again; only used while busy.
	logged map[plan.Alert]bool
	// seen are the heartbeats at the last check; only used by Run.
	seen expiry
}

// New returns a supervisor. It acts only in Run and Reconcile.
func New(o Options) *Supervisor {
	return &Supervisor{o: o, busy: make(chan struct{}, 1), logged: map[plan.Alert]bool{}}
}

// Run runs cycles until ctx ends: at once, at the interval, and whenever a dispatcher may have become stale.
func (s *Supervisor) Run(ctx context.Context) {
	for s.ready(ctx) {
		next, err := s.background(ctx)
		if err != nil && ctx.Err() == nil {
			s.o.Log.WarnContext(ctx, "Supervisor cycle failed; trying again", "error", err)
		}
		s.waitForNext(ctx, next)
	}
}

// ready waits until Temporal can be used. It reports false if ctx has ended.
func (s *Supervisor) ready(ctx context.Context) bool {
	for s.o.Ready() != nil {
		if !loop.Sleep(ctx, readyEvery) {
			return false
		}
	}
	return ctx.Err() == nil
}

// background runs a cycle, and returns the time until the next early one; 0 means none is due before the interval.
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
			s.seen = s.readExpiry(ctx)
		}
		return s.o.Rules.Interval / 4, err
	}
	s.seen = s.expiryOf(o.snapshot.Entries)
	return o.plan.Next, nil
}

// Reconcile runs one cycle now, after a cycle that is running in this process. A dry run reads twice as well, and takes
// no action.
func (s *Supervisor) Reconcile(ctx context.Context, dryRun bool) (dispatchtype.Report, error) {
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	case <-ctx.Done():
		return dispatchtype.Report{}, fmt.Errorf("reconcile dispatchers: a cycle is already running: %w", context.Cause(ctx))
	}
	r, _, err := s.cycle(ctx, dryRun)
	return r, err
}

// waitForNext waits for the next cycle: the interval, less up to a fifth so that processes do not act at the same time,
// or until something becomes stale. In between it checks the cached heartbeats: when one expires, there may be much to
// clean up.
func (s *Supervisor) waitForNext(ctx context.Context, next time.Duration) {
	interval := s.o.Rules.Interval
	until := time.Now().Add(interval - rand.N(interval/5+1)) //nolint:gosec // spreads load, guards nothing
	if next > 0 {
		until = earlier(until, time.Now().
			Add(max(next, minPause)+rand.N(spread))) //nolint:gosec // spreads load, guards nothing
	}
	for ctx.Err() == nil && time.Now().Before(until) {
		if !loop.Sleep(ctx, min(time.Until(until),
			s.seen.next+rand.N(spread))) { //nolint:gosec // spreads load, guards nothing
			return
		}
		now := s.readExpiry(ctx)
		for server := range now.gone {
			if !s.seen.gone[server] {
				return
			}
		}
		s.seen = now
	}
}

// expiry is the state of the heartbeats: the processes with expired ones, and the time until the next may expire.
type expiry struct {
	gone map[string]bool
	next time.Duration
}

// readExpiry reads the heartbeats. The next cycle reports a read that fails here.
func (s *Supervisor) readExpiry(ctx context.Context) expiry {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	entries, err := s.o.Heartbeats(ctx)
	if err != nil {
		return expiry{gone: s.seen.gone, next: s.o.Rules.StaleAfter}
	}
	return s.expiryOf(entries)
}

func (s *Supervisor) expiryOf(entries []lease.Entry) expiry {
	stale := s.o.Rules.StaleAfter
	found := expiry{gone: map[string]bool{}, next: stale}
	for i := range entries {
		e := &entries[i]
		server, ok := wire.ServerOf(e.Key)
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
	found.next = max(found.next, minPause)
	return found
}

// observed is the first snapshot of a cycle and its plan.
type observed struct {
	snapshot plan.Snapshot
	plan     plan.Plan
}

// cycle runs a cycle.
func (s *Supervisor) cycle(ctx context.Context, dryRun bool) (dispatchtype.Report, observed, error) {
	began := time.Now()
	snapshot, err := s.observe(ctx)
	if err != nil {
		return s.ended(ctx, began, dispatchtype.Report{DryRun: dryRun}, observed{}, Cycle{Err: err})
	}
	o := observed{snapshot, plan.Make(snapshot, s.o.Rules.Rules)}
	result, totals := report(o.plan), summary(o.plan, snapshot)
	result.DryRun = dryRun
	if !dryRun {
		s.logAlerts(ctx, o.plan.Alerts)
	}
	if len(o.plan.Terminate)+len(o.plan.Delete) > 0 {
		second, err := s.confirm(ctx, suspectsOf(o.plan))
		if err != nil {
			return s.ended(ctx, began, result.Report, o, Cycle{Err: fmt.Errorf("confirm what is stale: %w", err)})
		}
		confirmed := plan.Make(second, s.o.Rules.Rules)
		result.confirm(confirmed)
		if !dryRun {
			totals.Err = s.act(ctx, confirmed, &result)
			totals.subtractResolved(o.plan, result)
		}
	}
	return s.ended(ctx, began, result.Report, o, totals)
}

// ended records the end of a cycle.
func (s *Supervisor) ended(ctx context.Context, began time.Time, r dispatchtype.Report, o observed,
	c Cycle) (dispatchtype.Report, observed, error) {
	r.Duration = time.Since(began)
	c.Duration = r.Duration
	if !r.DryRun && (c.Err == nil || ctx.Err() == nil) {
		if c.Postponed > 0 {
			s.o.Log.WarnContext(ctx, "Supervisor leaves cleanups to a later cycle", "postponed", c.Postponed)
		}
		s.o.Record.Cycled(c)
	}
	return r, o, c.Err
}

// summary counts by project. It includes projects with nothing, so that their metrics fall back to 0.
func summary(p plan.Plan, snapshot plan.Snapshot) Cycle {
	c := Cycle{Stale: map[string]int{}, Duplicates: p.Duplicates, Lag: map[string]time.Duration{},
		Pending: map[string]int64{}, Postponed: len(p.TerminateLater) + len(p.DeleteLater)}
	for _, row := range snapshot.Progress {
		c.Stale[row.Name.Project] += 0
		c.Lag[row.Name.Project] = max(c.Lag[row.Name.Project], row.Oldest)
		c.Pending[row.Name.Project] += row.Pending
	}
	for i := range p.Verdicts {
		v := &p.Verdicts[i]
		if v.Belongs == wire.Foreign {
			continue
		}
		c.Stale[v.Name.Project] += 0
		if v.Class == dispatchtype.ClassStale || v.Superseded {
			c.Stale[v.Name.Project]++
		}
	}
	return c
}

// subtractResolved removes from the counts what is no longer stale: terminated dispatchers, closed ones, and those that
// the second snapshot found healthy. It also counts what was postponed meanwhile.
func (c *Cycle) subtractResolved(first plan.Plan, r result) {
	open := map[inbox.Name]map[string]bool{} // workflow IDs
	for i := range first.Verdicts {
		if v := &first.Verdicts[i]; v.Belongs != wire.Foreign {
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
		case it.Action == dispatchtype.ActionPostpone:
			c.Postponed++
		case it.Action == dispatchtype.ActionTerminate && (it.Applied || it.Error == "" || r.unconfirmed[i]):
			c.Stale[it.Name.Project]--
			if len(open[it.Name]) > 1 && !r.unconfirmed[i] {
				delete(open[it.Name], it.WorkflowID)
				c.Duplicates[it.Name.Project]--
			}
		}
	}
}

// logAlerts logs the alerts that the previous cycle did not have.
func (s *Supervisor) logAlerts(ctx context.Context, alerts []plan.Alert) {
	now := map[plan.Alert]bool{}
	for _, a := range alerts {
		now[a] = true
		if !s.logged[a] {
			s.o.Log.WarnContext(ctx, "Dispatcher needs operator attention", "trouble", a.Kind, "project", a.Project,
				"subject", a.Subject, "detail", a.Text)
		}
	}
	s.logged = now
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
