package run

import (
	"context"
	"errors"

	"github.com/signalbox-dev/signalbox/dsl"
)

// ErrUnknownOutcome marks an engine's error after which it is not known whether the execution was started.
var ErrUnknownOutcome = errors.New("the outcome is not known")

// ErrNotKnown is an engine's error for a run that Temporal does not have.
var ErrNotKnown = errors.New("temporal does not have the run")

// ErrClosed is an engine's error for a run that has ended in Temporal.
var ErrClosed = errors.New("the run has ended in temporal")

// Engine executes runs.
type Engine interface {
	// Check returns an [apperror.Unavailable] when no run can be started now. It has no side effect and returns at
	// once.
	Check(ctx context.Context) error
	// Start starts the execution and returns its ID in Temporal. Starting a run that is started already is a success.
	// Every error but [ErrUnknownOutcome] means that nothing was started.
	Start(ctx context.Context, r Run) (executionID string, err error)
	// Cancel requests cancellation, Terminate ends the execution at once, and Control sends the operation (pause,
	// unpause or resume_quota) to it. They may return [ErrNotKnown] or [ErrClosed].
	Cancel(ctx context.Context, r Run, reason string) error
	Terminate(ctx context.Context, r Run, reason string) error
	Control(ctx context.Context, r Run, op, reason string) error
	// Inspect is that of [Inspector].
	Inspect(ctx context.Context, r Run) (Execution, error)
}

// Documents returns the documents that runs are pinned to.
type Documents interface {
	Document(ctx context.Context, hash string) (*dsl.Document, error)
}
