package projection

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// partSteps and partBytes bound the data that a rebuild holds before it is written, beside the open steps.
	partSteps = 1000
	partBytes = 2 << 20
	// chainMask selects the bits of a position that hold the index of the execution in its chain.
	chainMask = ^int64(1<<32 - 1)
)

// Write writes a part of a rebuild.
type Write func(ctx context.Context, part run.Update) error

// Rebuilding describes the history of one execution that is interpreted again.
type Rebuilding struct {
	History   *historypb.History
	Execution flow.Execution
	// Name is the registered type of the workflow.
	Name string
	// Keys open the history, and External reads the payloads that it refers to.
	Keys     *keyring.Ring
	External converter.ExternalStorage
	Log      sdklog.Logger
	// Workflow returns the workflow function over a sink.
	Workflow func(flow.Sink) any
	// Listen receives the listeners that the run has at the end of the history, before the last part is written: an
	// interrupted rebuild is repeated. nil: they are not read.
	Listen func(ctx context.Context, listeners []flow.ListenRequest) error
}

// Rebuild interprets the history of one execution of a run again and writes the resulting records, in parts of bounded
// size. It returns the last state that the execution recorded, nil if there is none, and the position that it has
// reached.
//
// A part has a position only if all records up to it are written with it or before: after an interrupted rebuild, the
// row is still behind. The end of ctx ends the interpretation at the next turn of the workflow.
func Rebuild(ctx context.Context, b Rebuilding, write Write) (*run.State, int64, error) {
	c := &collector{interruption: interruption{ctx: ctx}, write: write,
		update: run.Update{RunID: b.Execution.WorkflowID, ExecutionID: b.Execution.RunID}, limit: partSteps}
	accepted := trim(b.History)
	if err := b.replay(c, &c.interruption); err != nil {
		return nil, 0, err
	}
	if b.Listen != nil && c.listeners != nil {
		listeners, err := c.listeners()
		if err != nil {
			return nil, 0, err
		}
		if err := b.Listen(ctx, listeners); err != nil {
			return nil, 0, err
		}
	}
	if err := c.finish(accepted); err != nil {
		return nil, 0, err
	}
	return c.last, c.update.Position, nil
}

// replay interprets the history with a sink. i ends the interpretation.
func (b Rebuilding) replay(sink flow.Sink, i *interruption) error {
	// The interpreter's fuel bounds its compute. A slow machine is not a deadlock.
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		DataConverter: codec.Converter(b.Keys), FailureConverter: codec.FailureConverter(b.Keys), ExternalStorage: b.External,
		DisableDeadlockDetection: true,
		Interceptors:             []interceptor.WorkerInterceptor{&stopper{interruption: i}},
	})
	if err != nil {
		return fmt.Errorf("making a replayer: %w", err)
	}
	replayer.RegisterWorkflowWithOptions(b.Workflow(sink), workflow.RegisterOptions{Name: b.Name})
	err = replayer.ReplayWorkflowHistoryWithOptions(&untilStopped{b.Log, i}, b.History,
		worker.ReplayWorkflowHistoryOptions{
			OriginalExecution: workflow.Execution{ID: b.Execution.WorkflowID, RunID: b.Execution.RunID},
		})
	switch {
	case i.failed != nil:
		return i.failed
	case i.ctx.Err() != nil:
		return context.Cause(i.ctx)
	case err != nil:
		return &ReplayError{Execution: b.Execution, Err: err}
	}
	return nil
}

// ReplayError reports that a history cannot be interpreted again: its document or its key is missing, the interpreter
// is newer, or it replays to other commands. A retry fails in the same way until something is deployed.
type ReplayError struct {
	Execution flow.Execution
	Err       error
}

// Error implements error.
func (e *ReplayError) Error() string {
	return fmt.Sprintf("interpreting the history of run %q (execution %q) again: %v", e.Execution.WorkflowID,
		e.Execution.RunID, e.Err)
}

// Unwrap returns the cause.
func (e *ReplayError) Unwrap() error { return e.Err }

// trim removes a workflow task that was started and not accepted from the end of a history: its replay would create
// records that Temporal has not accepted. It returns the length of the history at the start of the last accepted task.
func trim(h *historypb.History) int64 {
	if n := len(h.GetEvents()); n > 0 && h.GetEvents()[n-1].GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED {
		h.Events = h.GetEvents()[:n-1]
	}
	for i := len(h.GetEvents()) - 1; i >= 0; i-- {
		if task := h.GetEvents()[i].GetWorkflowTaskCompletedEventAttributes(); task != nil {
			return task.GetStartedEventId()
		}
	}
	return 0
}

// collector is the sink of a rebuild. The replayer calls it in the workflow's goroutine, where waiting for the store
// does no harm: deadlock detection is disabled.
type collector struct {
	interruption

	write  Write
	update run.Update // not written yet
	last   *run.State
	bytes  int
	limit  int // steps
	// listeners reads the listeners from the machine.
	listeners func() ([]flow.ListenRequest, error)
}

var _ flow.ListeningSink = (*collector)(nil)

// Listening implements [flow.ListeningSink].
func (c *collector) Listening(listeners func() ([]flow.ListenRequest, error)) {
	c.listeners = listeners
}

