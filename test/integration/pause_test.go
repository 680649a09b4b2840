package integration_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

func TestPausedRunStopsBetweenTasks(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		pausable := s.Publish(t, platform.Document("pausable", waits(10)+"  - s: {set: {done: true}}\n"))
		id, canceled := s.Start(t, pausable, `{}`).GetId(), s.Start(t, pausable, `{}`).GetId()
		for _, one := range []string{id, canceled, id} {
			r := s.CLI(t, "run", "pause", one, "--reason", "look first")
			require.Equal(t, platform.ExitOK, r.Code, r.String())
		}
		for _, one := range []string{id, canceled} {
			require.Eventually(t, func() bool {
				return s.Steps(t, one)[0].GetStatus() == "completed"
			}, soon, 20*time.Millisecond,
				"timers continue")
			run := s.Run(t, one)
			require.Equal(t, []string{"waiting", "paused"}, []string{run.GetStatus(), run.GetWaitingKind()})
			require.Len(t, s.Steps(t, one), 1)
		}
		require.Equal(t, platform.ExitOK, s.CLI(t, "run", "cancel", canceled, "--reason", "enough").Code)
		s.Await(t, canceled, soon, "canceled")
		require.Equal(t, platform.ExitOK, s.CLI(t, "run", "unpause", id).Code)
		require.JSONEq(t, `{"done": true}`, s.Await(t, id, soon, "completed").GetOutput().GetJson())
	})
}
