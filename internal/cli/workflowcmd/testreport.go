package workflowcmd

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/workflowtest"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// lines writes one line for each case, and the explanations of those that failed.
func (t *tested) lines(text *strings.Builder, style output.Style, flags *testFlags) {
	for _, r := range t.report.Results {
		word := "ok"
		if !r.Passed() {
			word = "failed"
		}
		fmt.Fprintf(text, "%s  %s:%d  %s  %s\n", style.Status(word)+strings.Repeat(" ", len("failed")-len(word)), t.file,
			max(1, r.Pos.Line), terminal.Line(r.Case), style.Faint("("+output.Took(r.Duration)+")"))
		if r.Passed() {
			continue
		}
		for line := range strings.Lines(r.ExplainIn(t.file, t.workflow) + "\n") {
			line = strings.TrimSuffix(line, "\n")
			text.WriteString("    " + style.Diff(terminal.Line(line)) + "\n")
		}
	}
	for _, m := range t.report.Unused {
		fmt.Fprintf(text, "%s  %s\n", style.Status("failed"), t.at(m.Pos)+": "+terminal.Line(m.Message))
	}
	if flags.coverage {
		coverage := t.report.Coverage
		fmt.Fprintf(text, "%s: %d %% of tasks and branches\n", t.workflow, coverage.Percent())
		for _, p := range coverage.Missing() {
			fmt.Fprintf(text, "  %s:%d:%d: %s\n", t.workflow, p.Pos.Line, p.Pos.Column, terminal.Line(coveredName(p)))
		}
	}
}

func coveredName(p workflowtest.Covered) string {
	if p.Branch == "" {
		return "task " + p.Task
	}
	return "branch of " + p.Task + ": " + p.Branch
}

func (t *tested) at(pos dsl.Pos) string {
	return fmt.Sprintf("%s:%d:%d", t.file, max(1, pos.Line), max(1, pos.Column))
}

// fileResult is the JSON of the results of one file.
type fileResult struct {
	File       string          `json:"file"`
	Workflow   string          `json:"workflow,omitempty"`
	Passed     bool            `json:"passed"`
	Violations []violation     `json:"violations,omitempty"`
	Cases      []caseResult    `json:"cases"`
	Unused     []mismatch      `json:"unused,omitempty"`
	Coverage   *coverageResult `json:"coverage,omitempty"`
}

type caseResult struct {
	Name       string       `json:"name"`
	Line       int          `json:"line"`
	Passed     bool         `json:"passed"`
	Status     string       `json:"status"`
	Duration   float64      `json:"durationSeconds"`
	Output     any          `json:"output,omitempty"`
	Error      *dsl.Error   `json:"error,omitempty"`
	Mismatches []mismatch   `json:"mismatches"`
	Steps      []stepResult `json:"steps"`
}

type mismatch struct {
	What    string `json:"what"`
	Message string `json:"message"`
	Diff    string `json:"diff,omitempty"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
}

type stepResult struct {
	Path     string     `json:"path"`
	Task     string     `json:"task"`
	Kind     string     `json:"kind"`
	Status   string     `json:"status"`
	At       float64    `json:"atSeconds"`
	Duration float64    `json:"durationSeconds"`
	Attempt  int        `json:"attempt"`
	Error    *dsl.Error `json:"error,omitempty"`
	Line     int        `json:"line,omitempty"` // of the task in the workflow
}

type coverageResult struct {
	Percent int           `json:"percent"`
	Parts   []coveredPart `json:"parts"`
}

type coveredPart struct {
	Pointer string `json:"pointer"`
	Task    string `json:"task"`
	Branch  string `json:"branch,omitempty"`
	Count   int    `json:"count"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
}

