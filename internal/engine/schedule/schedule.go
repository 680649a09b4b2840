// Package schedule starts workflows by the clock: it keeps one Temporal Schedule for every published workflow with
// `schedule.cron` or `schedule.every`, and starts the next run of one with `schedule.after` when the pause after its last is over.
//
// What fires does not start the run. It commits an event, whose ID tells the time at which it was due, to the inbox; from there it goes
// the way of every event. So a fire is accounted for like anything else, a second one of the same time is a duplicate, and a
// pause of the workflow holds for the clock too.
//
//	k := schedule.New(schedule.Options{Client: manager.Client, Timers: store, …})
//	schedule.Register(worker, events, k)   // on every worker of the project
//	err := k.Start(ctx)
//	k.Wake()                            // a workflow was published, paused or deleted
//	err = k.Stop(ctx)
//
// Of all processes on one store, one compares at a time. Fires that were missed while Temporal was away are made up for when they are
// no older than ten minutes; older ones are counted, and [Keeper.Fires] tells how many.
package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/pause"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// compareEvery is how often everything is compared, in case that nobody woke it.
	compareEvery = 15 * time.Second
	// breath is the shortest time between two comparisons, however many runs end.
	breath = 500 * time.Millisecond
	// compareTimeout bounds one comparison.
	compareTimeout = 30 * time.Second
	// catchUp is how late a fire may be made up for.
	catchUp = 10 * time.Minute
	// page is how many timers or projects are read at a time.
	page = 500
	// lock is what whoever compares holds.
	lock = "schedules"
)

// Store is what the keeper reads beside the timers.
type Store interface {
	ListProjects(ctx context.Context, after string, limit int) ([]project.Project, error)
	ListRuns(ctx context.Context, f run.Filter) ([]run.Run, error)
	Exclusive(ctx context.Context, name string, fn func(context.Context) error) (bool, error)
}

// Options say what the keeper works with.
type Options struct {
	// Client is asked for each comparison.
	Client func() (client.Client, error)
	Timers event.TimerStore
	Store  Store
	Now    func() time.Time
}

// Keeper keeps Temporal's schedules as the published workflows want them.
type Keeper struct {
	opts Options
	wake chan struct{}
	// seen are the runs whose next fire is arranged, by project and workflow.
	seen map[string]string
	// following are the projects in which the end of a run may be the beginning of a pause; nil before the first comparison.
	following atomic.Pointer[map[string]bool]

	stop   context.CancelFunc
	joined sync.WaitGroup
}

// New returns a keeper that does nothing before Start.
func New(opts Options) *Keeper {
	return &Keeper{opts: opts, wake: make(chan struct{}, 1), seen: map[string]string{}}
}

// Start begins to compare. It waits neither for Temporal nor for the database.
func (k *Keeper) Start(ctx context.Context) error {
	ctx, k.stop = context.WithCancel(context.WithoutCancel(ctx))
	k.joined.Go(func() { k.loop(ctx) })
	return nil
}

// Stop ends it.
func (k *Keeper) Stop(context.Context) error {
	k.stop()
	k.joined.Wait()
	return nil
}

// Wake has everything compared now. It does not block.
func (k *Keeper) Wake() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Ended tells that a run of the project has ended. It does not block.
func (k *Keeper) Ended(project string) {
	if following := k.following.Load(); following != nil && (*following)[project] {
		k.Wake()
	}
}

func (k *Keeper) loop(ctx context.Context) {
	ticker := time.NewTicker(compareEvery)
	defer ticker.Stop()
	log := logger.FromContext(ctx)
	for {
		bounded, cancel := context.WithTimeout(ctx, compareTimeout)
		_, err := k.opts.Store.Exclusive(bounded, lock, func(ctx context.Context) error { return k.compare(ctx, log) })
		cancel()
		if err != nil && ctx.Err() == nil {
			log.DebugContext(ctx, "Schedules could not be compared with Temporal; trying again", "error", err)
		}
		if !pause.For(ctx, breath) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-ticker.C:
		}
	}
}

