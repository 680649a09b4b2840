package engine

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/telemetry/tracing"
	"github.com/signalbox-dev/signalbox/internal/traceparent"
)

// traceHeader is the header with the trace context.
const traceHeader = "signalbox-trace"

// carriedTrace is the content of the header.
type carriedTrace struct {
	// Context is the parent span, in the form of W3C Trace Context.
	Context map[string]string `json:"context"`
	// Project, Workflow and Version describe the run to its activities.
	Project  string `json:"project,omitempty"`
	Workflow string `json:"workflow,omitempty"`
	Version  string `json:"version,omitempty"`
	// Task and Reference are the name and the JSON pointer of an activity's task.
	Task      string `json:"task,omitempty"`
	Reference string `json:"reference,omitempty"`
}

// runTracer traces runs in a client and its workers.
type runTracer struct {
	interceptor.InterceptorBase

	spans     *tracing.Tracer
	converter converter.DataConverter
}

// TraceRuns returns the interceptor that traces runs through Temporal: the start of a run, each execution of its
// workflow, each of its activities, and the events that wake it. It is for clients; the SDK also applies it to their
// workers.
//
// The trace context travels in a header of Temporal, which the converter seals like every payload, from the starter to
// the workflow, and from the workflow to its activities. Processes of other releases, and those without traces, ignore
// the header. A header that cannot be read is ignored too: a trace never fails a run.
//
// Nothing here decides a command, so histories replay with and without the interceptor. The span of an execution has
// IDs that derive from the execution, since several processes may execute its tasks; the process that completes the
// execution exports the span. So an execution that is terminated has no span of its own, only those of its activities.
//
// Dispatchers, schedules and everything else that is not a run have no spans.
func TraceRuns(spans *tracing.Tracer, converter converter.DataConverter) interceptor.Interceptor {
	return &runTracer{spans: spans, converter: converter}
}

// InterceptClient implements [interceptor.ClientInterceptor].
func (t *runTracer) InterceptClient(next interceptor.ClientOutboundInterceptor) interceptor.ClientOutboundInterceptor {
	c := &tracedStarts{tracer: t}
	c.Next = next
	return c
}

// InterceptWorkflow implements [interceptor.WorkerInterceptor].
func (t *runTracer) InterceptWorkflow(_ workflow.Context,
	next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	w := &tracedExecutions{tracer: t}
	w.Next = next
	return w
}

// InterceptActivity implements [interceptor.WorkerInterceptor].
func (t *runTracer) InterceptActivity(_ context.Context,
	next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	a := &tracedActivities{tracer: t}
	a.Next = next
	return a
}

// write puts the trace context into a header.
func (t *runTracer) write(header map[string]*commonpb.Payload, sc trace.SpanContext, r tracing.Run) {
	if header == nil || !sc.IsValid() {
		return
	}
	payload, err := t.converter.ToPayload(carriedTrace{
		Context: t.spans.Encode(sc), Project: r.Project, Workflow: r.Workflow, Version: r.Version, Task: r.Task,
		Reference: r.Reference,
	})
	if err == nil {
		header[traceHeader] = payload
	}
}

// read returns the trace context of a header, and the run without its ID.
func (t *runTracer) read(header map[string]*commonpb.Payload) (trace.SpanContext, tracing.Run) {
	var c carriedTrace
	payload, ok := header[traceHeader]
	if !ok || t.converter.FromPayload(payload, &c) != nil {
		return trace.SpanContext{}, tracing.Run{}
	}
	return t.spans.Decode(c.Context),
		tracing.Run{Project: c.Project, Workflow: c.Workflow, Version: c.Version, Task: c.Task, Reference: c.Reference}
}

// tracedStarts traces the starts of runs.
type tracedStarts struct {
	interceptor.ClientOutboundInterceptorBase

	tracer *runTracer
}

