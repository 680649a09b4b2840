package workflowcmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/workflowtest"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// watchEvery is the time between two looks at the files that "test --watch" watches.
const watchEvery = 300 * time.Millisecond

// testFlags are the flags of "test".
type testFlags struct {
	run                  string
	minCoverage          int
	coverage, watch, tap bool
	live                 bool
	junit, fromRun       string
	allowPrivate         []string

	match    *regexp.Regexp
	networks []netip.Prefix // of allowPrivate
}

func testCommand(s *invocation.Invocation) *cobra.Command {
	var flags testFlags
	cmd := &cobra.Command{
		Use:   "test [FILE|DIR...]",
		Short: "Run the tests of workflow files, without a server",
		Long: `Run the cases in the test files of workflows: order.test.yaml beside order.yaml. An argument is a workflow, a test file,
or a folder with all below it; the current folder when there is none. No server is needed: waits take no time, and mocks
answer calls.

Prints one line for each case and, for one that failed, what differs and the steps of its run. Exits with 1 when a case
fails, a file is wrong, or the coverage of a workflow is below --min-coverage.

With --live, requests that no mock answers are sent, and the responses are written as mocks of their cases. Secrets of the
case in them become marks to fill in. Only public addresses are reached, and the networks of --allow-private.

With --from-run, print a test file with a case of a run that has ended: its input, what was answered to it, and the events
that it took, as they were. Secrets and redacted values are marks to fill in. This calls the server, unless it is given a
file that "run export" has written.`,
		Example: `  signalbox workflow test order.yaml
  signalbox workflow test examples/workflows --min-coverage 60 --junit report.xml
  signalbox workflow test examples/workflows --run "card is declined" -o json
  signalbox workflow test order.yaml --live --allow-private 127.0.0.0/8
  signalbox workflow test --from-run 0199a4f2 > order.test.yaml`,
		Args: invocation.Args(0, -1, "[FILE|DIR...]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.fromRun != "" {
				if len(args) > 0 {
					return exit.Usagef("--from-run prints a test file, and %q is one to run: leave one of them out", args[0])
				}
				return testFromRun(cmd.Context(), s, flags.fromRun)
			}
			if err := flags.check(s); err != nil {
				return err
			}
			if len(args) == 0 {
				args = []string{"."}
			}
			if flags.watch {
				return watchTests(cmd.Context(), s, args, &flags)
			}
			return runTests(cmd.Context(), s, args, &flags)
		},
	}
	cmd.Flags().StringVar(&flags.run, "run", "", "only cases whose names match this regular `expression`")
	cmd.Flags().BoolVar(&flags.coverage, "coverage", false, "list the tasks and branches that no case takes")
	cmd.Flags().IntVar(&flags.minCoverage, "min-coverage", 0,
		"fail when less than this `percentage` of the tasks and branches of a workflow is taken")
	cmd.Flags().StringVar(&flags.junit, "junit", "", "write the results as JUnit XML to this `file`, too")
	cmd.Flags().BoolVar(&flags.tap, "tap", false, "print the results in the Test Anything Protocol")
	cmd.Flags().BoolVar(&flags.watch, "watch", false, "run the tests again whenever a file changes")
	cmd.Flags().BoolVar(&flags.live, "live", false, "send requests that no mock answers, and write the responses as mocks")
	cmd.Flags().StringSliceVar(&flags.allowPrivate, "allow-private", nil,
		"private `networks` that --live may reach, for example 127.0.0.0/8,::1/128")
	cmd.Flags().StringVar(&flags.fromRun, "from-run", "",
		"print a test file with a case that does what this run did: its `ID`, or a file of run export")
	s.BindClient(cmd)
	return cmd
}

func (f *testFlags) check(s *invocation.Invocation) error {
	var err error
	if f.match, err = regexp.Compile(f.run); err != nil {
		return exit.Usagef("--run: %w", err)
	}
	if f.run == "" {
		f.match = nil
	}
	if f.networks, err = parseNetworks(f.allowPrivate); err != nil {
		return err
	}
	switch {
	case f.minCoverage < 0 || f.minCoverage > 100:
		return exit.Usagef("--min-coverage: %d is not between 0 and 100", f.minCoverage)
	case f.minCoverage > 0 && f.run != "":
		return exit.Usagef("--min-coverage and --run exclude each other: some cases do not show the coverage of all")
	case f.live && f.watch:
		return exit.Usagef("--live and --watch exclude each other: requests would be sent again and again")
	case len(f.networks) > 0 && !f.live:
		return exit.Usagef("--allow-private is for requests that are sent: give --live, too")
	case f.tap && s.Format().Structured():
		return exit.Usagef("--tap and -o exclude each other")
	}
	return nil
}

