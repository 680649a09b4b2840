// Package record tells of what dispatchers went through: metrics, log lines, and the journal of whoever embeds them. Nobody who
// tells it something waits, but for evictions.
package record

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/decide"
	"github.com/signalbox-dev/signalbox/dispatch/internal/pace"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/terms"
)

const (
	// waiting is how many notes for the journal may wait, and how many more may wait to be taken after it failed; others are dropped,
	// with a log line.
	waiting = 4096
	// pauseFirst and pauseMost are the pauses between attempts, while the journal takes nothing.
	pauseFirst = 200 * time.Millisecond
	pauseMost  = time.Minute
	tryTimeout = 5 * time.Second
	// flushTimeout bounds what is written at the end.
	flushTimeout = 5 * time.Second
)

// note is something for the journal.
type note struct {
	what  string
	write func(context.Context, terms.Journal) error
}

// Record is where it is told.
type Record struct {
	journal terms.Journal
	metrics client.MetricsHandler
	log     *slog.Logger
	notes   chan note

	mu     sync.Mutex
	active map[string]int // owned dispatchers, by project
	// foreign are the runs that have taken the IDs of dispatchers.
	foreign map[inbox.Name]string
	silent  time.Time // until when failures are only counted
	unsaid  int       // how many were
}

// New returns a record; journal may be nil.
func New(journal terms.Journal, metrics client.MetricsHandler, log *slog.Logger) *Record {
	return &Record{journal: journal, metrics: metrics, log: log, notes: make(chan note, waiting), active: map[string]int{}, foreign: map[inbox.Name]string{}}
}

// Run writes the journal until ctx ends, and then what is left. What the journal does not take is written again until it does: in turn,
// so that a note which it never takes holds no other up.
func (r *Record) Run(ctx context.Context) {
	var again []note
	failures := 0
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due := timer.C
		if len(again) == 0 {
			due = nil
		}
		var n note
		select {
		case <-ctx.Done():
			r.flush(context.WithoutCancel(ctx), again)
			return
		case n = <-r.notes:
		case <-due:
			n, again = again[0], again[1:]
		}
		err := r.write(ctx, n)
		switch {
		case err == nil:
			failures = 0
		case len(again) >= waiting:
			r.log.ErrorContext(ctx, "Journal takes nothing; dropped what happened", "what", n.what, "error", err)
		default:
			if failures == 0 {
				r.log.WarnContext(ctx, "Journal did not take what happened; trying again", "what", n.what, "waiting", len(again), "error", err)
			}
			failures++
			again = append(again, n)
		}
		timer.Reset(pauseAfter(failures))
	}
}

// pauseAfter is how long to wait after so many failures running.
func pauseAfter(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	return min(pauseFirst<<min(failures-1, 10), pauseMost) //nolint:mnd // far beyond the most
}

// Flush writes what waits for the journal, for a few seconds at most: for those who end, and those who do not run.
func (r *Record) Flush(ctx context.Context) { r.flush(ctx, nil) }

// flush also writes what was not taken before. It asks for each twice at most, for nobody may be there to take it.
func (r *Record) flush(ctx context.Context, again []note) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	lost, last := 0, error(nil)
	for _, n := range append(again, r.drain()...) {
		err := r.write(ctx, n)
		if err != nil && pace.Sleep(ctx, pauseFirst) {
			err = r.write(ctx, n)
		}
		if err != nil {
			lost, last = lost+1, err
		}
	}
	if lost > 0 {
		r.log.ErrorContext(ctx, "Journal did not take what happened", "lost", lost, "error", last)
	}
}

// drain takes what waits now.
func (r *Record) drain() (all []note) {
	for {
		select {
		case n := <-r.notes:
			all = append(all, n)
		default:
			return all
		}
	}
}

func (r *Record) write(ctx context.Context, n note) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// Its end is no reason to lose what is being written.
	once, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryTimeout)
	defer cancel()
	return n.write(once, r.journal)
}

func (r *Record) note(what string, write func(context.Context, terms.Journal) error) {
	if r.journal == nil {
		return
	}
	select {
	case r.notes <- note{what, write}:
	default:
		r.log.Error("Journal is too slow; dropped what happened", "what", what)
	}
}

func (r *Record) project(name inbox.Name, tags ...string) client.MetricsHandler {
	all := map[string]string{"project": name.Project}
	for i := 0; i+1 < len(tags); i += 2 {
		all[tags[i]] = tags[i+1]
	}
	return r.metrics.WithTags(all)
}

func (r *Record) outcome(name inbox.Name, outcome terms.Outcome) {
	r.project(name, "outcome", string(outcome)).Counter("dispatcher_takeovers_total").Inc(1)
}