// ExecuteWorkflow starts a run.
func (s *tracedStarts) ExecuteWorkflow(ctx context.Context,
	in *interceptor.ClientExecuteWorkflowInput) (client.WorkflowRun, error) {
	r, ok := tracedRun(in.Args)
	if !ok {
		return s.Next.ExecuteWorkflow(ctx, in)
	}
	ctx, span := s.tracer.spans.Start(tracing.WithRun(ctx, r), "StartWorkflow "+in.WorkflowType, trace.SpanKindClient)
	defer span.End()
	for _, cause := range traceparent.Links(ctx) {
		span.AddLink(cause)
	}
	s.tracer.write(interceptor.Header(ctx), span.SpanContext(), //nolint:contextcheck // it only converts the span context
		tracing.Run{})
	handle, err := s.Next.ExecuteWorkflow(ctx, in)
	failSpan(span, err)
	return handle, err
}

// SignalWorkflow delivers an event to a run. The span belongs to the trace of the event, and the execution links it. An
// event without a trace has no span.
func (s *tracedStarts) SignalWorkflow(ctx context.Context, in *interceptor.ClientSignalWorkflowInput) error {
	wake, ok := in.Arg.(flow.Wake)
	if !ok || !trace.SpanContextFromContext(ctx).IsValid() {
		return s.Next.SignalWorkflow(ctx, in)
	}
	ctx, span := s.tracer.spans.Start(tracing.WithRun(ctx, tracing.Run{ID: in.WorkflowID}),
		"SignalWorkflow "+in.SignalName, trace.SpanKindClient)
	defer span.End()
	wake.Traceparent = traceparent.Of(ctx)
	traced := *in
	traced.Arg = wake
	err := s.Next.SignalWorkflow(ctx, &traced)
	failSpan(span, err)
	return err
}

// tracedRun returns the run with these arguments of a workflow; false for other workflows.
func tracedRun(args []any) (tracing.Run, bool) {
	if len(args) != 1 {
		return tracing.Run{}, false
	}
	in, ok := args[0].(flow.Input)
	return tracing.Run{ID: in.RunID, Project: in.Project, Workflow: in.Workflow, Version: in.Version}, ok
}

// tracedExecution is the traced execution, in the context of its workflow.
type tracedExecution struct {
	run tracing.Run
	// span is the parent of what the execution does, first that of the next execution in the chain.
	span, first trace.SpanContext
}

type tracedExecutionKey struct{}

// tracedExecutions traces the executions of runs.
type tracedExecutions struct {
	interceptor.WorkflowInboundInterceptorBase

	tracer *runTracer
	// span is that of the execution, nil before its start. links are those of the events that came before.
	span  trace.Span
	links []trace.Link
}

// Init implements [interceptor.WorkflowInboundInterceptor].
func (e *tracedExecutions) Init(next interceptor.WorkflowOutboundInterceptor) error {
	c := &tracedCommands{tracer: e.tracer}
	c.Next = next
	return e.Next.Init(c)
}

// ExecuteWorkflow executes a run to its end, or to the end of this execution.
func (e *tracedExecutions) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	r, ok := tracedRun(in.Args)
	if !ok {
		return e.Next.ExecuteWorkflow(ctx, in)
	}
	info := workflow.GetInfo(ctx)
	parent, _ := e.tracer.read(interceptor.WorkflowHeader(ctx))
	span := e.tracer.spans.StartExecution(parent, info.WorkflowExecution.RunID, r, "RunWorkflow "+contract.RunWorkflow,
		trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(info.WorkflowStartTime),
		trace.WithAttributes(attribute.String("temporalRunID", info.WorkflowExecution.RunID)))
	e.span = span
	for _, link := range e.links {
		span.AddLink(link)
	}
	x := tracedExecution{run: r, span: span.SpanContext(), first: parent}
	if !parent.IsValid() {
		x.first = x.span
	}
	result, err := e.Next.ExecuteWorkflow(workflow.WithValue(ctx, tracedExecutionKey{}, x), in)
	// Nothing is deferred: an execution that leaves the cache of its worker unwinds its stack, and has not completed.
	if !workflow.IsReplaying(ctx) {
		completeSpan(span, err)
	}
	return result, err
}

// HandleSignal links the span of an execution with those that delivered its events. A replay does so again, for the
// span of its process.
func (e *tracedExecutions) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	if in.SignalName == contract.WakeSignal {
		var wake struct{ Traceparent string }
		if e.tracer.converter.FromPayloads(in.Arg, &wake) == nil && wake.Traceparent != "" {
			e.link(e.tracer.spans.Decode(map[string]string{"traceparent": wake.Traceparent}))
		}
	}
	return e.Next.HandleSignal(ctx, in)
}

