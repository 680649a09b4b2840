// Package child starts child runs for parent runs, notifies parents of the completion of awaited children, and cancels
// awaited children whose parents have ended or are being canceled.
//
//	children := child.New(runs, store, child.Options{MaxDepth: 8})
//	r, err := children.Start(ctx, child.Request{Parent: "…", Key: "…", Workflow: "shop/order", Awaited: true})
//	err = children.Cancel(ctx, "default", r.ID, "…")
//
// A child is a run like any other, with a row, steps and controls of its own, and two links. In addition, its parent
// may wait for it. Its end is in its row and in Temporal; a [Watcher] notifies the parent with a signal.
//
// # Awaited children
//
// A row records that a run is awaited, from the transaction that accepts it until its parent was notified. A lost
// notification or a crash therefore leaves a row that the next scan finds: a run that has ended and is awaited.
// Conversely, an awaited run whose parent has ended, or is being canceled, is canceled, as nothing uses its result.
// Runs that are not awaited have no such row, and continue.
//
// # Cancellation of trees
//
// From the moment at which the row of a run has the request for its cancellation, neither the run nor what it awaits,
// directly or through others, starts a child: the store refuses it. What is open is canceled from the top downwards,
// one transaction per run. Each run that has the request makes its own children due, so the scan of any process
// continues after a crash.
package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/start"
)

// ErrTooDeep is the error for a child with too many ancestors.
var ErrTooDeep = errors.New("too many ancestors")

// Request requests a child run for a parent run.
type Request struct {
	Project string
	// Parent is the requesting run, Path the entry into its task. Key identifies the request among all runs: the same
	// key returns the same run.
	Parent, Path, Key string
	// Workflow is the full name; Version may be empty: the newest.
	Workflow, Version string
	Input             json.RawMessage
	// Awaited reports that the parent waits for the child's end.
	Awaited bool
	// Sensitive are the texts in the input to redact.
	Sensitive []string
}

// Runs starts and cancels runs.
type Runs interface {
	Start(ctx context.Context, req start.Request) (run.Run, bool, error)
	Cancel(ctx context.Context, project, id, reason string) (run.Run, error)
}

// Rows reads the rows of runs.
type Rows interface {
	GetRun(ctx context.Context, project, id string) (run.Run, error)
}

// Options limit children.
type Options struct {
	// MaxDepth is the maximum number of ancestors of a run.
	MaxDepth int
}

// Service starts and cancels children.
type Service struct {
	runs Runs
	rows Rows
	opts Options
}

// New returns the service.
func New(runs Runs, rows Rows, opts Options) *Service {
	return &Service{runs: runs, rows: rows, opts: opts}
}

// Start starts a child run. Repeating a request returns the same run. The errors are those of [start.Service.Start],
// and ErrTooDeep. Before it returns [run.ErrAncestorCanceled], it has requested the cancellation of the parent.
func (s *Service) Start(ctx context.Context, req Request) (run.Run, error) {
	parent, err := s.rows.GetRun(ctx, req.Project, req.Parent)
	if err != nil {
		return run.Run{}, err
	}
	depth := parent.Parent.Depth + 1
	if depth > s.opts.MaxDepth {
		return run.Run{}, fmt.Errorf("%w: run %s has %d ancestors already, and runs.max_depth is %d", ErrTooDeep, parent.ID,
			parent.Parent.Depth, s.opts.MaxDepth)
	}
	r, _, err := s.runs.Start(auth.WithActor(ctx, auth.Run(req.Parent)), start.Request{
		Project: req.Project, Workflow: req.Workflow, Version: req.Version, Input: req.Input, RequestID: requestID(req.Key),
		Trigger: run.TriggerParent, Sensitive: req.Sensitive,
		InputHidden: true, // a refusal becomes the error of a task, and the input is not the user's
		Lineage:     parent.Next(),
		Parent:      run.Parent{RunID: req.Parent, Path: req.Path, Depth: depth, Key: req.Key, Awaited: req.Awaited},
	})
	if errors.Is(err, run.ErrAncestorCanceled) {
		// Requested also where the row has a request: an execution that was reset in Temporal may have lost it.
		if _, failed := cancel(ctx, s.runs, req.Project, req.Parent,
			"a run that awaits it was canceled or has ended"); failed != nil {
			return run.Run{}, failed
		}
	}
	return r, err
}

// requestID separates keys from the request IDs of callers.
func requestID(key string) string { return start.ChildRequestPrefix + key }

// Cancel requests the cancellation of a run that its parent no longer waits for. It does nothing for a run that has
// ended or is being canceled.
func (s *Service) Cancel(ctx context.Context, project, id, reason string) error {
	_, err := cancel(ctx, s.runs, project, id, reason)
	return err
}

// cancel returns false for a run that has ended.
func cancel(ctx context.Context, runs Runs, project, id, reason string) (bool, error) {
	_, err := runs.Cancel(auth.WithActor(ctx, auth.System()), project, id, reason)
	if apperror.Is(err, apperror.RunEnded) || apperror.Is(err, apperror.RunCanceling) ||
		apperror.Is(err, apperror.RunNotFound) {
		return false, nil
	}
	return err == nil, err
}
