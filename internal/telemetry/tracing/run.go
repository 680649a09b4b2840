package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Run is the run that a span belongs to. Empty fields are unknown.
type Run struct {
	ID, Project, Workflow, Version string
	// Task and Reference are the name and the JSON pointer of the task that an activity belongs to.
	Task, Reference string
}

// Attributes returns the attributes of the run's spans.
func (r Run) Attributes() []attribute.KeyValue {
	var all []attribute.KeyValue
	for _, a := range []attribute.KeyValue{
		attribute.String("signalbox.run.id", r.ID), attribute.String("signalbox.project", r.Project),
		attribute.String("signalbox.workflow", r.Workflow), attribute.String("signalbox.workflow.version", r.Version),
		attribute.String("signalbox.task", r.Task), attribute.String("signalbox.task.reference", r.Reference),
	} {
		if a.Value.AsString() != "" {
			all = append(all, a)
		}
	}
	return all
}

type runKey struct{}

// WithRun returns a context whose spans belong to the run.
func WithRun(ctx context.Context, r Run) context.Context { return context.WithValue(ctx, runKey{}, r) }

// runAttributes adds the attributes of the run to every span that is started in a context with a run.
type runAttributes struct{}

var _ sdktrace.SpanProcessor = runAttributes{}

// OnStart implements [sdktrace.SpanProcessor].
func (runAttributes) OnStart(parent context.Context, s sdktrace.ReadWriteSpan) {
	if r, ok := parent.Value(runKey{}).(Run); ok {
		s.SetAttributes(r.Attributes()...)
	}
}

// OnEnd implements [sdktrace.SpanProcessor].
func (runAttributes) OnEnd(sdktrace.ReadOnlySpan) {}

// Shutdown implements [sdktrace.SpanProcessor].
func (runAttributes) Shutdown(context.Context) error { return nil }

// ForceFlush implements [sdktrace.SpanProcessor].
func (runAttributes) ForceFlush(context.Context) error { return nil }
