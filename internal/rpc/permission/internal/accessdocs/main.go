// Command accessdocs writes the reference of permissions to the given file.
package main

import (
	"fmt"
	"os"

	"github.com/signalbox-dev/signalbox/internal/rpc/permission"
)

func main() {
	const fileMode = 0o644
	if len(os.Args) != 2 { //nolint:mnd // the command and its argument
		fmt.Fprintln(os.Stderr, "usage: accessdocs FILE")
		os.Exit(2) //nolint:mnd // the usual code for wrong usage
	}
	if err := os.WriteFile(os.Args[1], []byte(permission.Markdown()), fileMode); err != nil {
		fmt.Fprintln(os.Stderr, "write the reference of permissions:", err)
		os.Exit(1)
	}
}
