// Command conn is an example of a program that uses package conn and nothing else of Signalbox: it accepts orders over
// HTTP and processes each in a Temporal workflow. It can be started before Temporal, and Temporal can be killed and
// restarted at any time: the service answers at once in any state, and needs no restart.
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
	listen := flag.String("listen", "127.0.0.1:8090", "address of the HTTP server, as host:port")
	temporal := flag.String("temporal", "127.0.0.1:7233", "address of Temporal, as host:port")
	flag.Parse()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, log, *listen, *temporal); err != nil {
		log.Error("The orders service has failed", "error", err)
		os.Exit(1) //nolint:gocritic // the deferred stop only restores signal handling
	}
}

// serve runs the service until ctx ends, and then lets requests and workers finish.
func serve(ctx context.Context, log *slog.Logger, listen, temporal string) error {
	manager, err := conn.New(conn.Options{Client: client.Options{HostPort: temporal}, Logger: log})
	if err != nil {
		return err
	}
	// A factory, not a worker: a worker can be started once and belongs to one client, so the manager calls the factory
	// for every client that it makes, and again when a worker dies.
	err = manager.Register("orders", func(c client.Client) (worker.Worker, error) {
		w := worker.New(c, "orders", worker.Options{})
		w.RegisterWorkflow(ProcessOrder)
		w.RegisterActivity(Charge)
		return w, nil
	})
	if err != nil {
		return err
	}
	// Start returns at once, with or without Temporal.
	if err := manager.Start(ctx); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) { create(w, r, manager) })
	// Always 200: an outage of Temporal is no reason to restart this process. The body has the status of the connection.
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, manager.Status())
	})
	server := &http.Server{Addr: listen, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	log.Info("The orders service is listening", "address", listen)
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	// First the server accepts no more requests, then workers finish their tasks, then the connection is closed.
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
	// Call Client for each request and never keep its result: the client may have been replaced since the last request.
	// Client never blocks, and while Temporal is unavailable it returns an error before anything was done.
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
		// The connection was up and failed during the request. It is unknown here whether the order has arrived. That is no
		// problem: the workflow has the order's ID, so the same order sent again is the same workflow.
		w.Header().Set("Retry-After", "1")
		answer(w, http.StatusServiceUnavailable, "it is unknown whether the order was accepted; send it again: "+err.Error())
		return
	}
	answer(w, http.StatusAccepted, o)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // it fails only if the caller has disconnected
}

// Order is an order of a customer. The customer chooses its ID, so that an order that is sent twice is one order.
type Order struct {
	ID          string `json:"id"`
	PackSeconds int    `json:"packSeconds"` // how long packing takes, to try out a restart of Temporal during an order
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

// Charge charges the customer. An activity runs again if its answer is lost in an outage, so the payment's ID is
// derived from the order's.
func Charge(_ context.Context, o Order) (string, error) { return "payment-" + o.ID, nil }
