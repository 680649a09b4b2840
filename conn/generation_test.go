package conn_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/internal/stopwatch"
)

// keyFile is what Reload reads: a key, or an error.
type keyFile struct {
	key string
	err error
}

// TestOutageAfterBadRotationKeepsOldClient has an outage while no new client can be made, and expects the old one to be
// used after it.
func TestOutageAfterBadRotationKeepsOldClient(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]keyFile{
		"the file cannot be read": {err: errors.New("open key: permission denied")},
		"the key is refused":      {key: "mistyped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var files atomic.Pointer[keyFile]
			files.Store(&keyFile{key: "good"})
			withKey := func(o client.Options, key string) client.Options {
				o.ConnectionOptions.TLSDisabled = true
				o.Credentials = client.NewAPIKeyStaticCredentials(key)
				return o
			}
			r := newRig(t, conntest.Options{APIKeys: []string{"good", "better"}}, func(o *conn.Options) {
				o.RebuildAfter = time.Minute
				base := o.Client
				o.Reload = func() (client.Options, error) {
					s := files.Load()
					return withKey(base, s.key), s.err
				}
				o.Identity = func() (string, error) { return files.Load().key, nil }
			})
			require.NoError(t, r.Register("orders", idle("orders")))
			r.connect(t)
			before := r.until(t, polling)
			files.Store(&bad)
			r.until(t, func(s conn.Status) bool { return s.LastError != "" })
			require.Equal(t, conn.Connected, r.Status().State)

			r.frontend.Stop()
			down := r.until(t, func(s conn.Status) bool { return s.State == conn.Down })
			r.until(t, func(s conn.Status) bool {
				return s.Attempts >= down.Attempts+2 && time.Since(down.Since) > 3*time.Second
			})
			require.NoError(t, r.frontend.Restart())
			begin := time.Now()
			after := r.until(t, polling)
			t.Logf("polling %s after the restart", time.Since(begin))
			require.Equal(t, 1, after.Generation)
			require.Equal(t, before.Workers[0].Since, after.Workers[0].Since)

			files.Store(&keyFile{key: "better"})
			r.until(t, func(s conn.Status) bool { return s.Generation == 2 && polling(s) })
		})
	}
}

// activityTask is one activity task, returned as the answer to the first activity poll.
type activityTask struct {
	returned atomic.Bool
	// begun is closed when the activity runs. The activity returns when end is called.
	begun, ended chan struct{}
	end          func()
}

func newActivityTask(t *testing.T) *activityTask {
	t.Helper()
	a := &activityTask{begun: make(chan struct{}), ended: make(chan struct{})}
	a.end = sync.OnceFunc(func() { close(a.ended) })
	t.Cleanup(a.end)
	return a
}

// options adds the task to the answers that clients receive, and allows time to finish it.
func (a *activityTask) options(o *conn.Options) {
	o.DrainTimeout = patience
	o.Client.ConnectionOptions.DialOptions = append(o.Client.ConnectionOptions.DialOptions,
		grpc.WithChainUnaryInterceptor(a.intercept))
}

func (a *activityTask) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	_, poll := req.(*workflowservice.PollActivityTaskQueueRequest)
	if !poll || !a.returned.CompareAndSwap(false, true) {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	now, limit := timestamppb.Now(), durationpb.New(time.Hour)
	proto.Merge(reply.(proto.Message), &workflowservice.PollActivityTaskQueueResponse{
		TaskToken: []byte("task"), WorkflowNamespace: "default", ActivityId: "1",
		ActivityType:      &common.ActivityType{Name: "blocked"},
		WorkflowType:      &common.WorkflowType{Name: "order"},
		WorkflowExecution: &common.WorkflowExecution{WorkflowId: "one", RunId: "one"},
		ScheduledTime:     now, StartedTime: now, CurrentAttemptScheduledTime: now, Attempt: 1, ScheduleToCloseTimeout: limit,
		StartToCloseTimeout: limit,
	})
	return nil
}

// worker is a factory of workers that run the activity.
func (a *activityTask) worker(c client.Client) (worker.Worker, error) {
	w := worker.New(c, "orders", worker.Options{})
	w.RegisterActivityWithOptions(func(context.Context) error {
		close(a.begun)
		<-a.ended
		return nil
	}, activity.RegisterOptions{Name: "blocked"})
	return w, nil
}

// beforeStart is a factory of workers that call a function before they start, and fail to start with its error.
func beforeStart(before func() error) conn.Factory {
	return func(c client.Client) (worker.Worker, error) {
		w := worker.New(c, "other", worker.Options{Plugins: []worker.Plugin{starter{before: before}}})
		w.RegisterActivityWithOptions(func(context.Context) error { return nil }, activity.RegisterOptions{Name: "nothing"})
		return w, nil
	}
}

type starter struct {
	worker.PluginBase

	before func() error
}

func (starter) Name() string { return "starter" }

func (s starter) StartWorker(
	ctx context.Context, options worker.PluginStartWorkerOptions,
	next func(context.Context, worker.PluginStartWorkerOptions) error,
) error {
	if err := s.before(); err != nil {
		return err
	}
	return next(ctx, options)
}

// awaitResult ends the activity and waits until the worker reports its result.
func (a *activityTask) awaitResult(t *testing.T, f *conntest.Frontend) {
	t.Helper()
	a.end()
	require.NoError(t, f.AwaitCalls(soon(t), "RespondActivityTaskCompleted", 1))
}

