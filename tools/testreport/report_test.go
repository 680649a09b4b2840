package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

func run(t *testing.T, input string) (string, bool) {
	t.Helper()
	var out strings.Builder
	r := newReport(&out)
	if err := r.read(strings.NewReader(input)); err != nil {
		t.Fatal(err)
	}
	ok := r.close(61 * time.Second)
	return out.String(), ok
}

func TestReport(t *testing.T) {
	t.Parallel()
	const pass = `{"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Elapsed":1.25}
`
	tests := []struct {
		name, input string
		ok          bool
		want        []string
		absent      string
	}{
		{"passing tests are one line", pass, true,
			[]string{"ok    p  1.2s", "1 tests passed, 0 failed, 0 skipped in 1 packages, 1m1s"}, "noise"},
		{"a failed test shows its output", pass + `{"Action":"output","Package":"q","Test":"TestB","Output":"got 2\n"}
{"Action":"fail","Package":"q","Test":"TestB"}
{"Action":"fail","Package":"q"}
`, false, []string{"got 2", "FAIL  q", "1 tests passed, 1 failed"}, "outside a test"},
		{"a package that does not build fails", pass + `{"ImportPath":"q","Action":"build-output","Output":"q.go:1: broken\n"}
{"Action":"fail","Package":"q","FailedBuild":"q"}
`, false, []string{"q.go:1: broken", "1 packages failed outside a test"}, ""},
		{"a panic shows the output of the test it cut short",
			pass + `{"Action":"output","Package":"q","Test":"TestB","Output":"panic: boom\n"}
{"Action":"fail","Package":"q"}
`, false, []string{"panic: boom"}, ""},
		{"a skipped test shows its reason",
			pass + `{"Action":"output","Package":"p","Test":"TestC","Output":"=== RUN   TestC\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    x_test.go:3: no kit here\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"--- SKIP: TestC (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestC"}
`, true, []string{"skip  p TestC: x_test.go:3: no kit here", "1 skipped"}, "=== RUN"},
		{"slow tests are listed", `{"Action":"pass","Package":"p","Test":"TestS/part","Elapsed":40.4}
{"Action":"pass","Package":"p","Test":"TestS","Elapsed":41.2}
{"Action":"pass","Package":"p","Test":"TestQuick","Elapsed":9}
` + pass, true, []string{"slow  p TestS: 41s\nslow  p TestS/part: 40s\n"}, "TestQuick"},
		{"other lines pass through", "make: hello\n" + pass, true, []string{"make: hello"}, ""},
		{"no test at all is a failure", "", false, []string{"no test ran"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, ok := run(t, tt.input)
			if ok != tt.ok {
				t.Errorf("ok = %v, want %v; output:\n%s", ok, tt.ok, out)
			}
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("missing %q in:\n%s", want, out)
				}
			}
			if tt.absent != "" && strings.Contains(out, tt.absent) {
				t.Errorf("unexpected %q in:\n%s", tt.absent, out)
			}
		})
	}
}

// Only a few tests that failed by themselves run a second time.
func TestAgain(t *testing.T) {
	t.Parallel()
	fails := func(test, output string) string {
		return `{"Action":"output","Package":"p","Test":"` + test + `","Output":"` + output + `\n"}` + "\n" +
			`{"Action":"fail","Package":"p","Test":"` + test + `"}` + "\n"
	}
	const end = `{"Action":"fail","Package":"p"}` + "\n"
	many := ""
	for n := range mostAgain + 1 {
		many += fails(fmt.Sprint("Test", n), "late")
	}
	tests := []struct {
		name, input string
		want        []string
	}{
		{"what failed, once, by its test of the top level",
			fails("TestB", "late") + fails("TestA/one", "late") + fails("TestA", "late") + end, []string{"p TestA", "p TestB"}},
		{"nothing failed", `{"Action":"pass","Package":"p","Test":"TestA"}`, nil},
		{"a data race", fails("TestA", "WARNING: DATA RACE") + end, nil},
		{"a panic", fails("TestA", "panic: boom") + end, nil},
		{"a test that never ended",
			fails("TestA", "late") + `{"Action":"output","Package":"p","Test":"TestB","Output":"=== RUN\n"}` + "\n" + end, nil},
		{"a package that failed outside its tests", end, nil},
		{"too many", many + end, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newReport(io.Discard)
			if err := r.read(strings.NewReader(tt.input)); err != nil {
				t.Fatal(err)
			}
			if got := r.again(); !slices.Equal(got, tt.want) {
				t.Errorf("again = %q, want %q", got, tt.want)
			}
		})
	}
}
