// Command reference writes the command line's reference page to the file named by its argument, for go generate. It is
// not part of the product. It is apart from the other generators, internal/generate of the root module, because only
// this module has all commands.
package main

import (
	"fmt"
	"os"

	"github.com/signalbox-dev/signalbox/devserver/dev"
	"github.com/signalbox-dev/signalbox/internal/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: reference FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(commandPage(cli.New(dev.Main()))),
		0o644); err != nil { //nolint:gosec // a public page
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
