// Package remote is what a process does to dispatchers in Temporal: describe, start, adopt, terminate, ring. Every act says which
// run it means where one could be hit by mistake, and every answer that somebody decides by is an error of this package.
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

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/flow"
)

// What Temporal answers. Any other error means that nobody knows.
var (
	// ErrGone: the run is not open any more, or there is none.
	ErrGone = errors.New("the dispatcher is not open")
	// ErrOpen: one is open already.
	ErrOpen = errors.New("a dispatcher is open already")
	// ErrTooSoon: the server starts no two runs of one ID within a second.
	ErrTooSoon = errors.New("the server wants a pause before the next start")
	// ErrFenced: the dispatcher has an owner of a higher epoch.
	ErrFenced = errors.New("the dispatcher has a later owner")
	// ErrUnanswered: the server answers, the dispatcher does not.
	ErrUnanswered = errors.New("the dispatcher does not answer")
)

const (
	// callTimeout bounds requests that the server answers by itself.
	callTimeout = 5 * time.Second
	// taskTimeout is how long a workflow task of a dispatcher may take.
	taskTimeout = 4 * time.Second
	// answerTimeout bounds those that the workflow answers: five seconds pass before a task that was meant for a process
	// which is gone goes to another.
	answerTimeout = 10 * time.Second
	// unreadyPause is the pause before a workflow whose task failed is asked again.
	unreadyPause = time.Second
)

// Temporal is the other side.
type Temporal struct {
	// Client returns the client to use now, or why there is none.
	Client func() (client.Client, error)
	// Namespace and Converter are those of the clients.
	Namespace string
	Converter converter.DataConverter
	// CheckEvery is given to the dispatchers that are started.
	CheckEvery time.Duration
}

// Describe returns the open workflow with the dispatcher's ID, nil where there is none.
func (t *Temporal) Describe(ctx context.Context, name inbox.Name) (*contract.Execution, error) {
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
	memo, err := contract.ReadMemo(t.Converter, d.Memo)
	return &contract.Execution{
		WorkflowID: d.WorkflowExecution.ID, RunID: d.WorkflowExecution.RunID, Type: d.WorkflowType.Name, TaskQueue: d.TaskQueueName,
		Memo: memo, Unread: err != nil,
	}, nil
}

// Start starts the dispatcher with the workers that are known, and returns its run ID. [ErrOpen], [ErrTooSoon].
func (t *Temporal) Start(ctx context.Context, name inbox.Name, owner inbox.Owner, workers []contract.Worker) (string, error) {
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
		// Its tasks take milliseconds. One that was on its way to a worker that died is given to another after this time.
		WorkflowTaskTimeout: taskTimeout,
		// Without it the SDK returns the run that is open as if it had been started.
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		Memo:                                     contract.Memo{Name: name, Owner: owner.Holder, Epoch: owner.Epoch, Interpreter: contract.Interpreter}.Fields(),
	}, contract.WorkflowType, flow.Input{
		Version: contract.Interpreter, Name: name, Owner: owner, Workers: workers, CheckEvery: t.CheckEvery,
	})
	if err == nil {
		return run.GetRunID(), nil
	}
	what := fmt.Sprintf("start dispatcher %q", name.DispatcherID())
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return "", fmt.Errorf("%s: %w", what, ErrOpen)
	}
	if exhausted, ok := errors.AsType[*serviceerror.ResourceExhausted](err); ok && exhausted.Cause == enumspb.RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW {
		return "", fmt.Errorf("%s: %w: %w", what, ErrTooSoon, err)
	}
	return "", fmt.Errorf("%s: %w", what, err)
}

// Adopt tells an open dispatcher who owns it. [ErrGone], [ErrFenced], [ErrUnanswered].
func (t *Temporal) Adopt(ctx context.Context, name inbox.Name, runID string, owner inbox.Owner) (contract.State, error) {
	var state contract.State
	err := t.update(ctx, name, client.UpdateWorkflowOptions{
		UpdateID: fmt.Sprintf("adopt-%d-%s", owner.Epoch, owner.Holder), RunID: runID,
		UpdateName: contract.AdoptUpdate, Args: []any{contract.Adoption{ServerID: owner.Holder, Epoch: owner.Epoch}},
	}, &state)
	if err != nil {
		err = fmt.Errorf("adopt dispatcher %q: %w", name.DispatcherID(), err)
	}
	return state, err
}

