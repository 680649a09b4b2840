// Package language_test tests the interpreter on a real Temporal: long loops, executions that continue as
// new, killed workers, retries, timers, and the size of a run's history.
//
// SIGNALBOX_PROVE=1 runs at full length (100,000 items); otherwise each test uses a size that takes seconds.
package language_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
)

const soon = platform.Patience

// stack is a server with its Temporal.
type stack struct {
	*platform.Server
	temporal *platform.Temporal
	options  platform.ServerOptions
}

var shared *platform.Shared[*stack]

func TestMain(m *testing.M) {
	os.Exit(platform.MainParallel(m, 3, func(s *platform.Suite) { shared = platform.Share(s, newStack) }))
}

func newStack(t platform.T) *stack {
	temporal := platform.StartTemporal(t)
	options := platform.ServerOptions{Temporal: temporal.Address, Store: platform.SQLite(t), Port: platform.FreePort(t)}
	return &stack{Server: platform.StartServer(t, options), temporal: temporal, options: options}
}

// restart kills the server, API and worker alike, and starts it again.
func (s *stack) restart(t *testing.T) {
	t.Helper()
	s.Kill()
	s.Server = platform.StartServer(t, s.options)
}

// size returns the number of items of a loop: the first number, or the second at full length.
func size(everyDay, prove int) int {
	if os.Getenv("SIGNALBOX_PROVE") != "" {
		return prove
	}
	return everyDay
}

// events counts the events of a run's newest execution.
func events(t *testing.T, s *stack, id string) int {
	t.Helper()
	return len(platform.History(t, platform.DialTemporal(t, s.temporal.Address), id).GetEvents())
}

// requireOnce checks that steps were recorded in order, without a gap, each entry once.
func requireOnce(t *testing.T, steps []*signalboxv1.Step) {
	t.Helper()
	paths := make([]string, 0, len(steps))
	for i, step := range steps {
		require.EqualValues(t, i+1, step.GetNumber())
		paths = append(paths, step.GetPath())
	}
	slices.Sort(paths)
	require.Len(t, slices.Compact(paths), len(steps), "a step was recorded twice")
}

func itoa(n int) string { return strconv.Itoa(n) }

// loop returns a loop that enters tasks, which are indented by eight spaces, n times.
func loop(n int, tasks string) string {
	return fmt.Sprintf("  - each:\n      for:\n        each: n\n        in: ${ [range(%d)] }\n      do:\n%s", n, tasks)
}

func call(method, url string) string {
	return fmt.Sprintf("        - ask:\n            call: http\n            with:\n              method: %s\n           "+
		"   endpoint: %s\n", method, url)
}
