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
	"github.com/signalbox-dev/signalbox/internal/engine/claimcheck"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/kin"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/engine/steer"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/seal"
)

const (
	// retryAfter is what callers are told when Temporal is there and did not take a request.
	retryAfter = 5 * time.Second
)

// Connection is how the engine reaches Temporal; a [conn.Manager] is one. No client is kept over a request.
type Connection interface {
	Client() (client.Client, error)
	Status() conn.Status
	Register(name string, factory conn.Factory) error
	Unregister(ctx context.Context, name string) error
	ResetBreaker()
}

// Options say how to reach Temporal.
type Options struct {
	Connection Connection
	// Address and Namespace are where the connection leads.
	Address, Namespace string
	// ServerID is this process start's identity.
	ServerID string
	// Keys seal what Temporal keeps.
	Keys *seal.Ring
	// Payloads keep what is too large for Temporal; nil: nothing is.
	Payloads *claimcheck.Storage
	// Sensitive returns the texts that are to be hidden in values of a run; nil: there are none.
	Sensitive func(ctx context.Context, runID string, values ...json.RawMessage) ([]string, error)
	// MaxSteps returns how many steps a new run of a project may enter; nil: there is no bound.
	MaxSteps func(ctx context.Context, project string) (int64, error)
	// Limits of the interpreter: workers and repairs must have the same.
	Limits flow.Limits
	Log    *slog.Logger
	Now    func() time.Time
}

// Engine starts, steers and repairs runs.
type Engine struct {
	*steer.Requests
	*kin.Teller

	conn      Connection
	address   string
	namespace string
	serverID  string
	documents *Documents
	tap       *projection.Tap
	maxSteps  func(ctx context.Context, project string) (int64, error)
	limits    flow.Limits
	keys      *seal.Ring
	payloads  *claimcheck.Storage
	log       *slog.Logger
	now       func() time.Time
}

var _ run.Engine = (*Engine)(nil)

// New returns an engine. Its connection's clients are made with [ClientOptions].
func New(opts Options, documents *Documents, tap *projection.Tap) *Engine {
	e := &Engine{
		conn: opts.Connection, address: opts.Address, namespace: opts.Namespace, serverID: opts.ServerID,
		documents: documents, tap: tap, limits: opts.Limits, keys: opts.Keys, payloads: opts.Payloads, log: opts.Log, now: opts.Now,
		maxSteps: opts.MaxSteps,
	}
	if e.maxSteps == nil {
		e.maxSteps = func(context.Context, string) (int64, error) { return 0, nil }
	}
	e.Requests = steer.New(steer.Options{
		Client: e.temporal, Absent: e.absent, Address: opts.Address, Namespace: opts.Namespace, Identity: opts.ServerID,
	})
	e.Teller = kin.New(kin.Options{
		Client: e.temporal, Absent: e.absent, Address: opts.Address, SignalLimit: signalLimit, Sensitive: opts.Sensitive,
	})
	return e
}

// Check implements [run.Engine]. It asks nobody: the connection knows its state.
func (e *Engine) Check(context.Context) error {
	_, err := e.temporal()
	return err
}

// temporal returns the client for one request, or a [fault.Unavailable] that says why there is none.
func (e *Engine) temporal() (client.Client, error) {
	c, err := e.conn.Client()
	if err == nil {
		return c, nil
	}
	f := fault.New(fault.Unavailable, fault.EngineUnavailable, "%v", err).WithRetry(retryAfter).WithCause(err)
	if down, ok := errors.AsType[*conn.DownError](err); ok {
		f.Message = fmt.Sprintf("temporal at %s cannot be used (%s)", down.Address, describeDown(down))
		if down.Kind == conn.NamespaceMissing {
			f.Message = noNamespace(down.Address, down.Namespace, err).Message
		}
		f = f.WithRetry(down.RetryAfter()).WithFact("state", string(down.State)).WithFact("kind", string(down.Kind)).
			WithFact("since", down.Since.UTC().Format(time.RFC3339))
	}
	return nil, f
}

// describeDown says in a few words what is wrong.
func describeDown(down *conn.DownError) string {
	switch down.Kind {
	case conn.None:
		return string(down.State)
	case conn.AuthFailed:
		return "it refuses the credentials; see temporal.api_key_file and temporal.tls"
	case conn.TLSError:
		return "there is no agreement on TLS; see temporal.tls"
	case conn.Hung:
		return "it accepts connections and does not answer"
	default:
		return string(down.Kind)
	}
}

// Start implements [run.Engine]. A start that never left the process is a definite failure, and so is one of which Temporal refused every
// try. After a try that may have arrived no refusal is definite.
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
		// The same ID again is the same run: an earlier try of this call that did arrive.
		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}
	ctx, sending := withSending(ctx, func() bool { return e.conn.Status().Kind == conn.Limited })
	defer sending.giveUp()
	handle, err := c.ExecuteWorkflow(ctx, options, contract.RunWorkflow, flow.Input{
		RunID: r.ID, Project: r.Project, Workflow: r.Workflow, Version: r.Version,
		DocumentHash: r.DocumentHash, Input: r.Input, Interpreter: r.Interpreter, StepQuota: r.Metered,
		Sensitive: r.Secrecy, MaxSteps: maxSteps,
	})
	if err == nil {
		return handle.GetRunID(), nil
	}
	if already, ok := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); ok {
		return already.RunId, nil
	}
	switch doubt, refusal := sending.outcome(); {
	case doubt:
		return "", unknownStart(err, e.address)
	case refusal != nil: // the SDK's own error may be that its tries were ended
		return "", startFault(refusal, e.address, e.namespace)
	}
	if !sending.sent.Load() {
		return "", fault.New(fault.Unavailable, fault.EngineUnavailable,
			"temporal at %s cannot be reached; nothing was started", e.address).
			WithRetry(retryAfter).WithCause(err)
	}
	return "", startFault(err, e.address, e.namespace)
}

// noNamespace is the fault for a Temporal that is there, without the namespace.
func noNamespace(address, namespace string, cause error) *fault.Fault {
	return fault.New(fault.Unavailable, fault.EngineUnavailable,
		"temporal at %s has no namespace %q; create it, or correct temporal.namespace", address, namespace).
		WithRetry(retryAfter).WithCause(cause)
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
		return noNamespace(address, namespace, err)
	case errors.As(err, &exhausted):
		return fault.New(fault.Exhausted, fault.EngineRefused,
			"temporal at %s is over its limits and did not start the run: %v", address, err).WithRetry(retryAfter).WithCause(err)
	default:
		return unknownStart(err, address)
	}
}

// definite reports whether the error of a start proves that this try started nothing.
func definite(err error) bool { return !errors.Is(startFault(err, "", ""), run.ErrUnknownOutcome) }

func unknownStart(err error, address string) error {
	return fmt.Errorf("starting the run at %s: %w: %w", address, run.ErrUnknownOutcome, err)
}
