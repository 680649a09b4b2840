// Package schedule starts workflows by the clock. It maintains one Temporal Schedule for every published workflow with
// `schedule.cron` or `schedule.every`, and starts the next run of a workflow with `schedule.after` when the pause after
// its last run is over.
//
// A fire does not start the run. It commits an event, whose ID contains the due time, to the inbox, and the event is
// processed like every other event. So a fire is accounted for like any other event, a second one of the same time is a
// duplicate, and a pause of the workflow also applies to the clock.
//
//	r := schedule.New(schedule.Options{Client: manager.Client, Events: events, …})
//	schedule.Register(worker, events, r, runs)   // on a worker of contract.FireQueue
//	err := r.Start(ctx)
//	r.Wake()                            // a workflow was published, paused or deleted
//	err = r.Stop(ctx)
//
// Of all processes on one store, one compares at a time. Fires that were missed while Temporal was unavailable are made
// up for within the catch-up window of the schedule. Older ones are counted, and [Reconciler.Fires] returns their number.
package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// compareEvery is the interval of comparisons without a call of Wake.
	compareEvery = 15 * time.Second
	// minInterval is the shortest time between two comparisons, however many runs end.
	minInterval = 500 * time.Millisecond
	// compareTimeout bounds one comparison.
	compareTimeout = 30 * time.Second
	// page is the page size of lists of timers and projects.
	page = 500
	// lock is the name of the lock of the comparing process.
	lock = "schedules"
)

// Store contains the reads of the reconciler beside the timers, and its lock.
type Store interface {
	ListProjects(ctx context.Context, after string, limit int) ([]project.Project, error)
	ListRuns(ctx context.Context, f run.Filter) ([]run.Run, error)
	ListAudit(ctx context.Context, f audit.Filter) ([]audit.Entry, error)
	WriteAudit(ctx context.Context, e audit.Entry) error
	Exclusive(ctx context.Context, name string, fn func(context.Context) error) (bool, error)
}

// Events are the reads of events, and the timers.
type Events interface {
	event.TimerStore

	GetEvent(ctx context.Context, project string, position int64) (event.Event, error)
	ListDeliveries(ctx context.Context, project string, position int64) ([]event.Delivery, error)
}

// Options configure a reconciler.
type Options struct {
	// Client returns the client for one comparison.
	Client func() (client.Client, error)
	Events Events
	Store  Store
	// Key is the ID of the key that seals the arguments of schedules; empty: they are not sealed.
	Key string
	Now func() time.Time
}

// Reconciler aligns Temporal's schedules with the published workflows.
type Reconciler struct {
	*loop.Loop

	opts Options
	// seen holds the last followed run, by the schedule ID of its workflow.
	seen map[string]string
	// fired holds the newest due time that has fired, or must not fire, by the schedule ID of its workflow.
	fired map[string]time.Time
	// following holds the projects with workflows that follow their runs; nil before the first comparison.
	following atomic.Pointer[map[string]bool]
}

// New returns a reconciler. It does nothing before Start.
func New(opts Options) *Reconciler {
	r := &Reconciler{opts: opts, seen: map[string]string{}, fired: map[string]time.Time{}}
	r.Loop = loop.New(r.poll)
	return r
}

// Ended reports to the reconciler that a run of the project has ended. It does not block.
func (r *Reconciler) Ended(project string) {
	if following := r.following.Load(); following != nil && (*following)[project] {
		r.Wake()
	}
}

func (r *Reconciler) poll(ctx, _ context.Context) time.Duration {
	log := logger.FromContext(ctx)
	bounded, cancel := context.WithTimeout(ctx, compareTimeout)
	_, err := r.opts.Store.Exclusive(bounded, lock, func(ctx context.Context) error { return r.compare(ctx, log) })
	cancel()
	if err != nil && ctx.Err() == nil {
		log.DebugContext(ctx, "Schedules could not be compared with Temporal; trying again", "error", err)
	}
	loop.Sleep(ctx, minInterval)
	return compareEvery - minInterval
}

// compare aligns Temporal's schedules, and starts the fires that follow ended runs.
func (r *Reconciler) compare(ctx context.Context, log *slog.Logger) error {
	c, err := r.opts.Client()
	if err != nil {
		return err
	}
	timers, changes, err := r.read(ctx, c)
	if err != nil {
		return err
	}
	var errs []error
	for _, change := range changes {
		if err := apply(ctx, c, change); err != nil {
			errs = append(errs, fmt.Errorf("%s schedule %q: %w", change.Kind, change.ID, err))
			continue
		}
		log.InfoContext(ctx, "Schedule changed in Temporal", "schedule", change.ID, "change", string(change.Kind),
			"timer", change.Timer.Spec)
	}
	following := map[string]bool{}
	for _, t := range timers {
		errs = append(errs, r.check(ctx, t))
		if t.Spec.Follows() {
			following[t.Project] = true
			errs = append(errs, r.follow(ctx, c, t))
		}
	}
	r.following.Store(&following)
	return errors.Join(errs...)
}

