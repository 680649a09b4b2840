package integration_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// sendTogether posts the given number of events of a type in one request.
func sendTogether(t *testing.T, s *platform.Server, kind string, count int) {
	t.Helper()
	events := make([]string, count)
	for i := range events {
		events[i] = fmt.Sprintf(`{"specversion":"1.0","id":"%s-%d","source":"/test","type":"%s"}`, kind, i, kind)
	}
	status, body, err := s.Do(t.Context(), "POST", "/v1/projects/default/events",
		map[string][]string{"Content-Type": {"application/cloudevents-batch+json"}},
		strings.NewReader("["+strings.Join(events, ",")+"]"))
	require.NoError(t, err)
	require.Equal(t, 202, status, body)
}

// The project allows one concurrent run, which starts of all kinds wait for: they are in one queue, none is lost, and
// none begins before the previous run has ended. At full length the server is killed repeatedly while the queue
// advances.
func TestConcurrencyLimitHoldsForEventsAndSchedules(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		options := platform.ServerOptions{
			Temporal: platform.StartTemporal(t).Address, Store: store, Port: platform.FreePort(t)}
		s := platform.StartServer(t, options)
		limitRuns(t, s, "1")
		holder := s.Start(t, s.Publish(t, platform.Document("holder", long)), "")
		eventWorkflow := s.Publish(t,
			platform.Document("heard", short, "schedule: {on: {one: {with: {type: place.wanted}}}}\n"))
		ticks := s.Publish(t, platform.Document("ticks", short, "schedule: {every: {seconds: 1}}\n"))
		strays := s.Publish(t, platform.Document("strays", short))
		parents := s.Publish(t, platform.Document("parents",
			startWithoutAwait(strays)+subflow(s.Publish(t, platform.Document("kid", short)), "")))
		count := promise.Trials(10, 60)
		sendTogether(t, s, "place.wanted", count)
		parent := s.Start(t, parents, "{}").GetId()
		runsBy(t, s, eventWorkflow, count)
		runsBy(t, s, ticks, 1)
		require.Equal(t, platform.ExitOK, s.CLI(t, "workflow", "pause", ticks).Code)

		queue := waitingRuns(t, s, eventWorkflow, ticks, parents)
		require.GreaterOrEqual(t, len(queue), count+2)
		usage := quotaOf(t, s)
		require.Equal(t, []int64{1, int64(len(queue))}, []int64{usage.GetAdmittedRuns(), usage.GetQueuedRuns()},
			"children do not count")
		cancel(t, s, holder.GetId())
		for range promise.Trials(0, 6) {
			was := quotaOf(t, s).GetQueuedRuns()
			platform.Eventually(t, soon, func() string {
				if now := quotaOf(t, s).GetQueuedRuns(); now == was && now > 0 {
					return fmt.Sprintf("%d runs still wait", now)
				}
				return ""
			})
			s.Kill()
			s = platform.StartServer(t, options)
		}
		requireInTurn(t, s, queue)
		require.NotEmpty(t, s.Run(t, parent).GetChildren())
		stray := s.Await(t, runsBy(t, s, strays, 1)[0].GetId(), soon, "completed")
		require.False(t, stray.GetStartTime().AsTime().Before(s.Run(t, parent).GetEndTime().AsTime()),
			"it waits for a slot of its own")
		require.Len(t, s.AllRuns(t, eventWorkflow, 100), count)
	})
}

// startWithoutAwait returns a task that starts a run without waiting for it.
func startWithoutAwait(full string) string {
	namespace, short, _ := strings.Cut(full, "/")
	return fmt.Sprintf("  - l:\n      run:\n        await: false\n        workflow: {namespace: %s, name: %s, version: "+
		"latest}\n", namespace, short)
}

// waitingRuns returns the open runs of workflows that wait for a slot, in order.
func waitingRuns(t *testing.T, s *platform.Server, workflows ...string) (runs []*signalboxv1.Run) {
	t.Helper()
	for _, workflow := range workflows {
		for _, r := range s.AllRuns(t, workflow, 100) {
			runs = append(runs, s.Run(t, r.GetId()))
		}
	}
	slices.SortFunc(runs, func(a, b *signalboxv1.Run) int {
		return cmp.Compare(a.GetQueuePosition(), b.GetQueuePosition())
	})
	for i, r := range runs {
		require.Equal(t, fmt.Sprint("admission ", i+1), fmt.Sprint(r.GetQueuedReason(), " ", r.GetQueuePosition()),
			r.GetWorkflow())
	}
	return runs
}

// The server is killed while runs share a step quota: never more steps are entered than the limit allows, and steps
// granted to a killed process are returned to the quota.
func TestStepQuotaSurvivesKills(t *testing.T) {
	t.Parallel()
	if !promise.Full() {
		t.Skip("Temporal gives a dead process's tasks to another one after ten seconds")
	}
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		options := platform.ServerOptions{
			Temporal: platform.StartTemporal(t).Address, Store: store, Port: platform.FreePort(t)}
		s := platform.StartServer(t, options)
		const runs, rounds, limit, kills = 6, 10, 90, 8
		name := s.Publish(t, platform.Document("slow", paced(rounds)))
		limitSteps(t, s, "--steps", fmt.Sprint(limit), "--period", "720h")
		ids := startMany(t, s, name, runs)
		entered := func() (total int64) {
			for _, id := range ids {
				total += s.Run(t, id).GetStepsTotal()
			}
			return total
		}
		for kill := range kills {
			platform.Eventually(t, soon, func() string {
				if total, due := entered(), int64(10*(kill+1)); total < due {
					return fmt.Sprintf("%d steps, not %d", total, due)
				}
				return ""
			})
			s.Kill()
			s = platform.StartServer(t, options)
		}
		platform.Eventually(t, 2*soon, func() string {
			for _, id := range ids {
				if r := s.Run(t, id); r.GetWaitingKind() != "quota" && r.GetStatus() != "completed" {
					return "run " + id + " is " + r.GetStatus() + " " + r.GetWaitingKind()
				}
			}
			return ""
		})
		usage := quotaOf(t, s)
		require.LessOrEqual(t, usage.GetUsedSteps(), int64(limit))
		require.LessOrEqual(t, entered(), usage.GetUsedSteps())
		limitSteps(t, s, "--steps", "1000")
		for _, id := range ids {
			s.Await(t, id, 2*soon, "completed")
		}
		require.EqualValues(t, runs*2*rounds, entered())
		platform.Eventually(t, soon, func() string {
			if used := quotaOf(t, s).GetUsedSteps(); used != runs*2*rounds {
				return fmt.Sprintf("%d steps are used", used)
			}
			return ""
		})
		promise.Record(t, promise.Figure{
			Promise: "quotas", What: "a limit of steps while the server is killed again and again: steps beyond it, and steps " +
				"lost for good", Aim: "0, 0", Trials: kills, Figure: "0, 0",
		})
	})
}

// paced returns twice as many tasks, half of which take a moment.
func paced(rounds int) string {
	var all strings.Builder
	for i := range rounds {
		fmt.Fprintf(&all, "  - rest%d:\n      wait: {milliseconds: 30}\n  - step%d:\n      set: {n: %d}\n", i, i, i)
	}
	return all.String()
}
