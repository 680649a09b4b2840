package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/jellydator/ttlcache/v3"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/engine/schedule"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
	"github.com/signalbox-dev/signalbox/internal/telemetry/tracing"
)

const (
	// retryAfter is the retry delay returned to callers after Temporal rejected or did not answer a request.
	retryAfter = 5 * time.Second
)

// Options configure an engine.
type Options struct {
	// Connection has the options of the connection to Temporal. The engine completes those of its clients.
	Connection conn.Options
	// Address and Namespace are those of the connection.
	Address, Namespace string
	// ServerID identifies this start of the process.
	ServerID string
	// Keys seal the payloads that Temporal stores.
	Keys *keyring.Ring
	// Values store payloads that are too large for Temporal, up to MaxValueBytes each. nil: none are stored.
	Values        codec.Values
	MaxValueBytes int
	// Documents compile the documents of runs.
	Documents *Documents
	// Records receive the records of accepted workflow tasks. Observer is notified of each write. Ended receives the
	// numbers of steps that have ended in an accepted workflow task; it must not block.
	Records  projection.Store
	Observer projection.Observer
	Ended    func(ctx context.Context, steps map[interp.Status]int64)
	// Schedules has the timers of the published workflows and their events, and Store the reads of their comparison with
	// Temporal's schedules.
	Schedules schedule.Events
	Store     schedule.Store
	// Tracing records spans of runs. nil: none are recorded.
	Tracing *tracing.Tracer
	// Sensitive returns the texts that must be redacted in values of a run. nil: there are none.
	Sensitive func(ctx context.Context, runID string, values ...json.RawMessage) ([]string, error)
	// MaxSteps returns the number of steps that a new run of a project may enter. nil: unlimited.
	MaxSteps func(ctx context.Context, project string) (int64, error)
	// Listeners receive those of open runs whose rows are repaired. nil: listeners are not restored.
	Listeners Listeners
	// Steps grants runs their first block of steps. nil: runs request it.
	Steps Steps
	// CallTimeout and CallResult limit HTTP calls: by time, and by the size of their results. 0: the defaults. Workers
	// and repairs require the same limits.
	CallTimeout time.Duration
	CallResult  int64
	// ProgramTimeout limits programs of tasks without their own timeout. 0: the default.
	ProgramTimeout time.Duration
	Log            *slog.Logger
	Now            func() time.Time
}

// Steps grants steps of the quotas of projects.
type Steps interface {
	// GrantSteps repeats a grant that the run has not received.
	GrantSteps(ctx context.Context, r quota.Request) (quota.Grant, error)
}

// Engine starts, controls, repairs and diagnoses runs. It is safe for concurrent use.
type Engine struct {
	*requests
	*notifier

	manager   *conn.Manager
	address   string
	namespace string
	serverID  string
	documents *Documents
	tap       *projection.Tap
	writer    *projection.Writer
	repeated  *repeated
	actions   *Actions
	schedules *schedule.Reconciler
	maxSteps  func(ctx context.Context, project string) (int64, error)
	steps     Steps
	limits    flow.Limits
	keys      *keyring.Ring
	payloads  *codec.Storage
	failures  converter.FailureConverter
	listeners Listeners
	budget    *Budget
	// runnerQueues are the answers of Runners, by project.
	runnerQueues *ttlcache.Cache[string, diagnose.ProgramQueue]
	// logs are the answers of RunningLogs, by run.
	logs *ttlcache.Cache[string, []run.AttemptLog]
	log  *slog.Logger
	now  func() time.Time
}

var _ run.Engine = (*Engine)(nil)

// New returns an engine with its connection, which does not dial before [conn.Manager.Start].
func New(opts Options) (*Engine, error) {
	e := &Engine{
		address: opts.Address, namespace: opts.Namespace, serverID: opts.ServerID, documents: opts.Documents,
		limits: flow.DefaultLimits(), keys: opts.Keys, failures: codec.FailureConverter(opts.Keys), log: opts.Log,
		now: opts.Now, maxSteps: opts.MaxSteps, steps: opts.Steps, listeners: opts.Listeners,
		repeated: newRepeated(), actions: NewActions(), budget: NewBudget(BudgetOptions{Now: time.Now}),
		runnerQueues: ttlcache.New(ttlcache.WithCapacity[string, diagnose.ProgramQueue](maxRunnerQueues),
			ttlcache.WithTTL[string, diagnose.ProgramQueue](runnersFor),
			ttlcache.WithDisableTouchOnHit[string, diagnose.ProgramQueue]()),
		logs: newLogs(),
	}
	e.limits.CallTimeout = cmp.Or(opts.CallTimeout, e.limits.CallTimeout)
	e.limits.CallResult = cmp.Or(opts.CallResult, e.limits.CallResult)
	e.limits.ProgramTimeout = cmp.Or(opts.ProgramTimeout, e.limits.ProgramTimeout)
	if opts.Values != nil {
		e.payloads = codec.New(opts.Values, codec.Options{MaxBytes: opts.MaxValueBytes})
	}
	if e.maxSteps == nil {
		e.maxSteps = func(context.Context, string) (int64, error) { return 0, nil }
	}
	e.writer = projection.NewWriter(opts.Records, opts.Observer, opts.Now)
	e.tap = projection.NewTap(opts.Now, e.writer.Accept)
	e.tap.HoldBack(e.writer.Wait)
	e.tap.OnUnsure(e.writer.Unsure)
	if opts.Ended != nil {
		e.tap.OnEnded(func(ctx context.Context, queue string, steps map[interp.Status]int64) {
			if _, ours := contract.ProjectOf(queue); ours {
				opts.Ended(ctx, steps)
			}
		})
	}
	e.requests = newRequests(requestOptions{
		Client: e.temporal, Absent: e.absent, Address: opts.Address, Namespace: opts.Namespace, Identity: opts.ServerID,
	})
	e.notifier = newNotifier(notifierOptions{
		Client: e.temporal, Absent: e.absent, Address: opts.Address, SignalLimit: signalLimit, Sensitive: opts.Sensitive,
	})
	if err := e.connect(opts); err != nil {
		return nil, err
	}
	sealedWith := ""
	if e.keys.Seals() {
		sealedWith = e.keys.Active()
	}
	e.schedules = schedule.New(schedule.Options{
		Client: e.manager.Client, Events: opts.Schedules, Store: opts.Store, Key: sealedWith, Now: opts.Now})
	return e, nil
}

