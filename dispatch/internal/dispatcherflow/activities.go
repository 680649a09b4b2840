package dispatcherflow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/delivery"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/lease"
)

const (
	// routeTimeout is far longer than a routing runs.
	routeTimeout = time.Hour
	// heartbeatTimeout is the time after which the routing of a killed process is retried elsewhere. Each heartbeat is a
	// billable action: there are two in this time, so that one may be late.
	heartbeatTimeout = 5 * time.Second
	beatEvery        = 2 * time.Second
	// The first and the longest pause between attempts to route.
	retryFirst = 50 * time.Millisecond
	retryMost  = 2 * time.Second

	// checkTimeout limits an attempt to read heartbeats, checkPatience all attempts of a check: until then, the workflow
	// runs no other check and cannot continue as new.
	checkTimeout  = time.Minute
	checkPatience = 5 * time.Minute
	// evictTimeout limits an attempt to report an eviction, evictPatience all attempts.
	evictTimeout  = 10 * time.Second
	evictPatience = time.Hour
	// rereadAfter is the time between the two reads of the heartbeat of a worker that may be evicted.
	rereadAfter = time.Second
	// finishWithin limits the completion of a routing that was stopped or canceled: the inbox may be unavailable.
	finishWithin = 6 * time.Second
	// brief is how long a routing polls for first work that no doorbell announced.
	brief = 2 * time.Second
)

// RouteInput is the input of a routing. Busy: the dispatcher was routing before.
type RouteInput struct {
	Name  inbox.Name  `json:"name"`
	Owner inbox.Owner `json:"owner"`
	Busy  bool        `json:"busy,omitempty"`
}

// Activities are the activities of the workflow.
type Activities struct {
	ServerID string
	Inbox    inbox.Inbox
	Leases   lease.Store
	// Idle is how long to poll for more work.
	Idle time.Duration
	// Evicted receives evictions; a failed call is repeated.
	Evicted func(context.Context, dispatchtype.Eviction) error
	// Left returns those of the workers that have ended in an orderly way, although no resigned heartbeat shows it: the
	// lease store may have lost it. Nil means none.
	Left func(ctx context.Context, serverIDs []string) ([]string, error)
	// Canceled is called after Temporal has canceled a routing: its dispatcher may be closed. It must return soon.
	Canceled func(context.Context, inbox.Name)
	Metrics  client.MetricsHandler
	Log      *slog.Logger
}

// Register registers the workflow and its activities on a worker.
func (a *Activities) Register(r worker.Registry) {
	r.RegisterWorkflowWithOptions(Run, workflow.RegisterOptions{Name: wire.WorkflowType})
	r.RegisterActivityWithOptions(a.Route, activity.RegisterOptions{Name: wire.RouteActivity})
	r.RegisterActivityWithOptions(a.Check, activity.RegisterOptions{Name: wire.CheckActivity})
	r.RegisterActivityWithOptions(a.Evict, activity.RegisterOptions{Name: wire.EvictActivity})
}

