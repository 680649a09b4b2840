// Command errordocs writes the reference of errors to the file named by its argument, for go generate. It is not part
// of the product.
package main

import (
	"fmt"
	"os"

	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: errordocs FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(apierror.Markdown()), 0o644); err != nil { //nolint:gosec // a public page
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
