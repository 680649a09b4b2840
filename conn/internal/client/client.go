// Package client wraps one Temporal SDK client for a connection manager. It reports whether the gRPC connection is
// ready, whether requests fail in a way that suggests an outage, which task queues are polled, and whether the client
// is still in use.
//
// A [Client] makes no decision and schedules nothing: the manager runs the checks, and closes the client when it is
// [Client.Idle].
package client

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
	sdkclient "go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/signalbox-dev/signalbox/conn/internal/classify"
	"github.com/signalbox-dev/signalbox/conn/internal/poller"
	"github.com/signalbox-dev/signalbox/internal/backoff"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

const (
	// redialFirst and redialLongest limit the pauses of gRPC's own redialling. It is cheap, and the first to notice that a
	// server is back. The wide jitter keeps many processes from reconnecting at the same moment.
	redialFirst   = 100 * time.Millisecond
	redialLongest = 450 * time.Millisecond
	redialJitter  = 0.5
	// dialTimeout limits one dial: a port that accepts and sends nothing must not delay the next dial by gRPC's 20 s.
	dialTimeout = 3 * time.Second
	// keepAlive and keepAliveTimeout find dead connections; servers refuse more frequent pings than one in 10 s.
	keepAlive        = 15 * time.Second
	keepAliveTimeout = 5 * time.Second
	// shutdownTimeout limits a ShutdownWorker request; the SDK would wait for 10 s.
	shutdownTimeout = 3 * time.Second
	// shutdownRetryTimeout limits it while the last one was not answered in time: a process may stop its workers one after
	// another.
	shutdownRetryTimeout = time.Second
	// checkTries is how often a check is sent while frontends answer UNAVAILABLE. gRPC sends each try over the next
	// connection in turn, and requests of the program take turns in between, so it is more than two.
	checkTries = 4
	// A poll that fails within refusedWithin was refused; it is sent again up to maxRefusals times in a row, after pauses.
	refusedWithin = time.Second
	maxRefusals   = 6
	refusalPause  = 50 * time.Millisecond
	refusalPauses = 2 * time.Second
	// frontendService is the service name in a health check of a frontend.
	frontendService = "temporal.api.workflowservice.v1.WorkflowService"
)

// Hooks are callbacks of a client. They must not block.
type Hooks struct {
	// Ready is called when the gRPC connection becomes ready and when it no longer is.
	Ready func(ready bool)
	// Suspect is called after a request that failed in a way that suggests an outage.
	Suspect func()
	// Begin is called at the start of each request of the program and of its workers, and its result at the end: see
	// traffic.Tracker.
	Begin func(method string) (ended func(err error, answered bool))
}

// Identity identifies the server behind a client.
type Identity struct {
	// NamespaceID is Temporal's own ID of the namespace: a different ID means different data.
	NamespaceID  string
	capabilities []byte
}

// Same reports whether a client made for one can be used with the other.
func (i Identity) Same(other Identity) bool {
	return i.NamespaceID == other.NamespaceID && slices.Equal(i.capabilities, other.capabilities)
}

// Client is one SDK client with its gRPC connection. It is safe for concurrent use.
type Client struct {
	sdk              sdkclient.Client
	namespace        string
	hooks            Hooks
	polls            *poller.Tracker
	waitingPolls     *pollWaits
	results          *results
	conn             atomic.Pointer[grpc.ClientConn]
	uses             atomic.Int64
	plugin           *plugin
	stop             context.CancelFunc
	watching         sync.WaitGroup
	closing          sync.Once
	serverDown       atomic.Bool
	shutdownTimedOut atomic.Bool // a ShutdownWorker request was not answered in time, and no request was answered since

	// readyCount counts how often the connection became ready; capabilitiesReadAt is the count at which the capabilities
	// were last read.
	readyCount         atomic.Int64
	mu                 sync.Mutex
	capabilitiesReadAt int64
	capabilitiesBytes  []byte
}

