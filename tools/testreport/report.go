package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// event is one line of `go test -json`: see `go doc test2json`.
type event struct {
	Action  string  `json:"Action"`
	Package string  `json:"Package"`
	Test    string  `json:"Test"`
	Elapsed float64 `json:"Elapsed"`
	Output  string  `json:"Output"`
}

// report counts events and writes the report.
type report struct {
	out io.Writer
	// output holds what a test or, under the empty test name, a package has printed so far.
	output map[key]*strings.Builder
	// failures counts failed tests per package, to distinguish a failed test from a package that failed by itself.
	failures map[string]int

	passed, failed, skipped, packages, broken int
	skips                                     []string
	// slow are the tests that have passed, with their times in seconds.
	slow map[key]float64
	// unsteady are the failed top-level tests; certain: one of them failed in a way that the load of the machine does
	// not explain.
	unsteady map[key]bool
	certain  bool
	// brokenPackages failed outside a test.
	brokenPackages map[string]bool
}

type key struct{ pkg, test string }

func newReport(out io.Writer) *report {
	return &report{
		out: out, output: map[key]*strings.Builder{}, failures: map[string]int{}, unsteady: map[key]bool{},
		slow:           map[key]float64{},
		brokenPackages: map[string]bool{},
	}
}

// read takes events until the end of input. Other lines, such as messages of make, are passed on.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			r.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read test events: %w", err)
		}
	}
}

func (r *report) line(line []byte) {
	var e event
	if line[0] != '{' || json.Unmarshal(line, &e) != nil {
		_, _ = r.out.Write(line)
		return
	}
	switch e.Action {
	case "output":
		r.keep(key{e.Package, e.Test}, e.Output)
	case "build-output":
		_, _ = io.WriteString(r.out, e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(e)
		} else {
			r.endTest(e)
		}
	}
}

func (r *report) keep(k key, text string) {
	if r.output[k] == nil {
		r.output[k] = &strings.Builder{}
	}
	r.output[k].WriteString(text)
}

// take returns and removes the output of k.
func (r *report) take(k key) string {
	b := r.output[k]
	if b == nil {
		return ""
	}
	delete(r.output, k)
	return b.String()
}

func (r *report) endTest(e event) {
	text := r.take(key{e.Package, e.Test})
	switch e.Action {
	case "pass":
		r.passed++
		r.slow[key{e.Package, e.Test}] = e.Elapsed
	case "skip":
		r.skipped++
		r.skips = append(r.skips, fmt.Sprintf("%s %s: %s", e.Package, e.Test, reason(text)))
	case "fail":
		r.failed++
		r.failures[e.Package]++
		top, _, _ := strings.Cut(e.Test, "/")
		r.unsteady[key{e.Package, top}] = true
		r.certain = r.certain || strings.Contains(text, "DATA RACE") || strings.Contains("\n"+text, "\npanic: ")
		r.printf("%s", text)
	}
}

func (r *report) endPackage(e event) {
	text := r.take(key{e.Package, ""})
	switch e.Action {
	case "skip": // a package without tests
		return
	case "fail":
		if r.failures[e.Package] == 0 {
			r.broken++
			r.brokenPackages[e.Package] = true
		}
		r.packages++
		r.printf("%s", text)
		r.unfinished(e.Package)
		r.printf("FAIL  %s  %.1fs\n", e.Package, e.Elapsed)
	default:
		r.packages++
		r.printf("ok    %s  %.1fs\n", e.Package, e.Elapsed)
	}
}

// unfinished prints the output of tests that never ended, as after a panic or a timeout.
func (r *report) unfinished(pkg string) {
	for k := range r.output {
		if k.pkg == pkg {
			r.certain = true
			r.printf("%s", r.take(k))
		}
	}
}

// passedTest reports whether a test has passed.
func (r *report) passedTest(n testName) bool {
	_, ok := r.slow[key{n.Package, n.Test}]
	return ok
}

// mostSlow is how many slow tests are printed, from slowFrom seconds.
const (
	mostSlow = 20
	slowFrom = 10
)

// close prints the slowest and the skipped tests and the closing line and reports whether everything passed.
func (r *report) close(took time.Duration) bool {
	slowest := slices.SortedFunc(maps.Keys(r.slow), func(a, b key) int { return cmp.Compare(r.slow[b], r.slow[a]) })
	for _, k := range slowest[:min(mostSlow, len(slowest))] {
		if r.slow[k] >= slowFrom {
			r.printf("slow  %s %s: %.0fs\n", k.pkg, k.test, r.slow[k])
		}
	}
	for _, s := range r.skips {
		r.printf("skip  %s\n", s)
	}
	r.printf("%d tests passed, %d failed, %d skipped in %d packages, %s\n",
		r.passed, r.failed, r.skipped, r.packages, took.Round(time.Second))
	if r.broken > 0 {
		r.printf("%d packages failed outside a test\n", r.broken)
	}
	if r.passed == 0 {
		r.printf("no test ran\n")
	}
	return r.failed == 0 && r.broken == 0 && r.passed > 0
}

// mostAgain is how many tests may run again. A short stall of the machine fails the tests that run at that moment,
// which are at most so many in any package; more failures have another cause.
const mostAgain = 12

// again returns the tests that may run a second time, alone, each as "package test": none when anything failed that the
// load of the machine does not explain, such as a data race, a panic, a package that did not build, or many tests.
func (r *report) again() []string {
	if r.certain || r.broken > 0 || len(r.unsteady) > mostAgain {
		return nil
	}
	var out []string
	for k := range r.unsteady {
		out = append(out, k.pkg+" "+k.test)
	}
	slices.Sort(out)
	return out
}

func (r *report) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.out, format, args...)
}

// reason returns why a test was skipped: its last line of output that is not the test runner's own.
func reason(text string) string {
	found := "no reason given"
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "=== ") {
			continue
		}
		found = line
	}
	return found
}
