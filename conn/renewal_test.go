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
)

// settings are what Reload reads: a key, or why there is none.
type settings struct {
	key string
	err error
}

// TestAnOutageAfterABadRotation loses Temporal for a while when no new client is to be had any more: the old one is as good as
// it was before.
func TestAnOutageAfterABadRotation(t *testing.T) {
	t.Parallel()
	for name, spoilt := range map[string]settings{
		"the file cannot be read": {err: errors.New("open key: permission denied")},
		"the key is refused":      {key: "mistyped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var files atomic.Pointer[settings]
			files.Store(&settings{key: "good"})
			keyed := func(o client.Options, key string) client.Options {
				o.ConnectionOptions.TLSDisabled = true
				o.Credentials = client.NewAPIKeyStaticCredentials(key)
				return o
			}
			r := newRig(t, conntest.Options{APIKeys: []string{"good", "better"}}, func(o *conn.Options) {
				o.RebuildAfter = time.Minute
				base := o.Client
				o.Reload = func() (client.Options, error) {
					s := files.Load()
					return keyed(base, s.key), s.err
				}
				o.Identity = func() (string, error) { return files.Load().key, nil }
			})
			require.NoError(t, r.Register("orders", idle("orders")))
			r.connect(t)
			before := r.until(t, polling)
			files.Store(&spoilt)
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
			t.Logf("polling %s after the return", time.Since(begin))
			require.Equal(t, 1, after.Generation)
			require.Equal(t, before.Workers[0].Since, after.Workers[0].Since)

			files.Store(&settings{key: "better"})
			r.until(t, func(s conn.Status) bool { return s.Generation == 2 && polling(s) })
		})
	}
}

// errand is one activity task that the frontend hands out, to the first poll that asks for it.
type errand struct {
	given atomic.Bool
	// begun is closed when the activity runs, which ends with release.
	begun, release chan struct{}
	leave          func()
}

func newErrand(t *testing.T) *errand {
	t.Helper()
	e := &errand{begun: make(chan struct{}), release: make(chan struct{})}
	e.leave = sync.OnceFunc(func() { close(e.release) })
	t.Cleanup(e.leave)
	return e
}

// options let clients get the task, and leave time to do it.
func (e *errand) options(o *conn.Options) {
	o.DrainTimeout = patience
	o.Client.ConnectionOptions.DialOptions = append(o.Client.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(e.hand))
}

