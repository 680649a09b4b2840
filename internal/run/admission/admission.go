// Package admission starts the runs that wait for one of their project's places, in order of their acceptance.
//
//	a := admission.New(service, store, engine, changes, options)   // the same as the service's
//	store.OnPlaces(a.Wake)
//	err := a.Start(ctx)
//	err = a.Stop(ctx)
//
// Which run gets a place is decided in the store, so any number of processes may do this: the one that is told first that a run has
// ended starts the next, and each looks by itself every two seconds for what nobody was told of. A run that was admitted is `queued:
// starting` until Temporal has it; whoever finds it so, after a crash or a lost answer, starts it again, which starts it once.
//
// While Temporal is away nobody is admitted: those that wait keep their order, and their projects' places are free.
package admission

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/notice"
	"github.com/signalbox-dev/signalbox/internal/routine"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// lookEvery is how soon a place is given of which this process was not told that it is free.
	lookEvery = 2 * time.Second
	// restBetween keeps many ends of runs in a row from being as many questions.
	restBetween = 5 * time.Millisecond
	// width is how many runs are handed over at a time.
	width = 8
)

// Store is what admission asks of a store.
type Store interface {
	run.AdmissionStore
	GetRun(ctx context.Context, project, id string) (run.Run, error)
}

// Admission looks after the runs that wait for places.
type Admission struct {
	service *run.Service
	store   Store
	engine  run.Engine
	changes *notice.Board
	opts    run.Options

	mu    sync.Mutex
	woken map[string]struct{}
	all   bool // look at every project
	// refused is when Temporal last refused a run for a while. The next one would be refused as well.
	refused time.Time
	wake    chan struct{}
	// handing has a value for each run that is being handed over.
	handing chan struct{}

	routine routine.Routine
}

// New returns the admission of the service's runs. What follows the store is what the service was made with.
func New(service *run.Service, store Store, engine run.Engine, changes *notice.Board, opts run.Options) *Admission {
	return &Admission{
		service: service, store: store, engine: engine, changes: changes, opts: opts,
		woken: map[string]struct{}{}, wake: make(chan struct{}, 1), handing: make(chan struct{}, width),
	}
}

// Start begins to look.
func (a *Admission) Start(ctx context.Context) error {
	a.routine.Start(auth.WithActor(ctx, auth.System()), a.loop)
	return nil
}

// Stop ends it and joins it: the runs that are being handed over are let through until ctx ends. The others wait on.
func (a *Admission) Stop(ctx context.Context) error {
	a.routine.Stop(ctx)
	return nil
}

// Wake has a project looked at now, because it may have a free place and a run for it. It does not block.
func (a *Admission) Wake(project string) {
	a.mu.Lock()
	a.woken[project] = struct{}{}
	a.mu.Unlock()
	a.signal()
}

// WakeAll is Wake for every project: Temporal is back.
func (a *Admission) WakeAll() {
	a.mu.Lock()
	a.all = true
	a.mu.Unlock()
	a.signal()
}

func (a *Admission) signal() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *Admission) loop(ctx, handOver context.Context) {
	a.WakeAll()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	var looked time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			a.WakeAll()
			continue
		case <-a.wake:
		}
		rest.Reset(a.rest(looked))
		select {
		case <-ctx.Done():
			return
		case <-rest.C:
		}
		if err := a.look(ctx, handOver); err != nil && ctx.Err() == nil {
			logger.FromContext(ctx).DebugContext(ctx, "Runs that wait for a place stay queued", "error", err)
		}
		looked = time.Now()
	}
}

// rest is how long to wait with the next look.
func (a *Admission) rest(looked time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return max(time.Until(looked.Add(restBetween)), time.Until(a.refused.Add(lookEvery)))
}

// look admits runs in the projects that it was woken for.
func (a *Admission) look(ctx, handOver context.Context) error {
	a.mu.Lock()
	woken, all := a.woken, a.all
	a.woken, a.all = map[string]struct{}{}, false
	a.mu.Unlock()
	if all {
		queues, err := a.store.AdmissionQueues(ctx)
		if err != nil {
			return err
		}
		for project := range queues {
			woken[project] = struct{}{}
		}
	}
	if len(woken) == 0 {
		return nil
	}
	var errs []error
	for project := range woken {
		if err := a.service.Ready(ctx, project); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, a.admit(ctx, handOver, project))
	}
	return errors.Join(errs...)
}

// admit gives some of a project's free places away and begins to hand those runs over. Where there may be more, the project's turn
// comes again after the others'.
func (a *Admission) admit(ctx, handOver context.Context, project string) error {
	room, err := a.reserve(ctx)
	if err != nil {
		return err
	}
	ids, err := a.store.Admit(ctx, project, room, a.opts.Now())
	for range room - len(ids) {
		<-a.handing
	}
	for _, id := range ids {
		a.changes.Notify(id)
		a.routine.Go(func() {
			defer func() { <-a.handing }()
			if err := a.handOver(handOver, project, id); err != nil {
				logger.FromContext(ctx).WarnContext(ctx, "Run that was admitted is not started yet", "run_id", id, "error", err)
			}
		})
	}
	if err == nil && len(ids) == room {
		a.Wake(project)
	}
	return err
}

// reserve takes room for at least one hand-over, and as many more as there are.
func (a *Admission) reserve(ctx context.Context) (int, error) {
	select {
	case a.handing <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	for n := 1; ; n++ {
		select {
		case a.handing <- struct{}{}:
		default:
			return n, nil
		}
	}
}

// handOver gives a run that was admitted to Temporal.
func (a *Admission) handOver(ctx context.Context, project, id string) error {
	r, err := a.store.GetRun(ctx, project, id)
	if err != nil || r.QueuedReason != run.QueuedStarting {
		if fault.Is(err, fault.RunNotFound) {
			return nil
		}
		return err
	}
	startCtx, cancel := context.WithTimeout(ctx, a.opts.StartTimeout)
	defer cancel()
	executionID, refusal := a.engine.Start(startCtx, r)
	ctx = context.WithoutCancel(ctx)
	defer a.changes.Notify(id)
	switch {
	case refusal == nil:
		a.service.HandedOver(ctx, r, executionID)
		return nil
	case errors.Is(refusal, run.ErrUnknownOutcome):
		return refusal
	case run.Passing(refusal):
		a.mu.Lock()
		a.refused = time.Now()
		a.mu.Unlock()
		_, err := a.store.ReturnAdmitted(ctx, id, a.opts.Now())
		return errors.Join(refusal, err)
	default:
		a.service.NotStarted(ctx, r, refusal)
		return nil
	}
}