// managerRequestKey marks requests of the manager, whose failures are its check results and not suspicions.
// captureConnKey marks the request by which New gets the gRPC connection, and which is never sent.
type (
	managerRequestKey struct{}
	captureConnKey    struct{}
)

var errConnCaptured = errors.New("the connection was captured; the request is not sent")

// New makes a client, and watches and maintains its connection until Close. It does not wait for the connection.
// stopTimeout is the WorkerStopTimeout of workers that set none.
func New(ctx context.Context, options sdkclient.Options, stopTimeout time.Duration, hooks Hooks) (*Client, error) {
	c := &Client{namespace: options.Namespace, hooks: hooks, polls: poller.NewTracker(time.Now),
		waitingPolls: newPollWaits(), plugin: &plugin{stopTimeout: stopTimeout}}
	c.results = newResults(c.Connected, func() bool { return c.serverDown.Load() || c.shutdownTimedOut.Load() })
	options.Plugins = append(slices.Clip(options.Plugins), c.plugin)
	params := grpc.ConnectParams{Backoff: grpcbackoff.DefaultConfig, MinConnectTimeout: dialTimeout}
	params.Backoff.BaseDelay, params.Backoff.MaxDelay = redialFirst, redialLongest
	params.Backoff.Jitter = redialJitter
	// The caller's options come last, so that they take precedence.
	options.ConnectionOptions.DialOptions = append([]grpc.DialOption{
		grpc.WithConnectParams(params), grpc.WithChainUnaryInterceptor(c.intercept),
	}, options.ConnectionOptions.DialOptions...)
	if options.ConnectionOptions.KeepAliveTime == 0 {
		options.ConnectionOptions.KeepAliveTime = keepAlive
	}
	if options.ConnectionOptions.KeepAliveTimeout == 0 {
		options.ConnectionOptions.KeepAliveTimeout = keepAliveTimeout
	}
	sdk, err := sdkclient.NewLazyClient(options)
	if err != nil {
		return nil, fmt.Errorf("making the client for Temporal at %q: %w", options.HostPort, err)
	}
	c.sdk = sdk
	watchCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	if _, err := sdk.WorkflowService().GetSystemInfo(context.WithValue(watchCtx, captureConnKey{}, true),
		&workflowservice.GetSystemInfoRequest{}); c.conn.Load() == nil {
		stop()
		sdk.Close()
		return nil, fmt.Errorf("making the client for Temporal at %q: %w", options.HostPort, err)
	}
	c.watching.Go(func() { c.watch(watchCtx) })
	return c, nil
}

// SDK returns the SDK client.
func (c *Client) SDK() sdkclient.Client { return c.sdk }

// Polls returns the tracker of this client's polls.
func (c *Client) Polls() *poller.Tracker { return c.polls }

// Connected reports whether the gRPC connection is ready.
func (c *Client) Connected() bool { return c.conn.Load().GetState() == connectivity.Ready }

// Acquire counts a user of the client, until Release.
func (c *Client) Acquire() { c.uses.Add(1) }

// Release undoes one Acquire.
func (c *Client) Release() { c.uses.Add(-1) }

// Idle reports whether the client is unused: no request is under way, and every Acquire was released.
func (c *Client) Idle() bool { return c.uses.Load() == 0 }

// Probe requests the frontend's health by the gRPC health check, the lightest request there is. UNIMPLEMENTED, from a
// frontend without that service, counts as an answer.
func (c *Client) Probe(ctx context.Context) error {
	ctx = context.WithValue(ctx, managerRequestKey{}, true)
	_, err := healthpb.NewHealthClient(c.conn.Load()).Check(ctx, &healthpb.HealthCheckRequest{Service: frontendService})
	if status.Code(err) == codes.Unimplemented {
		return nil
	}
	return err
}

