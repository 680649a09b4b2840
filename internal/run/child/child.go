// Package child is about runs that other runs start: their acceptance, and the telling of their ends.
//
//	children := child.New(runs, store, child.Options{MaxDepth: 8})
//	r, err := children.Start(ctx, child.Request{Parent: "…", Key: "…", Workflow: "shop/order", Awaited: true})
//	err = children.Cancel(ctx, "default", r.ID, "…")
//
// A child is a run like any other: with a row, steps and controls of its own, and two links. What makes it more is that its
// parent may wait for it. Its end is in its row and in Temporal; a [Watch] tells the parent of it, which is a signal.
//
// # Who waits for whom
//
// A row says that a run is awaited, from the transaction that accepts it until its parent was told. So the two ways of getting
// lost that there are, of the telling and of the whole process, leave something to be found: a run that has ended and is awaited. The
// other way round, a run that is awaited by one that has ended is canceled: nobody wants what comes of it. Runs that
// are not awaited have no such row, and go on.
package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// ErrTooDeep is the refusal of a child with too many runs above it.
var ErrTooDeep = errors.New("too many runs above")

// Request asks for a run on behalf of another.
type Request struct {
	Project string
	// Parent is the run that asks, Path the entry into its task. Key names the request within all runs: the same key again is the
	// same run.
	Parent, Path, Key string
	// Workflow is its full name; Version may be empty: the newest.
	Workflow, Version string
	Input             json.RawMessage
	// Awaited tells that the parent waits for its end.
	Awaited bool
	// Sensitive are the texts in the input that are to be hidden.
	Sensitive []string
}

// Runs starts and cancels runs.
type Runs interface {
	Start(ctx context.Context, req run.StartRequest) (run.Run, bool, error)
	Cancel(ctx context.Context, project, id, reason string) (run.Run, error)
}

// Rows gives the rows of runs.
type Rows interface {
	GetRun(ctx context.Context, project, id string) (run.Run, error)
}

// Options bound children.
type Options struct {
	// MaxDepth is how many runs there may be above one.
	MaxDepth int
}

// Service accepts children.
type Service struct {
	runs Runs
	rows Rows
	opts Options
}

// New returns the service.
func New(runs Runs, rows Rows, opts Options) *Service {
	return &Service{runs: runs, rows: rows, opts: opts}
}

// Start starts a run for another one. Repeating it returns the same run. The errors are those of [run.Service.Start], and ErrTooDeep.
func (s *Service) Start(ctx context.Context, req Request) (run.Run, error) {
	parent, err := s.rows.GetRun(ctx, req.Project, req.Parent)
	if err != nil {
		return run.Run{}, err
	}
	depth := parent.Parent.Depth + 1
	if depth > s.opts.MaxDepth {
		return run.Run{}, fmt.Errorf("%w: run %s has %d above it already, and runs.max_depth is %d", ErrTooDeep, parent.ID, parent.Parent.Depth, s.opts.MaxDepth)
	}
	actor := auth.Actor{Kind: auth.KindSystem, Name: "run " + req.Parent}
	r, _, err := s.runs.Start(auth.WithActor(ctx, actor), run.StartRequest{
		Project: req.Project, Workflow: req.Workflow, Version: req.Version, Input: req.Input, RequestID: requestID(req.Key),
		Trigger: run.TriggerParent, Sensitive: req.Sensitive,
		InputHidden: true, // the refusal is the error of a task, and nobody typed the input
		Parent:      run.Parent{RunID: req.Parent, Path: req.Path, Depth: depth, Key: req.Key, Awaited: req.Awaited},
	})
	return r, err
}

// requestID keeps keys apart from the request IDs that callers make.
func requestID(key string) string { return run.ChildRequestPrefix + key }

// Cancel asks for the end of a run that its parent does not wait for any more. One that has ended, or was asked already, is left as it is.
func (s *Service) Cancel(ctx context.Context, project, id, reason string) error {
	return cancel(ctx, s.runs, project, id, reason)
}

func cancel(ctx context.Context, runs Runs, project, id, reason string) error {
	_, err := runs.Cancel(auth.WithActor(ctx, auth.System()), project, id, reason)
	if fault.Is(err, fault.RunEnded) || fault.Is(err, fault.RunCanceling) || fault.Is(err, fault.RunNotFound) {
		return nil
	}
	return err
}