// connect creates the connection, whose clients have what the engine adds.
func (e *Engine) connect(opts Options) (err error) {
	complete := func(options client.Options) client.Options {
		options = e.clientOptions(options)
		if opts.Tracing != nil {
			options.Interceptors = append(options.Interceptors, TraceRuns(opts.Tracing, options.DataConverter))
		}
		return options
	}
	options := opts.Connection
	options.Client = complete(options.Client)
	if reload := options.Reload; reload != nil {
		options.Reload = func() (client.Options, error) {
			read, err := reload()
			if err != nil {
				return client.Options{}, err
			}
			return complete(read), nil
		}
	}
	e.manager, err = conn.New(options)
	return err
}

// Manager returns the connection to Temporal.
func (e *Engine) Manager() *conn.Manager { return e.manager }

// Writer returns the writer of the records of accepted workflow tasks.
func (e *Engine) Writer() *projection.Writer { return e.writer }

// Schedules returns the part that keeps Temporal's schedules in line with the published workflows.
func (e *Engine) Schedules() *schedule.Reconciler { return e.schedules }

// Actions returns the counters of billable actions.
func (e *Engine) Actions() *Actions { return e.actions }

// Budget returns the budget of the requests that diagnose, compare and rebuild runs.
func (e *Engine) Budget() *Budget { return e.budget }

// Payloads returns the storage of the payloads that are too large for Temporal; nil if none are stored.
func (e *Engine) Payloads() *codec.Storage { return e.payloads }

// Converter returns the converter that seals what other workflows of the process pass to Temporal.
func (e *Engine) Converter() converter.DataConverter { return codec.Converter(e.keys) }

// Repeated reports whether the current workflow task of an execution was dispatched before: to a worker that was lost,
// or that failed it.
func (e *Engine) Repeated(executionID string) bool { return e.repeated.Has(executionID) }

// Executes reports whether a workflow task of an execution is in this process.
func (e *Engine) Executes(runID, executionID string) bool { return e.tap.Executes(runID, executionID) }

// Holds reports whether this process has records of a run that are not written yet.
func (e *Engine) Holds(runID string) bool { return e.tap.Holds(runID) || e.writer.Holds(runID) }

// Permanent reports whether an error of [Engine.Rebuild] means that another attempt fails in the same way until
// something is deployed.
func (e *Engine) Permanent(err error) bool { return projection.Unusable(err) }

// OnTaskFailure registers fn for every workflow task that fails in this process, at the first attempt: the SDK lets
// later ones time out. It must be called before the connection is started. fn must not block.
func (e *Engine) OnTaskFailure(fn func(diagnose.TaskFailure)) {
	e.tap.OnFailure(func(workflowID string, why *workflowservice.RespondWorkflowTaskFailedRequest, at time.Time) {
		text := TaskFailureText(e.failures, why.GetFailure())
		fn(diagnose.TaskFailure{
			RunID: workflowID, At: at, Text: text, Cause: TaskFailureCause(why.GetCause(), why.GetFailure(), text),
			Build: why.GetDeployment(). //nolint:staticcheck // the SDK computes it from the binary; its successor needs versioning
							GetBuildId(),
		})
	})
}

// CodecEndpoint returns the path and the handler of the codec endpoint for Temporal's UI, and the limit of its requests
// in bytes. note stores an audit entry before each use.
func (e *Engine) CodecEndpoint(note func(ctx context.Context, namespace string) error) (
	path string, endpoint http.Handler, maxBytes int64, err error,
) {
	endpoint, err = codec.Endpoint(e.keys, e.payloads.External(), note)
	return codec.EndpointPath, endpoint, codec.EndpointMaxBytes, err
}

// Check implements [run.Engine]. It sends no request: the connection reports its state.
func (e *Engine) Check(context.Context) error {
	_, err := e.temporal()
	return err
}

// temporal returns the client for one request, or a [apperror.Unavailable] with the reason why there is none.
func (e *Engine) temporal() (client.Client, error) {
	c, err := e.manager.Client()
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
	ctx, sending := withSending(ctx, func() bool { return e.manager.Status().Kind == conn.Limited })
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
// shows, or the start is refused.
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
	granted := quotaGrant(g)
	return &granted
}

func quotaGrant(g quota.Grant) flow.QuotaGrant {
	return flow.QuotaGrant{Steps: g.Steps, ResetAt: g.Until, Used: g.Used, Limit: g.Limit}
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