// Begin makes the series of a project, at 0, so that the rate of each counts what happens first.
func (r *Record) Begin(project string) {
	of := inbox.Name{Project: project}
	for _, outcome := range []terms.Outcome{terms.ColdStart, terms.Joined, terms.Handover, terms.Takeover, terms.Lost, terms.Failed} {
		r.project(of, "outcome", string(outcome)).Counter("dispatcher_takeovers_total").Inc(0)
	}
	for _, reason := range terminationReasons() {
		r.project(of, "reason", reason).Counter("dispatcher_terminations_total").Inc(0)
	}
	for _, result := range []inbox.Result{inbox.Done, inbox.Retry, inbox.Dead} {
		r.project(of, "outcome", string(result)).Counter("dispatcher_deliveries_total").Inc(0)
	}
	for _, name := range []string{
		"dispatcher_terminate_errors_total", "dispatcher_cleanup_errors_total", "dispatcher_stale_cleanups_total", "dispatcher_worker_evictions_total",
	} {
		r.project(of).Counter(name).Inc(0)
	}
	for _, result := range []string{cycleOK, cycleFailed, cyclePostponed} {
		r.metrics.WithTags(map[string]string{"result": result}).Counter("dispatcher_supervisor_cycles_total").Inc(0)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.project(of).Gauge("dispatcher_active").Update(float64(r.active[project]))
	r.countForeign(project)
}

// terminationReasons are the labels of terminations: those of owners, then those of supervisors.
func terminationReasons() []string {
	reasons := decide.Labels()
	for _, kind := range plan.Kinds() {
		if !slices.Contains(reasons, string(kind)) {
			reasons = append(reasons, string(kind))
		}
	}
	return reasons
}

// Joined is [owner.Observer].
func (r *Record) Joined(name inbox.Name) {
	r.outcome(name, terms.Joined)
	r.log.Info("Dispatcher has an owner; working for it", "project", name.Project, "task_queue", name.TaskQueue)
}

// Changed is [owner.Observer].
func (r *Record) Changed(c terms.OwnerChange, gap time.Duration) {
	r.outcome(c.Name, c.Outcome)
	if c.Outcome == terms.Lost {
		r.log.Warn("Ownership lost; the dispatcher runs on", "workflow_id", c.WorkflowID, "epoch", c.FromEpoch, "reason", c.Reason)
	} else {
		r.project(c.Name).Timer("dispatcher_takeover_seconds").Record(gap)
		r.log.Info("Dispatcher owned", "workflow_id", c.WorkflowID, "run_id", c.RunID, "outcome", c.Outcome, "epoch", c.ToEpoch,
			"from", c.From, "from_epoch", c.FromEpoch, "reason", c.Reason, "took", c.Took.Round(time.Millisecond))
	}
	r.note("owner changed", func(ctx context.Context, j terms.Journal) error { return j.OwnerChanged(ctx, c) })
}

// Failed is [owner.Observer]. What keeps one from being owned, like a store that is away, often keeps thousands: a line stands for all
// of a second.
func (r *Record) Failed(name inbox.Name, err error) {
	r.outcome(name, terms.Failed)
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().Before(r.silent) {
		r.unsaid++
		return
	}
	r.log.Warn("Dispatcher could not be owned; trying again", "project", name.Project, "task_queue", name.TaskQueue, "unsaid_before", r.unsaid, "error", err)
	r.silent, r.unsaid = time.Now().Add(time.Second), 0
}

// Foreign is [owner.Observer]. One line and one note stand for all attempts to own it.
func (r *Record) Foreign(f terms.Foreign) {
	r.outcome(f.Name, terms.Failed)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.foreign[f.Name] == f.RunID {
		return
	}
	r.foreign[f.Name] = f.RunID
	r.countForeign(f.Name.Project)
	r.log.Error("Dispatcher's workflow ID is taken by something else; nothing is routed until that has ended",
		"workflow_id", f.WorkflowID, "run_id", f.RunID, "type", f.Type, "project", f.Name.Project, "task_queue", f.Name.TaskQueue)
	r.note("foreign workflow", func(ctx context.Context, j terms.Journal) error { return j.Foreign(ctx, f) })
}

// NotForeign is [owner.Observer].
func (r *Record) NotForeign(name inbox.Name) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, was := r.foreign[name]; was {
		delete(r.foreign, name)
		r.countForeign(name.Project)
	}
}

// countForeign is called with the lock held.
func (r *Record) countForeign(project string) {
	count := 0
	for name := range r.foreign {
		if name.Project == project {
			count++
		}
	}
	r.project(inbox.Name{Project: project}).Gauge("dispatcher_foreign").Update(float64(count))
}

// Terminated is [owner.Observer].
func (r *Record) Terminated(t terms.Termination, err error) {
	if err != nil {
		r.project(t.Name).Counter("dispatcher_terminate_errors_total").Inc(1)
		r.log.Error("Dispatcher could not be terminated; trying again", "workflow_id", t.WorkflowID, "run_id", t.RunID, "reason", t.Reason, "error", err)
		return
	}
	r.project(t.Name, "reason", t.Kind).Counter("dispatcher_terminations_total").Inc(1)
	r.log.Warn("Dispatcher terminated", "workflow_id", t.WorkflowID, "run_id", t.RunID, "reason", t.Reason,
		"from", t.From, "from_epoch", t.FromEpoch, "to", t.To, "to_epoch", t.ToEpoch)
	r.note("terminated", func(ctx context.Context, j terms.Journal) error { return j.Terminated(ctx, t) })
}

// Evicted tells of workers that were struck off a list. Unlike the others it waits for the journal: Temporal has who tells it do so
// again, in another process if need be. So it counts what the journal has taken.
func (r *Record) Evicted(ctx context.Context, e terms.Eviction) error {
	if r.journal != nil {
		if err := r.journal.Evicted(ctx, e); err != nil {
			return fmt.Errorf("write evictions of dispatcher %q to the journal: %w", e.Name.DispatcherID(), err)
		}
	}
	r.project(e.Name).Counter("dispatcher_worker_evictions_total").Inc(int64(len(e.Evicted)))
	r.log.Warn("Workers evicted: no heartbeat", "project", e.Name.Project, "task_queue", e.Name.TaskQueue, "workers", e.Evicted)
	return nil
}

// Active is [owner.Observer].
func (r *Record) Active(name inbox.Name, owned bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if owned {
		r.active[name.Project]++
	} else {
		r.active[name.Project]--
	}
	r.project(name).Gauge("dispatcher_active").Update(float64(r.active[name.Project]))
}
