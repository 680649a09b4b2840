package start

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// admissionPollEvery is how often all projects are checked for free slots, in case a notification was missed.
	admissionPollEvery = 2 * time.Second
	// minAdmissionInterval combines the notifications of many runs that end at almost the same time.
	minAdmissionInterval = 5 * time.Millisecond
	// maxStarting is how many runs are being started at a time.
	maxStarting = 8
)

// Rows reads runs.
type Rows interface {
	GetRun(ctx context.Context, project, id string) (run.Run, error)
}

// AdmissionStore assigns the slots of a project's concurrency limit to runs. A run uses a slot while it is open and not
// `queued: admission`, unless a parent that awaits it started it, whose slot it shares. [Store.InsertRun] assigns a
// slot when fewer runs of the project use one than its quota allows and no run waits; otherwise the run is `queued:
// admission`, behind all runs accepted before it.
type AdmissionStore interface {
	// Admit assigns free slots of a project, no more than the given number at a time, to the runs that wait for one, in
	// order of acceptance, and returns their IDs in that order: they are `queued: starting` from then on. Callers in many
	// processes together never assign more slots than exist.
	Admit(ctx context.Context, project string, most int, at time.Time) ([]string, error)
	// ReturnAdmitted takes the slot back from a run that was admitted, is `queued: starting` and was not started: it
	// waits again at its old position. It returns false when the run is not in that state.
	ReturnAdmitted(ctx context.Context, id string, at time.Time) (bool, error)
	// AdmissionQueues returns how many runs wait, by project, for projects where any does.
	AdmissionQueues(ctx context.Context) (map[string]int64, error)
}

// Admission starts the runs that wait for slots.
type Admission struct {
	service *Service
	slots   AdmissionStore
	rows    Rows
	changes *pubsub.Notifier
	opts    Options

	mu    sync.Mutex
	woken map[string]struct{}
	all   bool // process every project
	// refused is when Temporal last refused a start temporarily. It would refuse the next one as well.
	refused time.Time
	wake    chan struct{}
	// starting holds a value for each start in progress.
	starting chan struct{}

	runner loop.Runner
}

// NewAdmission returns the admission of the service's runs. The arguments after the rows are those that the service
// was made with.
func NewAdmission(service *Service, slots AdmissionStore, rows Rows, changes *pubsub.Notifier,
	opts Options) *Admission {
	return &Admission{
		service: service, slots: slots, rows: rows, changes: changes, opts: opts,
		woken: map[string]struct{}{}, wake: make(chan struct{}, 1), starting: make(chan struct{}, maxStarting),
	}
}

// Start starts the goroutine that admits runs.
func (a *Admission) Start(ctx context.Context) error {
	a.runner.Start(auth.WithActor(ctx, auth.System()), a.loop)
	return nil
}

// Stop stops the goroutine and waits for it. Starts in progress may complete until ctx ends. The other runs keep
// waiting.
func (a *Admission) Stop(ctx context.Context) error {
	a.runner.Stop(ctx)
	return nil
}

// Wake has a project processed now, because it may have a free slot and a run that waits for it. It does not block.
func (a *Admission) Wake(project string) {
	a.mu.Lock()
	a.woken[project] = struct{}{}
	a.mu.Unlock()
	a.signal()
}

// WakeAll is Wake for every project, because Temporal is available again.
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
	ticker := time.NewTicker(admissionPollEvery)
	defer ticker.Stop()
	delay := time.NewTimer(0)
	defer delay.Stop()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			a.WakeAll()
			continue
		case <-a.wake:
		}
		delay.Reset(a.delay(last))
		select {
		case <-ctx.Done():
			return
		case <-delay.C:
		}
		if err := a.process(ctx, handOver); err != nil && ctx.Err() == nil {
			logger.FromContext(ctx).DebugContext(ctx, "Runs that wait for a slot stay queued", "error", err)
		}
		last = time.Now()
	}
}

// delay returns how long to wait until runs are admitted again.
func (a *Admission) delay(last time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return max(time.Until(last.Add(minAdmissionInterval)), time.Until(a.refused.Add(admissionPollEvery)))
}

// process admits runs in the projects for which Wake was called.
func (a *Admission) process(ctx, handOver context.Context) error {
	a.mu.Lock()
	woken, all := a.woken, a.all
	a.woken, a.all = map[string]struct{}{}, false
	a.mu.Unlock()
	if all {
		queues, err := a.slots.AdmissionQueues(ctx)
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

// admit assigns some of a project's free slots to runs and starts them. Where there may be more, the project is
// processed again after the others.
func (a *Admission) admit(ctx, handOver context.Context, project string) error {
	starts, err := a.reserve(ctx)
	if err != nil {
		return err
	}
	ids, err := a.slots.Admit(ctx, project, starts, a.opts.Now())
	for range starts - len(ids) {
		<-a.starting
	}
	for _, id := range ids {
		a.changes.Notify(id)
		a.runner.Go(func() {
			defer func() { <-a.starting }()
			if err := a.handOver(handOver, project, id); err != nil {
				logger.FromContext(ctx).WarnContext(ctx, "Run that was admitted is not started yet", "run_id", id, "error", err)
			}
		})
	}
	if err == nil && len(ids) == starts {
		a.Wake(project)
	}
	return err
}

// reserve reserves one start, which it may wait for, and as many more as are free.
func (a *Admission) reserve(ctx context.Context) (int, error) {
	select {
	case a.starting <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	for n := 1; ; n++ {
		select {
		case a.starting <- struct{}{}:
		default:
			return n, nil
		}
	}
}

// handOver starts an admitted run in Temporal.
func (a *Admission) handOver(ctx context.Context, project, id string) error {
	r, err := a.rows.GetRun(ctx, project, id)
	if err != nil || r.QueuedReason != run.QueuedStarting {
		if apperror.Is(err, apperror.RunNotFound) {
			return nil
		}
		return err
	}
	refusal := a.service.StartAccepted(ctx, r)
	if refusal == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	defer a.changes.Notify(id)
	switch Classify(refusal) {
	case RefusedUnknown:
		return refusal
	case RefusedForNow:
		a.mu.Lock()
		a.refused = time.Now()
		a.mu.Unlock()
		_, err := a.slots.ReturnAdmitted(ctx, id, a.opts.Now())
		return errors.Join(refusal, err)
	default:
		a.service.NotStarted(ctx, r, refusal)
		return nil
	}
}