// Route is the long activity that routes.
func (a *Activities) Route(ctx context.Context, in RouteInput) (delivery.End, error) {
	beating, cancel := context.WithCancel(ctx)
	joined := make(chan struct{})
	defer func() { cancel(); <-joined }()
	go func() {
		defer close(joined)
		beat(beating)
	}()
	stop := make(chan struct{})
	stopping := make(chan struct{})
	routed := make(chan struct{})
	running, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-activity.GetWorkerStopChannel(ctx):
			close(stopping)
			close(stop)
		case <-ctx.Done():
			close(stop)
		case <-routed:
			return
		}
		select {
		case <-time.After(finishWithin):
			giveUp()
		case <-routed:
		}
	})
	defer watching.Wait()
	defer close(routed)
	metrics := a.Metrics.WithTags(map[string]string{"project": in.Name.Project})
	// Running attempts are completed and their outcomes recorded also when the activity is canceled, as when the process
	// stops: otherwise they would be claimed again only after their visibility time.
	end, err := delivery.Run(running, delivery.Routing{
		Name: in.Name, Owner: in.Owner, Inbox: a.Inbox, Brief: a.patience(in.Busy), Idle: a.Idle,
		Stop: stop, Log: a.Log,
		Count: func(result inbox.Result, n int) {
			metrics.WithTags(map[string]string{"outcome": string(result)}).Counter("dispatcher_deliveries_total").Inc(int64(n))
		},
	})
	if errors.Is(err, delivery.ErrStopped) && !closed(stopping) {
		a.Canceled(context.WithoutCancel(ctx), in.Name)
		return delivery.Turned, nil
	}
	if errors.Is(err, delivery.ErrStopped) {
		return "", temporal.NewApplicationErrorWithOptions("the process is stopping", "stopped",
			temporal.ApplicationErrorOptions{
				NextRetryDelay: time.Millisecond, Category: temporal.ApplicationErrorCategoryBenign, Cause: err})
	}
	return end, err
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (a *Activities) patience(busy bool) time.Duration {
	if busy {
		return a.Idle
	}
	return min(brief, a.Idle)
}

// beat records activity heartbeats, however long the inbox takes to answer.
func beat(ctx context.Context) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		activity.RecordHeartbeat(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Check reads the heartbeats of workers. If one cannot be read, the check fails as a whole.
func (a *Activities) Check(ctx context.Context, in CheckInput) (CheckOutput, error) {
	var out CheckOutput
	reread := false
	for _, id := range in.ServerIDs {
		state, err := a.heartbeat(ctx, id)
		switch {
		case err != nil:
			return CheckOutput{}, err
		case state == lease.Resigned:
			out.Left = append(out.Left, id)
		case state == lease.Expired:
			out.Missed = append(out.Missed, id)
			reread = reread || slices.Contains(in.Reread, id)
		}
	}
	if !reread {
		return out, nil
	}
	if !loop.Sleep(ctx, rereadAfter) {
		return CheckOutput{}, context.Cause(ctx)
	}
	var failure error
	out.Missed = slices.DeleteFunc(out.Missed, func(id string) bool {
		state, err := a.heartbeat(ctx, id)
		failure = errors.Join(failure, err)
		return state != lease.Expired
	})
	if failure != nil {
		return out, failure
	}
	return a.withoutLeft(ctx, in, out)
}

// withoutLeft moves the workers that would be evicted, but have left, from Missed to Left.
func (a *Activities) withoutLeft(ctx context.Context, in CheckInput, out CheckOutput) (CheckOutput, error) {
	var evictable []string
	for _, id := range out.Missed {
		if slices.Contains(in.Reread, id) {
			evictable = append(evictable, id)
		}
	}
	if a.Left == nil || len(evictable) == 0 {
		return out, nil
	}
	left, err := a.Left(ctx, evictable)
	if err != nil {
		return CheckOutput{}, fmt.Errorf("read which of %d workers have left: %w", len(evictable), err)
	}
	out.Left = append(out.Left, left...)
	out.Missed = slices.DeleteFunc(out.Missed, func(id string) bool { return slices.Contains(left, id) })
	return out, nil
}

// heartbeat returns the state of a worker's heartbeat. A missing one has expired; an undecodable one may be alive.
func (a *Activities) heartbeat(ctx context.Context, serverID string) (lease.State, error) {
	entry, err := a.Leases.Get(ctx, wire.WorkerKey(serverID))
	switch {
	case errors.Is(err, lease.ErrNotFound):
		return lease.Expired, nil
	case errors.Is(err, lease.ErrMalformed):
		return lease.Held, nil
	case err != nil:
		return "", fmt.Errorf("read heartbeat of %q: %w", serverID, err)
	}
	return entry.State, nil
}

// Evict reports evicted workers.
func (a *Activities) Evict(ctx context.Context, in EvictInput) error {
	return a.Evicted(ctx, dispatchtype.Eviction{Name: in.Name, Evicted: in.Evicted, By: a.ServerID, At: in.At})
}
