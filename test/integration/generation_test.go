package integration_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// TestWorkflowsThatStartThemselvesEnd: a workflow that emits the event that starts it ends at the limit of generations,
// with a named error, and is a problem.
func TestWorkflowsThatStartThemselvesEnd(t *testing.T) {
	t.Parallel()
	s := platform.StartServer(t, platform.ServerOptions{
		Temporal: platform.StartTemporal(t).Address, Store: platform.SQLite(t),
		Env: []string{"SIGNALBOX_RUNS_MAX_GENERATION=3", "SIGNALBOX_RUNS_RUNAWAY_PER_MINUTE=2"},
	})
	const again = "schedule: {on: {one: {with: {type: again}}}}\n"
	name := s.Publish(t, platform.Document("loop", "  - e: {emit: {event: {with: {type: again}}}}\n", again))
	publish := s.CLI(t, "event", "send", "--type", "again", "--source", "/test", "--id", "first")
	require.Zero(t, publish.Code, publish)
	platform.Eventually(t, platform.Patience, func() string {
		refused := s.CLI(t, "event", "list", "--dead")
		if !strings.Contains(refused.Stdout, "again") {
			return "no start was refused: " + refused.Stdout
		}
		return ""
	})
	runs := s.AllRuns(t, name, 100)
	require.Len(t, runs, 4, "generations 0 to 3")
	var generations []int32
	for _, r := range runs {
		generations = append(generations, s.Run(t, r.GetId()).GetGeneration())
	}
	require.ElementsMatch(t, []int32{0, 1, 2, 3}, generations)
	problems := ""
	platform.Eventually(t, platform.Patience, func() string {
		if problems = s.CLI(t, "problem", "list", "-o", "json").Stdout; !strings.Contains(problems, `"RUNAWAY"`) {
			return problems
		}
		return ""
	})
	require.Contains(t, problems, fmt.Sprintf("signalbox workflow stop %s", name))
}
