package batch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/start"
)

const (
	// width is how many items of a project are in flight at a time. The runs of other projects wait behind them in
	// Temporal, the database and the workers, whose queues do not separate projects.
	width = 4
	// pickUpTimeout bounds how long a replay counts as in flight after its start: until a worker has picked up the new
	// run. That takes long where the project's workers are busy with its own runs.
	pickUpTimeout = time.Second
	// firstPickUpCheck and maxPickUpCheck are the delays between two checks for that; the delay doubles after each check.
	firstPickUpCheck, maxPickUpCheck = 10 * time.Millisecond, 100 * time.Millisecond
	// itemTimeout bounds one item.
	itemTimeout = 30 * time.Second
	// maxTries is the number of attempts for an item that fails although Temporal is available.
	maxTries = 5
)

// ReplayRequest asks for a run with the input of an earlier one.
type ReplayRequest struct {
	Project string
	// RunID is the earlier run.
	RunID string
	// Version is empty for the version of the earlier run, or "latest".
	Version string
	Reason  string
	// RequestID is that of the new run: a second request with the same ID returns the same run.
	RequestID string
}

// Controls are the actions on runs; the service of runs implements most of them. Their errors are of type
// [apperror.Error]: [apperror.Refused] and [apperror.NotFound] concern the run, [apperror.Unavailable] means that the
// outcome is unknown.
type Controls interface {
	// Ready returns the reason why no run of the project can be started now.
	Ready(ctx context.Context, project string) error
	Get(ctx context.Context, project, id string) (run.Run, error)
	Cancel(ctx context.Context, project, id, reason string) (run.Run, error)
	Terminate(ctx context.Context, project, id, reason string) (run.Run, error)
	Replay(ctx context.Context, req ReplayRequest) (newRunID string, err error)
}

// effort is one process's state of a batch.
type effort struct {
	batch Batch
	pace  pace
	// after is the number of the last claimed item. Items that could not be done come again after the last item, so that
	// they do not hold up others.
	after int64
	tries map[int64]int
}

// itemError is the reason why an item could not be done for now.
type itemError struct {
	runID string
	cause error
}

func (e *itemError) Error() string { return e.cause.Error() }

func (e *itemError) Unwrap() error { return e.cause }

// advance processes a batch until it has ended, is paused, or ctx ends. It returns false when the batch cannot proceed
// for now.
func (r *Runner) advance(ctx, work context.Context, e *effort) bool {
	err := r.process(ctx, work, e)
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
	why, failed := r.store.SetWaitReason(ctx, e.batch.ID, of, readable(err))
	switch {
	case failed != nil:
		log.WarnContext(ctx, "Batch waits, and the reason could not be written", "batch", e.batch.ID,
			"project", e.batch.Project, "error", failed)
	case why != e.batch.Waiting:
		log.WarnContext(ctx, "Batch waits", "batch", e.batch.ID, "project", e.batch.Project, "error", why)
	}
	return false
}

// process returns nil when no work is left, or the reason why the batch cannot proceed for now.
func (r *Runner) process(ctx, work context.Context, e *effort) error {
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
		if more, err := r.next(ctx, work, e, n); err != nil || !more {
			return err
		}
	}
}

// next does up to n further items while it holds the turn of the batch's project, and returns when none of them is in
// flight. It returns false when no work is left.
func (r *Runner) next(ctx, work context.Context, e *effort, n int) (more bool, err error) {
	release, err := r.turns.Acquire(ctx, e.batch.Project)
	if err != nil {
		return false, err
	}
	defer release()
	if e.batch.Action == Replay {
		if err := r.controls.Ready(ctx, e.batch.Project); err != nil {
			return false, err
		}
	}
	items, active, err := r.store.ClaimItems(ctx, e.batch.ID, e.after, n)
	if err != nil || !active {
		return false, err
	}
	if len(items) == 0 {
		if e.after == 0 {
			return false, nil
		}
		e.after = 0
		return true, nil
	}
	e.after = items[len(items)-1].Number
	started, err := r.round(work, e, items)
	r.waitForPickUp(ctx, started)
	return true, err
}

// waitForPickUp returns when workers have picked up the started runs, at the latest after [pickUpTimeout]. Temporal
// accepts starts faster than workers take their tasks, so the starts alone would fill its queues.
func (r *Runner) waitForPickUp(ctx context.Context, started []string) {
	ctx, cancel := context.WithTimeout(ctx, pickUpTimeout)
	defer cancel()
	for delay := firstPickUpCheck; len(started) > 0 && loop.Sleep(ctx, delay); delay = min(2*delay, maxPickUpCheck) {
		if n, err := r.store.CountNotTaken(ctx, started); n == 0 || err != nil {
			return // the next claim reports an unavailable database
		}
	}
}

