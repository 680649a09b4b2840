// Command signalbox is the full program: the platform, the command line, and `signalbox dev` with an embedded Temporal.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/signalbox-dev/signalbox/devserver/dev"
	"github.com/signalbox-dev/signalbox/internal/cli"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return cli.Run(ctx, dev.Main(), os.Args[1:])
}
