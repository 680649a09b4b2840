// Package record tells of what dispatchers went through: metrics, log lines, and the journal of whoever embeds them. Nobody who
// tells it something waits.
package record

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/terms"
)

const (
	// waiting is how many notes for the journal may wait; more are dropped, with a log line.
	waiting = 4096
	// tries and pause are how often the journal is asked to take one.
	tries      = 5
	pause      = 200 * time.Millisecond
	tryTimeout = 5 * time.Second
)

// Record is where it is told.
type Record struct {
	journal terms.Journal
	metrics client.MetricsHandler
	log     *slog.Logger
	notes   chan func(context.Context) error

	mu     sync.Mutex
	active map[string]int // owned dispatchers, by project
	silent time.Time      // until when failures are only counted
	unsaid int            // how many were
}

// New returns a record; journal may be nil.
func New(journal terms.Journal, metrics client.MetricsHandler, log *slog.Logger) *Record {
	return &Record{journal: journal, metrics: metrics, log: log, notes: make(chan func(context.Context) error, waiting), active: map[string]int{}}
}

// Run writes the journal until ctx ends, and then what is left.
func (r *Record) Run(ctx context.Context) {
	for {
		select {
		case note := <-r.notes:
			r.write(ctx, note)
		case <-ctx.Done():
			r.Flush(context.WithoutCancel(ctx))
			return
		}
	}
}

// Flush writes what waits for the journal, for a few seconds at most: for those who end, and those who do not run.
func (r *Record) Flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	for {
		select {
		case note := <-r.notes:
			r.write(ctx, note)
		default:
			return
		}
	}
}

func (r *Record) write(ctx context.Context, note func(context.Context) error) {
	for try := range tries {
		// Its end is no reason to lose what is being written.
		once, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryTimeout)
		err := note(once)
		cancel()
		if err == nil {
			return
		}
		if try == tries-1 || ctx.Err() != nil {
			r.log.ErrorContext(ctx, "Journal did not take what happened", "error", err)
			return
		}
		timer := time.NewTimer(pause << try)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

func (r *Record) note(what string, write func(context.Context, terms.Journal) error) {
	if r.journal == nil {
		return
	}
	select {
	case r.notes <- func(ctx context.Context) error { return write(ctx, r.journal) }:
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

// Evicted tells of workers that were struck off a list.
func (r *Record) Evicted(e terms.Eviction) {
	r.project(e.Name).Counter("dispatcher_worker_evictions_total").Inc(int64(len(e.Evicted)))
	r.log.Warn("Workers evicted: no heartbeat", "project", e.Name.Project, "task_queue", e.Name.TaskQueue, "workers", e.Evicted)
	r.note("evicted", func(ctx context.Context, j terms.Journal) error { return j.Evicted(ctx, e) })
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
