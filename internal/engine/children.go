package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/child"
)

// Children starts and cancels child runs.
type Children interface {
	Start(ctx context.Context, req child.Request) (run.Run, error)
	Cancel(ctx context.Context, project, id, reason string) error
}

const (
	// notifyTimeout bounds the notification of one parent.
	notifyTimeout = 10 * time.Second
)

// notifierOptions configure the access to Temporal.
type notifierOptions struct {
	// Client returns the client for one request, or a [apperror.Unavailable].
	Client func() (client.Client, error)
	// Absent returns the reason why Temporal has no open execution of a run: [run.ErrNotKnown] or [run.ErrClosed].
	Absent func(ctx context.Context, runID string) error
	// Sensitive returns the texts that must be redacted in values of a run. nil: there are none.
	Sensitive func(ctx context.Context, runID string, values ...json.RawMessage) ([]string, error)
	// Address is Temporal's address. SignalLimit is the part of Temporal's rejection of a signal which means that a
	// later execution will accept it.
	Address, SignalLimit string
}

// notifier notifies parent runs of the completion of their children by a signal.
type notifier struct{ opts notifierOptions }

var _ child.Notifier = (*notifier)(nil)

// newNotifier returns a notifier.
func newNotifier(opts notifierOptions) *notifier { return &notifier{opts} }

// NotifyParent implements [child.Notifier]. It sends the result that Temporal holds, not that of the row, which is a
// projection.
func (n *notifier) NotifyParent(ctx context.Context, r run.Run, canceled bool) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	c, err := n.opts.Client()
	if err != nil {
		return err
	}
	ended, err := n.result(ctx, c, r)
	if err != nil {
		return err
	}
	ended.ParentCanceled = canceled
	if ended.Sensitive, err = n.sensitive(ctx, ended); err != nil {
		return err
	}
	return n.deliver(ctx, c, r, ended)
}

// NotifyUnreadable implements [child.Notifier].
func (n *notifier) NotifyUnreadable(ctx context.Context, r run.Run, why error) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	c, err := n.opts.Client()
	if err != nil {
		return err
	}
	ended := undeliverable(flow.ChildEnded{Key: r.Parent.Key, RunID: r.ID}, "Result unreadable", why.Error())
	return n.deliver(ctx, c, r, ended)
}

// deliver sends the signal to the parent.
func (n *notifier) deliver(ctx context.Context, c client.Client, r run.Run, ended flow.ChildEnded) error {
	err := c.SignalWorkflow(ctx, contract.WorkflowID(r.Parent.RunID), "", contract.ChildSignal, ended)
	var invalid *serviceerror.InvalidArgument
	if errors.As(err, &invalid) && !strings.Contains(invalid.Message, n.opts.SignalLimit) {
		// Temporal will never accept it. The parent must not wait for it.
		ended = undeliverable(ended, "Result not delivered", "Temporal rejected its result: "+invalid.Message)
		err = c.SignalWorkflow(ctx, contract.WorkflowID(r.Parent.RunID), "", contract.ChildSignal, ended)
	}
	var missing *serviceerror.NotFound
	switch {
	case err == nil:
		return nil
	case errors.As(err, &missing):
		return n.opts.Absent(ctx, r.Parent.RunID)
	default:
		return apperror.New(apperror.Unavailable, apperror.EngineUnavailable,
			"temporal did not accept the result of run %s for run %s", r.ID,
			r.Parent.RunID).WithDetail("%s: %v", n.opts.Address, err).WithRetry(retryAfter).WithCause(err)
	}
}

// undeliverable returns a failure in place of a result that cannot be delivered.
func undeliverable(ended flow.ChildEnded, title, detail string) flow.ChildEnded {
	ended.Output, ended.Status = nil, string(run.Failed)
	ended.Error = &dsl.Error{
		Type: dsl.ErrorTypeRuntime, Status: http.StatusInternalServerError, Title: title, Detail: detail}
	return ended
}

// result reads the result of a run from Temporal. If Temporal has no execution of the run, the result is that of the
// row.
func (n *notifier) result(ctx context.Context, c client.Client, r run.Run) (flow.ChildEnded, error) {
	ended := flow.ChildEnded{Key: r.Parent.Key, RunID: r.ID, Status: string(r.Status), Error: r.Error}
	if r.Status == run.Canceled || r.Status == run.Terminated {
		return ended, nil
	}
	var output json.RawMessage
	err := c.GetWorkflow(ctx, contract.WorkflowID(r.ID), "").Get(ctx, &output)
	var missing *serviceerror.NotFound
	var execution *temporal.WorkflowExecutionError
	switch {
	case errors.As(err, &missing):
		ended.Output = r.Output
	case ctx.Err() != nil:
		return ended, n.unanswered(err)
	case err == nil:
		ended.Status, ended.Output, ended.Error = string(run.Completed), output, nil
	case errors.As(err, &execution): // any other error concerns the request, not the run
		return childFailure(ended, err)
	case codec.Unreadable(err):
		return ended, fmt.Errorf("%w: %w", child.ErrUnreadable, err)
	default:
		return ended, n.unanswered(err)
	}
	return ended, nil
}

