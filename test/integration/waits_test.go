package integration_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// several waits for an event, a timer and a child at a time. %s is the child's task.
const several = `  - both:
      fork:
        branches:
          - payment:
              timeout: {after: PT2H}
              listen:
                to:
                  one:
                    with: {type: com.example.paid}
                    correlate:
                      orderId: {from: '${ .data.order }', expect: '${ .order }'}
                      password: {from: '${ .data.password }', expect: '${ .password }'}
          - remind: {wait: PT1H}
        `

// awaitWaits waits until a run waits for so many things, and returns them by task.
func awaitWaits(t *testing.T, s *platform.Server, id string, count int) (*signalboxv1.Run, map[string]*signalboxv1.Wait) {
	t.Helper()
	var r *signalboxv1.Run
	require.Eventually(t, func() bool {
		r = s.Run(t, id)
		return r.GetStatus() == "waiting" && len(r.GetWaits()) == count
	}, soon, 20*time.Millisecond)
	waits := map[string]*signalboxv1.Wait{}
	for _, w := range r.GetWaits() {
		waits[w.GetTask()] = w
	}
	return r, waits
}

func TestRunSaysWhatItWaitsFor(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		sleeper := s.Publish(t, platform.Document("sleeper", waits(600)))
		branch := strings.ReplaceAll(strings.TrimPrefix(subflow(sleeper, ""), "  "), "\n", "\n        ")
		workflow := s.Publish(t, platform.Document("several", several+"  "+strings.TrimRight(branch, " "), "timeout: {after: PT24H}\n"))
		id := s.Start(t, workflow, `{"order": 4711, "password": "planted-in-a-key"}`).GetId()
		kid := child(t, s, id)
		s.Await(t, kid.GetId(), soon, "waiting")
		r, waits := awaitWaits(t, s, id, 3)
		require.Equal(t, []string{"event", "timer", "child"}, []string{waits["payment"].GetKind(), waits["remind"].GetKind(), waits["r"].GetKind()})

		paid := waits["payment"]
		require.Equal(t, `event com.example.paid with orderId = 4711, password = "⟦redacted⟧"`, paid.GetWhat())
		require.Equal(t, "4711", paid.GetEvents()[0].GetKeys()[0].GetExpect().GetJson())
		require.Equal(t, paid.GetSince().AsTime().Add(2*time.Hour), paid.GetDeadline().AsTime())
		require.Equal(t, paid.GetPointer(), paid.GetDeadlineBy())

		require.WithinDuration(t, waits["remind"].GetSince().AsTime().Add(time.Hour), waits["remind"].GetDueTime().AsTime(), 0)
		require.Equal(t, "/timeout", waits["remind"].GetDeadlineBy())
		require.WithinDuration(t, r.GetStartTime().AsTime().Add(24*time.Hour), waits["remind"].GetDeadline().AsTime(), time.Second)

		require.Equal(t, kid.GetId(), waits["r"].GetChild().GetId())
		require.Equal(t, "waiting timer", waits["r"].GetChild().GetStatus()+" "+waits["r"].GetChild().GetWaitingKind())

		// The command line and exports say the same; lists do not.
		until := paid.GetDeadline().AsTime().Format(time.RFC3339)
		for _, command := range []string{"show", "steps"} {
			shown := s.CLI(t, "run", command, id)
			require.Equal(t, platform.ExitOK, shown.Code, shown.String())
			for _, part := range []string{paid.GetWhat() + ", since ", ", until " + until, "timer, since ", ", due in 59m", "child run " + kid.GetId() + " of " + sleeper} {
				require.Contains(t, shown.Stdout, part, command)
			}
			require.NotContains(t, shown.String(), "planted")
		}
		var bundle struct {
			Run   struct{ Waits []struct{ What string } }
			Waits []struct {
				Task string
				Wait struct{ What string }
			}
		}
		exported := s.CLI(t, "run", "export", id)
		require.NoError(t, json.Unmarshal([]byte(exported.Stdout), &bundle), exported.String())
		require.Equal(t, paid.GetWhat(), bundle.Run.Waits[0].What)
		require.Equal(t, "payment "+paid.GetWhat(), bundle.Waits[0].Task+" "+bundle.Waits[0].Wait.What)
		listed, err := s.Runs.ListRuns(t.Context(), connect.NewRequest(&signalboxv1.ListRunsRequest{Project: platform.DefaultProject, Workflow: workflow}))
		require.NoError(t, err)
		require.Empty(t, listed.Msg.GetRuns()[0].GetWaits())

		// What has come is waited for no more, and a run that has ended waits for nothing.
		sent := s.CLI(t, "event", "send", "--type", "com.example.paid", "--source", "/shop", "--data", `{"order": 4711, "password": "planted-in-a-key"}`)
		require.Equal(t, platform.ExitOK, sent.Code, sent.String())
		_, waits = awaitWaits(t, s, id, 2)
		require.NotContains(t, waits, "payment")
		cancel(t, s, id)
		require.Empty(t, s.Await(t, id, soon, "canceled").GetWaits())
	})
}

func TestFailedTrySaysWhyItsCatchDidNot(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		workflow := s.Publish(t, platform.Document("uncaught", "  - guarded:\n      try:\n"+strings.ReplaceAll("\n"+strings.TrimRight(fails, "\n"), "\n", "\n      ")[1:]+
			"\n      catch: {errors: {with: {status: 503}}}\n"))
		id := s.Start(t, workflow, `{}`).GetId()
		title := s.Await(t, id, soon, "failed").GetError().GetTitle()
		const why = `catch did not match: errors.with.status is "503", that of the error "409"`
		require.Equal(t, why, s.Steps(t, id)[0].GetUncaught())
		shown := s.CLI(t, "run", "steps", id)
		require.Contains(t, shown.Stdout, why, shown.String())
		listed := s.CLI(t, "run", "list", "--workflow", workflow)
		require.Contains(t, strings.SplitN(listed.Stdout, "\n", 2)[0], " ERROR ", listed.String())
		require.Contains(t, listed.Stdout, title, listed.String())
	})
}
