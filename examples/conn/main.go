// Command conn is a small service of somebody else's: it takes orders over HTTP and processes each in a Temporal workflow.
// All that it uses to stay connected to Temporal is package conn. It may be started before Temporal, and Temporal may be
// killed and restarted at any time: the service answers at once whatever the state is, and needs no restart.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"math"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/conn"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8090", "where to take orders, as host:port")
	temporal := flag.String("temporal", "127.0.0.1:7233", "where Temporal is, as host:port")
	flag.Parse()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, log, *listen, *temporal); err != nil {
		log.Error("The orders service has failed", "error", err)
		os.Exit(1) //nolint:gocritic // stop only gives the signals back, which the exit does too
	}
}

// serve runs the service until ctx ends, and then lets it finish what it has begun.
func serve(ctx context.Context, log *slog.Logger, listen, temporal string) error {
	manager, err := conn.New(conn.Options{Client: client.Options{HostPort: temporal}, Logger: log})
	if err != nil {
		return err
	}
	// A factory, not a worker: a worker is started once and belongs to one client for good, so the manager has one made of
	// every client that it makes, and again when one dies.
	err = manager.Register("orders", func(c client.Client) (worker.Worker, error) {
		w := worker.New(c, "orders", worker.Options{})
		w.RegisterWorkflow(ProcessOrder)
		w.RegisterActivity(Charge)
		return w, nil
	})
	if err != nil {
		return err
	}
	// It returns at once, whether Temporal is there or not.
	if err := manager.Start(ctx); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) { create(w, r, manager) })
	// Always 200: an outage of Temporal is no reason to restart this process. The body tells everything else.
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, manager.Status()) })
	server := &http.Server{Addr: listen, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	log.Info("The orders service listens", "address", listen)
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	// First nobody asks for anything new, then workers finish what they have begun, then the connection ends.
	budget, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	return errors.Join(err, server.Shutdown(budget), manager.Stop(budget))
}

// create starts the workflow of an order.
func create(w http.ResponseWriter, r *http.Request, manager *conn.Manager) {
	var o Order
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&o); err != nil || o.ID == "" {
		answer(w, http.StatusBadRequest, "send an order as JSON, with an id")
		return
	}
	// Asked for in each request and never kept: there may be another client since the last one. It never waits, and where
	// Temporal is away it says so before anything was done.
	c, err := manager.Client()
	if down, ok := errors.AsType[*conn.DownError](err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(down.RetryAfter().Seconds()))))
		answer(w, http.StatusServiceUnavailable, down.Error())
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	_, err = c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: "order-" + o.ID, TaskQueue: "orders", WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
	}, ProcessOrder, o)
	if err != nil {
		// The connection was up, and has failed us now. Whether the order has arrived cannot be known here, and need not be:
		// the workflow has the order's ID, so the same order again is the same workflow.
		w.Header().Set("Retry-After", "1")
		answer(w, http.StatusServiceUnavailable, "it is not known whether the order was taken; send it again: "+err.Error())
		return
	}
	answer(w, http.StatusAccepted, o)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // it fails when the caller has left
}

// Order is what a customer wants. Its ID is the customer's, so that an order that is sent twice is one order.
type Order struct {
	ID          string `json:"id"`
	PackSeconds int    `json:"packSeconds"` // how long packing takes: time to kill Temporal in the middle of an order
}

// ProcessOrder charges an order and packs it. It returns the payment.
func ProcessOrder(ctx workflow.Context, o Order) (payment string, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
	if err := workflow.ExecuteActivity(ctx, Charge, o).Get(ctx, &payment); err != nil {
		return "", err
	}
	if err := workflow.Sleep(ctx, time.Duration(o.PackSeconds)*time.Second); err != nil {
		return "", err
	}
	workflow.GetLogger(ctx).Info("Order is packed", "id", o.ID, "payment", payment)
	return payment, nil
}

// Charge takes the money. An activity whose answer is lost in an outage runs again, so the payment is named after the order.
func Charge(_ context.Context, o Order) (string, error) { return "payment-" + o.ID, nil }
