package conntest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/internal/stopwatch"
)

// bothWays runs a test on a frontend by itself, and on one with an upstream.
func bothWays(t *testing.T, options conntest.Options, test func(t *testing.T, f *conntest.Frontend)) {
	t.Helper()
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		test(t, conntest.Run(t, options))
	})
	t.Run("in front", func(t *testing.T) {
		t.Parallel()
		upstream := conntest.Run(t, conntest.Options{Namespaces: options.Namespaces})
		options := options
		options.Upstream = upstream.Addr()
		test(t, conntest.Run(t, options))
	})
}

func TestClientAndWorkerConnectAndPoll(t *testing.T) {
	t.Parallel()
	bothWays(t, conntest.Options{}, func(t *testing.T, f *conntest.Frontend) {
		ctx := within(t, limit)
		c := connect(t, f)
		_, err := c.CheckHealth(ctx, nil)
		require.NoError(t, err)
		w := worker.New(c, "orders", worker.Options{WorkerStopTimeout: time.Second})
		w.RegisterWorkflowWithOptions(func(workflow.Context) error { return nil }, workflow.RegisterOptions{Name: "order"})
		w.RegisterActivity(func(context.Context) error { return nil })
		require.NoError(t, w.Start())
		require.NoError(t, f.AwaitPollers(ctx, "orders", 3))
		require.NoError(t, f.Await(ctx, func() bool {
			polls := f.Pollers("orders")
			return polls.Workflow > 0 && polls.Sticky > 0 && polls.Activity > 0
		}))
		require.Zero(t, f.Pollers("others"))

		// A cut ends the polls, and the worker polls again.
		polls := f.Calls("PollWorkflowTaskQueue")
		f.CutConnections()
		require.NoError(t, f.AwaitCalls(ctx, "PollWorkflowTaskQueue", polls+1))
		require.NoError(t, f.AwaitPollers(ctx, "orders", 3))
		w.Stop()
		require.NoError(t, f.Await(ctx, func() bool { return f.Pollers("orders").Total() == 0 }))
		c.Close()
		require.NoError(t, f.Await(ctx, func() bool { return f.Connections() == 0 }))
	})
}

func TestPollIsAnsweredBeforeItsDeadline(t *testing.T) {
	t.Parallel()
	bothWays(t, conntest.Options{}, func(t *testing.T, f *conntest.Frontend) {
		c := connect(t, f)
		awaitAnswer(t, c)
		request := &workflowservice.PollActivityTaskQueueRequest{
			Namespace: "default", TaskQueue: &taskqueuepb.TaskQueue{Name: "orders"}}
		answer, err := c.WorkflowService().PollActivityTaskQueue(within(t, 1200*time.Millisecond), request)
		require.NoError(t, err)
		require.Empty(t, answer.GetTaskToken())

		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := c.WorkflowService().PollActivityTaskQueue(ctx, request)
			gone <- err
		}()
		require.NoError(t, f.AwaitPollers(within(t, limit), "orders", 1))
		require.Equal(t, conntest.Polls{Activity: 1}, f.Pollers("orders"))
		cancel()
		require.Error(t, <-gone)
		require.NoError(t, f.Await(within(t, limit), func() bool { return f.Pollers("orders").Total() == 0 }))
		require.ErrorIs(t, f.AwaitPollers(ctx, "orders", 1), context.Canceled)
	})
}

func TestSlowAnswers(t *testing.T) {
	t.Parallel()
	bothWays(t, conntest.Options{}, func(t *testing.T, f *conntest.Frontend) {
		c := connect(t, f)
		awaitAnswer(t, c)
		f.Slow(unanswered)
		begin := time.Now()
		require.NoError(t, describe(within(t, limit), c, "default"))
		require.GreaterOrEqual(t, time.Since(begin), unanswered)
		begin = time.Now()
		watch := stopwatch.Start(t)
		require.Error(t, describe(within(t, limit), c, "missing"))
		require.GreaterOrEqual(t, time.Since(begin), unanswered, "errors are delayed too")
		require.Less(t, watch.Elapsed(), 2*unanswered, "an answer is delayed once")

		f.Slow(time.Hour)
		before := f.Calls("DescribeNamespace")
		slow := make(chan error, 1)
		ctx := within(t, limit)
		go func() { slow <- describe(ctx, c, "default") }()
		require.NoError(t, f.AwaitCalls(ctx, "DescribeNamespace", before+1))
		f.Slow(0)
		require.NoError(t, <-slow)
	})
}

