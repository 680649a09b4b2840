package connection

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// kind is a way to keep workers connected to Temporal.
type kind struct {
	name string
	// join starts a worker with the client of this kind and returns the function that stops both.
	join func(platform.T, client.Options, conn.Factory) (leave func())
}

const forever = 1000 * time.Hour

// rebuildByDefault, rebuildNever and rebuildAlways are the managers that are compared.
func rebuildByDefault() kind { return managed("default", 0) }
func rebuildNever() kind     { return managed("never", forever) }
func rebuildAlways() kind    { return managed("always", time.Nanosecond) }

// managed is a connection manager that rebuilds client and workers after an outage of that length.
func managed(name string, rebuildAfter time.Duration) kind {
	return kind{name, func(t platform.T, options client.Options, factory conn.Factory) func() {
		m, err := conn.New(conn.Options{Client: options, RebuildAfter: rebuildAfter, Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			err = m.Register("orders", factory)
		}
		if err == nil {
			err = m.Start(t.Context())
		}
		if err == nil {
			err = m.Await(t.Context())
		}
		if err != nil {
			t.Fatalf("start a connection manager: %v", err)
		}
		return func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
			defer cancel()
			if err := m.Stop(ctx); err != nil {
				t.Errorf("%v", err)
			}
		}
	}}
}

// sdkAlone is an unmanaged client and worker of the SDK.
func sdkAlone() kind {
	return kind{"SDK", func(t platform.T, options client.Options, factory conn.Factory) func() {
		c, err := client.DialContext(t.Context(), options)
		if err != nil {
			t.Fatalf("connect with the SDK: %v", err)
		}
		w, err := factory(c)
		if err == nil {
			err = w.Start()
		}
		if err != nil {
			t.Fatalf("start a worker of the SDK: %v", err)
		}
		return func() {
			w.Stop()
			c.Close()
		}
	}}
}

// member is one client with a worker on a task queue of its own.
type member struct {
	kind  string
	queue string

	mu    sync.Mutex
	began map[string][]time.Time // the times of the activity's executions, by workflow ID
}

// newMember starts a member of a kind, which stops with t.
func newMember(t platform.T, k kind, address, queue string, change ...func(*client.Options)) *member {
	m := &member{kind: k.name, queue: queue, began: map[string][]time.Time{}}
	options := client.Options{HostPort: address, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))}
	for _, c := range change {
		c(&options)
	}
	t.Cleanup(k.join(t, options, m.factory))
	return m
}

func (m *member) factory(c client.Client) (worker.Worker, error) {
	w := worker.New(c, m.queue, worker.Options{})
	w.RegisterWorkflowWithOptions(order, workflow.RegisterOptions{Name: orderName})
	w.RegisterActivityWithOptions(m.charge, activity.RegisterOptions{Name: chargeName})
	return w, nil
}

const (
	orderName  = "bench.order"
	chargeName = "bench.charge"
	// lostAfter is the time after its due end when an activity is given up and retried.
	lostAfter = 5 * time.Second
)

// order completes with its first task, unless it has an activity to hold.
func order(ctx workflow.Context, hold time.Duration) error {
	if hold == 0 {
		return nil
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: hold + lostAfter})
	return workflow.ExecuteActivity(ctx, chargeName, hold).Get(ctx, nil)
}

func (m *member) charge(ctx context.Context, hold time.Duration) error {
	id := activity.GetInfo(ctx).WorkflowExecution.ID
	m.mu.Lock()
	m.began[id] = append(m.began[id], time.Now())
	m.mu.Unlock()
	return sleep(ctx, hold)
}

// executions returns the times at which the activity of a workflow began.
func (m *member) executions(id string) []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.began[id]
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
