package dispatcherflow

import (
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
)

// maxWorkers limits the list of workers, which every adoption returns.
const maxWorkers = 5000

func validate(r wire.Registration) error {
	if r.ServerID == "" || r.TaskQueue == "" {
		return temporal.NewApplicationError("a registration needs a server ID and a task queue", "invalid")
	}
	return nil
}

// register adds a worker, or refreshes one that is back.
func (d *dispatcher) register(ctx workflow.Context, r wire.Registration) error {
	d.updated = length(ctx)
	delete(d.suspects, r.ServerID)
	fresh := dispatchtype.RegisteredWorker{
		ServerID: r.ServerID, TaskQueue: r.TaskQueue, Build: r.Build, RegisteredAt: workflow.Now(ctx)}
	at, known := d.find(r.ServerID)
	switch {
	case known:
		d.workers[at] = fresh
	case len(d.workers) >= maxWorkers:
		return temporal.NewApplicationError("there are too many workers", "invalid")
	default:
		d.workers = slices.Insert(d.workers, at, fresh)
	}
	return nil
}

func (d *dispatcher) find(serverID string) (int, bool) {
	return slices.BinarySearchFunc(d.workers, serverID, func(w dispatchtype.RegisteredWorker, id string) int {
		return strings.Compare(w.ServerID, id)
	})
}

// suspect records workers that may be dead, if they are listed.
func (d *dispatcher) suspect(serverIDs []string) {
	for _, id := range serverIDs {
		if _, known := d.find(id); known {
			d.suspects[id] = true
		}
	}
}

func (d *dispatcher) suspected() []string {
	var ids []string
	for _, w := range d.workers {
		if d.suspects[w.ServerID] {
			ids = append(ids, w.ServerID)
		}
	}
	return ids
}

// watch checks the workers: periodically while routing, and after a late signal while parked. It has a timer only while
// one is needed.
func (d *dispatcher) watch(ctx workflow.Context) {
	for {
		// Not before continuing as new, which waits for checks to end: the next run checks.
		err := workflow.Await(ctx, func() bool {
			return !d.full(ctx) && (len(d.suspects) > 0 || d.routing != 0 && len(d.workers) > 0)
		})
		if err == nil && len(d.suspects) == 0 {
			err = awaitFor(ctx, d.in.CheckEvery, func() bool { return len(d.suspects) > 0 || d.routing == 0 })
		}
		if err != nil {
			return
		}
		if d.full(ctx) || d.routing == 0 && len(d.suspects) == 0 {
			continue
		}
		d.checks = true
		d.check(ctx)
		d.checks = false
	}
}

// awaitFor waits for a condition, at most for limit. It cancels the timer when the condition is met first, which the
// SDK's AwaitWithTimeout does not: a parked dispatcher has no timers.
func awaitFor(ctx workflow.Context, limit time.Duration, met func() bool) error {
	timing, cancel := workflow.WithCancel(ctx)
	defer cancel()
	timer := workflow.NewTimer(timing, limit)
	return workflow.Await(ctx, func() bool { return timer.IsReady() || met() })
}

// check reads the heartbeats of all workers. It repeats the check after a pause while a worker was missed for the first
// time: workers that die together are missed one after another.
func (d *dispatcher) check(ctx workflow.Context) {
	for {
		// Each round checks all workers, and so all suspects.
		clear(d.suspects)
		if !d.once(ctx) {
			return
		}
		if err := workflow.Sleep(ctx, d.in.CheckEvery/3); err != nil {
			return
		}
	}
}

// once checks all workers, and reports whether one was missed for the first time.
func (d *dispatcher) once(ctx workflow.Context) bool {
	in := CheckInput{}
	for _, w := range d.workers {
		in.ServerIDs = append(in.ServerIDs, w.ServerID)
		if w.Missed+1 >= misses {
			in.Reread = append(in.Reread, w.ServerID)
		}
	}
	if len(in.ServerIDs) == 0 {
		return false
	}
	began := workflow.Now(ctx)
	var out CheckOutput
	// Attempts are not in the history, and separate checks would be. After the last attempt, the owner signals a parked
	// dispatcher again.
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: checkTimeout, ScheduleToCloseTimeout: checkPatience, RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: d.in.CheckEvery / 3, BackoffCoefficient: 2, MaximumInterval: time.Minute,
		},
	}), wire.CheckActivity, in).Get(ctx, &out)
	if err != nil {
		workflow.GetLogger(ctx).Warn("Heartbeats could not be checked; trying again later", "error", err)
		return false
	}
	again := false
	var evicted []string
	d.workers = slices.DeleteFunc(d.workers, func(w dispatchtype.RegisteredWorker) bool {
		// A worker that registered during the check is alive.
		return !w.RegisteredAt.After(began) && slices.Contains(out.Left, w.ServerID)
	})
	kept := d.workers[:0]
	for _, w := range d.workers {
		switch {
		case !slices.Contains(in.ServerIDs, w.ServerID) || w.RegisteredAt.After(began):
		case !slices.Contains(out.Missed, w.ServerID):
			w.Missed = 0
		case w.Missed+1 >= misses:
			evicted = append(evicted, w.ServerID)
			continue
		default:
			w.Missed++
			again = true
		}
		kept = append(kept, w)
	}
	d.workers = kept
	if len(evicted) > 0 {
		d.report(ctx, evicted)
	}
	return again
}

// report reports evictions, and repeats the report until it succeeds: the reporting process or the journal may be
// unavailable.
func (d *dispatcher) report(ctx workflow.Context, evicted []string) {
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: evictTimeout, ScheduleToCloseTimeout: evictPatience, RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute,
		},
	}), wire.EvictActivity, EvictInput{Name: d.in.Name, Evicted: evicted, At: workflow.Now(ctx)}).Get(ctx, nil)
	if err != nil {
		workflow.GetLogger(ctx).Warn("Eviction could not be reported", "evicted", evicted, "error", err)
	}
}

// CheckInput is the input of the check: ServerIDs are the workers, of which Reread are read twice before they count as
// missed.
type CheckInput struct {
	ServerIDs []string `json:"serverIds"`
	Reread    []string `json:"reread,omitempty"`
}

// CheckOutput is the result of the check: Left ended in an orderly way, Missed have no heartbeat.
type CheckOutput struct {
	Left   []string `json:"left,omitempty"`
	Missed []string `json:"missed,omitempty"`
}

// EvictInput is a batch of evicted workers.
type EvictInput struct {
	At      time.Time  `json:"at"`
	Name    inbox.Name `json:"name"`
	Evicted []string   `json:"evicted"`
}
