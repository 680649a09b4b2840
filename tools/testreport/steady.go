package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// steadyCommand reads the events of runs of the same tests at several speeds, from files FOLDER/SPEED/RUN.json, and
// prints the tests that failed in a run, one per test and speed:
//
//	suite            test                              processors  failures
//	test/connection  TestFlappingConnectionStabilizes  0.25        1 of 5
//
// A file of exceptions names tests that may fail, one per line as "suite test processors reason"; "#" begins a comment.
// It fails when another test failed, and when there is no run.
func steadyCommand(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("testreport steady", flag.ContinueOnError)
	exceptionsPath := flags.String("exceptions", "", "the file that names tests that may fail, with reasons")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("usage: testreport steady [--exceptions FILE] FOLDER")
	}
	known := exceptions{}
	if *exceptionsPath != "" {
		text, err := os.ReadFile(*exceptionsPath)
		if err != nil {
			return err
		}
		if known, err = readExceptions(string(text)); err != nil {
			return fmt.Errorf("%s: %w", *exceptionsPath, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(flags.Arg(0), "*", "*.json"))
	if err != nil {
		return err
	}
	runs := map[string]int{}
	failed := map[unsteady]int{}
	for _, path := range files {
		speed := filepath.Base(filepath.Dir(path))
		names, err := failuresOf(path)
		if err != nil {
			return err
		}
		runs[speed]++
		for _, n := range names {
			failed[unsteady{n, speed}]++
		}
	}
	if len(runs) == 0 {
		return fmt.Errorf("no run is in %s", flags.Arg(0))
	}
	return known.report(out, runs, failed)
}

// unsteady is a test at a speed, in processors.
type unsteady struct {
	testName

	speed string
}

// exceptions are the reasons for which tests may fail at a speed.
type exceptions map[unsteady]string

func readExceptions(text string) (exceptions, error) {
	out := exceptions{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		const columns = 4
		fields := strings.Fields(line)
		if len(fields) < columns {
			return nil, fmt.Errorf("%q is not: suite test processors reason", line)
		}
		out[unsteady{testName{module + fields[0], fields[1]}, fields[2]}] = strings.Join(fields[3:], " ")
	}
	return out, nil
}

// wholePackage stands for a test where a package failed outside its tests.
const wholePackage = "(the package)"

// failuresOf returns the tests of the top level that failed or never ended in a run.
func failuresOf(path string) ([]testName, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	r := newReport(io.Discard)
	if err := r.read(file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if r.packages == 0 {
		return nil, fmt.Errorf("%s has no result of a package; its first lines say why", path)
	}
	names := r.summary(0).Failures
	for _, pkg := range slices.Sorted(maps.Keys(r.brokenPackages)) {
		names = append(names, testName{pkg, wholePackage})
	}
	return names, nil
}

// report prints the table of failed tests and the closing line.
func (e exceptions) report(out io.Writer, runs map[string]int, failed map[unsteady]int) error {
	order := func(a, b unsteady) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Test, b.Test), cmp.Compare(a.speed, b.speed))
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	unexplained := 0
	for i, u := range slices.SortedFunc(maps.Keys(failed), order) {
		if i == 0 {
			fmt.Fprintln(table, "suite\ttest\tprocessors\tfailures\texception")
		}
		reason, ok := e[u]
		if !ok {
			unexplained++
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d of %d\t%s\n", strings.TrimPrefix(u.Package, module), u.Test, u.speed, failed[u],
			runs[u.speed], reason)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var all []string
	for _, speed := range slices.Sorted(maps.Keys(runs)) {
		all = append(all, fmt.Sprintf("%d with %s processors", runs[speed], speed))
	}
	if _, err := fmt.Fprintf(out, "unsteady tests: %d, and %d exceptions, in runs: %s\n", unexplained,
		len(failed)-unexplained, strings.Join(all, ", ")); err != nil {
		return err
	}
	if unexplained > 0 {
		return errFailed
	}
	return nil
}
