package integration_test

import (
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// TestStopOfWorkflow stops a workflow whose runs wait in Temporal.
func TestStopOfWorkflow(t *testing.T) {
	t.Parallel()
	temporal := platform.StartTemporal(t)
	s := platform.StartServer(t, platform.ServerOptions{Temporal: temporal.Address, Store: platform.SQLite(t)})
	name := s.Publish(t, platform.Document("stopped", waits(600)))
	other := s.Publish(t, platform.Document("other", waits(600)))
	ids := startMany(t, s, name, 3)
	spared := startMany(t, s, other, 1)
	for _, id := range ids {
		s.Await(t, id, soon, "waiting")
	}
	stop := func(m *signalboxv1.StopWorkflowRequest) (*signalboxv1.StopWorkflowResponse, error) {
		m.Project, m.Workflow = platform.DefaultProject, name
		res, err := s.Workflows.StopWorkflow(t.Context(), connect.NewRequest(m))
		if err != nil {
			return nil, err
		}
		return res.Msg, nil
	}
	dry, err := stop(&signalboxv1.StopWorkflowRequest{DryRun: true})
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"waiting": 3}, dry.GetOpen())
	_, err = stop(&signalboxv1.StopWorkflowRequest{Reason: "wrong prices", ExpectedOpen: new(int64(2))})
	require.ErrorContains(t, err, "3 open runs now")

	done, err := stop(&signalboxv1.StopWorkflowRequest{
		Reason: "wrong prices", RequestId: "stop-1", ExpectedOpen: new(dry.GetBatch().GetTotal())})
	require.NoError(t, err)
	require.True(t, done.GetPaused())
	b := awaitBatch(t, s, done.GetBatch().GetId(), soon, batchEnded)
	require.EqualValues(t, 3, b.GetSucceeded())
	for _, id := range ids {
		s.Await(t, id, soon, "canceled")
	}
	_, err = s.TryStart(t.Context(), name, "")
	require.ErrorContains(t, err, "is paused (wrong prices)")
	again, err := stop(&signalboxv1.StopWorkflowRequest{Reason: "wrong prices", RequestId: "stop-1"})
	require.NoError(t, err)
	require.Equal(t, b.GetId(), again.GetBatch().GetId())
	require.False(t, again.GetCreated())
	s.Await(t, spared[0], soon, "waiting")
}