// tested is the result of one test file.
type tested struct {
	file, workflow string
	// problems are lines about a workflow or a test file that is wrong; then there is no report.
	problems   []string
	violations []violation
	report     *workflowtest.Report
	took       time.Duration
}

// passed reports whether a file is valid and all its cases passed.
func (t *tested) passed() bool { return t.report != nil && t.report.Passed() }

func runTests(ctx context.Context, s *invocation.Invocation, args []string, flags *testFlags) error {
	files, err := testFiles(args)
	if err != nil {
		return err
	}
	results := make([]*tested, len(files))
	cases := 0
	for i, file := range files {
		if results[i], err = testFile(ctx, s, file, flags); err != nil {
			return err
		}
		if results[i].report != nil {
			cases += len(results[i].report.Results)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if cases == 0 && flags.run != "" && !slices.ContainsFunc(results, func(t *tested) bool { return t.report == nil }) {
		return exit.Errorf(exit.Failed, "no case matches --run %q", flags.run)
	}
	if err := printTests(s, results, flags); err != nil {
		return err
	}
	if flags.junit != "" {
		if err := writeJUnit(flags.junit, results); err != nil {
			return err
		}
	}
	if noteTests(s, results, flags) {
		return exit.Silently(exit.Failed)
	}
	return nil
}

// testFile runs the cases of one file.
func testFile(ctx context.Context, s *invocation.Invocation, file string, flags *testFlags) (*tested, error) {
	result := &tested{file: file}
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "read the tests: %w", err)
	}
	cases, violations := workflowtest.Parse(source)
	if cases == nil {
		result.wrong(s, file, violations)
		return result, nil
	}
	if result.workflow, err = workflowOf(file, cases); err != nil {
		return nil, err
	}
	found, err := testedDocument(s, file, result.workflow, cases)
	if err != nil {
		return nil, err
	}
	doc := found.parsed
	if doc == nil {
		result.wrong(s, result.workflow, found.violations)
		return result, nil
	}
	if doc.Partial {
		result.incomplete(s, found)
		return result, nil
	}
	if violations := cases.Check(doc); len(violations) > 0 {
		result.wrong(s, file, violations)
		return result, nil
	}
	began := time.Now()
	if flags.live {
		cases.Live = liveClient(flags.networks)
	}
	result.report = cases.Run(ctx, doc, flags.match, runtime.GOMAXPROCS(0))
	result.took = time.Since(began)
	if flags.live {
		err = writeMocks(s, file, result.report)
	}
	return result, err
}

// testedDocument parses the document of a test file, with the copies of texts that the file names.
func testedDocument(s *invocation.Invocation, file, workflow string, cases *workflowtest.File) (resolved, error) {
	tested, err := readDocument(workflow, s.In)
	if err != nil {
		return resolved{}, exit.Errorf(exit.Failed, "read the workflow of %s: %w", file, err)
	}
	copies := make(map[string]string, len(cases.Resources))
	for uri, path := range cases.Resources {
		if copies[uri], err = (document{file: file}).beside(path); err != nil {
			return resolved{}, exit.Errorf(exit.Failed, "%s: read the copy of %s: %w", file, uri, err)
		}
	}
	return tested.resolveWith(copies), nil
}

// wrong adds the errors of a file.
func (t *tested) wrong(s *invocation.Invocation, file string, violations dsl.Violations) {
	for _, p := range violations {
		if p.Severity != dsl.SeverityError {
			continue
		}
		v := violationOf(p)
		t.violations = append(t.violations, v)
		t.problems = append(t.problems, v.line(file, s.Style()))
	}
}

// incomplete adds the resources that a workflow needs and that are not files beside it: it cannot run without them.
func (t *tested) incomplete(s *invocation.Invocation, found resolved) {
	for _, reference := range found.postponed {
		message := fmt.Sprintf("the tests cannot run without %q, which is outside the folder of the workflow", reference.URI)
		v := violation{Severity: string(dsl.SeverityError), Code: string(dsl.CodeResource), Message: message,
			Path: reference.Path, Line: reference.Pos.Line, Column: reference.Pos.Column,
			Suggestion: fmt.Sprintf("save it in a file, and name it in the test file: resources: {'%s': FILE}", reference.URI)}
		t.violations = append(t.violations, v)
		t.problems = append(t.problems, v.line(t.workflow, s.Style()))
	}
}

