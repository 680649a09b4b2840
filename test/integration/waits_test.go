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

// several waits for an event, a timer and a child at the same time. %s is the child's task.
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

// awaitWaits waits until a run has the given number of waits, and returns them by task.
func awaitWaits(t *testing.T, s *platform.Server, id string,
	count int) (*signalboxv1.Run, map[string]*signalboxv1.Wait) {
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

func TestRunReportsItsWaits(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		sleeper := s.Publish(t, platform.Document("sleeper", waits(600)))
		branch := strings.ReplaceAll(strings.TrimPrefix(subflow(sleeper, ""), "  "), "\n", "\n        ")
		workflow := s.Publish(t, platform.Document("several", several+"  "+strings.TrimRight(branch, " "),
			"timeout: {after: PT24H}\n"))
		id := s.Start(t, workflow, `{"order": 4711, "password": "planted-in-a-key"}`).GetId()
		childRun := child(t, s, id)
		s.Await(t, childRun.GetId(), soon, "waiting")
		r, waits := awaitWaits(t, s, id, 3)
		require.Equal(t, []string{"event", "timer", "child"},
			[]string{waits["payment"].GetKind(), waits["remind"].GetKind(), waits["r"].GetKind()})

		paid := waits["payment"]
		require.Equal(t, `event com.example.paid with orderId = 4711, password = "⟦redacted⟧"`, paid.GetWhat())
		require.Equal(t, "4711", paid.GetEvents()[0].GetKeys()[0].GetExpect().GetJson())
		require.Equal(t, paid.GetSince().AsTime().Add(2*time.Hour), paid.GetDeadline().AsTime())
		require.Equal(t, paid.GetPointer(), paid.GetDeadlineBy())

		// An event that the run does not take says why, from both sides, without the value of the password.
		_, err := s.Events.PublishEvents(t.Context(),
			connect.NewRequest(&signalboxv1.PublishEventsRequest{Events: []*signalboxv1.CloudEvent{{
				Id: "of another order", Source: "/shop", Type: "com.example.paid",
				Data: &signalboxv1.JsonValue{Json: `{"order": 4712, "password": "planted-in-an-event"}`},
			}}}))
		require.NoError(t, err)
		found, err := s.Events.GetEvent(t.Context(), connect.NewRequest(&signalboxv1.GetEventRequest{Id: "of another order"}))
		require.NoError(t, err)
		const reason = "its correlation key orderId is 4712, the task requires 4711, and its correlation key password " +
			"differs; the values are hidden"
		require.Len(t, found.Msg.GetMissed(), 1)
		require.Equal(t, []any{id, paid.GetStep(), "payment", reason}, []any{
			found.Msg.GetMissed()[0].GetRunId(), found.Msg.GetMissed()[0].GetStep(), found.Msg.GetMissed()[0].GetTask(),
			found.Msg.GetMissed()[0].GetReason(),
		})
		_, waits = awaitWaits(t, s, id, 3)
		require.Len(t, waits["payment"].GetNear(), 1)
		require.Equal(t, "of another order "+reason,
			waits["payment"].GetNear()[0].GetId()+" "+waits["payment"].GetNear()[0].GetReason())

		require.WithinDuration(t, waits["remind"].GetSince().AsTime().Add(time.Hour), waits["remind"].GetDueTime().AsTime(),
			0)
		require.Equal(t, "/timeout", waits["remind"].GetDeadlineBy())
		require.WithinDuration(t, r.GetStartTime().AsTime().Add(24*time.Hour), waits["remind"].GetDeadline().AsTime(),
			time.Second)

		require.Equal(t, childRun.GetId(), waits["r"].GetChild().GetId())
		require.Equal(t, "waiting timer", waits["r"].GetChild().GetStatus()+" "+waits["r"].GetChild().GetWaitingKind())

		// The command line and exports contain the same; lists do not.
		until := paid.GetDeadline().AsTime().Format(time.RFC3339)
		for _, command := range []string{"show", "steps"} {
			shown := s.CLI(t, "run", command, id)
			require.Equal(t, platform.ExitOK, shown.Code, shown.String())
			for _, part := range []string{
				paid.GetWhat() + ", since ", ", until " + until, "timer, since ", ", due in 59m", "child run " + childRun.GetId() +
					" of " + sleeper} {
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
		listed, err := s.Runs.ListRuns(t.Context(),
			connect.NewRequest(&signalboxv1.ListRunsRequest{
				Project: platform.DefaultProject, Filter: &signalboxv1.RunFilter{Workflow: workflow}}))
		require.NoError(t, err)
		require.Empty(t, listed.Msg.GetRuns()[0].GetWaits())

		// A wait that is over is removed, and a run that has ended has none.
		sent := s.CLI(t, "event", "send", "--type", "com.example.paid", "--source", "/shop", "--data",
			`{"order": 4711, "password": "planted-in-a-key"}`)
		require.Equal(t, platform.ExitOK, sent.Code, sent.String())
		_, waits = awaitWaits(t, s, id, 2)
		require.NotContains(t, waits, "payment")
		cancel(t, s, id)
		require.Empty(t, s.Await(t, id, soon, "canceled").GetWaits())
	})
}

// An expression computes the length of the timeout.
func TestRunReportsReceivedEventsAndDeadline(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		workflow := s.Publish(t, platform.Document("both", `  - both:
      timeout: {after: '${ .limit }'}
      listen: {to: {all: [{with: {type: com.example.billed}}, {with: {type: com.example.packed}}]}}
`))
		id := s.Start(t, workflow, `{"limit": "PT2H"}`).GetId()
		_, waits := awaitWaits(t, s, id, 1)
		both := waits["both"]
		require.Equal(t, "each of: event com.example.billed (awaited); event com.example.packed (awaited)", both.GetWhat())
		require.Equal(t, both.GetSince().AsTime().Add(2*time.Hour), both.GetDeadline().AsTime())
		require.Equal(t, both.GetPointer(), both.GetDeadlineBy())
		require.False(t, both.GetDeadlineUnknown())

		sent := s.CLI(t, "event", "send", "--type", "com.example.packed", "--source", "/shop", "--data", `{}`)
		require.Equal(t, platform.ExitOK, sent.Code, sent.String())
		require.Eventually(t, func() bool {
			_, waits := awaitWaits(t, s, id, 1)
			both = waits["both"]
			return both.GetEvents()[1].GetCame()
		}, soon, 20*time.Millisecond)
		require.False(t, both.GetEvents()[0].GetCame())
		require.WithinDuration(t, time.Now(), both.GetEvents()[1].GetCameTime().AsTime(), soon)
		for _, command := range []string{"show", "steps", "export"} {
			shown := s.CLI(t, "run", command, id)
			require.Contains(t, shown.Stdout, "each of: event com.example.billed (awaited); event com.example.packed (came at ",
				command)
		}
		cancel(t, s, id)
	})
}

func TestFailedTryReportsWhyCatchDidNotMatch(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		workflow := s.Publish(t, platform.Document("uncaught",
			"  - guarded:\n      try:\n"+strings.ReplaceAll("\n"+strings.TrimRight(fails, "\n"), "\n", "\n      ")[1:]+
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
