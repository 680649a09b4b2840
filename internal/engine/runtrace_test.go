package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/telemetry/tracing"
)

// recorder keeps exported spans.
type recorder struct {
	mu    sync.Mutex
	spans []sdktrace.ReadOnlySpan
}

func (r *recorder) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans = append(r.spans, spans...)
	return nil
}

func (*recorder) Shutdown(context.Context) error { return nil }

// text writes the spans with their parents, states and attributes.
func (r *recorder) text() string {
	names := map[trace.SpanID]string{}
	for _, s := range r.spans {
		names[s.SpanContext().SpanID()] = s.Name()
	}
	var lines []string
	for _, s := range r.spans {
		line := names[s.Parent().SpanID()] + " > " + s.Name()
		if s.Status().Code == codes.Error {
			line += " failed" + s.Status().Description
		}
		for _, a := range s.Attributes() {
			if !strings.HasPrefix(string(a.Key), "temporal") {
				line += fmt.Sprintf(" %s=%s", a.Key, a.Value.String())
			}
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// run executes a workflow with activities once, as a traced process, and returns its spans.
func traceRun(t *testing.T, header *commonpb.Header, end error) *recorder {
	t.Helper()
	spans := &recorder{}
	tracer := tracing.New(t.Context(), tracing.Options{Exporter: spans, Resource: resource.Empty()})
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{
		Interceptors: []interceptor.WorkerInterceptor{engine.TraceRuns(tracer, converter.GetDefaultDataConverter())}})
	if header != nil {
		env.SetHeader(header)
	}
	env.RegisterActivityWithOptions(func(ctx context.Context) error {
		if activity.GetInfo(ctx).IsLocalActivity {
			return nil
		}
		return temporal.NewNonRetryableApplicationError("quotes a planted value", "urn:refused", nil)
	}, activity.RegisterOptions{Name: "act"})
	env.RegisterWorkflowWithOptions(func(ctx workflow.Context, in flow.Input) (json.RawMessage, error) {
		local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: time.Minute})
		_ = workflow.ExecuteLocalActivity(local, "act").Get(ctx, nil)
		remote := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		_ = workflow.ExecuteActivity(remote, "act").Get(ctx, nil)
		if in.Chain == 0 && errors.Is(end, errContinue) {
			in.Chain++
			return nil, workflow.NewContinueAsNewError(ctx, contract.RunWorkflow, in)
		}
		return nil, end
	}, workflow.RegisterOptions{Name: contract.RunWorkflow})
	env.ExecuteWorkflow(contract.RunWorkflow, flow.Input{RunID: "r1", Project: "shop", Workflow: "a/b", Version: "1.0.0"})
	require.True(t, env.IsWorkflowCompleted())
	require.NoError(t, tracer.Shutdown(t.Context()))
	return spans
}

var errContinue = errors.New("continue")

const ofRun = " signalbox.project=shop signalbox.workflow=a/b signalbox.workflow.version=1.0.0"

func TestExecutionAndActivitiesAreSpansOfTheRun(t *testing.T) {
	t.Parallel()
	spans := traceRun(t, nil, temporal.NewApplicationError("quotes a planted value", "urn:computed"))
	got := spans.text()
	require.Contains(t, got, " > RunWorkflow signalbox.run failed signalbox.run.id=r1"+ofRun+
		" signalbox.run.outcome=failed")
	require.Contains(t, got, "RunWorkflow signalbox.run > RunActivity act failed "+
		"signalbox.run.id=default-test-workflow-id"+ofRun+" error.type=urn:refused")
	require.Contains(t, got, "RunWorkflow signalbox.run > RunActivity act signalbox.run.id=default-test-workflow-id"+ofRun)
	require.NotContains(t, got, "planted")
	require.NotContains(t, got, "urn:computed", "the type of a run's error may be computed from its values")

	again := traceRun(t, nil, nil)
	require.Equal(t, spans.spans[len(spans.spans)-1].SpanContext(), again.spans[len(again.spans)-1].SpanContext(),
		"every process gives the execution the same IDs")
}

func TestExecutionContinuesTheTraceOfItsStarter(t *testing.T) {
	t.Parallel()
	payload, err := converter.GetDefaultDataConverter().ToPayload(map[string]any{
		"context": map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
	})
	require.NoError(t, err)
	spans := traceRun(t, &commonpb.Header{Fields: map[string]*commonpb.Payload{"signalbox-trace": payload}}, nil)
	require.Len(t, spans.spans, 3)
	for _, s := range spans.spans {
		require.Equal(t, "0af7651916cd43dd8448eb211c80319c", s.SpanContext().TraceID().String())
	}
	require.Equal(t, "b7ad6b7169203331", spans.spans[2].Parent().SpanID().String())
}

func TestUnreadableHeaderIsIgnored(t *testing.T) {
	t.Parallel()
	header := &commonpb.Header{
		Fields: map[string]*commonpb.Payload{"signalbox-trace": {Data: []byte("sealed with another key")}}}
	require.Len(t, traceRun(t, header, nil).spans, 3)
}

func TestContinuedExecutionEndsItsSpan(t *testing.T) {
	t.Parallel()
	require.Contains(t, traceRun(t, nil, errContinue).text(), "signalbox.run.outcome=continued_as_new")
}
