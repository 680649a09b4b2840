package integration_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// growing returns a workflow whose runs each start three children of the same workflow, to a depth of six, and repeat
// that for ever when it fails.
func growing(namespace string) string {
	return fmt.Sprintf(`
document: {dsl: '1.0.3', namespace: %[1]s, name: tree, version: '1.0.0'}
do:
  - grow:
      if: ${ (.depth // 0) < 6 }
      try:
        - all:
            fork:
              branches:
                - a: {run: {workflow: {namespace: %[1]s, name: tree, version: latest, input: {depth: '${ (.depth // 0) + 1 }'}}}}
                - b: {run: {workflow: {namespace: %[1]s, name: tree, version: latest, input: {depth: '${ (.depth // 0) + 1 }'}}}}
                - c: {run: {workflow: {namespace: %[1]s, name: tree, version: latest, input: {depth: '${ (.depth // 0) + 1 }'}}}}
      catch:
        retry: {delay: {milliseconds: 50}}
  - rest: {wait: {minutes: 30}}
`, namespace)
}

func TestCanceledTreeStopsGrowing(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		for _, control := range []string{"cancel", "terminate"} {
			t.Run(control, func(t *testing.T) {
				name := s.Publish(t, growing(fmt.Sprintf("t%08x", rand.Uint32())))
				count := func() (all int64, statuses map[string]int64) {
					res, err := s.Runs.CountRuns(t.Context(),
						connect.NewRequest(&signalboxv1.CountRunsRequest{
							Project: platform.DefaultProject, Filter: &signalboxv1.RunFilter{Workflow: name}}))
					require.NoError(t, err)
					for _, n := range res.Msg.GetStatuses() {
						all += n
					}
					return all, res.Msg.GetStatuses()
				}
				root := s.Start(t, name, `{}`).GetId()
				platform.Eventually(t, soon, func() string {
					if n, _ := count(); n < 60 {
						return fmt.Sprintf("the tree has %d runs", n)
					}
					return ""
				})
				_, err := s.Control(t.Context(), control, root, "it grows without end")
				require.NoError(t, err)
				before, _ := count()
				platform.Eventually(t, soon, func() string {
					if _, statuses := count(); statuses["queued"]+statuses["running"]+statuses["waiting"] > 0 {
						return fmt.Sprintf("the tree has open runs: %v", statuses)
					}
					return ""
				})
				after, statuses := count()
				ended := s.Run(t, root).GetStatus()
				statuses[ended]--
				require.Equal(t, map[string]string{"cancel": "canceled", "terminate": "terminated"}[control], ended)
				require.Equal(t, after-1, statuses["canceled"], "no run fails or completes: %v", statuses)
				require.LessOrEqual(t, after, before+10, "only starts in progress at the cancellation are left")
				t.Logf("%d runs at the %s, %d in the end", before, control, after)
			})
		}
	})
}