// TestFailedBuildDrainsItsWorkers has a second worker set that fails to start while a worker of the first one runs a
// task.
func TestFailedBuildDrainsItsWorkers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind conn.Kind
		fail func(released <-chan struct{}) error
	}{
		"connection error": {conn.Unreachable, func(<-chan struct{}) error {
			return status.Error(codes.Unavailable, "gone")
		}},
		"timeout": {conn.Hung, func(released <-chan struct{}) error { <-released; return errors.New("too late") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := newActivityTask(t)
			r := newRig(t, conntest.Options{}, task.options)
			require.NoError(t, r.Register("orders", task.worker))
			released := make(chan struct{})
			free := sync.OnceFunc(func() { close(released) })
			t.Cleanup(free)
			var tries atomic.Int32
			require.NoError(t, r.Register("other", beforeStart(func() error {
				if tries.Add(1) > 1 {
					return nil
				}
				<-task.begun
				return tt.fail(released)
			})))
			r.start(t)
			s := r.until(t, func(s conn.Status) bool { return s.Breaker.Failures == 1 })
			require.Equal(t, tt.kind, s.Kind)
			require.Equal(t, 1, s.Draining)
			task.awaitResult(t, r.frontend)
			free()
			s = r.until(t, polling)
			require.Len(t, s.Workers, 2)
			r.until(t, func(s conn.Status) bool { return s.Draining == 0 })
			require.NoError(t, r.frontend.Await(soon(t), func() bool { return r.frontend.Connections() == 1 }))
		})
	}
}

// TestTaskFinishesThoughItsWorkersStartHasNotReturned ends a build, by a stop and by its time limit, while the start of a
// worker has not returned that runs a task already.
func TestTaskFinishesThoughItsWorkersStartHasNotReturned(t *testing.T) {
	t.Parallel()
	for _, stop := range []bool{true, false} {
		t.Run(map[bool]string{true: "stop", false: "time limit"}[stop], func(t *testing.T) {
			t.Parallel()
			task := newActivityTask(t)
			r := newRig(t, conntest.Options{}, task.options)
			released := make(chan struct{})
			free := sync.OnceFunc(func() { close(released) })
			t.Cleanup(free)
			require.NoError(t, r.Register("orders", func(c client.Client) (worker.Worker, error) {
				w, err := task.worker(c)
				return slowStart{w, released}, err
			}))
			r.start(t)
			<-task.begun
			if stop {
				ctx := soon(t)
				go func() { _ = r.Stop(ctx) }()
				r.until(t, is(conn.Closed, conn.None))
			} else {
				r.until(t, func(s conn.Status) bool { return s.Breaker.Failures == 1 })
			}
			task.awaitResult(t, r.frontend)
			free()
		})
	}
}

// slowStart is a worker whose start returns late.
type slowStart struct {
	worker.Worker

	released <-chan struct{}
}

func (w slowStart) Start() error {
	err := w.Worker.Start()
	<-w.released
	return err
}

// TestStopDuringBuild stops a manager while a worker of the new generation runs a task and another has not started yet.
func TestStopDuringBuild(t *testing.T) {
	t.Parallel()
	task := newActivityTask(t)
	r := newRig(t, conntest.Options{}, task.options)
	require.NoError(t, r.Register("orders", task.worker))
	released := make(chan struct{})
	free := sync.OnceFunc(func() { close(released) })
	t.Cleanup(free)
	require.NoError(t, r.Register("other", beforeStart(func() error {
		<-released
		return errors.New("too late")
	})))
	r.start(t)
	<-task.begun
	ended := make(chan error, 1)
	ctx := soon(t)
	go func() { ended <- r.Stop(ctx) }()
	r.until(t, is(conn.Closed, conn.None))
	task.awaitResult(t, r.frontend)
	free()
	require.NoError(t, <-ended)
	require.NoError(t, r.frontend.Await(soon(t), func() bool { return r.frontend.Connections() == 0 }))
}

// TestIdentityChangeDuringBuild lets the build finish on the client with the running task, and expects another build
// after it.
func TestIdentityChangeDuringBuild(t *testing.T) {
	t.Parallel()
	task := newActivityTask(t)
	var calls atomic.Int32
	second := make(chan struct{})
	r := newRig(t, conntest.Options{}, task.options, func(o *conn.Options) {
		o.Identity = func() (string, error) {
			select {
			case <-task.begun:
			default:
				return "one", nil
			}
			if calls.Add(1) == 2 {
				close(second) // the manager has processed the first result
			}
			return "two", nil
		}
	})
	require.NoError(t, r.Register("orders", task.worker))
	require.NoError(t, r.Register("other", beforeStart(func() error {
		<-second
		return nil
	})))
	r.start(t)
	r.until(t, func(s conn.Status) bool { return s.Generation == 2 && polling(s) })
	require.Zero(t, r.log.count("Failed to start worker"))
	task.awaitResult(t, r.frontend)
}

// TestReplacedClientWorksDuringGrace uses a client after its generation was replaced, in a process without workers: it
// is not closed yet.
func TestReplacedClientWorksDuringGrace(t *testing.T) {
	t.Parallel()
	var identity atomic.Value
	identity.Store("")
	r := newRig(t, conntest.Options{}, func(o *conn.Options) {
		o.Identity = func() (string, error) { return identity.Load().(string), nil }
		o.DrainGrace = patience
	})
	r.connect(t)
	for generation := 2; generation <= 4; generation++ {
		c, err := r.Client()
		require.NoError(t, err)
		identity.Store(identity.Load().(string) + "another ")
		r.until(t, func(s conn.Status) bool { return s.Generation == generation })
		for range 100 {
			_, err = c.CheckHealth(t.Context(), nil)
			require.NoError(t, err)
		}
	}
	require.Equal(t, 3, r.Status().Draining)
	watch := stopwatch.Start(t)
	require.NoError(t, r.Stop(soon(t)))
	require.Less(t, watch.Elapsed(), patience/2, "Stop does not wait for the grace")
}
