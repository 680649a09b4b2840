package batch

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

const (
	// observeEvery is the least time between two passes of an [Observer].
	observeEvery = time.Second
	// observeShare bounds the time that passes take, as a part of all time: batches with many open runs are read less
	// often.
	observeShare = 20
	// observePage is how many batches are read at a time, outcomePage how many runs.
	observePage, outcomePage = 100, 1000
	// observerLock is the name of the lock that elects one process.
	observerLock = "batch-outcomes"
)

// Metrics counts the outcomes of the runs that batches started.
type Metrics interface {
	// RunsEnded counts n runs.
	RunsEnded(ctx context.Context, outcome string, n int64)
}

// Observer stores the outcomes of the runs that batches started, in one elected process. It reads the rows of the open
// ones, so that the end of a run costs nothing more.
type Observer struct {
	*loop.Loop

	store   OutcomeStore
	metrics Metrics
}

// NewObserver returns an observer. It does nothing before Start.
func NewObserver(store OutcomeStore, metrics Metrics) *Observer {
	o := &Observer{store: store, metrics: metrics}
	o.Loop = loop.New(o.poll)
	return o
}

func (o *Observer) poll(ctx, _ context.Context) time.Duration {
	ctx = auth.WithActor(ctx, auth.System())
	delay := observeEvery
	open, err := o.store.OpenBatches(ctx, "", 1)
	if err == nil && len(open) > 0 {
		_, err = o.store.Exclusive(ctx, observerLock, func(ctx context.Context) error {
			began := time.Now()
			err := o.Pass(ctx)
			delay = max(delay, observeShare*time.Since(began))
			return err
		})
	}
	if err != nil && ctx.Err() == nil {
		logger.FromContext(ctx).DebugContext(ctx, "The outcomes of the runs of batches could not be stored", "error", err)
	}
	return delay
}

// Pass stores the outcomes of the runs that have ended.
func (o *Observer) Pass(ctx context.Context) error {
	for after := ""; ; {
		list, err := o.store.OpenBatches(ctx, after, observePage)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, b := range list {
			if err := o.observe(ctx, b); err != nil {
				return err
			}
		}
		after = list[len(list)-1].ID
	}
}

func (o *Observer) observe(ctx context.Context, b Batch) error {
	for after := int64(0); ; {
		noted, err := o.store.NoteOutcomes(ctx, b.ID, after, outcomePage)
		if err != nil {
			return err
		}
		for outcome, n := range noted.Ended {
			o.metrics.RunsEnded(ctx, string(outcome), n)
		}
		if after = noted.Last; after == 0 {
			break
		}
	}
	if b.EndedAt.IsZero() {
		return nil
	}
	return o.store.CloseRuns(ctx, b.ID)
}
