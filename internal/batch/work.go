package batch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// width is how many items of a batch are in flight at a time.
	width = 16
	// itemTimeout bounds one of them.
	itemTimeout = 30 * time.Second
	// mostTries is how often an item is tried that Temporal does not take although it can be used.
	mostTries = 5
)

// ReplayRequest asks for a run with the input of an earlier one.
type ReplayRequest struct {
	Project string
	// RunID is the earlier one.
	RunID string
	// Version is empty for that of the earlier one, or "latest".
	Version string
	Reason  string
	// RequestID is that of the new run: the same one is the same run.
	RequestID string
}

// Controls is what is done to runs; the service of runs is most of it. Its errors are faults: [fault.Refused] and
// [fault.NotFound] are about the run, [fault.Unavailable] means that nothing is known.
type Controls interface {
	// Ready returns why no run of the project can be started now.
	Ready(ctx context.Context, project string) error
	Get(ctx context.Context, project, id string) (run.Run, error)
	Cancel(ctx context.Context, project, id, reason string) (run.Run, error)
	Terminate(ctx context.Context, project, id, reason string) (run.Run, error)
	Replay(ctx context.Context, req ReplayRequest) (newRunID string, err error)
}

// effort is one process's work on a batch.
type effort struct {
	batch Batch
	pace  pace
	// after is the item to go on behind. Items that could not be done now come again when the end was reached, so that one of
	// them holds up no others.
	after int64
	tries map[int64]int
}

// itemError is why an item could not be done for now.
type itemError struct {
	runID string
	cause error
}

func (e *itemError) Error() string { return e.cause.Error() }

func (e *itemError) Unwrap() error { return e.cause }

// advance works on a batch until it has ended, is paused, or ctx ends. It returns false when the batch cannot go on for now.
func (r *Runner) advance(ctx, work context.Context, e *effort) bool {
	err := r.pursue(ctx, work, e)
	if err == nil {
		r.forget(e.batch.ID)
		return true
	}
	if ctx.Err() != nil {
		return true
	}
	log := logger.FromContext(ctx)
	var of string
	if one, ok := errors.AsType[*itemError](err); ok {
		of = one.runID
	}
	why, failed := r.store.NoteWaiting(ctx, e.batch.ID, of, readable(err))
	switch {
	case failed != nil:
		log.WarnContext(ctx, "Batch waits, and the reason could not be written", "batch", e.batch.ID, "project", e.batch.Project, "error", failed)
	case why != e.batch.Waiting:
		log.WarnContext(ctx, "Batch waits", "batch", e.batch.ID, "project", e.batch.Project, "error", why)
	}
	return false
}

// pursue returns nil when there is nothing left to do, or why it cannot go on for now.
func (r *Runner) pursue(ctx, work context.Context, e *effort) error {
	for more := e.batch.Status == Selecting; more; {
		var err error
		if more, err = r.store.SelectMore(ctx, e.batch.ID, Page); err != nil {
			return err
		}
	}
	for {
		n, err := e.pace.wait(ctx)
		if err != nil {
			return err
		}
		if e.batch.Action == Replay {
			if err := r.controls.Ready(ctx, e.batch.Project); err != nil {
				return err
			}
		}
		items, active, err := r.store.ClaimItems(ctx, e.batch.ID, e.after, n)
		if err != nil || !active {
			return err
		}
		if len(items) == 0 {
			if e.after == 0 {
				return r.close(ctx, e.batch)
			}
			e.after = 0
			continue
		}
		e.after = items[len(items)-1].Number
		if err := r.round(work, e, items); err != nil {
			return err
		}
	}
}

// close ends a batch of which nothing is left to do. Its last item does that; where items are gone without having been counted, nobody
// else would, and the batch would be looked at for ever.
func (r *Runner) close(ctx context.Context, b Batch) error {
	gone, err := r.store.CloseBatch(ctx, b.ID, r.now())
	if gone > 0 {
		logger.FromContext(ctx).WarnContext(ctx, "Batch had nothing left to do and was ended: items of it are gone, and count as failed",
			"batch", b.ID, "project", b.Project, "items", gone)
	}
	return err
}