func (t *tested) result() fileResult {
	out := fileResult{File: t.file, Workflow: t.workflow, Passed: t.passed(), Violations: t.violations,
		Cases: []caseResult{}}
	if t.report == nil {
		return out
	}
	out.Unused = mismatches(t.report.Unused)
	for _, r := range t.report.Results {
		c := caseResult{
			Name: r.Case, Line: r.Pos.Line, Passed: r.Passed(), Status: string(r.Status), Duration: r.Duration.Seconds(),
			Output: r.Output, Error: r.Error, Mismatches: mismatches(r.Mismatches), Steps: []stepResult{},
		}
		for _, s := range r.Steps {
			c.Steps = append(c.Steps, stepResult{
				Path: s.Path, Task: s.Task, Kind: s.Kind, Status: string(s.Status), At: s.At.Seconds(),
				Duration: s.Duration.Seconds(), Attempt: s.Attempt, Error: s.Error,
				Line: s.Pos.Line,
			})
		}
		out.Cases = append(out.Cases, c)
	}
	out.Coverage = &coverageResult{Percent: t.report.Coverage.Percent(), Parts: []coveredPart{}}
	for _, p := range t.report.Coverage.Parts {
		out.Coverage.Parts = append(out.Coverage.Parts, coveredPart{p.Pointer, p.Task, p.Branch, p.Count, p.Pos.Line,
			p.Pos.Column})
	}
	return out
}

func mismatches(list []workflowtest.Mismatch) []mismatch {
	out := make([]mismatch, len(list))
	for i, m := range list {
		out[i] = mismatch{m.What, m.Message, m.Diff, m.Pos.Line, m.Pos.Column}
	}
	return out
}

// tap writes the results in version 13 of the Test Anything Protocol. A file that is wrong, and a mock of a file that
// no case uses, are tests that fail.
func tap(results []*tested) string {
	var body strings.Builder
	n := 0
	test := func(passed bool, name, explanation string) {
		n++
		word := "ok"
		if !passed {
			word = "not ok"
		}
		fmt.Fprintf(&body, "%s %d - %s\n", word, n, terminal.Line(strings.ReplaceAll(name, "#", "\\#")))
		for line := range strings.Lines(explanation) {
			body.WriteString("# " + terminal.Line(strings.TrimSuffix(line, "\n")) + "\n")
		}
	}
	for _, t := range results {
		if t.report == nil {
			test(false, t.file, strings.Join(t.problems, "\n")+"\n")
			continue
		}
		for _, r := range t.report.Results {
			explanation := ""
			if !r.Passed() {
				explanation = r.ExplainIn(t.file, t.workflow) + "\n"
			}
			test(r.Passed(), t.file+": "+r.Case, explanation)
		}
		for _, m := range t.report.Unused {
			test(false, t.at(m.Pos), m.Message+"\n")
		}
	}
	return fmt.Sprintf("TAP version 13\n1..%d\n%s", n, body.String())
}

// The elements of JUnit XML.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Time     float64     `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr"`
		Failure *junitFailure `xml:"failure"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes the results to a file.
func writeJUnit(file string, results []*tested) error {
	var suites junitSuites
	for _, t := range results {
		suites.Suites = append(suites.Suites, t.suite())
	}
	text, err := xml.MarshalIndent(suites, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	text = append([]byte(xml.Header), append(text, '\n')...)
	if err := os.WriteFile(filepath.Clean(file), text, 0o644); err != nil { //nolint:gosec // a report for other programs
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

func (t *tested) suite() junitSuite {
	suite := junitSuite{Name: t.file, Time: t.took.Seconds()}
	add := func(name string, failure *junitFailure) {
		suite.Tests++
		if failure != nil {
			suite.Failures++
		}
		suite.Cases = append(suite.Cases, junitCase{Name: name, Class: t.file, File: t.file, Failure: failure})
	}
	if t.report == nil {
		add("the file is valid", &junitFailure{Message: "the file is not valid", Text: strings.Join(t.problems, "\n")})
		return suite
	}
	for _, r := range t.report.Results {
		var failure *junitFailure
		if !r.Passed() {
			failure = &junitFailure{Message: r.Mismatches[0].Message, Text: r.ExplainIn(t.file, t.workflow)}
		}
		add(r.Case, failure)
	}
	for _, m := range t.report.Unused {
		add("mock "+t.at(m.Pos), &junitFailure{Message: m.Message})
	}
	return suite
}
