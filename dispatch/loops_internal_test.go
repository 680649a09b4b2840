package dispatch

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/inbox/memory"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

// bell is a client that only counts doorbells.
type bell struct {
	client.Client
	rung atomic.Int64
}

func (b *bell) SignalWorkflow(context.Context, string, string, string, any) error {
	b.rung.Add(1)
	return nil
}

// TestServingProcessRingsUnownedDispatcher: a process that only serves a dispatcher rings it too, or a retry would wait
// until the leases are back.
func TestServingProcessRingsUnownedDispatcher(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bell{}
		box := memory.New(func(context.Context, inbox.Name, inbox.Delivery) inbox.Outcome {
			return inbox.Outcome{Result: inbox.Done}
		})
		d, err := New(Options{
			ServerID: "w-1", Client: func() (client.Client, error) {
				return b, nil
			}, Namespace: "default", Leases: lease.NewMemory(), Inbox: box,
		})
		require.NoError(t, err)
		served := Name{Project: "shop", TaskQueue: "orders"}
		require.NoError(t, d.Serve(served))
		for _, name := range []Name{served, {Project: "bank", TaskQueue: "orders"}} {
			own, err := box.Fence(t.Context(), name, "gone", 0)
			require.NoError(t, err)
			parked, err := box.Park(t.Context(), name, own)
			require.NoError(t, err)
			require.True(t, parked)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go d.ringParked(ctx)
		<-time.After(time.Minute)
		require.Zero(t, b.rung.Load(), "nothing is due")
		box.Publish(served, "", "event")
		box.Publish(Name{Project: "bank", TaskQueue: "orders"}, "", "event")
		<-time.After(time.Minute)
		require.GreaterOrEqual(t, b.rung.Load(), int64(5))
		require.LessOrEqual(t, b.rung.Load(), int64(8), "slower than an owner, and only for served dispatchers")
	})
}

// TestProcessWithoutPollsDoesNotOwn: a process that keeps crashing before it polls must not own the dispatcher in
// between.
func TestProcessWithoutPollsDoesNotOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var polls atomic.Bool
		served := Name{Project: "shop", TaskQueue: "orders"}
		d, err := New(Options{
			ServerID: "w-1", Client: func() (client.Client, error) {
				return &bell{}, nil
			}, Namespace: "default", Leases: lease.NewMemory(),
			Inbox: memory.New(func(context.Context, inbox.Name, inbox.Delivery) inbox.Outcome {
				return inbox.Outcome{Result: inbox.Done}
			}),
			Polls: func(name Name) bool { return name == served && polls.Load() },
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go d.watchClient(ctx)
		fit := make(chan error, 1)
		go func() { fit <- d.process.MayOwn(ctx, served) }()
		<-time.After(time.Hour)
		require.Empty(t, fit)
		require.NoError(t, d.ready(ctx), "Temporal is usable meanwhile")
		polls.Store(true)
		began := time.Now()
		require.NoError(t, <-fit)
		require.LessOrEqual(t, time.Since(began), clientEvery, "returns soon after the first poll")
		require.NoError(t, d.process.MayOwn(ctx, served))
		polls.Store(false)
		cancel()
		require.ErrorIs(t, d.process.MayOwn(ctx, served), context.Canceled)
	})
}

// cluster is a Temporal that starts dispatchers, and in which the test closes them.
type cluster struct {
	client.Client
	mu     sync.Mutex
	starts int
	open   *client.WorkflowExecutionDescription
}

func (c *cluster) started() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.starts
}

func (c *cluster) closes() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = nil
}

func (c *cluster) DescribeWorkflow(context.Context, string, string) (*client.WorkflowExecutionDescription, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		return nil, serviceerror.NewNotFound("none is open")
	}
	return c.open, nil
}

func (c *cluster) WorkflowService() workflowservice.WorkflowServiceClient { return requests{} }

// requests are those outside the SDK's client.
type requests struct {
	workflowservice.WorkflowServiceClient
}

func (requests) ResetStickyTaskQueue(
	context.Context, *workflowservice.ResetStickyTaskQueueRequest, ...grpc.CallOption,
) (*workflowservice.ResetStickyTaskQueueResponse, error) {
	return nil, nil
}

func (c *cluster) SignalWorkflow(context.Context, string, string, string, any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		return serviceerror.NewNotFound("none is open")
	}
	return nil
}

type started struct {
	client.WorkflowRun
	id string
}

func (s started) GetRunID() string { return s.id }

func (c *cluster) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, _ any,
	_ ...any) (client.WorkflowRun, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starts++
	memo := &commonpb.Memo{Fields: map[string]*commonpb.Payload{}}
	for key, value := range o.Memo {
		payload, err := converter.GetDefaultDataConverter().ToPayload(value)
		if err != nil {
			return nil, err
		}
		memo.Fields[key] = payload
	}
	id := fmt.Sprint("run-", c.starts)
	c.open = &client.WorkflowExecutionDescription{WorkflowExecutionMetadata: client.WorkflowExecutionMetadata{
		WorkflowExecution: workflow.Execution{ID: o.ID, RunID: id}, WorkflowType: workflow.Type{Name: wire.WorkflowType},
		TaskQueueName: o.TaskQueue, Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, Memo: memo,
	}}
	return started{id: id}, nil
}

// TestDoorbellWithoutDispatcherNotifiesOwner: the process that rings is rarely the owner, whose next check may be half
// a minute away.
func TestDoorbellWithoutDispatcherNotifiesOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		temporal, leases := &cluster{}, lease.NewMemory()
		served := Name{Project: "shop", TaskQueue: "orders"}
		box := memory.New(func(context.Context, inbox.Name, inbox.Delivery) inbox.Outcome {
			return inbox.Outcome{Result: inbox.Done}
		})
		process := func(id string) *Dispatchers {
			d, err := New(Options{
				ServerID: id, Client: func() (client.Client, error) {
					return temporal, nil
				}, Namespace: "default", Leases: leases, Inbox: box,
			})
			require.NoError(t, err)
			return d
		}
		owns, rings := process("owns"), process("rings")
		require.NoError(t, owns.Serve(served))
		ctx, cancel := context.WithCancel(t.Context())
		var joined sync.WaitGroup
		joined.Go(func() { owns.service(served).loop.Run(ctx) })
		joined.Go(func() { owns.watchHints(ctx) })
		<-time.After(time.Minute)
		require.NotNil(t, owns.service(served).loop.Owned())
		require.Equal(t, 1, temporal.started())
		temporal.closes()
		require.ErrorIs(t, rings.Ring(t.Context(), served), ErrNotOpen)
		for range 2 { // the owner may have started the next one by now
			if err := rings.Ring(t.Context(), served); err != nil {
				require.ErrorIs(t, err, ErrNotOpen)
			}
		}
		<-time.After(2 * time.Second)
		require.Equal(t, 2, temporal.started())
		require.NoError(t, rings.Ring(t.Context(), served))
		cancel()
		joined.Wait()
	})
}
