//go:build unix

package languageservice_test

import (
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
	const most, attempts = 250 * time.Millisecond, 10
	source, service := long(), languageservice.New()
	require.Greater(t, strings.Count(source, "\n"), 1900)
	middle := dsl.Pos{Line: 1000, Column: 7}
	for name, answer := range map[string]func(*languageservice.Text) int{
		"diagnostics": func(o *languageservice.Text) int { return 1 - len(o.Diagnose(nil)) },
		"completion":  func(o *languageservice.Text) int { return len(o.Complete(middle)) },
		"symbols":     func(o *languageservice.Text) int { return len(o.Symbols()) + len(o.Folds()) },
		"references":  func(o *languageservice.Text) int { return len(o.References(dsl.Pos{Line: 4, Column: 6})) },
	} {
		best := time.Hour
		for range attempts {
			before := worked(t)
			require.Positive(t, answer(service.Open(source)), name)
			best = min(best, worked(t)-before)
		}
		t.Logf("%s: %s", name, best)
		require.Less(t, best, most, name)
	}
}
