// Command testreport makes the output of `go test -json` short enough to read and adds it up.
//
// It reads the events of any number of `go test -json` runs from standard input, prints one line per package, the
// whole output of what failed and the reason of what was skipped, and ends with one closing line:
//
//	512 tests passed, 0 failed, 3 skipped in 41 packages, 6m12s
//
// It exits with 1 when anything failed, when a package did not build, or when no test ran at all. It does not run
// tests: `make test` pipes them in.
package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	start := time.Now()
	r := newReport(os.Stdout)
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	if !r.close(time.Since(start)) {
		os.Exit(1)
	}
}
