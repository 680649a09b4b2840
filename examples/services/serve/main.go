// Command serve runs the simulated services of the example workflows until it is interrupted.
//
// It listens on 127.0.0.1:9090, the default address in the workflows, or on the address given as its argument.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/signalbox-dev/signalbox/examples/services"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	address := "127.0.0.1:9090"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	if err := serve(ctx, address); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1) //nolint:gocritic // the deferred stop only restores signal handling
	}
}

func serve(ctx context.Context, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for calls of the examples: %w", err)
	}
	fmt.Fprintf(os.Stderr, "The services of the examples listen on http://%s; Ctrl-C stops them.\n", listener.Addr())
	server := &http.Server{Handler: services.New(), ReadHeaderTimeout: 5 * time.Second}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve calls of the examples: %w", err)
	}
	return nil
}