// compare brings Temporal's schedules in line, and arranges what is to follow runs that have ended.
func (k *Keeper) compare(ctx context.Context, log *slog.Logger) error {
	c, err := k.opts.Client()
	if err != nil {
		return err
	}
	timers, err := k.timers(ctx)
	if err != nil {
		return err
	}
	there, err := list(ctx, c)
	if err != nil {
		return fmt.Errorf("listing schedules: %w", err)
	}
	ours, err := k.projects(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, a := range plan(timers, there, func(name string) bool { return ours[name] }) {
		if err := do(ctx, c, a); err != nil {
			errs = append(errs, fmt.Errorf("%s schedule %q: %w", a.Kind, a.ID, err))
			continue
		}
		log.InfoContext(ctx, "Schedule changed in Temporal", "schedule", a.ID, "change", string(a.Kind), "timer", a.Timer.Spec)
	}
	following := map[string]bool{}
	for _, t := range timers {
		if t.Spec.Follows() {
			following[t.Project] = true
			errs = append(errs, k.follow(ctx, c, t))
		}
	}
	k.following.Store(&following)
	return errors.Join(errs...)
}

func (k *Keeper) timers(ctx context.Context) ([]event.Timer, error) {
	var all []event.Timer
	for after := (event.TimerCursor{}); ; {
		list, err := k.opts.Timers.ListTimers(ctx, after, page)
		all = append(all, list...)
		if err != nil || len(list) < page {
			return all, err
		}
		last := list[len(list)-1]
		after = event.TimerCursor{Project: last.Project, Workflow: last.Workflow}
	}
}

func (k *Keeper) projects(ctx context.Context) (map[string]bool, error) {
	names := map[string]bool{}
	for after := ""; ; {
		list, err := k.opts.Store.ListProjects(ctx, after, page)
		for _, p := range list {
			names[p.Name], after = true, p.Name
		}
		if err != nil || len(list) < page {
			return names, err
		}
	}
}

// list returns the platform's schedules in the namespace, of whatever project.
func list(ctx context.Context, c client.Client) ([]found, error) {
	schedules, err := c.ScheduleClient().List(ctx, client.ScheduleListOptions{PageSize: page})
	if err != nil {
		return nil, err
	}
	var all []found
	for schedules.HasNext() {
		entry, err := schedules.Next()
		if err != nil {
			return nil, err
		}
		if projectOf(entry.ID) != "" {
			all = append(all, found{ID: entry.ID, Note: entry.Note, Paused: entry.Paused})
		}
	}
	return all, nil
}

// do makes one change. What another process has done already is done.
func do(ctx context.Context, c client.Client, a act) error {
	handle := c.ScheduleClient().GetHandle(ctx, a.ID)
	var err error
	switch a.Kind {
	case create:
		s := wanted(a)
		_, err = c.ScheduleClient().Create(ctx, client.ScheduleOptions{
			ID: a.ID, Spec: *s.Spec, Action: s.Action, Overlap: s.Policy.Overlap, CatchupWindow: s.Policy.CatchupWindow,
			Note: s.State.Note, Paused: s.State.Paused,
		})
		if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
			return nil // not listed yet; the next comparison sees what it is
		}
	case update:
		err = handle.Update(ctx, client.ScheduleUpdateOptions{DoUpdate: func(client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			s := wanted(a)
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

// wanted is the schedule of a timer.
func wanted(a act) client.Schedule {
	t := a.Timer
	spec := client.ScheduleSpec{CronExpressions: []string{t.Spec.Cron}}
	if t.Spec.Cron == "" {
		spec = client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: t.Spec.Every, Offset: phase(t)}}}
	}
	return client.Schedule{
		Spec: &spec,
		Action: &client.ScheduleWorkflowAction{
			ID: a.ID + "/fire", Workflow: fireWorkflow, TaskQueue: contract.TaskQueue(t.Project),
			Args: []any{Fire{Project: t.Project, Workflow: t.Workflow, Version: t.Version}},
		},
		// A fire workflow is short, and what waits for a worker must not keep the next time from being noted.
		Policy: &client.SchedulePolicies{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL, CatchupWindow: catchUp},
		State:  &client.ScheduleState{Note: note(t), Paused: t.Paused},
	}
}

// follow arranges the fire after the newest run of a workflow, if that has ended by itself.
func (k *Keeper) follow(ctx context.Context, c client.Client, t event.Timer) error {
	runs, err := k.opts.Store.ListRuns(ctx, run.Filter{Project: t.Project, Workflow: t.Workflow, Limit: 1})
	if err != nil || len(runs) == 0 || t.Paused {
		return err
	}
	last, id := runs[0], ID(t.Project, t.Workflow)
	if last.Status == run.Canceled || last.Status == run.Terminated || !last.Status.Terminal() || k.seen[id] == last.ID {
		return nil
	}
	due := last.EndedAt.Add(t.Spec.After)
	_, err = c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: fireID(t.Project, t.Workflow, last.ID), TaskQueue: contract.TaskQueue(t.Project), StartDelay: max(due.Sub(k.opts.Now()), 0),
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, fireWorkflow, Fire{Project: t.Project, Workflow: t.Workflow, Version: t.Version, At: due, Following: true, Run: last.ID})
	if err != nil && !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return fmt.Errorf("arranging the run after %s of %q: %w", last.ID, t.Workflow, err)
	}
	k.seen[id] = last.ID
	return nil
}
