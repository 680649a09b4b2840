package conn_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/conn/conntest"
)

// temporal returns a frontend in place of a real Temporal.
func temporal(options conntest.Options) *conntest.Frontend {
	frontend, err := conntest.New(options)
	if err != nil {
		panic(err)
	}
	return frontend
}

// The manager is started before Temporal. Once Temporal accepts connections, the manager connects and starts the
// workers.
func Example() {
	frontend := temporal(conntest.Options{Stopped: true})
	defer frontend.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()

	m, err := conn.New(conn.Options{Client: client.Options{HostPort: frontend.Addr()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = m.Register("orders", func(c client.Client) (worker.Worker, error) {
		w := worker.New(c, "orders", worker.Options{})
		w.RegisterWorkflowWithOptions(func(workflow.Context) error { return nil }, workflow.RegisterOptions{Name: "Order"})
		return w, nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := m.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	_, err = m.Client()
	fmt.Println("no client yet:", err != nil)

	_ = frontend.Restart()
	if err := m.Await(ctx); err != nil {
		fmt.Println(err)
		return
	}
	_ = frontend.AwaitPollers(ctx, "orders", 1)
	s := m.Status()
	fmt.Println(s.State, "in generation", s.Generation, "with workers for", s.Workers[0].TaskQueues)

	fmt.Println("stopped:", m.Stop(ctx))
	// Output:
	// no client yet: true
	// connected in generation 1 with workers for [orders]
	// stopped: <nil>
}

// While the connection is down, Client returns a DownError at once. It has what an HTTP handler needs for its answer.
func ExampleDownError() {
	frontend := temporal(conntest.Options{Namespaces: []string{"production"}})
	defer frontend.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m, err := conn.New(conn.Options{
		Client: client.Options{HostPort: frontend.Addr(), Namespace: "staging"}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = m.Start(ctx)
	defer func() { _ = m.Stop(ctx) }()
	_ = frontend.AwaitCalls(ctx, "DescribeNamespace", 1)
	for m.Status().State == conn.Connecting {
		tick(ctx)
	}

	_, err = m.Client()
	if down, ok := errors.AsType[*conn.DownError](err); ok {
		fmt.Println("503 Service Unavailable")
		fmt.Println("Retry-After:", down.RetryAfter().Round(time.Second) > 0)
		fmt.Println("reason:", down.State, down.Kind)
	}
	// Output:
	// 503 Service Unavailable
	// Retry-After: true
	// reason: down namespace_missing
}

// Borrow is for a sequence of requests: if the generation is replaced meanwhile, its client is not closed before
// release.
func ExampleManager_Borrow() {
	frontend := temporal(conntest.Options{})
	defer frontend.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m, err := conn.New(conn.Options{Client: client.Options{HostPort: frontend.Addr()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = m.Start(ctx)
	defer func() { _ = m.Stop(ctx) }()
	if err := m.Await(ctx); err != nil {
		fmt.Println(err)
		return
	}

	c, release, err := m.Borrow()
	if err != nil {
		fmt.Println(err) // a *conn.DownError
		return
	}
	defer release()
	for _, id := range []string{"order-1", "order-2", "order-3"} {
		if _, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: "orders"}, "Order"); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("started:", len(frontend.Starts()))
	// Output:
	// started: 3
}

// A hook is for code that must act on each new client, here one that submits queued work. The credential files change,
// so the manager makes a new generation.
func ExampleManager_OnConnect() {
	frontend := temporal(conntest.Options{})
	defer frontend.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	rotations := make(chan string, 1)
	rotations <- "certificate 1"
	current := ""
	m, err := conn.New(conn.Options{
		Client: client.Options{HostPort: frontend.Addr()}, Logger: slog.New(slog.DiscardHandler),
		ProbeEvery: 100 * time.Millisecond,
		// A program hashes the files that Options.Reload reads.
		Identity: func() (string, error) {
			select {
			case current = <-rotations:
			default:
			}
			return current, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	clients := make(chan client.Client)
	m.OnConnect("backlog", func(_ context.Context, c client.Client) error {
		fmt.Println("submit the backlog")
		clients <- c
		return nil
	})
	_ = m.Start(ctx)
	defer func() { _ = m.Stop(ctx) }()

	first := <-clients
	rotations <- "certificate 2"
	second := <-clients
	fmt.Println("another client:", first != second)
	// Output:
	// submit the backlog
	// submit the backlog
	// another client: true
}

// tick waits for 10 ms.

func tick(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	<-ctx.Done()
}