// childFailure returns the result of a run without a completed execution. If the row is completed, the run was reset in
// Temporal afterwards and ended there in another way.
func childFailure(ended flow.ChildEnded, err error) (flow.ChildEnded, error) {
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.HasDetails() {
		if err := app.Details(&dsl.Error{}); codec.Unreadable(err) {
			return ended, fmt.Errorf("%w: %w", child.ErrUnreadable, err)
		}
	}
	status, runError := flow.Failed(err)
	switch {
	case ended.Status == string(run.Completed):
		ended.Status, ended.Error = string(status), runError
	case runError != nil && ended.Status == string(status):
		ended.Error = runError
	}
	return ended, nil
}

// sensitive returns the texts that the parent must redact in the result.
func (n *notifier) sensitive(ctx context.Context, ended flow.ChildEnded) ([]string, error) {
	if n.opts.Sensitive == nil {
		return nil, nil
	}
	runError, err := json.Marshal(ended.Error)
	if err != nil {
		return nil, fmt.Errorf("encoding the error of run %s: %w", ended.RunID, err)
	}
	return n.opts.Sensitive(ctx, ended.RunID, ended.Output, runError)
}

func (n *notifier) unanswered(err error) error {
	return apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal does not answer").WithDetail("%s: %v",
		n.opts.Address, err).
		WithRetry(retryAfter).WithCause(err)
}

// registerChildActivities registers the activities that start and cancel child runs.
func registerChildActivities(r worker.ActivityRegistry, children Children) {
	a := childActivities{children}
	r.RegisterActivityWithOptions(a.start, activity.RegisterOptions{Name: flow.ChildActivity})
	r.RegisterActivityWithOptions(a.cancel, activity.RegisterOptions{Name: flow.CancelChildActivity})
}

type childActivities struct{ children Children }

func (a childActivities) start(ctx context.Context, r flow.ChildRequest) (flow.ChildStarted, error) {
	started, err := a.children.Start(ctx, child.Request{
		Project: r.Project, Parent: r.Parent, Path: r.Path, Key: r.Key, Workflow: r.Workflow, Version: r.Version,
		Input: r.Input, Awaited: r.Awaited,
		Sensitive: r.Sensitive,
	})
	if err != nil {
		return flow.ChildStarted{}, rejectedChild(err)
	}
	return flow.ChildStarted{RunID: started.ID}, nil
}

func (a childActivities) cancel(ctx context.Context, r flow.CancelChildRequest) error {
	return a.children.Cancel(ctx, r.Project, r.RunID, "run "+r.Parent+" no longer waits for it")
}

// rejectedChild converts a permanent rejection to an error of the task. Temporal retries every other error.
func rejectedChild(err error) error {
	runError := dsl.Error{Detail: err.Error()}
	f, isFault := apperror.From(err)
	switch {
	case errors.Is(err, run.ErrAncestorCanceled):
		runError.Type, runError.Status, runError.Title = interp.ErrorTypeChildCanceled, http.StatusConflict, "Child canceled"
	case errors.Is(err, child.ErrTooDeep):
		runError.Type, runError.Status, runError.Title = dsl.ErrorTypeRuntime, http.StatusLoopDetected, "Too deep"
	case !isFault, apperror.Temporary(err):
		return err
	case f.Reason == apperror.InputTooLarge:
		runError.Type, runError.Status = dsl.ErrorTypeValidation, http.StatusRequestEntityTooLarge
		runError.Title = "Input too large"
	case f.Class == apperror.Invalid:
		runError.Type, runError.Status, runError.Title = dsl.ErrorTypeValidation, http.StatusBadRequest, "Input refused"
	case f.Class == apperror.NotFound:
		runError.Type, runError.Status, runError.Title = dsl.ErrorTypeConfiguration, http.StatusNotFound, "Not found"
	case f.Reason == apperror.GenerationLimit:
		runError.Type, runError.Status = dsl.ErrorTypeRuntime, http.StatusLoopDetected
		runError.Title = "Too many generations"
	case f.Reason == apperror.WorkflowPaused:
		runError.Type, runError.Status, runError.Title = dsl.ErrorTypeConfiguration, http.StatusConflict, "Workflow paused"
	default:
		runError.Type, runError.Status, runError.Title = dsl.ErrorTypeRuntime, http.StatusInternalServerError, "Not started"
	}
	if isFault {
		runError.Detail = f.Message
	}
	return flow.CallError(flow.CategoryRefused, runError, err)
}