func TestFailedCalls(t *testing.T) {
	t.Parallel()
	bothWays(t, conntest.Options{}, func(t *testing.T, f *conntest.Frontend) {
		ctx := within(t, limit)
		c := connect(t, f)
		_, err := c.CheckHealth(ctx, nil) // the SDK retries some errors, and requests the system info only once
		require.NoError(t, err)

		f.Fail("DescribeNamespace", serviceerror.NewPermissionDenied("Request unauthorized.", "because"))
		var denied *serviceerror.PermissionDenied
		require.ErrorAs(t, describe(ctx, c, "default"), &denied)
		require.Equal(t, "because", denied.Reason, "the details arrive")
		_, err = c.CheckHealth(ctx, nil)
		require.NoError(t, err, "other methods are not affected")

		f.Fail("", status.Error(codes.Unauthenticated, "expired"))
		require.Equal(t, codes.Unauthenticated, status.Code(describe(ctx, c, "default")), "the newest rule applies")
		_, err = c.CheckHealth(ctx, nil)
		require.ErrorContains(t, err, "expired")
		f.Clear("")
		require.ErrorAs(t, describe(ctx, c, "default"), &denied)
		f.Clear()
		require.NoError(t, describe(ctx, c, "default"))

		f.FailNext(2, "/temporal.api.workflowservice.v1.WorkflowService/DescribeNamespace",
			serviceerror.NewInvalidArgument("wrong"))
		var invalid *serviceerror.InvalidArgument
		require.ErrorAs(t, describe(ctx, c, "default"), &invalid)
		require.ErrorAs(t, describe(ctx, c, "default"), &invalid)
		require.NoError(t, describe(ctx, c, "default"))

		f.Fail("", serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "slower"))
		var exhausted *serviceerror.ResourceExhausted
		// The SDK retries until the deadline and returns the last error, if it received one.
		require.Eventually(t, func() bool {
			return errors.As(describe(within(t, unanswered), c, "default"), &exhausted)
		}, limit, time.Millisecond)
		require.Equal(t, enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, exhausted.Cause)

		f.Clear()
		f.FailNext(1, "", errors.New("odd"))
		require.ErrorContains(t, describe(ctx, c, "default"), "odd")
	})
}

func TestNamespaces(t *testing.T) {
	t.Parallel()
	bothWays(t, conntest.Options{Namespaces: []string{"default", "orders"}}, func(t *testing.T, f *conntest.Frontend) {
		ctx := within(t, limit)
		c := connect(t, f)
		id := func(request *workflowservice.DescribeNamespaceRequest) string {
			answer, err := c.WorkflowService().DescribeNamespace(ctx, request)
			require.NoError(t, err)
			return answer.GetNamespaceInfo().GetId()
		}
		first := id(&workflowservice.DescribeNamespaceRequest{Namespace: "orders"})
		require.NotEmpty(t, first)
		require.Equal(t, first, id(&workflowservice.DescribeNamespaceRequest{Id: first}))
		require.NotEqual(t, first, id(&workflowservice.DescribeNamespaceRequest{Namespace: "default"}))

		var missing *serviceerror.NamespaceNotFound
		require.ErrorAs(t, describe(ctx, c, "others"), &missing)
		require.Equal(t, "others", missing.Namespace)
		f.RemoveNamespace("orders")
		require.ErrorAs(t, describe(ctx, c, "orders"), &missing)
		_, err := c.WorkflowService().StartWorkflowExecution(ctx,
			&workflowservice.StartWorkflowExecutionRequest{Namespace: "orders"})
		require.ErrorAs(t, err, &missing, "every method fails")
		require.NoError(t, describe(ctx, c, "default"))
		f.SetNamespaces("orders")
		require.NoError(t, describe(ctx, c, "orders"))
		require.ErrorAs(t, describe(ctx, c, "default"), &missing)
	})
}

func TestNamespacesKeepTheirIDs(t *testing.T) {
	t.Parallel()
	f := conntest.Run(t, conntest.Options{})
	c := connect(t, f)
	id := func() string {
		answer, err := c.WorkflowService().DescribeNamespace(within(t, limit),
			&workflowservice.DescribeNamespaceRequest{Namespace: "default"})
		require.NoError(t, err)
		return answer.GetNamespaceInfo().GetId()
	}
	first := id()
	f.SetNamespaces("orders", "default")
	require.Equal(t, first, id())
	f.RemoveNamespace("default")
	f.SetNamespaces("default")
	require.NotEqual(t, first, id(), "a namespace that was removed has a new ID")
}

func TestUpstreamNamespacesCanBeHidden(t *testing.T) {
	t.Parallel()
	upstream := conntest.Run(t, conntest.Options{Namespaces: []string{"default", "orders"}})
	f := conntest.Run(t, conntest.Options{Upstream: upstream.Addr()})
	c := connect(t, f)
	require.NoError(t, describe(within(t, limit), c, "orders"))
	f.RemoveNamespace("orders")
	var missing *serviceerror.NamespaceNotFound
	require.ErrorAs(t, describe(within(t, limit), c, "orders"), &missing)
	require.NoError(t, describe(within(t, limit), c, "default"))
}

