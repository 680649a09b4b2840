// Package kin is the Temporal side of runs that other runs start: the activities that start and cancel them, and the signal that
// tells a run of another one's end.
//
//	teller := kin.New(kin.Options{Client: …, Absent: …, Address: …})
//	err := teller.TellParent(ctx, r)
//	kin.Register(worker, children)
package kin

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
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/payload"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/child"
)

// Children starts runs on behalf of others.
type Children interface {
	Start(ctx context.Context, req child.Request) (run.Run, error)
	Cancel(ctx context.Context, project, id, reason string) error
}

const (
	// tellTimeout bounds the telling of one end.
	tellTimeout = 10 * time.Second
	// retryAfter is how soon Temporal is asked again that did not take what it was told.
	retryAfter = 5 * time.Second
)

// Options say how to reach Temporal.
type Options struct {
	// Client returns the client for one request, or a [fault.Unavailable].
	Client func() (client.Client, error)
	// Absent tells why Temporal has no open execution of a run: [run.ErrNotKnown] or [run.ErrClosed].
	Absent func(ctx context.Context, runID string) error
	// Sensitive returns the texts that are to be hidden in values of a run; nil: there are none.
	Sensitive func(ctx context.Context, runID string, values ...json.RawMessage) ([]string, error)
	// Address is where Temporal is, and SignalLimit what its refusal of a signal says that another execution will take.
	Address, SignalLimit string
}

// Teller tells runs of the ends of others.
type Teller struct{ opts Options }

var _ child.Teller = (*Teller)(nil)

// New returns it.
func New(opts Options) *Teller { return &Teller{opts} }

// TellParent implements [child.Teller]. What the parent is told is what Temporal has of the end: rows are for people to read.
func (t *Teller) TellParent(ctx context.Context, r run.Run) error {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	c, err := t.opts.Client()
	if err != nil {
		return err
	}
	ended, err := t.ending(ctx, c, r)
	if err != nil {
		return err
	}
	if ended.Sensitive, err = t.sensitive(ctx, ended); err != nil {
		return err
	}
	return t.deliver(ctx, c, r, ended)
}

// TellUnreadable implements [child.Teller].
func (t *Teller) TellUnreadable(ctx context.Context, r run.Run, why error) error {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	c, err := t.opts.Client()
	if err != nil {
		return err
	}
	ended := failing(flow.ChildEnded{Key: r.Parent.Key, RunID: r.ID}, "Result unreadable", why.Error())
	return t.deliver(ctx, c, r, ended)
}

// deliver signals the parent.
func (t *Teller) deliver(ctx context.Context, c client.Client, r run.Run, ended flow.ChildEnded) error {
	err := c.SignalWorkflow(ctx, contract.WorkflowID(r.Parent.RunID), "", contract.ChildSignal, ended)
	var invalid *serviceerror.InvalidArgument
	if errors.As(err, &invalid) && !strings.Contains(invalid.Message, t.opts.SignalLimit) {
		// Temporal will never take it. The parent must not wait for that.
		ended = failing(ended, "Not told", "Temporal does not take its result: "+invalid.Message)
		err = c.SignalWorkflow(ctx, contract.WorkflowID(r.Parent.RunID), "", contract.ChildSignal, ended)
	}
	var missing *serviceerror.NotFound
	switch {
	case err == nil:
		return nil
	case errors.As(err, &missing):
		return t.opts.Absent(ctx, r.Parent.RunID)
	default:
		return fault.New(fault.Unavailable, fault.EngineUnavailable,
			"temporal at %s did not take the end of run %s for run %s", t.opts.Address, r.ID, r.Parent.RunID).WithRetry(retryAfter).WithCause(err)
	}
}

// failing makes a failure of an end that cannot be told as it is.
func failing(ended flow.ChildEnded, title, detail string) flow.ChildEnded {
	ended.Output, ended.Status = nil, string(run.Failed)
	ended.Error = &dsl.Error{Type: dsl.ErrorTypeRuntime, Status: http.StatusInternalServerError, Title: title, Detail: detail}
	return ended
}

// ending reads how a run ended. A run that Temporal does not know ended in its row alone.
func (t *Teller) ending(ctx context.Context, c client.Client, r run.Run) (flow.ChildEnded, error) {
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
		return ended, t.unanswered(err)
	case err == nil:
		ended.Status, ended.Output, ended.Error = string(run.Completed), output, nil
	case errors.As(err, &execution): // any other error is about the question
		return failure(ended, err)
	case payload.Unreadable(err):
		return ended, fmt.Errorf("%w: %w", child.ErrUnreadable, err)
	default:
		return ended, t.unanswered(err)
	}
	return ended, nil
}

