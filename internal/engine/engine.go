package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// retryAfter is the retry delay returned to callers after Temporal rejected or did not answer a request.
	retryAfter = 5 * time.Second
)

// Connection gives the engine access to Temporal; [conn.Manager] implements it. No client is kept longer than a
// request.
type Connection interface {
	Client() (client.Client, error)
	Status() conn.Status
	Register(name string, factory conn.Factory) error
	Unregister(ctx context.Context, name string) error
	ResetBreaker()
}

// Options configure an engine.
type Options struct {
	Connection Connection
	// Address and Namespace are those of the connection.
	Address, Namespace string
	// ServerID identifies this start of the process.
	ServerID string
	// Keys seal the payloads that Temporal stores.
	Keys *keyring.Ring
	// Payloads store values that are too large for Temporal. nil: none are stored.
	Payloads *codec.Storage
	// Sensitive returns the texts that must be redacted in values of a run. nil: there are none.
	Sensitive func(ctx context.Context, runID string, values ...json.RawMessage) ([]string, error)
	// MaxSteps returns the number of steps that a new run of a project may enter. nil: unlimited.
	MaxSteps func(ctx context.Context, project string) (int64, error)
	// Listeners receive those of open runs whose rows are repaired. nil: listeners are not restored.
	Listeners Listeners
	// Steps grants runs their first block of steps. nil: runs request it.
	Steps Steps
	// Budget limits the requests that read the state of runs from Temporal to compare or rebuild rows. nil: no limit.
	Budget *Budget
	// Limits of the interpreter. Workers and repairs require the same limits.
	Limits flow.Limits
	Log    *slog.Logger
	Now    func() time.Time
}

// Steps grants steps of the quotas of projects.
type Steps interface {
	// GrantSteps repeats a grant that the run has not received.
	GrantSteps(ctx context.Context, r quota.Request) (quota.Grant, error)
}

// Engine starts, controls and repairs runs.
type Engine struct {
	*requests
	*notifier

	conn      Connection
	address   string
	namespace string
	serverID  string
	documents *Documents
	tap       *projection.Tap
	maxSteps  func(ctx context.Context, project string) (int64, error)
	steps     Steps
	limits    flow.Limits
	keys      *keyring.Ring
	payloads  *codec.Storage
	listeners Listeners
	budget    *Budget
	log       *slog.Logger
	now       func() time.Time
}

var _ run.Engine = (*Engine)(nil)

// New returns an engine. Its connection must create clients with [ClientOptions].
func New(opts Options, documents *Documents, tap *projection.Tap) *Engine {
	e := &Engine{
		conn: opts.Connection, address: opts.Address, namespace: opts.Namespace, serverID: opts.ServerID,
		documents: documents, tap: tap, limits: opts.Limits, keys: opts.Keys, payloads: opts.Payloads, log: opts.Log,
		now:      opts.Now,
		maxSteps: opts.MaxSteps, steps: opts.Steps, listeners: opts.Listeners, budget: opts.Budget,
	}
	if e.maxSteps == nil {
		e.maxSteps = func(context.Context, string) (int64, error) { return 0, nil }
	}
	e.requests = newRequests(requestOptions{
		Client: e.temporal, Absent: e.absent, Address: opts.Address, Namespace: opts.Namespace, Identity: opts.ServerID,
	})
	e.notifier = newNotifier(notifierOptions{
		Client: e.temporal, Absent: e.absent, Address: opts.Address, SignalLimit: signalLimit, Sensitive: opts.Sensitive,
	})
	return e
}

// Check implements [run.Engine]. It sends no request: the connection reports its state.
func (e *Engine) Check(context.Context) error {
	_, err := e.temporal()
	return err
}

// temporal returns the client for one request, or a [apperror.Unavailable] with the reason why there is none.
func (e *Engine) temporal() (client.Client, error) {
	c, err := e.conn.Client()
	if err == nil {
		return c, nil
	}
	f := apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal cannot be used").WithDetail("%v",
		err).WithRetry(retryAfter).WithCause(err)
	if down, ok := errors.AsType[*conn.DownError](err); ok {
		f.Message = fmt.Sprintf("temporal cannot be used (%s)", describeDown(down))
		if down.Kind == conn.NamespaceMissing {
			f.Message = noNamespace(down.Address, down.Namespace, err).Message
		}
		f = f.WithRetry(down.RetryAfter()).WithFact("state", string(down.State)).WithFact("kind", string(down.Kind)).
			WithFact("since", down.Since.UTC().Format(time.RFC3339))
	}
	return nil, f
}

// describeDown describes the error briefly.
func describeDown(down *conn.DownError) string {
	switch down.Kind {
	case conn.None:
		return string(down.State)
	case conn.AuthFailed:
		return "it rejects the credentials; see temporal.api_key_file and temporal.tls"
	case conn.TLSError:
		return "the TLS handshake failed; see temporal.tls"
	case conn.Hung:
		return "it accepts connections but does not answer"
	default:
		return string(down.Kind)
	}
}

