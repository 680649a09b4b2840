package start

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// queuePollEvery is how often the queue is read for expired runs and for missed notifications.
	queuePollEvery = 5 * time.Second
	// queuePage is how many of its runs are read at a time.
	queuePage = 100
	// queueLock is the name of the lock that elects the process.
	queueLock = "run queue"
)

// Queue starts the runs that wait for Temporal.
type Queue struct {
	*loop.Loop

	service *Service
	store   run.Store
	changes *pubsub.Notifier
	opts    Options
	rate    *rate.Limiter // of starts
}

// NewQueue returns the queue of the service's runs. The other arguments are those that the service was made with.
func NewQueue(service *Service, store run.Store, changes *pubsub.Notifier, opts Options) *Queue {
	starts := rate.Inf
	if opts.Queue.Rate > 0 {
		starts = rate.Limit(opts.Queue.Rate)
	}
	q := &Queue{service: service, store: store, changes: changes, opts: opts, rate: rate.NewLimiter(starts, 1)}
	q.Loop = loop.New(q.poll)
	return q
}

// Len returns how many runs wait for Temporal.
func (q *Queue) Len(ctx context.Context) (int64, error) {
	waiting, _, err := q.store.CountQueued(ctx)
	return waiting, err
}

func (q *Queue) poll(ctx, handOver context.Context) time.Duration {
	ctx, handOver = auth.WithActor(ctx, auth.System()), auth.WithActor(handOver, auth.System())
	if err := q.process(ctx, handOver); err != nil && ctx.Err() == nil {
		logger.FromContext(ctx).DebugContext(ctx, "Runs that wait for Temporal stay queued", "error", err)
	}
	return queuePollEvery
}

// process processes the queue, unless it is empty or another process does.
func (q *Queue) process(ctx, handOver context.Context) error {
	_, total, err := q.store.CountQueued(ctx)
	if err != nil || total == 0 {
		return err
	}
	_, err = q.store.Exclusive(ctx, queueLock, func(ctx context.Context) error { return q.work(ctx, handOver) })
	return err
}

// work processes all queued runs once, in order. It ends early while Temporal is unavailable.
func (q *Queue) work(ctx, handOver context.Context) error {
	log, handed := logger.FromContext(ctx), 0
	defer func() {
		if handed > 0 {
			log.InfoContext(ctx, "Queued runs were handed over to Temporal", "runs", handed)
		}
	}()
	next := run.QueueFilter{Limit: queuePage}
	for {
		if err := q.expire(ctx); err != nil {
			return err
		}
		runs, err := q.store.ListQueued(ctx, next)
		if err != nil || len(runs) == 0 {
			return err
		}
		for _, r := range runs {
			if err := q.service.ReadyFor(ctx, r.Project, r.Trigger); err != nil {
				if apperror.Is(err, apperror.NoWorkerForProject) || apperror.Is(err, apperror.Maintenance) {
					continue // other runs are not delayed
				}
				return err
			}
			if err := q.rate.Wait(ctx); err != nil {
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

// handOver starts one run of the queue in Temporal, and reports whether it was started. An error means that Temporal or
// the store is unavailable, and ends the processing of the queue.
func (q *Queue) handOver(ctx context.Context, head run.Run) (bool, error) {
	r, err := q.store.GetRun(ctx, head.Project, head.ID)
	if err != nil {
		if apperror.Is(err, apperror.RunNotFound) {
			return false, nil
		}
		return false, err
	}
	// A run that is starting already was left so by a crash or without an answer: the outcome of its start is unknown.
	taken := r.QueuedReason == run.QueuedEngine
	if taken {
		if took, err := q.store.TakeQueued(ctx, r.ID, q.opts.Now()); err != nil || !took {
			return false, err
		}
		q.changes.Notify(r.ID)
	} else if r.QueuedReason != run.QueuedStarting {
		return false, nil
	}
	refusal := q.service.StartAccepted(ctx, r)
	if refusal == nil {
		return true, nil
	}
	ctx = context.WithoutCancel(ctx)
	defer q.changes.Notify(r.ID)
	switch why := Classify(refusal); {
	case why == RefusedUnknown, !taken:
		logger.FromContext(ctx).WarnContext(ctx, "Outcome of a queued run's start is not known", "run_id", r.ID,
			"error", refusal)
		if taken {
			// The next pass begins with this run, so that the order is kept.
			return false, refusal
		}
		// This was the second attempt: the run must not block those behind it.
		return false, nil
	case why == RefusedForNow:
		if _, err := q.store.ReturnQueued(ctx, r.ID, q.opts.Now()); err != nil {
			return false, errors.Join(refusal, err)
		}
		return false, refusal
	default:
		q.service.NotStarted(ctx, r, refusal)
		return false, nil
	}
}

// expire fails the runs that have waited too long.
func (q *Queue) expire(ctx context.Context) error {
	for {
		now := q.opts.Now()
		runs, err := q.store.ListQueued(ctx, run.QueueFilter{ExpiredAt: now, Limit: queuePage})
		if err != nil {
			return err
		}
		for _, r := range runs {
			detail := fmt.Sprintf("Temporal could not be used or was over its limits, or no worker served the project, for "+
				"%s, as long as the run could wait; it was not started",
				now.Sub(r.CreatedAt).Round(time.Second))
			end := run.Run{
				ID: r.ID, Status: run.Failed, EndedAt: now,
				Error: &run.Error{Type: run.ErrorTypeQueueExpired, Status: 503, Title: "Queue expired", Detail: detail,
					Instance: "/"},
			}
			finished, err := q.store.FinishQueued(ctx, end,
				audit.NewEntry(ctx, now, audit.RunQueueExpired, r.Project, r.ID, detail))
			if err != nil && !apperror.Is(err, apperror.RunNotFound) {
				return err
			}
			if finished {
				q.opts.Metrics.Count(ctx, r.Project, string(run.Failed))
				q.changes.Notify(r.ID)
			}
		}
		if len(runs) < queuePage {
			return nil
		}
	}
}
