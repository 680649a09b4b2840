package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

const (
	// queueEvery is how often the queue is looked at for what has expired, and in case that nobody woke it.
	queueEvery = 5 * time.Second
	// queuePage is how many of its runs are read at a time.
	queuePage = 100
	// queueLock is the lock of whoever hands over.
	queueLock = "run queue"
)

// ErrorTypeQueueExpired is the type of the problem with which a run ends that has waited for Temporal for too long.
const ErrorTypeQueueExpired = "https://signalbox.dev/errors/queue_expired"

// QueueOptions say whether and how runs are taken while Temporal is away.
type QueueOptions struct {
	// Enabled lets runs be queued. What is in the queue is handed over or expires also when it is no longer set.
	Enabled bool
	// MaxRuns is how many runs the queue holds at most, those of all projects and processes together.
	MaxRuns int
	// TTL is how long a run waits before it fails.
	TTL time.Duration
	// Rate is how many runs are handed over in a second at most; 0 means no limit.
	Rate float64
}

// QueueFilter says which runs of the queue to list.
type QueueFilter struct {
	// After is the place to go on from.
	After *Cursor
	// ExpiredAt, when set, leaves those that wait and whose time was over by then.
	ExpiredAt time.Time
	Limit     int
}

// ErrQueueFull is a store's answer for a run that the queue has no room for.
var ErrQueueFull = errors.New("the queue is full")

// QueueStore keeps the runs that wait for Temporal, as part of a [Store].
type QueueStore interface {
	// EnqueueRun is InsertRun for a run that is queued for the engine, with its place in the queue. When the queue holds
	// limit runs already, it returns [ErrQueueFull] and changes nothing, also with many callers in many processes.
	EnqueueRun(ctx context.Context, r Run, limit int, e audit.Entry) (Run, bool, error)
	// TakeQueued turns `queued: engine` into `queued: starting`, and ReturnQueued turns a run that was taken back, to its
	// old place. Both return false when the run is no longer what they turn.
	TakeQueued(ctx context.Context, id string, at time.Time) (bool, error)
	ReturnQueued(ctx context.Context, id string, at time.Time) (bool, error)
	// FinishQueued ends a run that is `queued: engine` with r's Status, Error, CancelRequested, CancelReason and EndedAt,
	// and writes e; it returns false when the run is no longer that.
	FinishQueued(ctx context.Context, r Run, e audit.Entry) (bool, error)
	// ListQueued returns runs of the queue in order of acceptance, without input and output: those that wait, and those
	// that were taken and are `queued: starting`.
	ListQueued(ctx context.Context, f QueueFilter) ([]Run, error)
	// CountQueued returns how many runs wait, and how many places are taken, by those that are being handed over too.
	CountQueued(ctx context.Context) (waiting, total int64, err error)
	// Exclusive runs fn while nobody else, in any process, runs work of that name; it returns false at once when somebody
	// does. fn's context ends when the lock is lost.
	Exclusive(ctx context.Context, name string, fn func(ctx context.Context) error) (ran bool, err error)
}

// queues tells whether a run that cannot be started for this reason is queued.
func (s *Service) queues(refusal error) bool {
	f, ok := fault.From(refusal)
	return s.opts.Queue.Enabled && ok && f.Class == fault.Unavailable && f.Reason == fault.EngineUnavailable
}

// enqueue accepts a run while Temporal is away.
func (s *Service) enqueue(ctx, answer context.Context, req StartRequest, r Run, refusal error) (Run, bool, error) {
	r.QueuedReason, r.ExpiresAt = QueuedEngine, r.CreatedAt.Add(s.opts.Queue.TTL)
	stored, created, err := s.store.EnqueueRun(ctx, r, s.opts.Queue.MaxRuns, startEntry(ctx, r))
	switch {
	case errors.Is(err, ErrQueueFull):
		retry := retryAfter
		if f, ok := fault.From(refusal); ok && f.RetryAfter > 0 {
			retry = f.RetryAfter
		}
		return Run{}, false, fault.New(fault.Exhausted, fault.QueueFull,
			"Temporal is away and the queue is full with %d runs (runs.queue_when_unavailable.max_runs); nothing was queued, "+
				"try again when Temporal is back", s.opts.Queue.MaxRuns).WithRetry(retry).WithCause(refusal)
	case err != nil:
		return Run{}, false, err
	case !created:
		return s.same(ctx, answer, req, r, stored)
	}
	s.opts.Metrics.Count(ctx, r.Project, string(Queued))
	return stored, true, nil
}

// Queue hands the runs over that were accepted while Temporal was away, in order of their acceptance, and ends those that
// have waited for too long.
//
// Of all processes on one store, one does so at a time. A run that was taken from the queue is `queued: starting` until
// Temporal has it; whoever finds it so, after a crash or a lost answer, starts it again, which starts it once. Runs that
// are created when Temporal is back do not wait behind the queue: the order is among those in it.
type Queue struct {
	service *Service
	wake    chan struct{}
	// next is when the pace lets the next run be started.
	next time.Time

	stop   context.CancelFunc
	abort  context.CancelFunc
	joined sync.WaitGroup
}

// NewQueue returns the queue of the service's runs.
func NewQueue(service *Service) *Queue { return &Queue{service: service, wake: make(chan struct{}, 1)} }