// Ask returns nil if the run has this owner and says so. [ErrGone], [ErrFenced], [ErrUnanswered].
func (t *Temporal) Ask(ctx context.Context, name inbox.Name, runID string, owner inbox.Owner) error {
	// An update, not a query: only who can go on with its history completes one. Without an ID, for the server would repeat the answer
	// to the adoption.
	err := t.update(ctx, name, client.UpdateWorkflowOptions{
		RunID: runID, UpdateName: contract.AdoptUpdate, Args: []any{contract.Adoption{ServerID: owner.Holder, Epoch: owner.Epoch}},
	}, nil)
	if err != nil {
		err = fmt.Errorf("ask dispatcher %q: %w", name.DispatcherID(), err)
	}
	return err
}

// Register tells the dispatcher, whichever run is open, that a process works for it. [ErrGone], [ErrUnanswered].
func (t *Temporal) Register(ctx context.Context, name inbox.Name, r contract.Registration) error {
	err := t.update(ctx, name, client.UpdateWorkflowOptions{
		UpdateName: contract.RegisterUpdate, Args: []any{r},
	}, nil)
	if err != nil {
		err = fmt.Errorf("register with dispatcher %q: %w", name.DispatcherID(), err)
	}
	return err
}

func (t *Temporal) update(ctx context.Context, name inbox.Name, o client.UpdateWorkflowOptions, into any) error {
	c, err := t.Client()
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	o.WorkflowID, o.WaitForStage = name.DispatcherID(), client.WorkflowUpdateStageCompleted
	// Temporal would first wait five seconds for the process that executed the workflow last, which after a crash is gone. Without
	// this, the answer is late, not wrong.
	_, _ = c.WorkflowService().ResetStickyTaskQueue(within, &workflowservice.ResetStickyTaskQueueRequest{ // see above
		Namespace: t.Namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: o.WorkflowID, RunId: o.RunID},
	})
	err = complete(within, c, o, into)
	application, refused := errors.AsType[*temporal.ApplicationError](err)
	switch {
	case err == nil:
		return nil
	case refused && application.Type() == contract.FencedError:
		return fmt.Errorf("%w: %w", ErrFenced, err)
	case refused:
		// By a release that knows no such update.
		return fmt.Errorf("%w: %w", ErrUnanswered, err)
	case gone(err):
		return ErrGone
	case ctx.Err() == nil && within.Err() != nil:
		// Had the server been away, it would not answer this either.
		if _, err := t.Describe(ctx, name); err != nil {
			return err
		}
		return ErrUnanswered
	}
	return err
}

// complete sends an update again while the server says that the workflow's tasks fail, until ctx ends: one that failed once is no
// sign, and of one that goes on failing the server says so at once.
func complete(ctx context.Context, c client.Client, o client.UpdateWorkflowOptions, into any) error {
	for {
		handle, err := c.UpdateWorkflow(ctx, o)
		if err == nil {
			err = handle.Get(ctx, into)
		}
		if _, unready := errors.AsType[*serviceerror.WorkflowNotReady](err); !unready {
			return err
		}
		timer := time.NewTimer(unreadyPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}

// State asks the dispatcher, whichever run is open, how it is. That leaves nothing in its history.
func (t *Temporal) State(ctx context.Context, name inbox.Name) (contract.State, error) {
	var state contract.State
	c, err := t.Client()
	if err != nil {
		return state, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	value, err := c.QueryWorkflow(ctx, name.DispatcherID(), "", contract.StateQuery)
	if err == nil {
		err = value.Get(&state)
	}
	if err != nil {
		return contract.State{}, fmt.Errorf("ask dispatcher %q for its state: %w", name.DispatcherID(), err)
	}
	return state, nil
}

// Terminate ends that one run. [ErrGone] if it is not open.
func (t *Temporal) Terminate(ctx context.Context, name inbox.Name, runID, reason string) error {
	c, err := t.Client()
	if err != nil {
		return err
	}
	return Terminate(ctx, c, name.DispatcherID(), runID, reason)
}

// Terminate ends that one run of a workflow. [ErrGone] if it is not open.
func Terminate(ctx context.Context, c client.Client, workflowID, runID, reason string) error {
	if runID == "" {
		return fmt.Errorf("terminate dispatcher %q: which run is missing", workflowID)
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

// Ring rings the doorbell. [ErrGone] if no dispatcher is open.
func (t *Temporal) Ring(ctx context.Context, name inbox.Name) error {
	return t.signal(ctx, name, contract.DoorbellSignal, nil)
}

// Late tells the dispatcher which of its workers seem to be gone. [ErrGone] if no dispatcher is open.
func (t *Temporal) Late(ctx context.Context, name inbox.Name, serverIDs []string) error {
	return t.signal(ctx, name, contract.LateSignal, contract.Late{ServerIDs: serverIDs})
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
