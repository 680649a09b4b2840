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
// With --again FILE it names in that file, one "package test" per line, the tests that may run a second time: a few
// that failed by themselves. It writes no file where the load of the machine is not the cause: after a data race, a
// panic, a timeout, a package that did not build, or more failed tests than run side by side.
//
// With --summary FILE it writes the counts to that file as JSON (see [summary]). With --first FILE it reports the
// second run of the tests that failed in the run whose summary FILE is: the summary is that of both, and the tests that
// passed now are listed as unsteady.
//
//	testreport closing FILE
//
// prints the closing lines of a summary again, for the end of a longer output:
//
//	512 tests passed, 0 failed, 3 skipped in 41 packages, 6m12s
//	unsteady tests: 1: test/connection TestFlappingConnectionStabilizes
//
// and before the last one, where tests failed, a line that names those.
//
//	testreport steady [--exceptions FILE] FOLDER
//
// reports on runs of the same tests at several speeds: see [steadyCommand].
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	if err := command(os.Args[1:]); err != nil {
		if !errors.Is(err, errFailed) {
			fmt.Fprintln(os.Stderr, "testreport:", err)
		}
		os.Exit(1)
	}
}

// errFailed is the error after a report that contains the reason.
var errFailed = errors.New("tests failed")

func command(args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "closing":
			return closingCommand(args[1:], os.Stdout)
		case "steady":
			return steadyCommand(args[1:], os.Stdout)
		}
	}
	return reportCommand(args, os.Stdin, os.Stdout)
}

// reportCommand reports the events that it reads.
func reportCommand(args []string, in io.Reader, out io.Writer) error {
	start := time.Now()
	flags := flag.NewFlagSet("testreport", flag.ContinueOnError)
	again := flags.String("again", "", "the file to name the tests in that may run a second time")
	write := flags.String("summary", "", "the file to write the counts to, as JSON")
	first := flags.String("first", "", "the summary of the first run of these tests, which this run repeats")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r := newReport(out)
	if err := r.read(in); err != nil {
		return err
	}
	passed := r.close(time.Since(start))
	total := r.summary(time.Since(start))
	if *first != "" {
		before, err := readSummary(*first)
		if err != nil {
			return err
		}
		total = before.repeated(total, r.passedTest)
	}
	if *write != "" {
		if err := total.write(*write); err != nil {
			return err
		}
	}
	if passed {
		return nil
	}
	if tests := r.again(); *again != "" && len(tests) > 0 {
		if err := os.WriteFile(*again, []byte(strings.Join(tests, "\n")+"\n"), 0o600); err != nil {
			return err
		}
	}
	return errFailed
}

// closingCommand prints the closing lines of a summary.
func closingCommand(args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: testreport closing FILE")
	}
	total, err := readSummary(args[0])
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, total.String())
	return err
}
