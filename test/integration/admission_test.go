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

// sendTogether posts so many events of a type in one request.
func sendTogether(t *testing.T, s *platform.Server, kind string, count int) {
	t.Helper()
	events := make([]string, count)
	for i := range events {
		events[i] = fmt.Sprintf(`{"specversion":"1.0","id":"%s-%d","source":"/test","type":"%s"}`, kind, i, kind)
	}
	status, body, err := s.Do(t.Context(), "POST", "/v1/projects/default/events",
		map[string][]string{"Content-Type": {"application/cloudevents-batch+json"}}, strings.NewReader("["+strings.Join(events, ",")+"]"))
	require.NoError(t, err)
	require.Equal(t, 202, status, body)
}

// TestPlacesOfEventsAndTheClock has one place and starts of all kinds: they wait in one queue, none is lost, and none begins before the
// one before has ended. At full length the server is killed again and again while the queue moves.
func TestPlacesOfEventsAndTheClock(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		options := platform.ServerOptions{Temporal: platform.StartTemporal(t).Address, Store: store, Port: platform.FreePort(t)}
		s := platform.StartServer(t, options)
		limitRuns(t, s, "1")
		holder := s.Start(t, s.Publish(t, platform.Document("holder", long)), "")
		heard := s.Publish(t, platform.Document("heard", short, "schedule: {on: {one: {with: {type: place.wanted}}}}\n"))
		ticks := s.Publish(t, platform.Document("ticks", short, "schedule: {every: {seconds: 1}}\n"))
		strays := s.Publish(t, platform.Document("strays", short))
		parents := s.Publish(t, platform.Document("parents", leave(strays)+subflow(s.Publish(t, platform.Document("kid", short)), "")))
		count := promise.Trials(10, 60)
		sendTogether(t, s, "place.wanted", count)
		parent := s.Start(t, parents, "{}").GetId()
		runsBy(t, s, heard, count)
		runsBy(t, s, ticks, 1)
		require.Equal(t, platform.ExitOK, s.CLI(t, "workflow", "pause", ticks).Code)

		queue := queued(t, s, heard, ticks, parents)
		require.GreaterOrEqual(t, len(queue), count+2)
		usage := quotaOf(t, s)
		require.Equal(t, []int64{1, int64(len(queue))}, []int64{usage.GetAdmittedRuns(), usage.GetQueuedRuns()}, "children are none of them")
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
		require.False(t, stray.GetStartTime().AsTime().Before(s.Run(t, parent).GetEndTime().AsTime()), "it needs a place of its own")
		require.Len(t, s.AllRuns(t, heard, 100), count)
	})
}

// leave starts a run that is not awaited.
func leave(full string) string {
	namespace, short, _ := strings.Cut(full, "/")
	return fmt.Sprintf("  - l:\n      run:\n        await: false\n        workflow: {namespace: %s, name: %s, version: latest}\n", namespace, short)
}

// queued are the open runs of workflows that wait for a place, in order.
func queued(t *testing.T, s *platform.Server, workflows ...string) (runs []*signalboxv1.Run) {
	t.Helper()
	for _, workflow := range workflows {
		for _, r := range s.AllRuns(t, workflow, 100) {
			runs = append(runs, s.Run(t, r.GetId()))
		}
	}
	slices.SortFunc(runs, func(a, b *signalboxv1.Run) int { return cmp.Compare(a.GetQueuePosition(), b.GetQueuePosition()) })
	for i, r := range runs {
		require.Equal(t, fmt.Sprint("admission ", i+1), fmt.Sprint(r.GetQueuedReason(), " ", r.GetQueuePosition()), r.GetWorkflow())
	}
	return runs
}

// TestStepsAfterKills kills the server while runs share a quota of steps: never are more entered than there are, and what was granted to a
// process that died is not lost for good.
func TestStepsAfterKills(t *testing.T) {
	t.Parallel()
	if !promise.Full() {
		t.Skip("Temporal gives a dead process's tasks to another one after ten seconds")
	}
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		options := platform.ServerOptions{Temporal: platform.StartTemporal(t).Address, Store: store, Port: platform.FreePort(t)}
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
			Promise: "quotas", What: "a limit of steps while the server is killed again and again: steps beyond it, and steps lost for good", Aim: "0, 0", Trials: kills, Figure: "0, 0",
		})
	})
}

// paced are twice as many tasks, half of which take a moment.
func paced(rounds int) string {
	var all strings.Builder
	for i := range rounds {
		fmt.Fprintf(&all, "  - rest%d:\n      wait: {milliseconds: 30}\n  - step%d:\n      set: {n: %d}\n", i, i, i)
	}
	return all.String()
}