// Start begins to look after the queue.
func (q *Queue) Start(ctx context.Context) error {
	ctx = auth.WithActor(context.WithoutCancel(ctx), auth.System())
	// A hand-over that has begun is not cut off by the stop, but by its budget.
	handOver, abort := context.WithCancel(ctx)
	loop, stop := context.WithCancel(ctx)
	q.stop, q.abort = stop, abort
	q.joined.Go(func() { q.loop(loop, handOver) })
	return nil
}

// Stop ends it and joins it: the run that is being handed over is let through until ctx ends. The others stay queued.
func (q *Queue) Stop(ctx context.Context) error {
	q.stop()
	defer context.AfterFunc(ctx, q.abort)()
	q.joined.Wait()
	q.abort()
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
	waiting, _, err := q.service.store.CountQueued(ctx)
	return waiting, err
}

func (q *Queue) loop(ctx, handOver context.Context) {
	ticker := time.NewTicker(queueEvery)
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
	_, total, err := q.service.store.CountQueued(ctx)
	if err != nil || total == 0 {
		return err
	}
	_, err = q.service.store.Exclusive(ctx, queueLock, func(ctx context.Context) error { return q.work(ctx, handOver) })
	return err
}

// work goes through the queue once from its head. It ends early while Temporal is away.
func (q *Queue) work(ctx, handOver context.Context) error {
	s := q.service
	log, handed := logger.FromContext(ctx), 0
	defer func() {
		if handed > 0 {
			log.InfoContext(ctx, "Queued runs were handed over to Temporal", "runs", handed)
		}
	}()
	page := QueueFilter{Limit: queuePage}
	for {
		if err := q.expire(ctx); err != nil {
			return err
		}
		runs, err := s.store.ListQueued(ctx, page)
		if err != nil || len(runs) == 0 {
			return err
		}
		for _, r := range runs {
			if err := s.ready(ctx); err != nil {
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
		page.After = &Cursor{CreatedAt: last.CreatedAt, ID: last.ID}
	}
}

// pace waits until the next run may be started.
func (q *Queue) pace(ctx context.Context) error {
	if q.service.opts.Queue.Rate <= 0 {
		return ctx.Err()
	}
	now := time.Now()
	timer := time.NewTimer(q.next.Sub(now))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case at := <-timer.C:
		q.next = at.Add(time.Duration(float64(time.Second) / q.service.opts.Queue.Rate))
		return nil
	}
}

// handOver gives one run of the queue to Temporal, and tells whether that has it now. An error ends the way through the
// queue: Temporal, or the store, is away.
func (q *Queue) handOver(ctx context.Context, head Run) (bool, error) {
	s := q.service
	r, err := s.store.GetRun(ctx, head.Project, head.ID)
	if err != nil {
		if fault.Is(err, fault.RunNotFound) {
			return false, nil
		}
		return false, err
	}
	// One that is being started already was left so, by a crash or without an answer: what happened to it is not known.
	taken := r.QueuedReason == QueuedEngine
	if taken {
		if took, err := s.store.TakeQueued(ctx, r.ID, s.opts.Now()); err != nil || !took {
			return false, err
		}
		s.changes.Notify(r.ID)
	} else if r.QueuedReason != QueuedStarting {
		return false, nil
	}
	startCtx, cancel := context.WithTimeout(ctx, s.opts.StartTimeout)
	defer cancel()
	executionID, refusal := s.engine.Start(startCtx, r)
	ctx = context.WithoutCancel(ctx)
	defer s.changes.Notify(r.ID)
	switch {
	case refusal == nil:
		s.handedOver(ctx, r, executionID)
		return true, nil
	case errors.Is(refusal, ErrUnknownOutcome), !taken:
		logger.FromContext(ctx).WarnContext(ctx, "Outcome of a queued run's start is not known", "run_id", r.ID, "error", refusal)
		if taken {
			// The next way through the queue begins with it, so that it keeps its place.
			return false, refusal
		}
		// Again: it may not hold up those behind it for ever.
		return false, nil
	case passing(refusal):
		if _, err := s.store.ReturnQueued(ctx, r.ID, s.opts.Now()); err != nil {
			return false, errors.Join(refusal, err)
		}
		return false, refusal
	default:
		s.refusedAfterAll(ctx, r, refusal)
		return false, nil
	}
}

// expire ends the runs that have waited for too long.
func (q *Queue) expire(ctx context.Context) error {
	s := q.service
	for {
		now := s.opts.Now()
		runs, err := s.store.ListQueued(ctx, QueueFilter{ExpiredAt: now, Limit: queuePage})
		if err != nil {
			return err
		}
		for _, r := range runs {
			detail := fmt.Sprintf("Temporal was not there for %s, as long as the run could wait; it was not started",
				now.Sub(r.CreatedAt).Round(time.Second))
			end := Run{
				ID: r.ID, Status: Failed, EndedAt: now,
				Error: &Problem{Type: ErrorTypeQueueExpired, Status: 503, Title: "Queue expired", Detail: detail, Instance: "/"},
			}
			finished, err := s.store.FinishQueued(ctx, end, audit.NewEntry(ctx, now, audit.RunQueueExpired, r.Project, r.ID, detail))
			if err != nil && !fault.Is(err, fault.RunNotFound) {
				return err
			}
			if finished {
				s.opts.Metrics.Count(ctx, r.Project, string(Failed))
				s.changes.Notify(r.ID)
			}
		}
		if len(runs) < queuePage {
			return nil
		}
	}
}