func TestAPIKeys(t *testing.T) {
	t.Parallel()
	bothWays(t, conntest.Options{APIKeys: []string{"old"}}, func(t *testing.T, f *conntest.Frontend) {
		ctx := within(t, limit)
		keyed := func(key string) client.Client {
			return connect(t, f, func(o *client.Options) {
				o.ConnectionOptions.TLSDisabled = true
				o.Credentials = client.NewAPIKeyStaticCredentials(key)
			})
		}
		old, wrong := keyed("old"), keyed("new")
		require.NoError(t, describe(ctx, old, "default"))
		var denied *serviceerror.PermissionDenied
		require.ErrorAs(t, describe(ctx, wrong, "default"), &denied)
		require.Equal(t, "Request unauthorized.", denied.Message)
		require.ErrorAs(t, describe(ctx, connect(t, f), "default"), &denied)
		f.SetAPIKeys("new", "newer")
		require.NoError(t, describe(ctx, wrong, "default"))
		require.ErrorAs(t, describe(ctx, old, "default"), &denied)
		f.SetAPIKeys()
		require.NoError(t, describe(ctx, old, "default"))
	})
}

func TestStartsAreRecorded(t *testing.T) {
	t.Parallel()
	bothWays(t, conntest.Options{}, func(t *testing.T, f *conntest.Frontend) {
		ctx := within(t, limit)
		c := connect(t, f)
		start := func(requestID string,
			policy enumspb.WorkflowIdConflictPolicy) (*workflowservice.StartWorkflowExecutionResponse, error) {
			return c.WorkflowService().StartWorkflowExecution(ctx, &workflowservice.StartWorkflowExecutionRequest{
				Namespace: "default", WorkflowId: "order-1", RequestId: requestID, WorkflowIdConflictPolicy: policy,
			})
		}
		first, err := start("a", enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL)
		require.NoError(t, err)
		require.True(t, first.GetStarted())
		again, err := start("a", enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL)
		require.NoError(t, err)
		require.Equal(t, first.GetRunId(), again.GetRunId())
		_, err = start("b", enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL)
		var already *serviceerror.WorkflowExecutionAlreadyStarted
		require.ErrorAs(t, err, &already)
		require.Equal(t, first.GetRunId(), already.RunId)
		require.Equal(t, "a", already.StartRequestId)
		existing, err := start("c", enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING)
		require.NoError(t, err)
		require.Equal(t, first.GetRunId(), existing.GetRunId())
		require.False(t, existing.GetStarted())

		f.FailNext(1, "StartWorkflowExecution", serviceerror.NewInvalidArgument("no"))
		_, err = start("d", enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL)
		require.Error(t, err)
		run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "order-2", TaskQueue: "orders"}, "order")
		require.NoError(t, err)
		require.NotEqual(t, first.GetRunId(), run.GetRunID())

		var ids []string
		for _, request := range f.Starts() {
			ids = append(ids, request.GetWorkflowId())
		}
		require.Equal(t, []string{"order-1", "order-1", "order-1", "order-1", "order-2"}, ids)
		require.Equal(t, 6, f.Calls("StartWorkflowExecution"))
	})
}

func TestOtherMethodsAreUnimplemented(t *testing.T) {
	t.Parallel()
	bothWays(t, conntest.Options{}, func(t *testing.T, f *conntest.Frontend) {
		_, err := connect(t, f).WorkflowService().ListSchedules(within(t, limit),
			&workflowservice.ListSchedulesRequest{Namespace: "default"})
		var unimplemented *serviceerror.Unimplemented
		require.ErrorAs(t, err, &unimplemented)
		require.ErrorContains(t, err, "not implemented")
	})
}

func TestStalledCallsAreExecutedLater(t *testing.T) {
	t.Parallel()
	bothWays(t, conntest.Options{}, func(t *testing.T, f *conntest.Frontend) {
		c := connect(t, f)
		awaitAnswer(t, c)
		f.Stall("StartWorkflowExecution")
		start := func(ctx context.Context) error {
			_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: "orders"}, "order")
			return err
		}
		require.Error(t, start(within(t, 100*time.Millisecond)))
		require.NoError(t, describe(within(t, limit), c, "default"), "other methods are answered")
		before := f.Calls("StartWorkflowExecution")
		started := make(chan error, 1)
		ctx := within(t, limit)
		go func() { started <- start(ctx) }()
		require.NoError(t, f.AwaitCalls(ctx, "StartWorkflowExecution", before+1))
		f.Unstall()
		require.NoError(t, <-started)
	})
}
