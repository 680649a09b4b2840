// Package record reports the events of dispatchers: as metrics, log lines, and calls of the embedder's journal. Its
// methods do not block, except Evicted.
package record

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/internal/backoff"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

const (
	// maxQueued is the number of calls of the journal that may be queued, and the number of failed calls that may wait for
	// a retry. Further ones are dropped with a log line.
	maxQueued = 4096
	// pauseFirst and pauseMost are the first and the longest pause between attempts while the journal fails.
	pauseFirst = 200 * time.Millisecond
	pauseMost  = time.Minute
	tryTimeout = 5 * time.Second
	// flushTimeout limits the writes at the end.
	flushTimeout = 5 * time.Second
)

// note is a queued call of the journal.
type note struct {
	what  string
	write func(context.Context, dispatchtype.Journal) error
}

// Record implements [owner.Observer] and [supervisor.Recorder].
type Record struct {
	journal dispatchtype.Journal
	metrics client.MetricsHandler
	log     *slog.Logger
	notes   chan note

	mu     sync.Mutex
	active map[string]int // owned dispatchers, by project
	// foreign are the run IDs of foreign workflows that have the IDs of dispatchers.
	foreign    map[inbox.Name]string
	quietUntil time.Time // failures are only counted before
	suppressed int       // failures counted without a log line
}

// New returns a record; journal may be nil.
func New(journal dispatchtype.Journal, metrics client.MetricsHandler, log *slog.Logger) *Record {
	return &Record{journal: journal, metrics: metrics, log: log, notes: make(chan note, maxQueued),
		active: map[string]int{}, foreign: map[inbox.Name]string{}}
}

// Run writes the journal until ctx ends, and then what is queued. A failed call is repeated until it succeeds. Failed
// calls take turns, so that one that always fails does not block the others.
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
		case len(again) >= maxQueued:
			r.log.ErrorContext(ctx, "Journal fails; dropped an event", "event", n.what, "error", err)
		default:
			if failures == 0 {
				r.log.WarnContext(ctx, "Journal write failed; trying again", "event", n.what, "waiting", len(again), "error", err)
			}
			failures++
			again = append(again, n)
		}
		timer.Reset(backoff.Delay(pauseFirst, pauseMost, failures))
	}
}

// Flush writes the queued calls of the journal, for a few seconds at most: at the end, and in processes without Run.
func (r *Record) Flush(ctx context.Context) { r.flush(ctx, nil) }

// flush also writes the failed calls. It makes at most two attempts each: the journal may be unavailable.
func (r *Record) flush(ctx context.Context, again []note) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	lost, last := 0, error(nil)
	for _, n := range append(again, r.drain()...) {
		err := r.write(ctx, n)
		if err != nil && loop.Sleep(ctx, pauseFirst) {
			err = r.write(ctx, n)
		}
		if err != nil {
			lost, last = lost+1, err
		}
	}
	if lost > 0 {
		r.log.ErrorContext(ctx, "Journal writes failed at the end", "lost", lost, "error", last)
	}
}

// drain returns the queued notes.
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
	// The end of ctx does not cancel a running write.
	once, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryTimeout)
	defer cancel()
	return n.write(once, r.journal)
}

func (r *Record) note(what string, write func(context.Context, dispatchtype.Journal) error) {
	if r.journal == nil {
		return
	}
	select {
	case r.notes <- note{what, write}:
	default:
		r.log.Error("Journal is too slow; dropped an event", "event", what)
	}
}

func (r *Record) project(name inbox.Name, tags ...string) client.MetricsHandler {
	all := map[string]string{"project": name.Project}
	for i := 0; i+1 < len(tags); i += 2 {
		all[tags[i]] = tags[i+1]
	}
	return r.metrics.WithTags(all)
}

func (r *Record) outcome(name inbox.Name, outcome dispatchtype.Outcome) {
	r.project(name, "outcome", string(outcome)).Counter("dispatcher_takeovers_total").Inc(1)
}

// InitMetrics creates the time series of a project with the value 0, so that their rates include the first event.
func (r *Record) InitMetrics(project string) {
	of := inbox.Name{Project: project}
	for _, outcome := range []dispatchtype.Outcome{
		dispatchtype.ColdStart, dispatchtype.Joined, dispatchtype.Handover, dispatchtype.Takeover, dispatchtype.Lost,
		dispatchtype.Failed} {
		r.project(of, "outcome", string(outcome)).Counter("dispatcher_takeovers_total").Inc(0)
	}
	for _, reason := range terminationReasons() {
		r.project(of, "reason", reason).Counter("dispatcher_terminations_total").Inc(0)
	}
	for _, result := range []inbox.Result{inbox.Done, inbox.Retry, inbox.Dead} {
		r.project(of, "outcome", string(result)).Counter("dispatcher_deliveries_total").Inc(0)
	}
	for _, name := range []string{
		"dispatcher_terminate_errors_total", "dispatcher_cleanup_errors_total", "dispatcher_stale_cleanups_total",
		"dispatcher_worker_evictions_total",
	} {
		r.project(of).Counter(name).Inc(0)
	}
	for _, result := range []string{cycleOK, cycleFailed, cyclePostponed} {
		r.metrics.WithTags(map[string]string{"result": result}).Counter("dispatcher_supervisor_cycles_total").Inc(0)
	}
	// A handler may export timers before their first measurement.
	for _, name := range []string{"dispatcher_takeover_seconds", "dispatcher_cleanup_seconds"} {
		r.project(of).Timer(name)
	}
	r.metrics.Timer("dispatcher_supervisor_cycle_seconds")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.project(of).Gauge("dispatcher_active").Update(float64(r.active[project]))
	r.countForeign(project)
}