// Recheck is Check for a client that may still be in gRPC's back-off although the server is back: it dials at once and
// waits for the connection.
func (c *Client) Recheck(ctx context.Context) (Identity, error) {
	c.conn.Load().ResetConnectBackoff()
	return c.check(ctx, grpc.WaitForReady(true))
}

// Check requests the namespace and, once for each new connection, the server's capabilities.
func (c *Client) Check(ctx context.Context) (Identity, error) { return c.check(ctx) }

func (c *Client) check(ctx context.Context, opts ...grpc.CallOption) (Identity, error) {
	ctx = context.WithValue(ctx, managerRequestKey{}, true)
	var response *workflowservice.DescribeNamespaceResponse
	err := c.retryUnavailable(func() (err error) {
		response, err = c.sdk.WorkflowService().DescribeNamespace(ctx,
			&workflowservice.DescribeNamespaceRequest{Namespace: c.namespace}, opts...)
		return err
	})
	if err != nil {
		return Identity{}, err
	}
	info := response.GetNamespaceInfo()
	if info.GetState() == enums.NAMESPACE_STATE_DELETED {
		return Identity{}, serviceerror.NewNamespaceNotFound(c.namespace)
	}
	capabilities, err := c.readCapabilities(ctx)
	return Identity{NamespaceID: info.GetId(), capabilities: capabilities}, err
}

// retryUnavailable sends a request, and again where the answer is UNAVAILABLE while there is a connection: gRPC sends
// each request over the next of its connections in turn, so one unavailable frontend of several is no outage.
func (c *Client) retryUnavailable(request func() error) error {
	var err error
	for range checkTries {
		err = request()
		if _, away := errors.AsType[*serviceerror.Unavailable](err); !away || !c.Connected() {
			break
		}
	}
	return err
}

func (c *Client) readCapabilities(ctx context.Context) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	readyCount := c.readyCount.Load()
	if c.capabilitiesBytes != nil && c.capabilitiesReadAt == readyCount {
		return c.capabilitiesBytes, nil
	}
	var info *workflowservice.GetSystemInfoResponse
	err := c.retryUnavailable(func() (err error) {
		info, err = c.sdk.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
		return err
	})
	if _, old := errors.AsType[*serviceerror.Unimplemented](err); err != nil && !old {
		return nil, err
	}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(info.GetCapabilities())
	if err != nil {
		return nil, fmt.Errorf("reading the server's capabilities: %w", err)
	}
	c.capabilitiesBytes, c.capabilitiesReadAt = append([]byte{0}, encoded...), readyCount // never nil
	return c.capabilitiesBytes, nil
}

// RecordWorkers calls a function that makes workers of this client, and returns what those workers poll. Calls do not
// overlap.
func (c *Client) RecordWorkers(build func()) Workers { return c.plugin.record(build) }

// Close closes the client and waits for its goroutine. Requests under way fail. Further calls only wait.
func (c *Client) Close() {
	c.closing.Do(func() {
		c.stop()
		c.sdk.Close()
	})
	c.watching.Wait()
}

