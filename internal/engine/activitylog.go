package engine

import (
	"context"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

// activityLog adds the run to the log lines of its activities.
type activityLog struct {
	interceptor.WorkerInterceptorBase

	project string // empty: unknown
}

// InterceptActivity implements [interceptor.WorkerInterceptor].
func (a *activityLog) InterceptActivity(_ context.Context,
	next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	i := &loggedActivities{project: a.project}
	i.Next = next
	return i
}

type loggedActivities struct {
	interceptor.ActivityInboundInterceptorBase

	project string
}

// ExecuteActivity implements [interceptor.ActivityInboundInterceptor].
func (l *loggedActivities) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	if info := activity.GetInfo(ctx); contract.IsRunID(info.WorkflowExecution.ID) {
		attributes := []any{"run_id", info.WorkflowExecution.ID}
		if l.project != "" {
			attributes = append(attributes, "project", l.project)
		}
		ctx = logger.With(ctx, attributes...)
	}
	return l.Next.ExecuteActivity(ctx, in)
}
