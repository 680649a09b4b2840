// Package workflowtest tests workflow documents without a server: it runs a document with the interpreter of the
// platform, a clock that jumps over every wait, and calls that are answered by mocks.
//
//	func TestOrder(t *testing.T) {
//		doc, violations := dsl.Parse(source)
//		…
//		workflowtest.Run(t, doc, workflowtest.Case{
//			Input: map[string]any{"id": "o-1"},
//			Mocks: []workflowtest.Mock{{Task: "pay", Respond: []workflowtest.Response{{Status: 503}, {Status: 200}}}},
//			Expect: workflowtest.Expect{Attempts: map[string]int{"pay": 2}},
//		})
//	}
//
// Parse reads cases from a file, whose form docs/testing.md describes; File.Run runs them.
//
// # What differs from the platform
//
// Requests, starts of runs and publications take no time unless a mock has a delay. The credentials of a call are checked,
// but not added to its request, and no authority is asked for a token. Responses that contain a secret keep it. The run has the
// ID test, which the random parts of delays (jitter) are computed from. A case has no limits of a project.
package workflowtest

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/signalbox-dev/signalbox/dsl"
)

// TB is the part of testing.TB that Run uses.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Context() context.Context
}

// Execute runs a case and returns what its run did.
func Execute(ctx context.Context, doc *dsl.Document, c Case) *Result {
	var programs scripts
	defer programs.close(ctx)
	return execute(ctx, doc, &c, nil, &programs)
}

// Run runs a case and fails the test with each expectation that its run does not meet, and with the steps of the run.
func Run(t TB, doc *dsl.Document, c Case) *Result {
	t.Helper()
	result := Execute(t.Context(), doc, c)
	if !result.Passed() {
		t.Errorf("%s", result.Explain())
	}
	return result
}

// Report is the result of a file.
type Report struct {
	Results []*Result // in the order of the file
	// Coverage is that of all cases that ran.
	Coverage *Coverage
	// Unused are the mocks of the file that no case used. It is empty if not all cases ran.
	Unused []Mismatch
}

// Passed reports whether all cases passed and all mocks of the file were used.
func (r *Report) Passed() bool {
	for _, result := range r.Results {
		if !result.Passed() {
			return false
		}
	}
	return len(r.Unused) == 0
}

// Run runs the cases of a file whose names match, or all if match is nil, so many at once.
func (f *File) Run(ctx context.Context, doc *dsl.Document, match *regexp.Regexp, parallel int) *Report {
	var cases []*Case
	for i := range f.Cases {
		if c := f.effective(i); match == nil || match.MatchString(c.Name) {
			cases = append(cases, c)
		}
	}
	report := &Report{Results: make([]*Result, len(cases)), Coverage: newCoverage(doc)}
	var programs scripts
	defer programs.close(ctx)
	var wg sync.WaitGroup
	next := make(chan int)
	for range max(1, parallel) {
		wg.Go(func() {
			for i := range next {
				report.Results[i] = execute(ctx, doc, cases[i], f.Mocks, &programs)
			}
		})
	}
	for i := range cases {
		next <- i
	}
	close(next)
	wg.Wait()
	for _, result := range report.Results {
		report.Coverage.merge(result.coverage)
	}
	if len(cases) == len(f.Cases) {
		report.Unused = f.unused(report.Results)
	}
	return report
}

// Case returns the case with an index, with what the file gives for all cases.
func (f *File) Case(i int) Case {
	c := *f.effective(i)
	c.Mocks = slices.Concat(c.Mocks, f.Mocks)
	return c
}

// effective returns a case with what the file gives for all cases, without the mocks of the file.
func (f *File) effective(i int) *Case {
	c := f.Cases[i]
	if c.Now.IsZero() {
		c.Now = f.Now
	}
	if c.Live == nil {
		c.Live = f.Live
	}
	secrets := maps.Clone(f.Secrets)
	if secrets == nil {
		secrets = map[string]any{}
	}
	maps.Copy(secrets, c.Secrets)
	c.Secrets = secrets
	return &c
}

// unused returns the mocks of the file that no case used.
func (f *File) unused(results []*Result) []Mismatch {
	var unused []Mismatch
	for i := range f.Mocks {
		used := 0
		for _, result := range results {
			if i < len(result.sharedUsed) {
				used += result.sharedUsed[i]
			}
		}
		if used == 0 {
			unused = append(unused, Mismatch{What: "mocks", Pos: f.Mocks[i].at.pos,
				Message: "the mock answered no request of any case; remove it, or correct its task or when"})
		}
	}
	return unused
}

// Explain describes a case that failed: its mismatches, and the steps of its run.
func (r *Result) Explain() string { return r.ExplainIn("", "") }

// ExplainIn is Explain with the lines of the expectations and of the tasks in the files of the tests and of the workflow.
func (r *Result) ExplainIn(tests, workflow string) string {
	var b strings.Builder
	for _, m := range r.Mismatches {
		if tests != "" && m.Pos.Line > 0 {
			fmt.Fprintf(&b, "%s:%d: ", tests, m.Pos.Line)
		}
		fmt.Fprintf(&b, "%s: %s\n", m.What, m.Message)
		for line := range strings.Lines(m.Diff) {
			b.WriteString("  " + line)
		}
	}
	if len(r.Steps) > 0 {
		b.WriteString("steps:\n")
	}
	for _, line := range r.trace(workflow) {
		b.WriteString("  " + line + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// maxTrace is the number of steps that a trace shows of each end of a long run.
const maxTrace = 40

// Trace describes the steps of a run, one a line. It leaves out the middle of a long run.
func (r *Result) Trace() []string { return r.trace("") }

// trace is Trace with the lines of the tasks in the file of the workflow.
func (r *Result) trace(workflow string) []string {
	var lines []string
	for i := range r.Steps {
		if i == maxTrace && len(r.Steps) > 2*maxTrace {
			lines = append(lines, fmt.Sprintf("… %d more steps", len(r.Steps)-2*maxTrace))
		}
		if i >= maxTrace && i < len(r.Steps)-maxTrace {
			continue
		}
		s := &r.Steps[i]
		line := fmt.Sprintf("%-8s %-9s %-6s %s", "+"+s.At.String(), s.Status, s.Kind, s.Path)
		if workflow != "" && s.Pos.Line > 0 {
			line += fmt.Sprintf("  %s:%d", workflow, s.Pos.Line)
		}
		if s.Error != nil {
			line += "  " + oneLine(s.Error.Error())
		}
		lines = append(lines, line)
	}
	return lines
}

func oneLine(s string) string { return shortened(strings.Join(strings.Fields(s), " ")) }
