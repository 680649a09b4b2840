package engine

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// requestTimeout bounds a request.
	requestTimeout = 10 * time.Second
	// identityPrefix is the prefix of the identity with which a run is terminated through Signalbox. The actor's name
	// follows it.
	identityPrefix = "signalbox: "
)

// requestOptions configure the access to Temporal.
type requestOptions struct {
	// Client returns the client for one request, or a [apperror.Unavailable].
	Client func() (client.Client, error)
	// Absent returns the reason why Temporal has no open execution of a run: [run.ErrNotKnown] or [run.ErrClosed].
	Absent func(ctx context.Context, runID string) error
	// Address and Namespace locate the runs.
	Address, Namespace string
	// Identity identifies this process to Temporal.
	Identity string
}

// requests sends requests about the open execution of a run to Temporal: cancel, terminate and control. It implements a
// part of [run.Engine].
//
// Each request is sent once and has a time limit. A failure is a [apperror.Unavailable] and leaves open whether
// Temporal accepted the request. Every request may be repeated.
type requests struct{ opts requestOptions }

// newRequests returns the requests with the given options.
func newRequests(opts requestOptions) *requests { return &requests{opts: opts} }

// Cancel requests the cancellation of the execution.
func (q *requests) Cancel(ctx context.Context, r run.Run, reason string) error {
	return q.do(ctx, r, "cancellation", func(ctx context.Context, c client.Client) error {
		_, err := c.WorkflowService().RequestCancelWorkflowExecution(ctx,
			&workflowservice.RequestCancelWorkflowExecutionRequest{
				Namespace:         q.opts.Namespace,
				WorkflowExecution: workflowExecution(r),
				Identity:          q.opts.Identity,
				RequestId:         uuid.NewString(),
				Reason:            reason,
			})
		return err
	})
}

// Terminate ends the execution. The request's identity carries the name of the actor, which [terminator] reads.
func (q *requests) Terminate(ctx context.Context, r run.Run, reason string) error {
	actor, ok := auth.ActorFrom(ctx)
	if !ok {
		actor = auth.System()
	}
	return q.do(ctx, r, "termination", func(ctx context.Context, c client.Client) error {
		_, err := c.WorkflowService().TerminateWorkflowExecution(ctx, &workflowservice.TerminateWorkflowExecutionRequest{
			Namespace:         q.opts.Namespace,
			WorkflowExecution: workflowExecution(r),
			Identity:          identityPrefix + actor.Name,
			Reason:            reason,
		})
		return err
	})
}

// Control signals an operation to the run's workflow, which performs it in its next workflow task.
func (q *requests) Control(ctx context.Context, r run.Run, op, reason string) error {
	return q.do(ctx, r, "request to "+op, func(ctx context.Context, c client.Client) error {
		return c.SignalWorkflow(ctx, contract.WorkflowID(r.ID), "", contract.ControlSignal,
			flow.Control{Op: op, Reason: reason})
	})
}

// terminator returns the name of the actor in an identity with which a run was terminated through Signalbox.
func terminator(identity string) (actor string, ok bool) {
	return strings.CutPrefix(identity, identityPrefix)
}

func workflowExecution(r run.Run) *commonpb.WorkflowExecution {
	return &commonpb.WorkflowExecution{WorkflowId: contract.WorkflowID(r.ID)}
}

func (q *requests) do(ctx context.Context, r run.Run, what string,
	send func(context.Context, client.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	c, err := q.opts.Client()
	if err != nil {
		return err
	}
	if err = send(ctx, c); err == nil {
		return nil
	}
	if _, notFound := errors.AsType[*serviceerror.NotFound](err); notFound {
		return q.opts.Absent(ctx, r.ID)
	}
	return apperror.New(apperror.Unavailable, apperror.EngineUnavailable,
		"temporal did not accept the %s of run %s; try again", what,
		r.ID).WithDetail("%s: %v", q.opts.Address, err).WithRetry(retryAfter).WithCause(err)
}
