// Command gofunctions is an example of a program that offers functions in Go to workflows: package function makes their
// JSON Schemas from the Go types, and executes them for the workflows of a project. It can be started before Temporal,
// and Temporal can be killed and restarted at any time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/function"
)

func main() {
	temporal := flag.String("temporal", "127.0.0.1:7233", "address of Temporal, as host:port")
	project := flag.String("project", "default", "project whose workflows call the functions")
	key := flag.String("key", "", "key of the platform, as ID=FILE")
	definitions := flag.String("definitions", "", "write the definitions of the functions into this folder, and exit")
	flag.Parse()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	functions, err := function.NewSet("pricing",
		// a price has no effects, so that it may be computed again
		function.New("price", "1.0.0", ComputePrice, function.Idempotent()),
		function.New("reserve", "1.0.0", Reserve(log)),
	)
	switch {
	case err != nil:
	case *definitions != "":
		err = write(*definitions, functions)
	default:
		err = serve(ctx, log, functions, *temporal, *project, *key)
	}
	if err != nil {
		log.Error("The pricing program has failed", "error", err)
		os.Exit(1) //nolint:gocritic // the deferred stop only restores signal handling
	}
}

// write writes the definitions of the functions, which are published with "signalbox function publish".
func write(folder string, functions *function.Set) error {
	for _, d := range functions.Definitions() {
		file := filepath.Join(folder, d.File())
		if err := os.WriteFile(file, d.Source, 0o644); err != nil { //nolint:gosec // definitions are public
			return err
		}
		fmt.Fprintf(os.Stdout, "signalbox function publish %s:%s %s\n", d.Name, d.Version, file)
	}
	return nil
}

// serve executes functions until ctx ends, and then lets those in progress end.
func serve(ctx context.Context, log *slog.Logger, functions *function.Set, temporal, project, key string) error {
	id, file, given := strings.Cut(key, "=")
	if !given {
		return errors.New("-key needs the key of the platform, as ID=FILE")
	}
	keys, err := function.OpenKeys(id, map[string]string{id: file})
	if err != nil {
		return err
	}
	manager, err := conn.New(conn.Options{Client: keys.Seal(client.Options{HostPort: temporal}), Logger: log})
	if err != nil {
		return err
	}
	if err := functions.Serve(manager, function.Options{Project: project, Log: log}); err != nil {
		return err
	}
	if err := manager.Start(ctx); err != nil { // it does not wait for Temporal
		return err
	}
	log.Info("The pricing program serves its functions", "project", project)
	<-ctx.Done()
	budget, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	return manager.Stop(budget)
}

// Order is what a customer wants.
type Order struct {
	Article  string `json:"article" jsonschema:"name of the article"`
	Quantity int    `json:"quantity" jsonschema:"number of pieces"`
}

// Price is what an order costs, in cents.
type Price struct {
	Amount int `json:"amount"`
}

// ComputePrice computes the price of an order. An error of the type dsl.Error is that of the task, with its type and
// status, by which a workflow can catch it.
func ComputePrice(_ context.Context, o Order) (Price, error) {
	prices := map[string]int{"book": 1250, "pen": 199}
	each, sold := prices[o.Article]
	if !sold {
		return Price{}, &dsl.Error{Type: "https://example.com/errors/not-sold", Status: 404, Title: "Not sold",
			Detail: "there is no article " + o.Article}
	}
	return Price{Amount: each * o.Quantity}, nil
}

// Reservation is the reservation of an order's articles.
type Reservation struct {
	ID string `json:"id"`
}

// Reserve returns a function that reserves the articles of an order. Its effects are outside of it, so it is not
// started again when its result is lost; the key of the call would let the warehouse recognise a repetition.
func Reserve(log *slog.Logger) func(ctx context.Context, o Order) (Reservation, error) {
	return func(ctx context.Context, o Order) (Reservation, error) {
		call := function.CallOf(ctx)
		log.InfoContext(ctx, "Reserving", "article", o.Article, "key", call.Key)
		packing := time.NewTimer(time.Duration(o.Quantity) * time.Second / 4)
		defer packing.Stop()
		select {
		case <-packing.C:
			return Reservation{ID: "reservation-" + call.Key}, nil
		case <-ctx.Done(): // the task was canceled, or took longer than its timeout
			return Reservation{}, ctx.Err()
		}
	}
}