// terminationReasons returns the labels of terminations: those of owners, then those of supervisors.
func terminationReasons() []string {
	reasons := plan.Labels()
	for _, kind := range plan.Kinds() {
		if !slices.Contains(reasons, string(kind)) {
			reasons = append(reasons, string(kind))
		}
	}
	return reasons
}

// Joined implements [owner.Observer].
func (r *Record) Joined(name inbox.Name) {
	r.outcome(name, dispatchtype.Joined)
	r.log.Info("Dispatcher has another owner; serving it", "project", name.Project, "task_queue", name.TaskQueue)
}

// Changed implements [owner.Observer].
func (r *Record) Changed(c dispatchtype.OwnerChange, gap time.Duration) {
	r.outcome(c.Name, c.Outcome)
	if c.Outcome == dispatchtype.Lost {
		r.log.Warn("Ownership lost; the dispatcher runs on", "workflow_id", c.WorkflowID, "epoch", c.From.Epoch,
			"reason", c.Reason)
	} else {
		r.project(c.Name).Timer("dispatcher_takeover_seconds").Record(gap)
		r.log.Info("Dispatcher owned", "workflow_id", c.WorkflowID, "run_id", c.RunID, "outcome", c.Outcome,
			"epoch", c.To.Epoch,
			"from", c.From.Holder, "from_epoch", c.From.Epoch, "reason", c.Reason, "took_seconds",
			c.Duration.Round(time.Millisecond).Seconds())
	}
	r.note("owner changed", func(ctx context.Context, j dispatchtype.Journal) error { return j.OwnerChanged(ctx, c) })
}

// Failed implements [owner.Observer]. A failure such as an unavailable store often concerns thousands of dispatchers:
// one log line per second stands for all.
func (r *Record) Failed(name inbox.Name, err error) {
	r.outcome(name, dispatchtype.Failed)
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().Before(r.quietUntil) {
		r.suppressed++
		return
	}
	r.log.Warn("Dispatcher could not be owned; trying again", "project", name.Project, "task_queue", name.TaskQueue,
		"suppressed", r.suppressed, "error", err)
	r.quietUntil, r.suppressed = time.Now().Add(time.Second), 0
}

// Foreign implements [owner.Observer]. One log line and one note stand for all attempts to own the dispatcher.
func (r *Record) Foreign(f dispatchtype.ForeignWorkflow) {
	r.outcome(f.Name, dispatchtype.Failed)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.foreign[f.Name] == f.RunID {
		return
	}
	r.foreign[f.Name] = f.RunID
	r.countForeign(f.Name.Project)
	r.log.Error("Dispatcher's workflow ID is taken by something else; nothing is routed until that has ended",
		"workflow_id", f.WorkflowID, "run_id", f.RunID, "type", f.Type, "project", f.Name.Project, "task_queue",
		f.Name.TaskQueue)
	r.note("foreign workflow", func(ctx context.Context, j dispatchtype.Journal) error { return j.Foreign(ctx, f) })
}

// NotForeign implements [owner.Observer].
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

// Terminated implements [owner.Observer] and [supervisor.Recorder].
func (r *Record) Terminated(t dispatchtype.Termination, err error) {
	if err != nil {
		r.project(t.Name).Counter("dispatcher_terminate_errors_total").Inc(1)
		r.log.Error("Dispatcher could not be terminated; trying again", "workflow_id", t.WorkflowID, "run_id", t.RunID,
			"reason", t.Reason, "error", err)
		return
	}
	r.project(t.Name, "reason", t.Kind).Counter("dispatcher_terminations_total").Inc(1)
	r.log.Warn("Dispatcher terminated", "workflow_id", t.WorkflowID, "run_id", t.RunID, "reason", t.Reason,
		"from", t.From.Holder, "from_epoch", t.From.Epoch, "to", t.To.Holder, "to_epoch", t.To.Epoch)
	r.note("terminated", func(ctx context.Context, j dispatchtype.Journal) error { return j.Terminated(ctx, t) })
}

// Evicted reports evicted workers. Unlike the other methods it waits for the journal: Temporal retries the calling
// activity after an error, in another process if necessary. So it counts only what the journal has stored.
func (r *Record) Evicted(ctx context.Context, e dispatchtype.Eviction) error {
	if r.journal != nil {
		if err := r.journal.Evicted(ctx, e); err != nil {
			return fmt.Errorf("write evictions of dispatcher %q to the journal: %w", e.Name.DispatcherID(), err)
		}
	}
	r.project(e.Name).Counter("dispatcher_worker_evictions_total").Inc(int64(len(e.Evicted)))
	r.log.Warn("Workers evicted: no heartbeat", "project", e.Name.Project, "task_queue", e.Name.TaskQueue,
		"workers", e.Evicted)
	return nil
}

// Active implements [owner.Observer].
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
