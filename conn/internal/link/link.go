// Package link is one client of Temporal together with what a connection manager must know of it: whether its gRPC
// connection is ready, whether requests fail in a way that suggests an outage, who polls, and whether it is still in use.
//
// A link makes no decision and keeps no clock: its owner checks it, and closes it when nobody uses it any more.
package link

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/signalbox-dev/signalbox/conn/internal/classify"
	"github.com/signalbox-dev/signalbox/conn/internal/poll"
)

const (
	// redialFirst and redialMost pace gRPC's own redialling: cheap, and what notices first that a server is back.
	// The wide jitter keeps many processes from coming back in the same moment.
	redialFirst  = 100 * time.Millisecond
	redialMost   = 450 * time.Millisecond
	redialJitter = 0.5
	// dialTimeout bounds one dial: a port that accepts and stays silent must not hold up the next for 20 s.
	dialTimeout = 3 * time.Second
	// keepAlive and keepAliveTimeout find dead connections; servers refuse more frequent pings than one in 10 s.
	keepAlive        = 15 * time.Second
	keepAliveTimeout = 5 * time.Second
	// shutdownTimeout bounds the request that a worker stops; the SDK would wait for 10 s.
	shutdownTimeout = 3 * time.Second
	// shutdownAgain bounds it after one that was not answered in time, until one is: a process may stop its workers one after another.
	shutdownAgain = time.Second
	// frontendTries is over how many connections a check is made before a frontend that says to be unavailable is believed. Requests
	// of others take turns in between, so it is more than two.
	frontendTries = 4
	// frontendService is the name under which a frontend's health is asked for.
	frontendService = "temporal.api.workflowservice.v1.WorkflowService"
)

// Hooks are told what happens. They must not block.
type Hooks struct {
	// Ready is told when the gRPC connection becomes ready and when it no longer is.
	Ready func(ready bool)
	// Suspect is told of requests that failed in a way that suggests an outage.
	Suspect func()
	// Begin counts the requests of others: see traffic.Tracker.
	Begin func(method string) (ended func(err error, answered bool))
}

// Identity is what a server said of itself when it was checked.
type Identity struct {
	// NamespaceID is Temporal's own ID of the namespace: another one means other data.
	NamespaceID  string
	capabilities []byte
}

// Same tells whether a client made for one can be used for the other.
func (i Identity) Same(other Identity) bool {
	return i.NamespaceID == other.NamespaceID && slices.Equal(i.capabilities, other.capabilities)
}

// Link is one client. It is safe for concurrent use.
type Link struct {
	client    client.Client
	namespace string
	hooks     Hooks
	polls     *poll.Tracker
	patience  *patience
	results   *results
	conn      atomic.Pointer[grpc.ClientConn]
	uses      atomic.Int64
	plugin    *plugin
	stop      context.CancelFunc
	watching  sync.WaitGroup
	closing   sync.Once
	down      atomic.Bool
	silent    atomic.Bool // the request that a worker stops was not answered in time, and none was since

	// readies counts how often the connection became ready; asked is the count at which the capabilities were last read.
	readies atomic.Int64
	mu      sync.Mutex
	asked   int64
	known   []byte
}

// ownKey marks requests of the link's owner: their failures are answers, not suspicions. grabKey marks the one that is
// made to get hold of the gRPC connection and is never sent.
type (
	ownKey  struct{}
	grabKey struct{}
)

var errGrabbed = errors.New("the connection was looked at")

// New makes a client and begins to watch and to keep up its connection. It does not wait for it. stopTimeout is given to
// workers that have no WorkerStopTimeout of their own.
func New(ctx context.Context, options client.Options, stopTimeout time.Duration, hooks Hooks) (*Link, error) {
	l := &Link{namespace: options.Namespace, hooks: hooks, polls: poll.NewTracker(time.Now), patience: newPatience(), plugin: &plugin{stopTimeout: stopTimeout}}
	l.results = newResults(l.Connected, func() bool { return l.down.Load() || l.silent.Load() })
	options.Plugins = append(slices.Clip(options.Plugins), l.plugin)
	params := grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: dialTimeout}
	params.Backoff.BaseDelay, params.Backoff.MaxDelay = redialFirst, redialMost
	params.Backoff.Jitter = redialJitter
	// What the caller gave comes later, and so wins.
	options.ConnectionOptions.DialOptions = append([]grpc.DialOption{
		grpc.WithConnectParams(params), grpc.WithChainUnaryInterceptor(l.intercept),
	}, options.ConnectionOptions.DialOptions...)
	if options.ConnectionOptions.KeepAliveTime == 0 {
		options.ConnectionOptions.KeepAliveTime = keepAlive
	}
	if options.ConnectionOptions.KeepAliveTimeout == 0 {
		options.ConnectionOptions.KeepAliveTimeout = keepAliveTimeout
	}
	c, err := client.NewLazyClient(options)
	if err != nil {
		return nil, fmt.Errorf("making the client for Temporal at %q: %w", options.HostPort, err)
	}
	l.client = c
	watchCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	if _, err := c.WorkflowService().GetSystemInfo(context.WithValue(watchCtx, grabKey{}, true), &workflowservice.GetSystemInfoRequest{}); l.conn.Load() == nil {
		stop()
		c.Close()
		return nil, fmt.Errorf("making the client for Temporal at %q: %w", options.HostPort, err)
	}
	l.watching.Go(func() { l.watch(watchCtx) })
	return l, nil
}

