package flow

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

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/route"
	"github.com/signalbox-dev/signalbox/dispatch/internal/terms"
	"github.com/signalbox-dev/signalbox/lease"
)

const (
	// routeTimeout is far beyond when a routing ends by itself.
	routeTimeout = time.Hour
	// heartbeatTimeout is after how long a killed process's routing is given to another. The SDK holds heartbeats back for four fifths of it.
	heartbeatTimeout = 5 * time.Second
	beatEvery        = time.Second
	// The pauses between attempts to route.
	retryFirst = 50 * time.Millisecond
	retryMost  = 2 * time.Second

	// checkTimeout bounds an attempt to read heartbeats, checkPatience all attempts of a check: until then, the workflow looks after
	// nobody else and cannot continue as new.
	checkTimeout  = time.Minute
	checkPatience = 5 * time.Minute
	// evictTimeout bounds an attempt to tell of an eviction, evictPatience all attempts.
	evictTimeout  = 10 * time.Second
	evictPatience = time.Hour
	// rereadAfter is the time between the two looks at a worker that is to be evicted.
	rereadAfter = time.Second
	// finishWithin bounds what a routing finishes after it was stopped or canceled: the inbox may be away.
	finishWithin = 6 * time.Second
	// brief is how long a routing looks for work that was not announced by a doorbell.
	brief = 2 * time.Second
)

// RouteInput says what to route, and for whom. Busy: it has just been routing.
type RouteInput struct {
	Name  inbox.Name  `json:"name"`
	Owner inbox.Owner `json:"owner"`
	Busy  bool        `json:"busy,omitempty"`
}

// Activities are what the workflow has done for it.
type Activities struct {
	ServerID string
	Inbox    inbox.Inbox
	Leases   lease.Store
	// Idle is how long to look for more work.
	Idle time.Duration
	// Evicted is told of evictions, and again when it fails.
	Evicted func(context.Context, terms.Eviction) error
	// Canceled is called when Temporal has canceled a routing: its dispatcher may have been closed. It must return soon.
	Canceled func(context.Context, inbox.Name)
	Metrics  client.MetricsHandler
	Log      *slog.Logger
}

// Register puts the workflow and its activities on a worker.
func (a *Activities) Register(r worker.Registry) {
	r.RegisterWorkflowWithOptions(Run, workflow.RegisterOptions{Name: contract.WorkflowType})
	r.RegisterActivityWithOptions(a.Route, activity.RegisterOptions{Name: contract.RouteActivity})
	r.RegisterActivityWithOptions(a.Check, activity.RegisterOptions{Name: contract.CheckActivity})
	r.RegisterActivityWithOptions(a.Evict, activity.RegisterOptions{Name: contract.EvictActivity})
}

// Route is the long activity.
func (a *Activities) Route(ctx context.Context, in RouteInput) (route.End, error) {
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
	// What is under way is finished and written when the activity is canceled, as when the process is stopped: otherwise it would be
	// claimed again only when its time is up.
	end, err := route.Run(running, route.Routing{
		Name: in.Name, Owner: in.Owner, Inbox: a.Inbox, Brief: a.patience(in.Busy), Idle: a.Idle,
		Stop: stop, Log: a.Log,
		Count: func(result inbox.Result, n int) {
			metrics.WithTags(map[string]string{"outcome": string(result)}).Counter("dispatcher_deliveries_total").Inc(int64(n))
		},
	})
	if errors.Is(err, route.ErrStopped) && !closed(stopping) {
		a.Canceled(context.WithoutCancel(ctx), in.Name)
		return route.Turned, nil
	}
	if errors.Is(err, route.ErrStopped) {
		return "", temporal.NewApplicationErrorWithOptions("this process is being stopped", "stopped",
			temporal.ApplicationErrorOptions{NextRetryDelay: time.Millisecond, Category: temporal.ApplicationErrorCategoryBenign, Cause: err})
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

// beat tells Temporal that the activity is alive, however long the inbox takes to answer.
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

// Check reads the heartbeats of workers. When one cannot be read, nothing is known of any.
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
	timer := time.NewTimer(rereadAfter)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return CheckOutput{}, context.Cause(ctx)
	case <-timer.C:
	}
	var failure error
	out.Missed = slices.DeleteFunc(out.Missed, func(id string) bool {
		state, err := a.heartbeat(ctx, id)
		failure = errors.Join(failure, err)
		return state != lease.Expired
	})
	return out, failure
}

// heartbeat tells a worker's state. One that is not there at all has expired; one that cannot be read may be alive.
func (a *Activities) heartbeat(ctx context.Context, serverID string) (lease.State, error) {
	entry, err := a.Leases.Get(ctx, contract.WorkerKey(serverID))
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

// Evict tells of workers that were struck off the list.
func (a *Activities) Evict(ctx context.Context, in EvictInput) error {
	return a.Evicted(ctx, terms.Eviction{Name: in.Name, Evicted: in.Evicted, By: a.ServerID, At: in.At})
}
