package integration_test

import (
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
)

func TestRunIsCanceledInEachState(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		o := origin.New(t)
		o.Hold("POST /slow", 200, `{}`)
		o.Hold("GET /slow", 200, `{}`)
		loop := "  - each:\n      for: {each: n, in: \"${ [1, 2, 3] }\"}\n      do:\n        - rest: {wait: {minutes: 10}}\n"
		fork := "  - both:\n      fork:\n        branches:\n          - a: {wait: {minutes: 10}}\n          - b:\n" +
			"              call: http\n              with: {method: post, endpoint: " + o.URL + "/slow}\n"
		for _, tc := range []struct {
			name, tasks string
			status      []string // of the open run
			steps       []string
		}{
			{"wait", waits(600), []string{"waiting"}, []string{"pause:canceled"}},
			{"call", postStep("slow", o.URL+"/slow"), []string{"running"}, []string{"slow:canceled"}},
			{"safe call", getStep("slow", o.URL+"/slow"), []string{"running"}, []string{"slow:canceled"}},
			{"for", loop, []string{"waiting"}, []string{"each:canceled", "rest:canceled"}},
			{"fork", fork, []string{"running"}, []string{"both:canceled", "a:canceled", "b:canceled"}},
		} {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				name := s.Publish(t, platform.Document("canceled", tc.tasks))
				id := s.Start(t, name, "").GetId()
				s.Await(t, id, soon, tc.status...)
				r := s.CLI(t, "run", "cancel", id, "--reason", "wrong customer")
				require.Equal(t, platform.ExitOK, r.Code, r.String())
				run := s.Await(t, id, soon, "canceled")
				require.True(t, run.GetCancelRequested())
				require.Equal(t, "wrong customer", run.GetCancelReason())
				require.Nil(t, run.GetOutput())
				require.Equal(t, tc.steps, platform.Statuses(s.Steps(t, id)))

				watched := s.CLI(t, "run", "watch", id)
				require.Equal(t, platform.ExitRunCanceled, watched.Code, watched.String())
			})
		}
	})
}

func TestCancelOfEndedRunChangesNothing(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		id := s.Start(t, s.Publish(t, platform.Document("done", hello)), "").GetId()
		before := s.Await(t, id, soon, "completed")
		requireOneLine(t, s.CLI(t, "run", "cancel", id, "--reason", "late"), platform.ExitRefused, id, "completed")
		_, err := s.Runs.CancelRun(t.Context(), connect.NewRequest(&signalboxv1.CancelRunRequest{
			Project: platform.DefaultProject, Id: id, Reason: "late",
		}))
		reason, code := platform.Reason(err)
		require.Equal(t, "RUN_ENDED", reason)
		require.Equal(t, connect.CodeFailedPrecondition, code)
		after := s.Run(t, id)
		require.Equal(t, before.GetSequence(), after.GetSequence())
		require.False(t, after.GetCancelRequested())
	})
}

// Only Temporal's own cancellation cancels a run: a failure with such a text is a failure.
func TestErrorNamedCanceledIsAFailure(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		tasks := "  - reject:\n      raise:\n        error:\n          type: https://example.com/canceled\n" +
			"          status: 499\n          title: context canceled\n          detail: the operation was cancelled\n"
		id := s.Start(t, s.Publish(t, platform.Document("says", tasks)), "").GetId()
		require.Equal(t, "context canceled", s.Await(t, id, soon, "failed").GetError().GetTitle())
	})
}