// Records implements [flow.Sink].
func (c *collector) Records(_ flow.Execution, position int64, r *interp.RunRecord, steps []interp.StepRecord,
	logs []flow.ProgramLog, sensitive []string) {
	c.check()
	if position > c.update.Position && c.full() {
		c.must(c.flush())
	}
	c.update.Sensitive = sensitive
	add(&c.update, position, r, steps, logs)
	for i := range steps {
		c.bytes += len(steps[i].Input) + len(steps[i].Output)
	}
	for i := range logs {
		c.bytes += len(logs[i].Stdout.Text) + len(logs[i].Stderr.Text)
	}
	if c.update.State != nil {
		c.last = c.update.State
	}
	if c.full() {
		c.must(c.flushEnded())
	}
}

func (c *collector) full() bool { return len(c.update.Steps) >= c.limit || c.bytes >= partBytes }

// flush writes all pending records: everything that was recorded up to its position.
func (c *collector) flush() error {
	compact(&c.update)
	part := c.update
	c.update.Steps, c.update.State, c.update.Summary, c.update.Logs = nil, nil, nil, nil
	c.bytes, c.limit = 0, partSteps
	return c.send(part)
}

// send writes a part, in several if one turn of the interpreter has created more than a transaction may hold.
func (c *collector) send(part run.Update) error {
	for _, one := range divide(part) {
		if err := c.write(c.ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// flushEnded writes the completed steps during a workflow task. Open steps stay: a later record of the same task has
// the same position, and would be ignored as old. The state and the position wait for the end of the task.
func (c *collector) flushEnded() error {
	compact(&c.update)
	part := run.Update{RunID: c.update.RunID, ExecutionID: c.update.ExecutionID, Position: c.update.Position,
		Partial: true, Sensitive: c.update.Sensitive}
	var open []run.Step
	c.bytes = 0
	for _, s := range c.update.Steps {
		if s.EndedAt.IsZero() {
			open = append(open, s)
			c.bytes += len(s.Input) + len(s.Output)
			continue
		}
		part.Steps = append(part.Steps, s)
	}
	c.update.Steps = open
	// The next flush waits for as many new steps as are open, because each flush iterates over all open steps.
	c.limit = max(partSteps, 2*len(open))
	c.bytes = min(c.bytes, partBytes/2)
	if len(part.Steps) == 0 {
		return nil
	}
	return c.send(part)
}

// finish writes the rest. The position is that of the last accepted task, even if that task recorded nothing, so that
// the row does not appear to be behind.
func (c *collector) finish(accepted int64) error {
	if c.update.Position == 0 {
		return nil
	}
	c.update.Position = max(c.update.Position, c.update.Position&chainMask|accepted)
	return c.flush()
}

// interruption ends an interpretation before the end of its history.
type interruption struct {
	ctx    context.Context //nolint:containedctx // the context of one interpretation, which the sink's interface does not pass
	failed error
}

// check ends the interpretation if the context has ended, or it has failed.
func (i *interruption) check() {
	if i.failed == nil && i.ctx.Err() != nil {
		i.failed = context.Cause(i.ctx)
	}
	i.must(i.failed)
}

// must ends the interpretation on an error: a workflow that does not wait cannot be ended otherwise.
func (i *interruption) must(err error) {
	if err != nil {
		i.failed = err
		panic(err)
	}
}

// stopper ends a workflow that records nothing with its rebuild: each turn of the workflow reads the time.
type stopper struct {
	interceptor.WorkerInterceptorBase

	interruption *interruption
}

// InterceptWorkflow implements [interceptor.WorkerInterceptor].
func (s *stopper) InterceptWorkflow(_ workflow.Context,
	next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &stoppedInbound{interceptor.WorkflowInboundInterceptorBase{Next: next}, s.interruption}
}

type stoppedInbound struct {
	interceptor.WorkflowInboundInterceptorBase

	interruption *interruption
}

// Init implements [interceptor.WorkflowInboundInterceptor].
func (s *stoppedInbound) Init(out interceptor.WorkflowOutboundInterceptor) error {
	return s.Next.Init(&stoppedOutbound{
		interceptor.WorkflowOutboundInterceptorBase{Next: out}, s.interruption}) //nolint:wrapcheck // it is the SDK's
}

type stoppedOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase

	interruption *interruption
}

// Now implements [interceptor.WorkflowOutboundInterceptor].
func (s *stoppedOutbound) Now(ctx workflow.Context) time.Time {
	s.interruption.check()
	return s.Next.Now(ctx)
}

// untilStopped is a log that drops errors after the end of the rebuild: the panic that ends it is not a failure of the
// workflow.
type untilStopped struct {
	sdklog.Logger

	interruption *interruption
}

// Error implements [sdklog.Logger].
func (l *untilStopped) Error(msg string, keyvals ...any) {
	if l.interruption.failed == nil {
		l.Logger.Error(msg, keyvals...)
	}
}

// Unusable reports whether an error means that a history cannot be interpreted again.
func Unusable(err error) bool {
	_, unusable := errors.AsType[*ReplayError](err)
	return unusable
}
