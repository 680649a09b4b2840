// Package remote has the requests of a process to dispatchers in Temporal: describe, start, adopt, ask, register,
// terminate, signal. A request names the run ID where it could affect the wrong run. Answers that callers decide by are
// errors of this package.
package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/dispatcherflow"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

// Answers of Temporal. After any other error the state is unknown.
var (
	// ErrGone: the run is closed, or does not exist.
	ErrGone = errors.New("the dispatcher is not open")
	// ErrOpen: one is open already.
	ErrOpen = errors.New("a dispatcher is open already")
	// ErrTooSoon: the server rejects two starts with one ID within a second.
	ErrTooSoon = errors.New("the server requires a pause before the next start")
	// ErrFenced: the dispatcher has an owner with a higher epoch.
	ErrFenced = errors.New("the dispatcher has a later owner")
	// ErrUnanswered: the server answers, the dispatcher does not.
	ErrUnanswered = errors.New("the dispatcher does not answer")
)

const (
	// callTimeout limits requests that the server answers by itself.
	callTimeout = 5 * time.Second
	// taskTimeout is the timeout of a dispatcher's workflow tasks.
	taskTimeout = 4 * time.Second
	// answerTimeout limits requests that the workflow answers: a task for the sticky queue of a dead process is given to
	// another process after five seconds.
	answerTimeout = 10 * time.Second
	// unreadyPause is the pause before a workflow whose task failed is asked again.
	unreadyPause = time.Second
)

// Temporal sends requests about dispatchers to Temporal.
type Temporal struct {
	// Client returns the current client, or an error while there is none.
	Client func() (client.Client, error)
	// Namespace and Converter are those of the clients.
	Namespace string
	Converter converter.DataConverter
	// CheckEvery is passed to the dispatchers that are started.
	CheckEvery time.Duration
}

// Describe returns the open workflow with the dispatcher's ID, nil if there is none.
func (t *Temporal) Describe(ctx context.Context, name inbox.Name) (*wire.Execution, error) {
	c, err := t.Client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	d, err := c.DescribeWorkflow(ctx, name.DispatcherID(), "")
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("describe dispatcher %q: %w", name.DispatcherID(), err)
	}
	if d.Status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING && d.Status != enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED {
		return nil, nil
	}
	memo, err := wire.ReadMemo(t.Converter, d.Memo)
	return &wire.Execution{
		WorkflowID: d.WorkflowExecution.ID, RunID: d.WorkflowExecution.RunID, Type: d.WorkflowType.Name,
		TaskQueue: d.TaskQueueName,
		Memo:      memo, Unread: err != nil,
	}, nil
}

// Start starts the dispatcher with its initial workers, and returns the run ID. It returns [ErrOpen] and [ErrTooSoon].
func (t *Temporal) Start(ctx context.Context, name inbox.Name, owner inbox.Owner,
	workers []dispatchtype.RegisteredWorker) (string, error) {
	c, err := t.Client()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: name.DispatcherID(), TaskQueue: name.TaskQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		// Its tasks take milliseconds. A task that was sent to a worker that died is given to another worker after this time.
		WorkflowTaskTimeout: taskTimeout,
		// Without it the SDK returns the run that is open as if it had been started.
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		Memo: wire.Memo{
			Name: name, Owner: owner.Holder, Epoch: owner.Epoch, Interpreter: wire.Interpreter}.Fields(),
	}, wire.WorkflowType, dispatcherflow.Input{
		Version: wire.Interpreter, Name: name, Owner: owner, Workers: workers, CheckEvery: t.CheckEvery,
	})
	if err == nil {
		return run.GetRunID(), nil
	}
	what := fmt.Sprintf("start dispatcher %q", name.DispatcherID())
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return "", fmt.Errorf("%s: %w", what, ErrOpen)
	}
	if exhausted, ok := errors.AsType[*serviceerror.ResourceExhausted](err); ok &&
		exhausted.Cause == enumspb.RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW {
		return "", fmt.Errorf("%s: %w: %w", what, ErrTooSoon, err)
	}
	return "", fmt.Errorf("%s: %w", what, err)
}

// Adopt changes the owner of an open dispatcher. It returns [ErrGone], [ErrFenced] and [ErrUnanswered].
func (t *Temporal) Adopt(ctx context.Context, name inbox.Name, runID string,
	owner inbox.Owner) (dispatchtype.State, error) {
	var state dispatchtype.State
	err := t.update(ctx, name, client.UpdateWorkflowOptions{
		UpdateID: fmt.Sprintf("adopt-%d-%s", owner.Epoch, owner.Holder), RunID: runID,
		UpdateName: wire.AdoptUpdate, Args: []any{wire.Adoption{ServerID: owner.Holder, Epoch: owner.Epoch}},
	}, &state)
	if err != nil {
		err = fmt.Errorf("adopt dispatcher %q: %w", name.DispatcherID(), err)
	}
	return state, err
}

// Ask returns nil if the run answers and has this owner. It returns [ErrGone], [ErrFenced] and [ErrUnanswered].
func (t *Temporal) Ask(ctx context.Context, name inbox.Name, runID string, owner inbox.Owner) error {
	// An update, not a query: only a worker that can replay the history completes it. Without an ID, because the server
	// would repeat the result of the adoption.
	err := t.update(ctx, name, client.UpdateWorkflowOptions{
		RunID: runID, UpdateName: wire.AdoptUpdate, Args: []any{wire.Adoption{ServerID: owner.Holder, Epoch: owner.Epoch}},
	}, nil)
	if err != nil {
		err = fmt.Errorf("ask dispatcher %q: %w", name.DispatcherID(), err)
	}
	return err
}

