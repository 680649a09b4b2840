// Command signalbox is the lean program: the platform's server and the command line, without an embedded Temporal.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/signalbox-dev/signalbox/internal/app/command"
	"github.com/signalbox-dev/signalbox/internal/cli"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return cli.Run(ctx, command.Main(), os.Args[1:])
}