func (e *errand) hand(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	_, poll := req.(*workflowservice.PollActivityTaskQueueRequest)
	if !poll || !e.given.CompareAndSwap(false, true) {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	now, limit := timestamppb.Now(), durationpb.New(time.Hour)
	proto.Merge(reply.(proto.Message), &workflowservice.PollActivityTaskQueueResponse{
		TaskToken: []byte("task"), WorkflowNamespace: "default", ActivityId: "1", ActivityType: &common.ActivityType{Name: "errand"},
		WorkflowType: &common.WorkflowType{Name: "order"}, WorkflowExecution: &common.WorkflowExecution{WorkflowId: "one", RunId: "one"},
		ScheduledTime: now, StartedTime: now, CurrentAttemptScheduledTime: now, Attempt: 1, ScheduleToCloseTimeout: limit, StartToCloseTimeout: limit,
	})
	return nil
}

// worker does the errand.
func (e *errand) worker(c client.Client) (worker.Worker, error) {
	w := worker.New(c, "orders", worker.Options{})
	w.RegisterActivityWithOptions(func(context.Context) error {
		close(e.begun)
		<-e.release
		return nil
	}, activity.RegisterOptions{Name: "errand"})
	return w, nil
}

// starting is a worker set whose workers call a function before they start, or fail with what it returns.
func starting(before func() error) conn.Factory {
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
	ctx context.Context, options worker.PluginStartWorkerOptions, next func(context.Context, worker.PluginStartWorkerOptions) error,
) error {
	if err := s.before(); err != nil {
		return err
	}
	return next(ctx, options)
}

// reported waits until the frontend was told of the activity's end.
func (e *errand) reported(t *testing.T, f *conntest.Frontend) {
	t.Helper()
	e.leave()
	require.NoError(t, f.AwaitCalls(soon(t), "RespondActivityTaskCompleted", 1))
}

// TestABuildThatFailsKeepsTheWorkThatItsWorkersTook has a second worker set that does not start while the first one has begun
// something already.
func TestABuildThatFailsKeepsTheWorkThatItsWorkersTook(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind conn.Kind
		fail func(released <-chan struct{}) error
	}{
		"it fails as connections do": {conn.Unreachable, func(<-chan struct{}) error { return status.Error(codes.Unavailable, "gone") }},
		"it takes too long":          {conn.Hung, func(released <-chan struct{}) error { <-released; return errors.New("too late") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newErrand(t)
			r := newRig(t, conntest.Options{}, e.options)
			require.NoError(t, r.Register("orders", e.worker))
			released := make(chan struct{})
			free := sync.OnceFunc(func() { close(released) })
			t.Cleanup(free)
			var tries atomic.Int32
			require.NoError(t, r.Register("other", starting(func() error {
				if tries.Add(1) > 1 {
					return nil
				}
				<-e.begun
				return tt.fail(released)
			})))
			r.start(t)
			s := r.until(t, func(s conn.Status) bool { return s.Breaker.Failures == 1 })
			require.Equal(t, tt.kind, s.Kind)
			require.Equal(t, 1, s.Draining)
			e.reported(t, r.frontend)
			free()
			s = r.until(t, polling)
			require.Len(t, s.Workers, 2)
			r.until(t, func(s conn.Status) bool { return s.Draining == 0 })
			require.NoError(t, r.frontend.Await(soon(t), func() bool { return r.frontend.Connections() == 1 }))
		})
	}
}

// TestStopInTheMiddleOfABuild stops workers that have begun something before they were put to use.
func TestStopInTheMiddleOfABuild(t *testing.T) {
	t.Parallel()
	e := newErrand(t)
	r := newRig(t, conntest.Options{}, e.options)
	require.NoError(t, r.Register("orders", e.worker))
	released := make(chan struct{})
	free := sync.OnceFunc(func() { close(released) })
	t.Cleanup(free)
	require.NoError(t, r.Register("other", starting(func() error {
		<-released
		return errors.New("too late")
	})))
	r.start(t)
	<-e.begun
	ended := make(chan error, 1)
	ctx := soon(t)
	go func() { ended <- r.Stop(ctx) }()
	r.until(t, is(conn.Closed, conn.None))
	e.reported(t, r.frontend)
	free()
	require.NoError(t, <-ended)
	require.NoError(t, r.frontend.Await(soon(t), func() bool { return r.frontend.Connections() == 0 }))
}

// TestAnotherIdentityInTheMiddleOfABuild lets the build end, on the client whose workers have begun something.
func TestAnotherIdentityInTheMiddleOfABuild(t *testing.T) {
	t.Parallel()
	e := newErrand(t)
	var asked atomic.Int32
	second := make(chan struct{})
	r := newRig(t, conntest.Options{}, e.options, func(o *conn.Options) {
		o.Identity = func() (string, error) {
			select {
			case <-e.begun:
			default:
				return "one", nil
			}
			if asked.Add(1) == 2 {
				close(second) // the first answer has come to the manager's knowledge
			}
			return "two", nil
		}
	})
	require.NoError(t, r.Register("orders", e.worker))
	require.NoError(t, r.Register("other", starting(func() error {
		<-second
		return nil
	})))
	r.start(t)
	r.until(t, func(s conn.Status) bool { return s.Generation == 2 && polling(s) })
	require.Zero(t, r.log.count("Failed to start worker"))
	e.reported(t, r.frontend)
}

// TestAClientThatWasJustGivenOut is used at once, by a process without workers: it must not have been closed meanwhile.
func TestAClientThatWasJustGivenOut(t *testing.T) {
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
	begin := time.Now()
	require.NoError(t, r.Stop(soon(t)))
	require.Less(t, time.Since(begin), patience/2, "nobody waits for the grace")
}