// Start implements [run.Engine]. A start that never left the process is a definite failure, and so is one of which
// Temporal rejected every try. After a try that may have arrived, no rejection is definite.
func (e *Engine) Start(ctx context.Context, r run.Run) (string, error) {
	c, err := e.temporal()
	if err != nil {
		return "", err
	}
	maxSteps, err := e.maxSteps(ctx, r.Project)
	if err != nil {
		return "", fmt.Errorf("read the step limit of project %q: %w", r.Project, err)
	}
	options := client.StartWorkflowOptions{
		ID:                    contract.WorkflowID(r.ID),
		TaskQueue:             contract.TaskQueue(r.Project),
		EnableEagerStart:      true,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		// The same ID identifies the same run: an earlier try of this call has arrived.
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		Memo:                                     map[string]any{contract.IdentityMemo: r.Identity()},
	}
	ctx, sending := withSending(ctx, func() bool { return e.conn.Status().Kind == conn.Limited })
	defer sending.giveUp()
	handle, err := c.ExecuteWorkflow(ctx, options, contract.RunWorkflow, flow.Input{
		RunID: r.ID, Project: r.Project, Workflow: r.Workflow, Version: r.Version,
		DocumentHash: r.DocumentHash, Input: r.Input, Interpreter: r.Interpreter, StepQuota: r.Metered,
		Granted:   e.grant(ctx, r),
		Sensitive: r.Secrecy, MaxSteps: maxSteps,
	})
	if err == nil {
		return handle.GetRunID(), nil
	}
	if already, ok := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); ok {
		return e.startedBefore(ctx, r, already.RunId)
	}
	switch uncertain, rejection := sending.outcome(); {
	case uncertain:
		return "", unknownStart(err, e.address)
	case rejection != nil: // the SDK's own error may only report that its retries were stopped
		return "", startFault(rejection, e.address, e.namespace)
	}
	if !sending.sent.Load() {
		return "", apperror.New(apperror.Unavailable, apperror.EngineUnavailable,
			"temporal cannot be reached; nothing was started").WithDetail("%s", e.address).
			WithRetry(retryAfter).WithCause(err)
	}
	return "", startFault(err, e.address, e.namespace)
}

// startedBefore returns the execution that Temporal has of a run that is started. An earlier try has arrived, or the
// row of the run was lost and its request is repeated: then with the same arguments, as far as the identity in the memo
// tells, or the start is refused.
func (e *Engine) startedBefore(ctx context.Context, r run.Run, executionID string) (string, error) {
	info, err := e.describe(ctx, r.ID)
	if err != nil {
		return "", unknownStart(err, e.address)
	}
	before, err := e.identity(r.ID, info.GetMemo())
	// Whether the inputs are equal is answered to the actor of the run alone: they may have hidden values.
	if err == nil && keyring.SameKey(before.RequestDigest, r.RequestDigest) &&
		(before.RequestDigest != r.RequestDigest || before.Actor != r.Actor) {
		return "", apperror.New(apperror.Exists, apperror.RequestIDReused,
			"request ID %q was used before with other arguments, for run %s, whose row is not restored yet; use a new "+
				"one", r.RequestID, r.ID).
			WithField("requestId", "belongs to another request")
	}
	return executionID, nil
}

// grant returns the first block of steps of a run with a quota; nil where the run has to request it, as when nothing is
// left.
func (e *Engine) grant(ctx context.Context, r run.Run) *flow.QuotaGrant {
	if !r.Metered || e.steps == nil {
		return nil
	}
	g, err := e.steps.GrantSteps(ctx, quota.Request{Project: r.Project, RunID: r.ID})
	if err != nil || g.Steps == 0 {
		return nil
	}
	return &flow.QuotaGrant{Steps: g.Steps, ResetAt: g.Until, Used: g.Used, Limit: g.Limit}
}

// noNamespace returns the fault for a reachable Temporal that lacks the namespace.
func noNamespace(address, namespace string, cause error) *apperror.Error {
	return apperror.New(apperror.Unavailable, apperror.EngineUnavailable,
		"temporal has no namespace %q; create it, or correct temporal.namespace", namespace).WithDetail("%s", address).
		WithRetry(retryAfter).WithCause(cause)
}

// startFault returns a fault for failures which prove that nothing was started, and an unknown outcome for all others.
func startFault(err error, address, namespace string) error {
	var (
		invalid   *serviceerror.InvalidArgument
		missing   *serviceerror.NamespaceNotFound
		denied    *serviceerror.PermissionDenied
		exhausted *serviceerror.ResourceExhausted
	)
	switch {
	case errors.As(err, &invalid), errors.As(err, &denied):
		return apperror.New(apperror.Refused, apperror.EngineRefused,
			"temporal rejected the start of the run: %v", err).WithDetail("%s", address).WithCause(err)
	case errors.As(err, &missing):
		return noNamespace(address, namespace, err)
	case errors.As(err, &exhausted):
		return apperror.New(apperror.Exhausted, apperror.EngineRefused,
			"temporal is over its limits and did not start the run: %v", err).WithDetail("%s",
			address).WithRetry(retryAfter).WithCause(err)
	default:
		return unknownStart(err, address)
	}
}

// definite reports whether the error of a start proves that this try started nothing.
func definite(err error) bool { return !errors.Is(startFault(err, "", ""), run.ErrUnknownOutcome) }

func unknownStart(err error, address string) error {
	return fmt.Errorf("starting the run at %s: %w: %w", address, run.ErrUnknownOutcome, err)
}
