//go:build unix

package languageservice_test

import (
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/languageservice"
)

// worked returns the processor time that this process has used: unlike the time of a clock, it does not depend on what
// else the machine does.
func worked(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Each answer on a document of 2,000 lines takes less than 50 ms of a processor. The bound leaves room for slow machines
// and for instrumented programs. No other test runs meanwhile.
func TestLongDocumentsAreAnsweredInTime(t *testing.T) { //nolint:paralleltest // it measures the processor time of the process
	const most, attempts, spareHeap = 250 * time.Millisecond, 10, 400
	defer debug.SetGCPercent(debug.SetGCPercent(spareHeap)) // as the language server has it
	source, service := long(), languageservice.New()
	require.Greater(t, strings.Count(source, "\n"), 1900)
	line := 1 + slices.Index(strings.Split(source, "\n"), "  - task90:")
	middle, task := dsl.Pos{Line: line + 3, Column: 14}, dsl.Pos{Line: line, Column: 6}
	for name, answer := range map[string]func(*languageservice.Text){
		"diagnostics": func(o *languageservice.Text) { require.Empty(t, o.Diagnose(nil)) },
		"completion":  func(o *languageservice.Text) { require.NotEmpty(t, o.Complete(middle)) },
		"symbols":     func(o *languageservice.Text) { require.NotEmpty(t, o.Symbols()) },
		"folds":       func(o *languageservice.Text) { require.NotEmpty(t, o.Folds()) },
		"references":  func(o *languageservice.Text) { require.NotEmpty(t, o.References(dsl.Pos{Line: 4, Column: 6})) },
		"hover": func(o *languageservice.Text) {
			_, found := o.Hover(middle)
			require.True(t, found)
		},
		"rename": func(o *languageservice.Text) {
			edits, err := o.Rename(task, "renamed")
			require.NoError(t, err)
			require.NotEmpty(t, edits)
		},
		"formatting": func(o *languageservice.Text) {
			_, _, err := o.Format()
			require.NoError(t, err)
		},
	} {
		best := time.Hour
		for range attempts {
			before := worked(t)
			answer(service.Open(source))
			best = min(best, worked(t)-before)
		}
		t.Logf("%s: %s", name, best)
		require.Less(t, best, most, name)
	}
}

// Texts that repeat one sign take time in proportion to their size: a quadratic part would exceed the bound.
func TestHostileTextsAreAnsweredInTime(t *testing.T) { //nolint:paralleltest // as above
	const size, most = 1 << 15, time.Second
	service := languageservice.New()
	for _, piece := range []string{
		"[", "{", "a:\n", "a: \"\n", "- ", "- \n", "- a: '\n", "'", "\"", "a", " ", ":", "{a: ", "a: |\n", "a\n", "  a\n b\n", "#\n",
		"- a:\n    then: a\n", "$secrets.a ", "? ", "&a ", "a: b\n  c\n", "\t", "é", "\"a\\", "[a: ", "a: [\n", "- [\n",
	} {
		for _, head := range []string{"", "use: {secrets: [a]}\ndo:\n"} {
			source := head + strings.Repeat(piece, (size-len(head))/len(piece))
			before := worked(t)
			opened := service.Open(source)
			for _, pos := range []dsl.Pos{{Line: 1, Column: 1}, {Line: 3, Column: 5}, {Line: 1 << 20, Column: 1 << 20}} {
				_ = opened.Complete(pos)
				_, _ = opened.Hover(pos)
				_ = opened.References(pos)
			}
			_ = opened.Folds()
			_ = opened.Symbols()
			require.Less(t, worked(t)-before, most, "%q after %q", piece, head)
		}
	}
}
