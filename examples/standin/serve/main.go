// Command serve runs the stand-in for the services that the example workflows call, until it is interrupted.
//
// It listens on loopback, where the examples look for it: 127.0.0.1:9090, or the address given as its argument.
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

	"github.com/signalbox-dev/signalbox/examples/standin"
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
		os.Exit(1) //nolint:gocritic // stop only gives the signal back, which the exit does too
	}
}

func serve(ctx context.Context, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for the examples' calls: %w", err)
	}
	fmt.Fprintf(os.Stderr, "The stand-in for the examples listens on http://%s; Ctrl-C stops it.\n", listener.Addr())
	server := &http.Server{Handler: standin.New(), ReadHeaderTimeout: 5 * time.Second}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answer the examples' calls: %w", err)
	}
	return nil
}