// Register registers a process with the dispatcher, whichever run is open. It returns [ErrGone] and [ErrUnanswered].
func (t *Temporal) Register(ctx context.Context, name inbox.Name, r wire.Registration) error {
	err := t.update(ctx, name, client.UpdateWorkflowOptions{
		UpdateName: wire.RegisterUpdate, Args: []any{r},
	}, nil)
	if err != nil {
		err = fmt.Errorf("register with dispatcher %q: %w", name.DispatcherID(), err)
	}
	return err
}

// Detach lets any worker execute the next workflow task of a dispatcher. Temporal would first wait five seconds for the
// worker that executed the last one, which may be stopping or dead.
func (t *Temporal) Detach(ctx context.Context, name inbox.Name) {
	if c, err := t.Client(); err == nil {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		t.detach(ctx, c, name.DispatcherID(), "")
	}
}

// detach ignores an error: with it, the task is only executed later.
func (t *Temporal) detach(ctx context.Context, c client.Client, workflowID, runID string) {
	_, _ = c.WorkflowService().ResetStickyTaskQueue(ctx, &workflowservice.ResetStickyTaskQueueRequest{ // see above
		Namespace: t.Namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: workflowID, RunId: runID},
	})
}

func (t *Temporal) update(ctx context.Context, name inbox.Name, o client.UpdateWorkflowOptions, into any) error {
	c, err := t.Client()
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	o.WorkflowID, o.WaitForStage = name.DispatcherID(), client.WorkflowUpdateStageCompleted
	t.detach(within, c, o.WorkflowID, o.RunID)
	err = complete(within, c, o, into)
	application, refused := errors.AsType[*temporal.ApplicationError](err)
	switch {
	case err == nil:
		return nil
	case refused && application.Type() == wire.FencedError:
		return fmt.Errorf("%w: %w", ErrFenced, err)
	case refused:
		// A release without this update rejects it.
		return fmt.Errorf("%w: %w", ErrUnanswered, err)
	case gone(err):
		return ErrGone
	case ctx.Err() == nil && within.Err() != nil:
		// If the server were unavailable, it would not answer this request either.
		if _, err := t.Describe(ctx, name); err != nil {
			return err
		}
		return ErrUnanswered
	}
	return err
}

// complete repeats an update while the server reports that the workflow's tasks fail, until ctx ends: a single failure
// is no evidence, and for a permanent one the server answers at once.
func complete(ctx context.Context, c client.Client, o client.UpdateWorkflowOptions, into any) error {
	for {
		handle, err := c.UpdateWorkflow(ctx, o)
		if err == nil {
			err = handle.Get(ctx, into)
		}
		if _, unready := errors.AsType[*serviceerror.WorkflowNotReady](err); !unready || !loop.Sleep(ctx, unreadyPause) {
			return err
		}
	}
}

// State queries the dispatcher, whichever run is open. A query leaves nothing in the history.
func (t *Temporal) State(ctx context.Context, name inbox.Name) (dispatchtype.State, error) {
	var state dispatchtype.State
	c, err := t.Client()
	if err != nil {
		return state, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	value, err := c.QueryWorkflow(ctx, name.DispatcherID(), "", wire.StateQuery)
	if err == nil {
		err = value.Get(&state)
	}
	if err != nil {
		return dispatchtype.State{}, fmt.Errorf("ask dispatcher %q for its state: %w", name.DispatcherID(), err)
	}
	return state, nil
}

// Terminate terminates that run. It returns [ErrGone] if the run is not open.
func (t *Temporal) Terminate(ctx context.Context, name inbox.Name, runID, reason string) error {
	c, err := t.Client()
	if err != nil {
		return err
	}
	return Terminate(ctx, c, name.DispatcherID(), runID, reason)
}

// Terminate terminates that run of a workflow. It returns [ErrGone] if the run is not open.
func Terminate(ctx context.Context, c client.Client, workflowID, runID, reason string) error {
	if runID == "" {
		return fmt.Errorf("terminate dispatcher %q: missing run ID", workflowID)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := c.TerminateWorkflow(ctx, workflowID, runID, reason)
	switch {
	case gone(err):
		return ErrGone
	case err != nil:
		return fmt.Errorf("terminate dispatcher %q, run %q: %w", workflowID, runID, err)
	}
	return nil
}

// Ring sends the doorbell signal. It returns [ErrGone] if no dispatcher is open.
func (t *Temporal) Ring(ctx context.Context, name inbox.Name) error {
	return t.signal(ctx, name, wire.DoorbellSignal, nil)
}

// Late signals which workers seem to be dead. It returns [ErrGone] if no dispatcher is open.
func (t *Temporal) Late(ctx context.Context, name inbox.Name, serverIDs []string) error {
	return t.signal(ctx, name, wire.LateSignal, wire.Late{ServerIDs: serverIDs})
}

func (t *Temporal) signal(ctx context.Context, name inbox.Name, signal string, arg any) error {
	c, err := t.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = c.SignalWorkflow(ctx, name.DispatcherID(), "", signal, arg)
	switch {
	case gone(err):
		return ErrGone
	case err != nil:
		return fmt.Errorf("signal %q: %w", signal, err)
	}
	return nil
}

func gone(err error) bool {
	_, ok := errors.AsType[*serviceerror.NotFound](err)
	return ok
}
