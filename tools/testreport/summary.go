package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// module is the prefix of the packages of this repository, which the closing lines leave out.
const module = "github.com/signalbox-dev/signalbox/"

// summary are the counts of a run of tests, and of the second run of those that failed.
type summary struct {
	Passed   int     `json:"passed"`
	Failed   int     `json:"failed"`
	Skipped  int     `json:"skipped"`
	Packages int     `json:"packages"`
	Broken   int     `json:"packages_broken"`
	Seconds  float64 `json:"seconds"`
	// Failures are the failed tests of the top level; Unsteady are those that failed in the first run and passed in the
	// second.
	Failures []testName `json:"failures"`
	Unsteady []testName `json:"unsteady"`
}

type testName struct {
	Package string `json:"package"`
	Test    string `json:"test"`
}

func (n testName) String() string { return strings.TrimPrefix(n.Package, module) + " " + n.Test }

func (r *report) summary(took time.Duration) summary {
	out := summary{
		Passed: r.passed, Failed: r.failed, Skipped: r.skipped, Packages: r.packages, Broken: r.broken,
		Seconds:  took.Seconds(),
		Failures: []testName{}, Unsteady: []testName{},
	}
	for k := range r.unsteady {
		out.Failures = append(out.Failures, testName{k.pkg, k.test})
	}
	slices.SortFunc(out.Failures, func(a, b testName) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// repeated returns the summary of a run and of the second run of the tests that failed in it, of which passed reports
// which passed now. What did not is a failure.
func (s summary) repeated(second summary, passed func(testName) bool) summary {
	out := s
	out.Seconds += second.Seconds
	out.Broken += second.Broken
	out.Failures, out.Unsteady = []testName{}, []testName{}
	for _, n := range s.Failures {
		if passed(n) {
			out.Unsteady = append(out.Unsteady, n)
		} else {
			out.Failures = append(out.Failures, n)
		}
	}
	out.Failed = max(second.Failed, len(out.Failures))
	out.Passed = s.Passed + s.Failed - out.Failed
	return out
}

// String returns the closing lines.
func (s summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d tests passed, %d failed, %d skipped in %d packages, %s\n",
		s.Passed, s.Failed, s.Skipped, s.Packages, time.Duration(s.Seconds*float64(time.Second)).Round(time.Second))
	if len(s.Failures) > 0 {
		b.WriteString(listed("failed", s.Failures))
	}
	b.WriteString(listed("unsteady", s.Unsteady))
	return b.String()
}

// listed returns the line that names tests: "unsteady tests: 1: test/connection TestFlappingConnectionStabilizes".
func listed(adjective string, names []testName) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = n.String()
	}
	line := fmt.Sprintf("%s tests: %d", adjective, len(names))
	if len(names) > 0 {
		line += ": " + strings.Join(texts, ", ")
	}
	return line + "\n"
}

func (s summary) write(path string) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o600)
}

func readSummary(path string) (summary, error) {
	var s summary
	data, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("%s is not a summary of tests: %w", path, err)
	}
	return s, nil
}
