package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// events returns the events of a package in which tests passed or failed: "+TestA" and "-TestB".
func events(pkg string, tests ...string) string {
	action := map[byte]string{'+': "pass", '-': "fail"}
	var b strings.Builder
	end := "pass"
	for _, test := range tests {
		b.WriteString(`{"Action":"` + action[test[0]] + `","Package":"` + pkg + `","Test":"` + test[1:] + `"}` + "\n")
		if test[0] == '-' {
			end = "fail"
		}
	}
	return b.String() + `{"Action":"` + end + `","Package":"` + pkg + `"}` + "\n"
}

const connection = module + "test/connection"

// A test that failed first and passed alone is no failure, but it is counted and named, also for programs.
func TestUnsteadyTestsAreCounted(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, first, second string
		closing             string
		unsteady, failures  int
	}{
		{
			"all passed at once", events(connection, "+TestA", "+TestB"), "",
			"2 tests passed, 0 failed, 0 skipped in 1 packages, 0s\nunsteady tests: 0\n", 0, 0,
		},
		{
			"one passed alone", events(connection, "+TestA", "-TestB/part", "-TestB"),
			events(connection, "+TestB/part", "+TestB"),
			"3 tests passed, 0 failed, 0 skipped in 1 packages, 0s\nunsteady tests: 1: test/connection TestB\n", 1, 0,
		},
		{
			"one of two passed alone", events(connection, "-TestA", "-TestB"),
			events(connection, "+TestB") + events(connection, "-TestA"),
			"1 tests passed, 1 failed, 0 skipped in 1 packages, 0s\nfailed tests: 1: test/connection TestA\n" +
				"unsteady tests: 1: test/connection TestB\n", 1, 1,
		},
		{
			"one that did not end", events(connection, "-TestA"), `{"Action":"fail","Package":"` + connection + `"}`,
			"0 tests passed, 1 failed, 0 skipped in 1 packages, 0s\nfailed tests: 1: test/connection TestA\n" +
				"unsteady tests: 0\n", 0, 1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "tests.json")
			_ = reportCommand([]string{"--summary", path}, strings.NewReader(tt.first), io.Discard) // it fails where a test did
			if tt.second != "" {
				err := reportCommand([]string{"--first", path, "--summary", path}, strings.NewReader(tt.second), io.Discard)
				if failed := tt.failures > 0; failed != (err != nil) {
					t.Errorf("the second run: %v", err)
				}
			}
			var closing strings.Builder
			if err := closingCommand([]string{path}, &closing); err != nil {
				t.Fatal(err)
			}
			if closing.String() != tt.closing {
				t.Errorf("closing lines:\n%s\nwant:\n%s", closing.String(), tt.closing)
			}
			var got struct {
				Unsteady, Failures []testName
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			if len(got.Unsteady) != tt.unsteady || len(got.Failures) != tt.failures {
				t.Errorf("summary: %s", data)
			}
		})
	}
}

// Of several runs at several speeds, each failed test is one line, and an exception is no failure.
func TestSteady(t *testing.T) {
	t.Parallel()
	write := func(t *testing.T, folder string, files map[string]string) {
		t.Helper()
		for name, text := range files {
			path := filepath.Join(folder, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	good, bad := events(connection, "+TestA", "+TestB"), events(connection, "+TestA", "-TestB/part", "-TestB")
	tests := []struct {
		name       string
		files      map[string]string
		exceptions string
		ok         bool
		want       []string
	}{
		{"all passed", map[string]string{"0.25/1.json": good, "2/1.json": good}, "", true,
			[]string{"unsteady tests: 0, and 0 exceptions, in runs: 1 with 0.25 processors, 1 with 2 processors"}},
		{"one failed once", map[string]string{"0.25/1.json": good, "0.25/2.json": bad, "2/1.json": good}, "", false,
			[]string{"test/connection  TestB  0.25        1 of 2", "unsteady tests: 1,"}},
		{
			"an exception", map[string]string{"0.25/1.json": bad, "0.25/2.json": bad},
			"# why\n\ntest/connection TestB 0.25 it measures the machine\n", true,
			[]string{"0.25        2 of 2    it measures the machine", "unsteady tests: 0, and 1 exceptions"},
		},
		{"an exception for another speed", map[string]string{"2/1.json": bad},
			"test/connection TestB 0.25 it measures the machine", false, []string{"unsteady tests: 1,"}},
		{"a package that failed outside its tests",
			map[string]string{"2/1.json": `{"Action":"fail","Package":"` + connection + `"}`}, "", false,
			[]string{"test/connection  (the package)"}},
		{"an exception without a reason", map[string]string{"2/1.json": good}, "test/connection TestB 0.25", false, nil},
		{"a run without a result", map[string]string{"2/1.json": "cannot build\n"}, "", false, nil},
		{"no run", nil, "", false, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			write(t, folder, tt.files)
			write(t, folder, map[string]string{"exceptions": tt.exceptions})
			var out strings.Builder
			err := steadyCommand([]string{"--exceptions", filepath.Join(folder, "exceptions"), folder}, &out)
			if tt.ok != (err == nil) {
				t.Errorf("error: %v; output:\n%s", err, out.String())
			}
			for _, want := range tt.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("missing %q in:\n%s", want, out.String())
				}
			}
		})
	}
}