// round does some items in parallel, at most [width], and writes their results. It returns the runs that were started,
// and the reason why items could not be done for now, if any.
func (r *Runner) round(ctx context.Context, e *effort, items []Item) (started []string, waits error) {
	type outcome struct {
		item Item
		err  error
	}
	outcomes := make([]outcome, len(items))
	var group sync.WaitGroup
	for i, item := range items {
		group.Go(func() {
			outcomes[i].item, outcomes[i].err = r.one(ctx, e.batch, item)
		})
	}
	group.Wait()
	var done []Item
	for _, o := range outcomes {
		if o.err != nil && !r.giveUp(ctx, e, &o.item, o.err) {
			waits = &itemError{o.item.RunID, o.err}
			continue
		}
		delete(e.tries, o.item.Number)
		done = append(done, o.item)
		if o.item.Status == Started {
			started = append(started, o.item.NewRunID)
		}
	}
	if len(done) > 0 {
		if err := r.store.WriteItems(ctx, e.batch.ID, done, r.now()); err != nil {
			return started, err
		}
	}
	return started, waits
}

// giveUp reports whether an item has failed too often while Temporal was available; it then marks the item as failed.
func (r *Runner) giveUp(ctx context.Context, e *effort, item *Item, err error) bool {
	if ctx.Err() != nil || r.controls.Ready(ctx, e.batch.Project) != nil {
		return false
	}
	e.tries[item.Number]++
	if e.tries[item.Number] < maxTries {
		return false
	}
	item.Status, item.Error = Failed, readable(err)
	return true
}

// one applies the batch's action to one run. An error means that it could not be done for now.
func (r *Runner) one(ctx context.Context, b Batch, item Item) (Item, error) {
	actor := b.Actor
	// The actor acts with the role that it started the batch with; the token's other roles are not stored.
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
		// A retry replays the run that failed, so that each run of a chain has one replay.
		replayed := cmp.Or(item.NewRunID, item.RunID)
		var made string
		made, err = r.controls.Replay(ctx, ReplayRequest{
			Project: b.Project, RunID: replayed, Version: b.Version, Reason: reason, RequestID: requestID(b.ID, replayed),
		})
		if err == nil {
			item.NewRunID, item.Status = made, Started
			return item, nil
		}
	}
	if err == nil {
		item.Status = Succeeded
		return item, nil
	}
	if passing(err) {
		return item, err
	}
	if item.Begun && apperror.Is(err, apperror.RunEnded) && r.endedSo(ctx, b, item.RunID) {
		item.Status = Succeeded
		return item, nil
	}
	item.Status, item.Error = Failed, readable(err)
	if refused(b.Action, err) {
		item.Status = Refused
	}
	return item, nil
}

// endedSo reports whether a run already has the final status of the batch's action, because an earlier attempt
// succeeded without a record.
func (r *Runner) endedSo(ctx context.Context, b Batch, id string) bool {
	made, err := r.controls.Get(ctx, b.Project, id)
	return err == nil && (b.Action == Cancel && made.Status == run.Canceled || b.Action == Terminate &&
		made.Status == run.Terminated)
}

// passing reports whether an error does not concern the run: the outcome is unknown, or not decided yet.
func passing(err error) bool {
	if _, ok := apperror.From(err); ok {
		return apperror.Temporary(err)
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.Is(err, run.ErrUnknownOutcome)
}

// refused reports whether the run's state does not allow the action. It is false for causes outside the run, such as a
// paused workflow, or a server that is connected to another Temporal than the run's.
func refused(a Action, err error) bool {
	f, ok := apperror.From(err)
	switch {
	case !ok, f.Reason == apperror.RunElsewhere:
		return false
	case a == Replay:
		return f.Reason == apperror.RunNotFound || f.Reason == apperror.RunEnded
	default:
		return f.Class == apperror.Refused || f.Class == apperror.NotFound || f.Class == apperror.Denied
	}
}

// requestID returns the request ID of the replay of a run by a batch: the same for each attempt.
func requestID(batch, runID string) string {
	id := "batch-" + batch + "-" + runID
	if start.RequestIDViolation(id) != "" {
		sum := sha256.Sum256([]byte(runID))
		id = "batch-" + batch + "-" + hex.EncodeToString(sum[:])
	}
	return id
}
