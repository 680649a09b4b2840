// Command accessdocs writes the reference of who may call what to the file given.
package main

import (
	"fmt"
	"os"

	"github.com/signalbox-dev/signalbox/internal/rpc/permit"
)

func main() {
	const fileMode = 0o644
	if len(os.Args) != 2 { //nolint:mnd // the command and its only argument
		fmt.Fprintln(os.Stderr, "usage: accessdocs FILE")
		os.Exit(2) //nolint:mnd // the usual code for wrong usage
	}
	if err := os.WriteFile(os.Args[1], []byte(permit.Markdown()), fileMode); err != nil {
		fmt.Fprintln(os.Stderr, "write the reference of permissions:", err)
		os.Exit(1)
	}
}
