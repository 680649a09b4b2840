package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// provenFor is how long an answer of Temporal counts as proof that it is there.
	provenFor = time.Second
	// probeTimeout bounds the question whether it is.
	probeTimeout = 1500 * time.Millisecond
	// retryAfter is what callers are told when it is not.
	retryAfter = 5 * time.Second
	// cancelTimeout bounds a request for cancellation.
	cancelTimeout = 10 * time.Second
)

// Options say how to reach Temporal and how to measure.
type Options struct {
	// Client is the base of the client's options: address, namespace, TLS, credentials, metrics.
	Client client.Options
	// ServerID is this process start's identity.
	ServerID string
	// Limits of the interpreter: workers and repairs must have the same.
	Limits flow.Limits
	Log    *slog.Logger
	Now    func() time.Time
}

// Engine starts, cancels and repairs runs.
type Engine struct {
	client    client.Client
	namespace string
	address   string
	serverID  string
	store     projection.Store
	documents *Documents
	tap       *projection.Tap
	pollers   *pollers
	limits    flow.Limits
	log       *slog.Logger
	now       func() time.Time

	// answered is when Temporal last answered anything, in Unix nanoseconds.
	answered atomic.Int64

	mu       sync.Mutex
	verified map[string]verified
}

var _ run.Engine = (*Engine)(nil)

// New returns an engine. It does not connect: Temporal may come later.
func New(opts Options, store projection.Store, documents *Documents, tap *projection.Tap) (*Engine, error) {
	e := &Engine{
		namespace: opts.Client.Namespace, address: opts.Client.HostPort, serverID: opts.ServerID, store: store, documents: documents,
		tap: tap, pollers: newPollers(opts.Now), limits: opts.Limits, log: opts.Log, now: opts.Now, verified: map[string]verified{},
	}
	options := opts.Client
	options.Identity = opts.ServerID
	options.Logger = logger.ForTemporal(opts.Log)
	options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions,
		grpc.WithChainUnaryInterceptor(e.watchAnswers, e.pollers.intercept, tap.Intercept))
	c, err := client.NewLazyClient(options)
	if err != nil {
		return nil, fmt.Errorf("making the client for Temporal at %q: %w", opts.Client.HostPort, err)
	}
	e.client = c
	return e, nil
}

// Close closes the connection. Workers are stopped before.
func (e *Engine) Close() { e.client.Close() }

func (e *Engine) watchAnswers(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	switch {
	case err == nil:
		e.answered.Store(e.now().UnixNano())
	case away(err):
		e.answered.Store(0) // what was proven before is worth nothing now
	}
	return err
}

// away tells an error that says that nobody is there from an answer.
func away(err error) bool {
	var unavailable *serviceerror.Unavailable
	return errors.As(err, &unavailable) || status.Code(err) == codes.Unavailable
}

// Check implements [run.Engine]: it asks Temporal for the namespace unless Temporal has just answered something.
func (e *Engine) Check(ctx context.Context) error {
	if e.now().Sub(time.Unix(0, e.answered.Load())) < provenFor {
		return nil
	}
	return e.Probe(ctx)
}

// Probe asks Temporal for the namespace.
func (e *Engine) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := e.client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: e.namespace})
	if err == nil {
		return nil
	}
	if _, missing := errors.AsType[*serviceerror.NamespaceNotFound](err); missing {
		return fault.New(fault.Unavailable, fault.EngineUnavailable,
			"temporal at %s has no namespace %q; create it, or correct temporal.namespace", e.address, e.namespace).
			WithRetry(retryAfter).WithCause(err)
	}
	return fault.New(fault.Unavailable, fault.EngineUnavailable,
		"temporal at %s does not answer; nothing was started, try again when it is back", e.address).
		WithRetry(retryAfter).WithCause(err)
}

// Start implements [run.Engine].
func (e *Engine) Start(ctx context.Context, r run.Run) (string, error) {
	options := client.StartWorkflowOptions{
		ID:                    contract.WorkflowID(r.ID),
		TaskQueue:             contract.TaskQueue(r.Project),
		EnableEagerStart:      true,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		// The same ID again is the same run: an earlier try of this call that did arrive.
		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}
	handle, err := e.client.ExecuteWorkflow(ctx, options, contract.RunWorkflow, flow.Input{
		RunID: r.ID, Project: r.Project, Workflow: r.Workflow, Version: r.Version,
		DocumentHash: r.DocumentHash, Input: r.Input, Interpreter: r.Interpreter,
	})
	if err == nil {
		return handle.GetRunID(), nil
	}
	if already, ok := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); ok {
		return already.RunId, nil
	}
	return "", startFault(err, e.address, e.namespace)
}

// startFault tells failures that prove that nothing was started from those that prove nothing.
func startFault(err error, address, namespace string) error {
	var (
		invalid   *serviceerror.InvalidArgument
		missing   *serviceerror.NamespaceNotFound
		denied    *serviceerror.PermissionDenied
		exhausted *serviceerror.ResourceExhausted
	)
	switch {
	case errors.As(err, &invalid), errors.As(err, &denied):
		return fault.New(fault.Refused, fault.EngineRefused,
			"temporal at %s refused to start the run: %v", address, err).WithCause(err)
	case errors.As(err, &missing):
		return fault.New(fault.Unavailable, fault.EngineUnavailable,
			"temporal at %s has no namespace %q; create it, or correct temporal.namespace", address, namespace).
			WithRetry(retryAfter).WithCause(err)
	case errors.As(err, &exhausted):
		return fault.New(fault.Exhausted, fault.EngineRefused,
			"temporal at %s is over its limits and did not start the run: %v", address, err).WithRetry(retryAfter).WithCause(err)
	default:
		return fmt.Errorf("starting the run at %s: %w: %w", address, run.ErrUnknownOutcome, err)
	}
}

// Cancel implements [run.Engine].
func (e *Engine) Cancel(ctx context.Context, r run.Run, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	_, err := e.client.WorkflowService().RequestCancelWorkflowExecution(ctx, &workflowservice.RequestCancelWorkflowExecutionRequest{
		Namespace:         e.namespace,
		WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: contract.WorkflowID(r.ID)},
		Identity:          e.serverID,
		RequestId:         uuid.NewString(),
		Reason:            reason,
	})
	if err == nil {
		return nil
	}
	if _, notFound := errors.AsType[*serviceerror.NotFound](err); !notFound {
		return fault.New(fault.Unavailable, fault.EngineUnavailable,
			"temporal at %s did not take the cancellation of run %s; try again", e.address, r.ID).WithRetry(retryAfter).WithCause(err)
	}
	// Temporal answers alike for what it never knew and for what has ended.
	known, err := e.describe(ctx, r.ID)
	switch {
	case err != nil:
		return err
	case known == nil:
		return run.ErrNotKnown
	default:
		return run.ErrClosed
	}
}
