package integration_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// lossCommands returns the commands of docs/operations.md that begin so, as arguments of the command line.
func lossCommands(t *testing.T, begin string, replace ...string) [][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	var list [][]string
	for _, found := range regexp.MustCompile("`signalbox ("+begin+"[^`]*)`").FindAllStringSubmatch(string(page), -1) {
		text := strings.NewReplacer(replace...).Replace(strings.Join(strings.Fields(found[1]), " "))
		var args []string
		for _, word := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(text, -1) {
			args = append(args, strings.Trim(word, "'"))
		}
		list = append(list, args)
	}
	return list
}

// After a loss of Temporal, the commands of the page list and replay the runs that were lost: also one that began days
// before, and none that failed of themselves.
func TestRunsThatTemporalLostAreReplayed(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		w := newEnvironment(t, store)
		waiting := w.Publish(t, platform.Document("lossy", "  - pause:\n      wait: {minutes: 10}\n"))
		failing := w.Publish(t, platform.Document("failing",
			"  - stop:\n      raise: {error: {type: https://example.com/errors/own, status: 500}}\n"))
		var lost []string
		for range 3 {
			id := w.Start(t, waiting, "{}").GetId()
			w.awaitRow(t, soon, waiting, id, "waiting")
			lost = append(lost, id)
		}
		for range 3 {
			w.awaitRow(t, soon, failing, w.Start(t, failing, "{}").GetId(), "failed")
		}
		old := lost[0]
		execSQL(t, platform.Store{Driver: w.store.Driver, DSN: w.patient()},
			fmt.Sprintf("UPDATE runs SET created_at = created_at - %d WHERE id = '%s'", (48*time.Hour).Microseconds(), old))
		begin := time.Now().UTC().Format(time.RFC3339Nano)
		for _, id := range lost {
			_, err := w.client.WorkflowService().DeleteWorkflowExecution(t.Context(),
				&workflowservice.DeleteWorkflowExecutionRequest{
					Namespace: client.DefaultNamespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id},
				})
			require.NoError(t, err)
		}
		for _, id := range lost {
			platform.Eventually(t, agreed, func() string {
				if status := w.Run(t, id).GetStatus(); status != "failed" {
					return fmt.Sprintf("run %s is %q", id, status)
				}
				return ""
			})
		}

		lists := lossCommands(t, "run list --error", "TIME", begin)
		require.Len(t, lists, 1)
		out := w.CLI(t, append(lists[0], "-o", "name")...)
		require.Zero(t, out.Code, out)
		listed := strings.Fields(out.Stdout)
		slices.Sort(listed)
		slices.Sort(lost)
		require.Equal(t, lost, listed)

		batches := lossCommands(t, "batch start --action replay", "TIME", begin)
		require.Len(t, batches, 1)
		out = w.CLI(t, batches[0]...)
		require.Zero(t, out.Code, out)
		require.Contains(t, out.Stderr, "would replay 3 runs of 3 selected")
		out = w.CLI(t, slices.DeleteFunc(append(batches[0], "--yes"), func(arg string) bool { return arg == "--dry-run" })...)
		require.Zero(t, out.Code, out)
		for _, id := range lost {
			platform.Eventually(t, soon, func() string {
				if n := len(w.Run(t, id).GetReplays()); n != 1 {
					return fmt.Sprintf("run %s has %d replays", id, n)
				}
				return ""
			})
		}
		out = w.CLI(t, append(lists[0], "--not-replayed", "-o", "name")...)
		require.Empty(t, strings.TrimSpace(out.Stdout))
	})
}