func (e *tracedExecutions) link(sc trace.SpanContext) {
	link := trace.Link{SpanContext: sc}
	if e.span == nil {
		e.links = append(e.links, link)
		return
	}
	e.span.AddLink(link)
}

// completeSpan ends the span of an execution with its outcome. It ends now, not at the time of the workflow, which lags
// behind the activities.
func completeSpan(span trace.Span, err error) {
	outcome := "continued_as_new"
	if !workflow.IsContinueAsNewError(err) {
		status, _ := flow.Failed(err)
		outcome = string(status)
		if status == interp.StatusFailed || status == interp.StatusTimedOut {
			span.SetStatus(codes.Error, "")
		}
	}
	span.SetAttributes(attribute.String("signalbox.run.outcome", outcome))
	span.End(trace.WithTimestamp(time.Now()))
}

// tracedCommands passes the trace context on to activities, and to the next execution of the run.
type tracedCommands struct {
	interceptor.WorkflowOutboundInterceptorBase

	tracer *runTracer
}

// ExecuteActivity implements [interceptor.WorkflowOutboundInterceptor].
func (c *tracedCommands) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	c.passOn(ctx)
	return c.Next.ExecuteActivity(ctx, name, args...)
}

// ExecuteLocalActivity implements [interceptor.WorkflowOutboundInterceptor].
func (c *tracedCommands) ExecuteLocalActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	c.passOn(ctx)
	return c.Next.ExecuteLocalActivity(ctx, name, args...)
}

// passOn writes the header of an activity. In a replay the activity is not started.
func (c *tracedCommands) passOn(ctx workflow.Context) {
	if x, ok := ctx.Value(tracedExecutionKey{}).(tracedExecution); ok && !workflow.IsReplaying(ctx) {
		run := x.run
		if task := flow.TaskOf(ctx); task != nil {
			run.Task, run.Reference = task.Name, task.Pointer
		}
		c.tracer.write(interceptor.WorkflowHeader(ctx), x.span, run)
	}
}

// NewContinueAsNewError implements [interceptor.WorkflowOutboundInterceptor]. The executions of a run have the same
// parent.
func (c *tracedCommands) NewContinueAsNewError(ctx workflow.Context, next any, args ...any) error {
	err := c.Next.NewContinueAsNewError(ctx, next, args...)
	if x, ok := ctx.Value(tracedExecutionKey{}).(tracedExecution); ok {
		c.tracer.write(interceptor.WorkflowHeader(ctx), x.first, tracing.Run{})
	}
	return err
}

// tracedActivities traces the activities of runs.
type tracedActivities struct {
	interceptor.ActivityInboundInterceptorBase

	tracer *runTracer
}

// ExecuteActivity executes an activity. One without the header belongs to no traced run.
func (a *tracedActivities) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	parent, r := a.tracer.read(interceptor.Header(ctx)) //nolint:contextcheck // it only converts the span context
	if !parent.IsValid() {
		return a.Next.ExecuteActivity(ctx, in)
	}
	info := activity.GetInfo(ctx)
	r.ID = info.WorkflowExecution.ID
	ctx = trace.ContextWithRemoteSpanContext(tracing.WithRun(ctx, r), parent)
	ctx, span := a.tracer.spans.Start(ctx, "RunActivity "+info.ActivityType.Name, trace.SpanKindServer,
		attribute.Int64("temporalAttempt", int64(info.Attempt)), attribute.Bool("temporalLocal", info.IsLocalActivity))
	defer span.End()
	result, err := a.Next.ExecuteActivity(ctx, in)
	failSpan(span, err)
	return result, err
}

// failSpan marks a span as failed with the type of an error. The text of an error may quote the values of a run.
func failSpan(span trace.Span, err error) {
	if err == nil {
		return
	}
	kind := "other"
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.Type() != "" {
		kind = app.Type()
	}
	span.SetAttributes(attribute.String("error.type", kind))
	span.SetStatus(codes.Error, "")
}
