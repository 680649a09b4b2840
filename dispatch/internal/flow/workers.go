package flow

import (
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
)

// maxWorkers bounds the list, which every adoption returns.
const maxWorkers = 5000

func validate(r contract.Registration) error {
	if r.ServerID == "" || r.TaskQueue == "" {
		return temporal.NewApplicationError("a registration needs a server ID and a task queue", "invalid")
	}
	return nil
}

// register adds a worker, or notes that it is back.
func (d *dispatcher) register(ctx workflow.Context, r contract.Registration) error {
	d.updated = length(ctx)
	delete(d.suspects, r.ServerID)
	fresh := contract.Worker{ServerID: r.ServerID, TaskQueue: r.TaskQueue, Build: r.Build, RegisteredAt: workflow.Now(ctx)}
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
	return slices.BinarySearchFunc(d.workers, serverID, func(w contract.Worker, id string) int { return strings.Compare(w.ServerID, id) })
}

// suspect notes workers that seem to be gone, if it knows them.
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

// watch looks after the workers: regularly while it routes, when told while it is parked. There is no timer while there is
// no reason for one.
func (d *dispatcher) watch(ctx workflow.Context) {
	for {
		// Not when it is to continue as new, which waits for checks to end: the next run goes on.
		err := workflow.Await(ctx, func() bool { return !d.full(ctx) && (len(d.suspects) > 0 || d.routing != 0 && len(d.workers) > 0) })
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

// awaitFor waits for a condition, at most so long. The timer goes when the condition is met first, which the SDK's own
// AwaitWithTimeout leaves running: a parked dispatcher has none.
func awaitFor(ctx workflow.Context, limit time.Duration, met func() bool) error {
	timing, cancel := workflow.WithCancel(ctx)
	defer cancel()
	timer := workflow.NewTimer(timing, limit)
	return workflow.Await(ctx, func() bool { return timer.IsReady() || met() })
}

// check reads the heartbeats of all workers, and again after a while as long as one was missed that has not been before: workers
// that die together are missed one after another.
func (d *dispatcher) check(ctx workflow.Context) {
	for round := 1; ; round++ {
		// Each round looks at all workers, and so at everyone who is suspected.
		clear(d.suspects)
		if !d.once(ctx) || round >= misses && !persists(ctx) {
			return
		}
		if err := workflow.Sleep(ctx, d.in.CheckEvery/3); err != nil {
			return
		}
	}
}

// persists tells whether the workflow goes on beyond the second round, where runs of the release before left whom they had missed once
// to the next check. It is asked where that makes a difference and nowhere else: the answer becomes part of the history.
func persists(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, "check-until-settled", workflow.DefaultVersion, 1) != workflow.DefaultVersion
}

// once checks, and tells whether a worker was missed that is to be looked at again.
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
	// Attempts leave nothing in the history, which checks would. After the last one, the owner tells a parked dispatcher again.
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: checkTimeout, ScheduleToCloseTimeout: checkPatience, RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: d.in.CheckEvery / 3, BackoffCoefficient: 2, MaximumInterval: time.Minute,
		},
	}), contract.CheckActivity, in).Get(ctx, &out)
	if err != nil {
		workflow.GetLogger(ctx).Warn("Heartbeats could not be checked; trying again later", "error", err)
		return false
	}
	again := false
	var evicted []string
	d.workers = slices.DeleteFunc(d.workers, func(w contract.Worker) bool {
		// Who registered while it was looked for is there.
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

// report tells of evictions until that was heard: neither the process that is to tell of one nor the journal may be there.
func (d *dispatcher) report(ctx workflow.Context, evicted []string) {
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: evictTimeout, ScheduleToCloseTimeout: evictPatience, RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute,
		},
	}), contract.EvictActivity, EvictInput{Name: d.in.Name, Evicted: evicted, At: workflow.Now(ctx)}).Get(ctx, nil)
	if err != nil {
		workflow.GetLogger(ctx).Warn("Eviction could not be reported", "evicted", evicted, "error", err)
	}
}

// CheckInput is what to check: ServerIDs, of which Reread are looked at twice before they count as missed.
type CheckInput struct {
	ServerIDs []string `json:"serverIds"`
	Reread    []string `json:"reread,omitempty"`
}

// CheckOutput is what was found: Left gave themselves up in an orderly way, Missed have no heartbeat.
type CheckOutput struct {
	Left   []string `json:"left,omitempty"`
	Missed []string `json:"missed,omitempty"`
}

// EvictInput is who was struck off the list.
type EvictInput struct {
	At      time.Time  `json:"at"`
	Name    inbox.Name `json:"name"`
	Evicted []string   `json:"evicted"`
}