// read returns the timers, and the changes that Temporal's schedules need.
func (r *Reconciler) read(ctx context.Context, c client.Client) (timers []event.Timer, changes []change, err error) {
	if timers, err = r.timers(ctx); err != nil {
		return nil, nil, err
	}
	existing, err := list(ctx, c)
	if err != nil {
		return nil, nil, fmt.Errorf("listing schedules: %w", err)
	}
	owned, err := r.projects(ctx)
	if err != nil {
		return nil, nil, err
	}
	current := make([]event.Timer, len(timers))
	for i, t := range timers {
		current[i] = t.Current(r.opts.Now())
	}
	return timers, plan(current, existing, r.opts.Key, func(name string) bool { return owned[name] }), nil
}

// Lacking returns how many schedules Temporal must have, and the changes that it lacks, one line each. It changes
// nothing.
func (r *Reconciler) Lacking(ctx context.Context) (expected int, lacking []string, err error) {
	c, err := r.opts.Client()
	if err != nil {
		return 0, nil, err
	}
	timers, changes, err := r.read(ctx, c)
	for _, t := range timers {
		if !t.Spec.Follows() {
			expected++
		}
	}
	for _, change := range changes {
		lacking = append(lacking, string(change.Kind)+" "+change.ID)
	}
	return expected, lacking, err
}

func (r *Reconciler) timers(ctx context.Context) ([]event.Timer, error) {
	var all []event.Timer
	for after := (event.TimerCursor{}); ; {
		list, err := r.opts.Events.ListTimers(ctx, after, page)
		all = append(all, list...)
		if err != nil || len(list) < page {
			return all, err
		}
		last := list[len(list)-1]
		after = event.TimerCursor{Project: last.Project, Workflow: last.Workflow}
	}
}

func (r *Reconciler) projects(ctx context.Context) (map[string]bool, error) {
	names := map[string]bool{}
	for after := ""; ; {
		list, err := r.opts.Store.ListProjects(ctx, after, page)
		for _, p := range list {
			names[p.Name], after = true, p.Name
		}
		if err != nil || len(list) < page {
			return names, err
		}
	}
}

// list returns the platform's schedules in the namespace, of all projects.
func list(ctx context.Context, c client.Client) ([]listed, error) {
	schedules, err := c.ScheduleClient().List(ctx, client.ScheduleListOptions{PageSize: page})
	if err != nil {
		return nil, err
	}
	var all []listed
	for schedules.HasNext() {
		entry, err := schedules.Next()
		if err != nil {
			return nil, err
		}
		if projectOf(entry.ID) != "" {
			all = append(all, listed{ID: entry.ID, Note: entry.Note, Paused: entry.Paused})
		}
	}
	return all, nil
}

// apply makes one change. It ignores a change that another process has already made.
func apply(ctx context.Context, c client.Client, change change) error {
	handle := c.ScheduleClient().GetHandle(ctx, change.ID)
	var err error
	switch change.Kind {
	case create:
		s := desired(change)
		_, err = c.ScheduleClient().Create(ctx, client.ScheduleOptions{
			ID: change.ID, Spec: *s.Spec, Action: s.Action, Overlap: s.Policy.Overlap, CatchupWindow: s.Policy.CatchupWindow,
			Note: s.State.Note, Paused: s.State.Paused,
		})
		if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
			return nil // not listed yet; the next comparison includes it
		}
	case update:
		err = handle.Update(ctx, client.ScheduleUpdateOptions{
			DoUpdate: func(client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
				s := desired(change)
				return &client.ScheduleUpdate{Schedule: &s}, nil
			}})
	case remove:
		err = handle.Delete(ctx)
	}
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return nil
	}
	return err
}

// follow starts the fire after the newest run of a workflow, if that run has ended by itself.
func (r *Reconciler) follow(ctx context.Context, c client.Client, t event.Timer) error {
	runs, err := r.opts.Store.ListRuns(ctx, run.Filter{Project: t.Project, Workflow: t.Workflow, Limit: 1})
	if err != nil || len(runs) == 0 || t.Paused {
		return err
	}
	last, id := runs[0], ID(t.Project, t.Workflow)
	if last.Status == run.Canceled || last.Status == run.Terminated || !last.Status.Terminal() || r.seen[id] == last.ID {
		return nil
	}
	due := last.EndedAt.Add(t.Spec.After)
	_, err = c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: fireID(t.Project, t.Workflow, last.ID), TaskQueue: contract.FireQueue,
		StartDelay:                               max(due.Sub(r.opts.Now()), 0),
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, fireWorkflow, Fire{Project: t.Project, Workflow: t.Workflow, Version: t.Version, At: due, Run: last.ID})
	if err != nil && !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return fmt.Errorf("starting the fire after run %s of %q: %w", last.ID, t.Workflow, err)
	}
	r.seen[id] = last.ID
	return nil
}