// workflowOf returns the path of the workflow of a test file.
func workflowOf(file string, cases *workflowtest.File) (string, error) {
	if cases.Workflow != "" {
		return filepath.Join(filepath.Dir(file), cases.Workflow), nil
	}
	base := strings.TrimSuffix(strings.TrimSuffix(file, filepath.Ext(file)), testSuffix)
	for _, extension := range extensions() {
		if _, err := os.Stat(base + extension); err == nil {
			return base + extension, nil
		}
	}
	return "", exit.Errorf(exit.Failed, "%s: there is no %s.yaml beside it; name the workflow: workflow: FILE", file,
		filepath.Base(base))
}

// testFiles resolves arguments: workflows to the test files beside them, folders to the test files in and below them.
func testFiles(args []string) ([]string, error) {
	var files []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case err != nil:
			return nil, exit.Errorf(exit.Failed, "read the tests: %w", err)
		case info.IsDir():
			found, err := below(arg, isTestFile)
			if err != nil {
				return nil, err
			}
			if len(found) == 0 {
				return nil, exit.Errorf(exit.Failed, "%q holds no test file (NAME.test.yaml)", arg)
			}
			files = append(files, found...)
		case isTestFile(arg):
			files = append(files, arg)
		default:
			found, err := testsBeside(arg)
			if err != nil {
				return nil, err
			}
			files = append(files, found)
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

func testsBeside(workflow string) (string, error) {
	base := strings.TrimSuffix(workflow, filepath.Ext(workflow)) + testSuffix
	for _, extension := range extensions() {
		_, err := os.Stat(base + extension)
		if err == nil {
			return base + extension, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", exit.Errorf(exit.Failed, "read the tests: %w", err)
		}
	}
	return "", exit.Errorf(exit.Failed, "%s has no tests: there is no %s.yaml beside it", workflow, filepath.Base(base))
}

// watchTests runs the tests whenever a file that they read has changed, until it is interrupted.
func watchTests(ctx context.Context, s *invocation.Invocation, args []string, flags *testFlags) error {
	var seen string
	for {
		now := stateOf(args)
		if now != seen {
			seen = now
			if err := runTests(ctx, s, args, flags); err != nil && exit.Line(err) != "" {
				s.Note("%s", exit.Line(err))
			}
			s.Note("waiting for changes")
		}
		if !loop.Sleep(ctx, watchEvery) {
			return ctx.Err()
		}
	}
}

// stateOf describes the files of the arguments by their names, sizes and times.
func stateOf(args []string) string {
	var b strings.Builder
	for _, arg := range args {
		root := arg
		if info, err := os.Stat(arg); err == nil && !info.IsDir() {
			root = filepath.Dir(arg)
		}
		files, _ := below(root, isYAML) // a folder that has gone has no files
		for _, file := range files {
			if info, err := os.Stat(file); err == nil {
				fmt.Fprintf(&b, "%s %d %d\n", file, info.Size(), info.ModTime().UnixNano())
			}
		}
	}
	return b.String()
}

func printTests(s *invocation.Invocation, results []*tested, flags *testFlags) error {
	switch {
	case s.Format().Structured():
		list := make([]fileResult, len(results))
		for i, t := range results {
			list[i] = t.result()
		}
		return output.Value(s.Out, s.Format(), list)
	case flags.tap:
		return terminal.Draw(s.Out, tap(results))
	}
	var text strings.Builder
	for _, t := range results {
		for _, line := range t.problems {
			text.WriteString(line + "\n")
		}
		if t.report != nil {
			t.lines(&text, s.Style(), flags)
		}
	}
	return terminal.Draw(s.Out, text.String())
}

// noteTests prints the summary, and reports whether anything failed.
func noteTests(s *invocation.Invocation, results []*tested, flags *testFlags) bool {
	failed, cases, bad, wrong := false, 0, 0, 0
	for _, t := range results {
		failed = failed || !t.passed()
		if t.report == nil {
			wrong++
			continue
		}
		for _, r := range t.report.Results {
			if cases++; !r.Passed() {
				bad++
			}
		}
		if percent := t.report.Coverage.Percent(); percent < flags.minCoverage {
			failed = true
			s.Note("%s: the coverage is %d %%, less than %d %%; --coverage lists what no case takes", t.workflow, percent,
				flags.minCoverage)
		}
	}
	summary := fmt.Sprintf("%s, %s, %d failed", output.Count(int64(len(results)), "file"),
		output.Count(int64(cases), "case"), bad)
	if wrong > 0 {
		summary += fmt.Sprintf("; the cases of %s did not run", output.Count(int64(wrong), "file"))
	}
	s.Note("%s", summary)
	return failed
}
