// Command signalbox is the full program: the platform, the command line, and `signalbox dev` with an embedded Temporal.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/signalbox-dev/signalbox/devserver/dev"
	"github.com/signalbox-dev/signalbox/internal/app/command"
	"github.com/signalbox-dev/signalbox/internal/cli"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	options := command.Main(command.Version)
	options.Commands = append(options.Commands, dev.Command(command.Version, options.Env))
	return cli.Run(ctx, options, os.Args[1:])
}
