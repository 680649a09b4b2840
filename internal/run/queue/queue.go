// Package queue hands the runs over that were accepted while Temporal was away or no live worker served their project, in order of
// their acceptance, and ends those that have waited for too long. A run whose project no worker serves yet is passed over.
//
//	q := queue.New(service, store, engine, changes, options)   // the same as the service's
//	err := q.Start(ctx)
//	q.Wake()                                                   // Temporal is back
//	err = q.Stop(ctx)
//
// Of all processes on one store, one does so at a time. A run that was taken from the queue is `queued: starting` until
// Temporal has it; whoever finds it so, after a crash or a lost answer, starts it again, which starts it once.
//
// It accepts no run: [run.Service] does. Runs that are created when Temporal is back do not wait behind the queue: the
// order is among those in it.
package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/notice"
	"github.com/signalbox-dev/signalbox/internal/routine"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// lookEvery is how often the queue is looked at for what has expired, and in case that nobody woke it.
	lookEvery = 5 * time.Second
	// page is how many of its runs are read at a time.
	page = 100
	// lock is what whoever hands over holds.
	lock = "run queue"
)

// Queue looks after the runs that wait for Temporal.
type Queue struct {
	service *run.Service
	store   run.Store
	engine  run.Engine
	changes *notice.Board
	opts    run.Options
	wake    chan struct{}
	// next is when the pace lets the next run be started.
	next time.Time

	routine routine.Routine
}

// New returns the queue of the service's runs. The rest is what the service was made with.
func New(service *run.Service, store run.Store, engine run.Engine, changes *notice.Board, opts run.Options) *Queue {
	return &Queue{service: service, store: store, engine: engine, changes: changes, opts: opts, wake: make(chan struct{}, 1)}
}

// Start begins to look after the queue.
func (q *Queue) Start(ctx context.Context) error {
	q.routine.Start(auth.WithActor(ctx, auth.System()), q.loop)
	return nil
}

// Stop ends it and joins it: the run that is being handed over is let through until ctx ends. The others stay queued.
func (q *Queue) Stop(ctx context.Context) error {
	q.routine.Stop(ctx)
	return nil
}

// Wake has the queue looked at now, because Temporal is back. It does not block.
func (q *Queue) Wake() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Len returns how many runs wait for Temporal.
func (q *Queue) Len(ctx context.Context) (int64, error) {
	waiting, _, err := q.store.CountQueued(ctx)
	return waiting, err
}

func (q *Queue) loop(ctx, handOver context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	log := logger.FromContext(ctx)
	for {
		if err := q.look(ctx, handOver); err != nil && ctx.Err() == nil {
			log.DebugContext(ctx, "Runs that wait for Temporal stay queued", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-q.wake:
		case <-ticker.C:
		}
	}
}

// look does what there is to do, unless another process is at it.
func (q *Queue) look(ctx, handOver context.Context) error {
	_, total, err := q.store.CountQueued(ctx)
	if err != nil || total == 0 {
		return err
	}
	_, err = q.store.Exclusive(ctx, lock, func(ctx context.Context) error { return q.work(ctx, handOver) })
	return err
}

// work goes through the queue once from its head. It ends early while Temporal is away.
func (q *Queue) work(ctx, handOver context.Context) error {
	log, handed := logger.FromContext(ctx), 0
	defer func() {
		if handed > 0 {
			log.InfoContext(ctx, "Queued runs were handed over to Temporal", "runs", handed)
		}
	}()
	next := run.QueueFilter{Limit: page}
	for {
		if err := q.expire(ctx); err != nil {
			return err
		}
		runs, err := q.store.ListQueued(ctx, next)
		if err != nil || len(runs) == 0 {
			return err
		}
		for _, r := range runs {
			if err := q.service.Ready(ctx, r.Project); err != nil {
				if fault.Is(err, fault.NoWorkerForProject) {
					continue // it holds up no run of another project
				}
				return err
			}
			if err := q.pace(ctx); err != nil {
				return err
			}
			started, err := q.handOver(handOver, r)
			if err != nil {
				return err
			}
			if started {
				handed++
			}
		}
		last := runs[len(runs)-1]
		next.After = &run.Cursor{CreatedAt: last.CreatedAt, ID: last.ID}
	}
}

// pace waits until the next run may be started.
func (q *Queue) pace(ctx context.Context) error {
	if q.opts.Queue.Rate <= 0 {
		return ctx.Err()
	}
	now := time.Now()
	timer := time.NewTimer(q.next.Sub(now))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case at := <-timer.C:
		q.next = at.Add(time.Duration(float64(time.Second) / q.opts.Queue.Rate))
		return nil
	}
}