// Client returns the client.
func (l *Link) Client() client.Client { return l.client }

// Polls tells who polls over this link.
func (l *Link) Polls() *poll.Tracker { return l.polls }

// Connected tells whether the gRPC connection is ready.
func (l *Link) Connected() bool { return l.conn.Load().GetState() == connectivity.Ready }

// Acquire notes a user of the client, Release its leaving.
func (l *Link) Acquire() { l.uses.Add(1) }

// Release notes that a user has left.
func (l *Link) Release() { l.uses.Add(-1) }

// Idle tells whether nobody uses the client: no request is under way and nobody has acquired it.
func (l *Link) Idle() bool { return l.uses.Load() == 0 }

// Probe asks for the frontend's health: the lightest question there is. One without a health service has answered as well.
func (l *Link) Probe(ctx context.Context) error {
	ctx = context.WithValue(ctx, ownKey{}, true)
	_, err := healthpb.NewHealthClient(l.conn.Load()).Check(ctx, &healthpb.HealthCheckRequest{Service: frontendService})
	if status.Code(err) == codes.Unimplemented {
		return nil
	}
	return err
}

// Recheck is Check for a client whose connection may not have noticed yet that the server is back: it is made at once, and
// waited for.
func (l *Link) Recheck(ctx context.Context) (Identity, error) {
	l.conn.Load().ResetConnectBackoff()
	return l.check(ctx, grpc.WaitForReady(true))
}

// Check asks for the namespace and, after every new connection, for the server's capabilities.
func (l *Link) Check(ctx context.Context) (Identity, error) { return l.check(ctx) }

func (l *Link) check(ctx context.Context, opts ...grpc.CallOption) (Identity, error) {
	ctx = context.WithValue(ctx, ownKey{}, true)
	var response *workflowservice.DescribeNamespaceResponse
	err := l.ask(func() (err error) {
		response, err = l.client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: l.namespace}, opts...)
		return err
	})
	if err != nil {
		return Identity{}, err
	}
	info := response.GetNamespaceInfo()
	if info.GetState() == enums.NAMESPACE_STATE_DELETED {
		return Identity{}, serviceerror.NewNamespaceNotFound(l.namespace)
	}
	capabilities, err := l.capabilities(ctx)
	return Identity{NamespaceID: info.GetId(), capabilities: capabilities}, err
}

// ask makes a request, again where a frontend answered that it is unavailable while there is a connection: gRPC sends each
// request over the next of its connections in turn, so one frontend of several that is in trouble is no outage.
func (l *Link) ask(request func() error) error {
	var err error
	for range frontendTries {
		err = request()
		if _, away := errors.AsType[*serviceerror.Unavailable](err); !away || !l.Connected() {
			break
		}
	}
	return err
}

func (l *Link) capabilities(ctx context.Context) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	readies := l.readies.Load()
	if l.known != nil && l.asked == readies {
		return l.known, nil
	}
	var info *workflowservice.GetSystemInfoResponse
	err := l.ask(func() (err error) {
		info, err = l.client.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
		return err
	})
	if _, old := errors.AsType[*serviceerror.Unimplemented](err); err != nil && !old {
		return nil, err
	}
	known, err := proto.MarshalOptions{Deterministic: true}.Marshal(info.GetCapabilities())
	if err != nil {
		return nil, fmt.Errorf("reading the server's capabilities: %w", err)
	}
	l.known, l.asked = append([]byte{0}, known...), readies // never nil
	return l.known, nil
}

// Workers calls a function that makes workers of this client and returns what is known of them. Calls do not overlap.
func (l *Link) Workers(build func()) Made { return l.plugin.record(build) }