func (c *Client) watch(ctx context.Context) {
	conn := c.conn.Load()
	was := false
	for {
		state := conn.GetState()
		ready := state == connectivity.Ready
		switch {
		case ready && !was:
			c.readyCount.Add(1)
			c.hooks.Ready(true)
		case !ready && was:
			c.hooks.Ready(false)
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

func (c *Client) intercept(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	if ctx.Value(captureConnKey{}) != nil {
		c.conn.Store(cc)
		return errConnCaptured
	}
	if ctx.Value(managerRequestKey{}) != nil {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if err == nil {
			c.shutdownTimedOut.Store(false)
		}
		return err
	}
	if shutdown, ok := req.(*workflowservice.ShutdownWorkerRequest); ok {
		return c.sendShutdown(ctx, shutdown.GetTaskQueue(), func(ctx context.Context) error {
			return invoke(ctx, method, req, reply, cc, opts...)
		})
	}
	if poller.IsPoll(req) {
		return c.polls.Watch(ctx, req, func() error { return c.sendPoll(ctx, method, req, reply, cc, invoke, opts) })
	}
	c.Acquire()
	defer c.Release()
	if isResult(req) {
		return c.results.report(ctx, func(ctx context.Context, extra ...grpc.CallOption) error {
			return c.reportSuspect(ctx, c.send(ctx, method, req, reply, cc, invoke, append(slices.Clip(opts), extra...)))
		})
	}
	return c.reportSuspect(ctx, c.send(ctx, method, req, reply, cc, invoke, opts))
}

// send sends a request and reports it to Hooks.Begin. Headers or trailers show that the server has answered: an error
// of the connection has none.
func (c *Client) send(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts []grpc.CallOption,
) error {
	var header, trailer metadata.MD
	ended := c.hooks.Begin(method)
	err := invoke(ctx, method, req, reply, cc, append(slices.Clip(opts), grpc.Header(&header), grpc.Trailer(&trailer))...)
	answered := len(header)+len(trailer) > 0
	if answered {
		c.shutdownTimedOut.Store(false)
	}
	ended(err, answered)
	return err
}

// sendPoll sends a poll and, whenever the connection breaks during it, sends it again as soon as there is a connection.
// The SDK would back off by up to 10 s. A poll that the server refuses several times in a row fails.
func (c *Client) sendPoll(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts []grpc.CallOption,
) error {
	waitForReady := append(slices.Clip(opts), grpc.WaitForReady(true))
	for refusals := 0; ; {
		waiting, done, ok := c.waitingPolls.wait(ctx, poller.TaskQueue(req))
		if !ok {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		sent := time.Now()
		err := c.reportSuspect(waiting, c.send(waiting, method, req, reply, cc, invoke, waitForReady))
		done()
		if status.Code(err) != codes.Unavailable || ctx.Err() != nil {
			return err
		}
		if refusals++; time.Since(sent) >= refusedWithin {
			refusals = 0
		}
		if refusals > maxRefusals || !loop.Sleep(ctx, backoff.Delay(refusalPause, refusalPauses, refusals)) {
			return err
		}
	}
}

// sendShutdown sends ShutdownWorker, upon which the server ends the worker's polls. Where the server cannot be used or
// does not answer soon, it cancels the polls itself: the SDK would wait for them until the worker's stop timeout.
func (c *Client) sendShutdown(ctx context.Context, queue string, send func(context.Context) error) error {
	if c.serverDown.Load() {
		c.waitingPolls.cancelStopping(queue)
		return status.Error(codes.Unavailable, "the connection to Temporal is down")
	}
	c.Acquire()
	defer c.Release()
	limit := shutdownTimeout
	if c.shutdownTimedOut.Load() {
		limit = shutdownRetryTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := c.reportSuspect(ctx, send(ctx))
	c.shutdownTimedOut.Store(errors.Is(ctx.Err(), context.DeadlineExceeded))
	if classify.SuggestsOutage(err) {
		c.waitingPolls.cancelStopping(queue)
	}
	return err
}

// SetServerDown records whether the manager's state is down. The connection to a server that hangs stays ready for a
// while.
func (c *Client) SetServerDown(down bool) { c.serverDown.Store(down) }

// StopWaiting is called when a worker of the task queues begins to stop, and resume once it has stopped. In between,
// polls of the queues do not wait for a connection, and results of tasks wait for it only as long as [resultsTimeout].
func (c *Client) StopWaiting(queues []string) (resume func()) {
	polls, results := c.waitingPolls.stop(queues, c.Connected() && !c.serverDown.Load()), c.results.stop()
	return func() {
		results()
		polls()
	}
}

func (c *Client) reportSuspect(ctx context.Context, err error) error {
	if classify.SuggestsOutage(err) && !errors.Is(ctx.Err(), context.Canceled) {
		c.hooks.Suspect()
	}
	return err
}