// failure is the end of a run whose execution has not completed. Where the row has completed, the run was reset in Temporal since and
// ended there in another way.
func failure(ended flow.ChildEnded, err error) (flow.ChildEnded, error) {
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.HasDetails() {
		if err := app.Details(&dsl.Error{}); payload.Unreadable(err) {
			return ended, fmt.Errorf("%w: %w", child.ErrUnreadable, err)
		}
	}
	status, problem := flow.Failed(err)
	switch {
	case ended.Status == string(run.Completed):
		ended.Status, ended.Error = string(status), problem
	case problem != nil && ended.Status == string(status):
		ended.Error = problem
	}
	return ended, nil
}

// sensitive are the texts that the parent is to hide in what it is told.
func (t *Teller) sensitive(ctx context.Context, ended flow.ChildEnded) ([]string, error) {
	if t.opts.Sensitive == nil {
		return nil, nil
	}
	problem, err := json.Marshal(ended.Error)
	if err != nil {
		return nil, fmt.Errorf("encoding the error of run %s: %w", ended.RunID, err)
	}
	return t.opts.Sensitive(ctx, ended.RunID, ended.Output, problem)
}

func (t *Teller) unanswered(err error) error {
	return fault.New(fault.Unavailable, fault.EngineUnavailable, "temporal at %s does not answer: %v", t.opts.Address, err).
		WithRetry(retryAfter).WithCause(err)
}

// Register registers the activities with which runs start others.
func Register(r worker.ActivityRegistry, children Children) {
	w := childWork{children}
	r.RegisterActivityWithOptions(w.start, activity.RegisterOptions{Name: flow.ChildActivity})
	r.RegisterActivityWithOptions(w.cancel, activity.RegisterOptions{Name: flow.CancelChildActivity})
}

type childWork struct{ children Children }

func (w childWork) start(ctx context.Context, r flow.ChildRequest) (flow.ChildStarted, error) {
	started, err := w.children.Start(ctx, child.Request{
		Project: r.Project, Parent: r.Parent, Path: r.Path, Key: r.Key, Workflow: r.Workflow, Version: r.Version, Input: r.Input, Awaited: r.Awaited,
		Sensitive: r.Sensitive,
	})
	if err != nil {
		return flow.ChildStarted{}, refusedChild(err)
	}
	return flow.ChildStarted{RunID: started.ID}, nil
}

func (w childWork) cancel(ctx context.Context, r flow.CancelChildRequest) error {
	return w.children.Cancel(ctx, r.Project, r.RunID, "run "+r.Parent+" does not wait for it any more")
}

// refusedChild makes an error of the task of what will never be accepted. Everything else is for Temporal to try again.
func refusedChild(err error) error {
	problem := dsl.Error{Detail: err.Error()}
	f, isFault := fault.From(err)
	switch {
	case errors.Is(err, child.ErrTooDeep):
		problem.Type, problem.Status, problem.Title = dsl.ErrorTypeRuntime, http.StatusLoopDetected, "Too deep"
	case !isFault || f.Class == fault.Unavailable:
		return err
	case f.Reason == fault.InputTooLarge:
		problem.Type, problem.Status, problem.Title = dsl.ErrorTypeValidation, http.StatusRequestEntityTooLarge, "Input too large"
	case f.Class == fault.Exhausted:
		return err
	case f.Class == fault.Invalid:
		problem.Type, problem.Status, problem.Title = dsl.ErrorTypeValidation, http.StatusBadRequest, "Input refused"
	case f.Class == fault.NotFound:
		problem.Type, problem.Status, problem.Title = dsl.ErrorTypeConfiguration, http.StatusNotFound, "Not found"
	case f.Reason == fault.WorkflowPaused:
		problem.Type, problem.Status, problem.Title = dsl.ErrorTypeConfiguration, http.StatusConflict, "Workflow paused"
	case f.Reason == fault.ContractMismatch:
		return err
	default:
		problem.Type, problem.Status, problem.Title = dsl.ErrorTypeRuntime, http.StatusInternalServerError, "Not started"
	}
	if isFault {
		problem.Detail = f.Message
	}
	return flow.CallError(flow.CategoryRefused, problem, err)
}