// round does some items at once and tells what became of them. It returns why items could not be done for now, if any could not.
func (r *Runner) round(ctx context.Context, e *effort, items []Item) error {
	type outcome struct {
		item Item
		err  error
	}
	outcomes := make([]outcome, len(items))
	slots := make(chan struct{}, width)
	var group sync.WaitGroup
	for i, item := range items {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			outcomes[i].item, outcomes[i].err = r.one(ctx, e.batch, item)
		})
	}
	group.Wait()
	var settled []Item
	var waits error
	for _, o := range outcomes {
		if o.err != nil && !r.hopeless(ctx, e, &o.item, o.err) {
			waits = &itemError{o.item.RunID, o.err}
			continue
		}
		delete(e.tries, o.item.Number)
		settled = append(settled, o.item)
	}
	if len(settled) > 0 {
		if err := r.store.SettleItems(ctx, e.batch.ID, settled, r.now()); err != nil {
			return err
		}
	}
	return waits
}

// hopeless turns an item into one that failed that was tried in vain often enough while Temporal could be used.
func (r *Runner) hopeless(ctx context.Context, e *effort, item *Item, err error) bool {
	if ctx.Err() != nil || r.controls.Ready(ctx, e.batch.Project) != nil {
		return false
	}
	e.tries[item.Number]++
	if e.tries[item.Number] < mostTries {
		return false
	}
	item.Status, item.Error = Failed, readable(err)
	return true
}

// one does what the batch is for to one run. An error means that it could not be done for now.
func (r *Runner) one(ctx context.Context, b Batch, item Item) (Item, error) {
	actor := b.Actor
	// The role that it was begun with; what a token may otherwise is not known here.
	actor.Roles = map[string]auth.Role{b.Project: auth.Operator}
	ctx, cancel := context.WithTimeout(auth.WithActor(ctx, actor), itemTimeout)
	defer cancel()
	reason := fmt.Sprintf("%s (batch %s)", b.Reason, b.ID)
	var err error
	switch b.Action {
	case Cancel:
		_, err = r.controls.Cancel(ctx, b.Project, item.RunID, reason)
	case Terminate:
		_, err = r.controls.Terminate(ctx, b.Project, item.RunID, reason)
	case Replay:
		item.NewRunID, err = r.controls.Replay(ctx, ReplayRequest{
			Project: b.Project, RunID: item.RunID, Version: b.Version, Reason: reason, RequestID: requestID(b.ID, item.RunID),
		})
	}
	if err == nil {
		item.Status = Succeeded
		return item, nil
	}
	if passing(err) {
		return item, err
	}
	item.NewRunID = ""
	if item.Begun && fault.Is(err, fault.RunEnded) && r.endedSo(ctx, b, item.RunID) {
		item.Status = Succeeded
		return item, nil
	}
	item.Status, item.Error = Failed, readable(err)
	if refused(b.Action, err) {
		item.Status = Refused
	}
	return item, nil
}

// endedSo tells whether a run has the end that the batch is to bring about: somebody who died before telling had begun with it.
func (r *Runner) endedSo(ctx context.Context, b Batch, id string) bool {
	made, err := r.controls.Get(ctx, b.Project, id)
	return err == nil && (b.Action == Cancel && made.Status == run.Canceled || b.Action == Terminate && made.Status == run.Terminated)
}

// passing tells an error that says nothing about the run: whether something was done is not known, or not yet.
func passing(err error) bool {
	f, ok := fault.From(err)
	if !ok {
		return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, run.ErrUnknownOutcome)
	}
	return f.Class == fault.Unavailable || f.RetryAfter > 0 || f.Reason == fault.ContractMismatch
}

// refused tells a run that is in no state for the action from one to which it could be done when something else has changed,
// such as a workflow that is paused, or a server that is connected to another Temporal than the run is in.
func refused(a Action, err error) bool {
	f, ok := fault.From(err)
	switch {
	case !ok, f.Reason == fault.RunElsewhere:
		return false
	case a == Replay:
		return f.Reason == fault.RunNotFound || f.Reason == fault.RunEnded
	default:
		return f.Class == fault.Refused || f.Class == fault.NotFound || f.Class == fault.Denied
	}
}

// requestID is that of the replay of a run by a batch: the same whenever it is tried.
func requestID(batch, runID string) string {
	id := "batch-" + batch + "-" + runID
	if run.RequestIDProblem(id) != "" {
		sum := sha256.Sum256([]byte(runID))
		id = "batch-" + batch + "-" + hex.EncodeToString(sum[:])
	}
	return id
}
