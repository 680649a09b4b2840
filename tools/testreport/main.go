// Command testreport makes the output of `go test -json` short enough to read and adds it up.
//
// It reads the events of any number of `go test -json` runs from standard input, prints one line per package, the
// whole output of what failed, the slowest tests and the reason of what was skipped, and ends with one closing line:
//
//	512 tests passed, 0 failed, 3 skipped in 41 packages, 6m12s
//
// It exits with 1 when anything failed, when a package did not build, or when no test ran at all. It does not run
// tests: `make test` pipes them in.
//
// With --again FILE it names in that file, one "package test" per line, the tests that may run a second time: a few that
// failed by themselves. It writes no file where the load of the machine is not the cause: after a data race, a panic, a timeout, a
// package that did not build, or more failed tests than run side by side.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	start := time.Now()
	again := flag.String("again", "", "the file to name the tests in that may run a second time")
	flag.Parse()
	r := newReport(os.Stdout)
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	if r.close(time.Since(start)) {
		return
	}
	if tests := r.again(); *again != "" && len(tests) > 0 {
		if err := os.WriteFile(*again, []byte(strings.Join(tests, "\n")+"\n"), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, "testreport:", err)
		}
	}
	os.Exit(1)
}