// handOver gives one run of the queue to Temporal, and tells whether that has it now. An error ends the way through the
// queue: Temporal, or the store, is away.
func (q *Queue) handOver(ctx context.Context, head run.Run) (bool, error) {
	r, err := q.store.GetRun(ctx, head.Project, head.ID)
	if err != nil {
		if fault.Is(err, fault.RunNotFound) {
			return false, nil
		}
		return false, err
	}
	// One that is being started already was left so, by a crash or without an answer: what happened to it is not known.
	taken := r.QueuedReason == run.QueuedEngine
	if taken {
		if took, err := q.store.TakeQueued(ctx, r.ID, q.opts.Now()); err != nil || !took {
			return false, err
		}
		q.changes.Notify(r.ID)
	} else if r.QueuedReason != run.QueuedStarting {
		return false, nil
	}
	startCtx, cancel := context.WithTimeout(ctx, q.opts.StartTimeout)
	defer cancel()
	executionID, refusal := q.engine.Start(startCtx, r)
	ctx = context.WithoutCancel(ctx)
	defer q.changes.Notify(r.ID)
	switch {
	case refusal == nil:
		q.service.HandedOver(ctx, r, executionID)
		return true, nil
	case errors.Is(refusal, run.ErrUnknownOutcome), !taken:
		logger.FromContext(ctx).WarnContext(ctx, "Outcome of a queued run's start is not known", "run_id", r.ID, "error", refusal)
		if taken {
			// The next way through the queue begins with it, so that it keeps its place.
			return false, refusal
		}
		// Again: it may not hold up those behind it for ever.
		return false, nil
	case run.Passing(refusal):
		if _, err := q.store.ReturnQueued(ctx, r.ID, q.opts.Now()); err != nil {
			return false, errors.Join(refusal, err)
		}
		return false, refusal
	default:
		q.service.NotStarted(ctx, r, refusal)
		return false, nil
	}
}

// expire ends the runs that have waited for too long.
func (q *Queue) expire(ctx context.Context) error {
	for {
		now := q.opts.Now()
		runs, err := q.store.ListQueued(ctx, run.QueueFilter{ExpiredAt: now, Limit: page})
		if err != nil {
			return err
		}
		for _, r := range runs {
			detail := fmt.Sprintf("Temporal could not be used or was over its limits, or no worker served the project, for %s, as long as the run could wait; it was not started",
				now.Sub(r.CreatedAt).Round(time.Second))
			end := run.Run{
				ID: r.ID, Status: run.Failed, EndedAt: now,
				Error: &run.Problem{Type: run.ErrorTypeQueueExpired, Status: 503, Title: "Queue expired", Detail: detail, Instance: "/"},
			}
			finished, err := q.store.FinishQueued(ctx, end, audit.NewEntry(ctx, now, audit.RunQueueExpired, r.Project, r.ID, detail))
			if err != nil && !fault.Is(err, fault.RunNotFound) {
				return err
			}
			if finished {
				q.opts.Metrics.Count(ctx, r.Project, string(run.Failed))
				q.changes.Notify(r.ID)
			}
		}
		if len(runs) < page {
			return nil
		}
	}
}
