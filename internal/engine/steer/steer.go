// Package steer asks Temporal to do something to the open execution of a run: cancel it, terminate it, hand it a control.
//
//	requests := steer.New(steer.Options{Client: …, Absent: …, Address: …, Namespace: …, Identity: …})
//	err := requests.Terminate(ctx, r, "runaway")
//
// Each request is sent once with a bound on its time. A failure is a [fault.Unavailable] and leaves open whether Temporal took
// the request: all of them may be repeated.
package steer

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

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// timeout bounds a request.
	timeout = 10 * time.Second
	// retryAfter is what callers are told when Temporal is there and did not take a request.
	retryAfter = 5 * time.Second
	// ours begins the identity of those who terminate a run through Signalbox; their name follows.
	ours = "signalbox: "
)

// Options say how to reach Temporal.
type Options struct {
	// Client returns the client for one request, or a [fault.Unavailable].
	Client func() (client.Client, error)
	// Absent tells why Temporal has no open execution of a run: [run.ErrNotKnown] or [run.ErrClosed].
	Absent func(ctx context.Context, runID string) error
	// Address and Namespace are where the runs are.
	Address, Namespace string
	// Identity is this process.
	Identity string
}

// Requests asks. Its methods are those of [run.Engine].
type Requests struct{ opts Options }

// New returns it.
func New(opts Options) *Requests { return &Requests{opts: opts} }

// Cancel asks for cancellation.
func (q *Requests) Cancel(ctx context.Context, r run.Run, reason string) error {
	return q.ask(ctx, r, "cancellation", func(ctx context.Context, c client.Client) error {
		_, err := c.WorkflowService().RequestCancelWorkflowExecution(ctx, &workflowservice.RequestCancelWorkflowExecutionRequest{
			Namespace:         q.opts.Namespace,
			WorkflowExecution: execution(r),
			Identity:          q.opts.Identity,
			RequestId:         uuid.NewString(),
			Reason:            reason,
		})
		return err
	})
}

// Terminate ends the execution. Whose wish it was goes along as the identity, for [Terminator].
func (q *Requests) Terminate(ctx context.Context, r run.Run, reason string) error {
	actor, ok := auth.ActorFrom(ctx)
	if !ok {
		actor = auth.System()
	}
	return q.ask(ctx, r, "termination", func(ctx context.Context, c client.Client) error {
		_, err := c.WorkflowService().TerminateWorkflowExecution(ctx, &workflowservice.TerminateWorkflowExecutionRequest{
			Namespace:         q.opts.Namespace,
			WorkflowExecution: execution(r),
			Identity:          ours + actor.Name,
			Reason:            reason,
		})
		return err
	})
}

// Control hands an operation to the run's workflow, which does it when a worker gets to it.
func (q *Requests) Control(ctx context.Context, r run.Run, op, reason string) error {
	return q.ask(ctx, r, "request to "+op, func(ctx context.Context, c client.Client) error {
		return c.SignalWorkflow(ctx, contract.WorkflowID(r.ID), "", contract.ControlSignal, flow.Control{Op: op, Reason: reason})
	})
}

// Terminator reads from the identity who terminated a run through Signalbox.
func Terminator(identity string) (who string, ok bool) { return strings.CutPrefix(identity, ours) }

func execution(r run.Run) *commonpb.WorkflowExecution {
	return &commonpb.WorkflowExecution{WorkflowId: contract.WorkflowID(r.ID)}
}

func (q *Requests) ask(ctx context.Context, r run.Run, what string, send func(context.Context, client.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
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
	return fault.New(fault.Unavailable, fault.EngineUnavailable,
		"temporal at %s did not take the %s of run %s; try again", q.opts.Address, what, r.ID).WithRetry(retryAfter).WithCause(err)
}