// Close closes the client, once, and joins what watched it. Requests that are under way fail.
func (l *Link) Close() {
	l.closing.Do(func() {
		l.stop()
		l.client.Close()
	})
	l.watching.Wait()
}

func (l *Link) watch(ctx context.Context) {
	conn := l.conn.Load()
	was := false
	for {
		state := conn.GetState()
		ready := state == connectivity.Ready
		switch {
		case ready && !was:
			l.readies.Add(1)
			l.hooks.Ready(true)
		case !ready && was:
			l.hooks.Ready(false)
		}
		was = ready
		if state == connectivity.Idle {
			conn.Connect()
		}
		if state == connectivity.Shutdown || !conn.WaitForStateChange(ctx, state) {
			return
		}
	}
}

func (l *Link) intercept(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	if ctx.Value(grabKey{}) != nil {
		l.conn.Store(cc)
		return errGrabbed
	}
	if ctx.Value(ownKey{}) != nil {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if err == nil {
			l.silent.Store(false)
		}
		return err
	}
	if shutdown, ok := req.(*workflowservice.ShutdownWorkerRequest); ok {
		return l.shutdown(ctx, shutdown.GetTaskQueue(), func(ctx context.Context) error { return invoke(ctx, method, req, reply, cc, opts...) })
	}
	if poll.Is(req) {
		return l.polls.Watch(ctx, req, func() error { return l.poll(ctx, method, req, reply, cc, invoke, opts) })
	}
	l.Acquire()
	defer l.Release()
	if isResult(req) {
		return l.results.report(ctx, func(ctx context.Context, more ...grpc.CallOption) error {
			return l.suspect(ctx, l.count(ctx, method, req, reply, cc, invoke, append(slices.Clip(opts), more...)))
		})
	}
	return l.suspect(ctx, l.count(ctx, method, req, reply, cc, invoke, opts))
}

// count sends a request and counts it. The server has answered where it sent headers or trailers, which an error of the connection has not.
func (l *Link) count(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts []grpc.CallOption,
) error {
	var header, trailer metadata.MD
	ended := l.hooks.Begin(method)
	err := invoke(ctx, method, req, reply, cc, append(slices.Clip(opts), grpc.Header(&header), grpc.Trailer(&trailer))...)
	answered := len(header)+len(trailer) > 0
	if answered {
		l.silent.Store(false)
	}
	ended(err, answered)
	return err
}

// poll sends a poll and, when the connection breaks under it, once more as soon as there is a connection again. The SDK would
// back off, up to 10 s; gRPC knows better when to go on.
func (l *Link) poll(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts []grpc.CallOption,
) error {
	patiently := append(slices.Clip(opts), grpc.WaitForReady(true))
	var err error
	for range 2 {
		waiting, done, ok := l.patience.wait(ctx, poll.Queue(req))
		if !ok {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		err = l.suspect(waiting, l.count(waiting, method, req, reply, cc, invoke, patiently))
		done()
		if status.Code(err) != codes.Unavailable || ctx.Err() != nil {
			break
		}
	}
	return err
}

// shutdown sends that a worker stops, upon which the server ends its polls. Where there is no answer soon, or none is to be had, the polls
// are ended from this side: the SDK would wait for them until the worker's stop timeout.
func (l *Link) shutdown(ctx context.Context, queue string, send func(context.Context) error) error {
	if l.down.Load() {
		l.patience.abandon(queue)
		return status.Error(codes.Unavailable, "the connection to Temporal is down")
	}
	l.Acquire()
	defer l.Release()
	limit := shutdownTimeout
	if l.silent.Load() {
		limit = shutdownAgain
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := l.suspect(ctx, send(ctx))
	l.silent.Store(errors.Is(ctx.Err(), context.DeadlineExceeded))
	if classify.Suspicious(err) {
		l.patience.abandon(queue)
	}
	return err
}

// Down notes whether the server can be used, as far as the link's owner knows. A connection to one that hangs looks ready for a while.
func (l *Link) Down(down bool) { l.down.Store(down) }

// Leave keeps polls of the queues from waiting for the connection until back is called, and results of tasks from waiting for long: their
// worker is being stopped.
func (l *Link) Leave(queues []string) (back func()) {
	polls, results := l.patience.leave(queues, l.Connected() && !l.down.Load()), l.results.leave()
	return func() {
		results()
		polls()
	}
}

func (l *Link) suspect(ctx context.Context, err error) error {
	if classify.Suspicious(err) && !errors.Is(ctx.Err(), context.Canceled) {
		l.hooks.Suspect()
	}
	return err
}
