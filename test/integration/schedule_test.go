package integration_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// runsBy waits for runs of a workflow that its schedule started, and returns them, newest first.
func runsBy(t *testing.T, s *platform.Server, name string, n int) []*signalboxv1.Run {
	t.Helper()
	var runs []*signalboxv1.Run
	platform.Eventually(t, soon, func() string {
		runs = s.AllRuns(t, name, 100)
		if len(runs) < n {
			return fmt.Sprintf("%d runs of %s, not %d", len(runs), name, n)
		}
		return ""
	})
	return runs
}

// requireShown waits until `workflow show` prints all of the texts.
func requireShown(t *testing.T, s *platform.Server, name string, texts ...string) {
	t.Helper()
	platform.Eventually(t, soon, func() string {
		shown := s.CLI(t, "workflow", "show", name).String()
		for _, text := range texts {
			if !strings.Contains(shown, text) {
				return fmt.Sprintf("no %q in %s", text, shown)
			}
		}
		return ""
	})
}

func TestScheduleStartsRuns(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		name := s.Publish(t, platform.Document("ticking", hello, "schedule: {every: {seconds: 1}}\n"))
		runs := runsBy(t, s, name, 2)
		first := s.Await(t, runs[len(runs)-1].GetId(), soon, "completed")
		require.Equal(t, "schedule", first.GetTrigger())
		requireShown(t, s, name, "every 1s", "next", "last", ", 0 missed")

		// A pause applies to schedules too, and times missed meanwhile are not made up for.
		require.Equal(t, platform.ExitOK, s.CLI(t, "workflow", "pause", name).Code)
		requireShown(t, s, name, "paused", "none")
		paused := len(s.AllRuns(t, name, 100))
		require.Equal(t, platform.ExitOK, s.CLI(t, "workflow", "unpause", name).Code)
		more := runsBy(t, s, name, paused+1)
		require.LessOrEqual(t, len(more), paused+2)

		// Each time starts one run: the ID of the event is the time, and each event starts one run.
		listed := s.CLI(t, "event", "list", "--source", "/projects/default/workflows/"+name+"/schedule", "-o", "json")
		require.Equal(t, platform.ExitOK, listed.Code, listed.String())
		require.GreaterOrEqual(t, strings.Count(listed.Stdout, `"io.signalbox.schedule.fired"`), len(more))

		require.Equal(t, platform.ExitOK, s.CLI(t, "workflow", "pause", name).Code)
		platform.Eventually(t, soon, func() string { // open runs keep their workflow
			if r := s.CLI(t, "workflow", "delete", name); r.Code != platform.ExitOK {
				return r.String()
			}
			return ""
		})
	})
}

// Temporal evaluates cron expressions: `workflow show` prints the next time, and a deleted workflow leaves no Schedule
// behind.
func TestCronCreatesTemporalSchedule(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		const spec = "0 3 1 1 *"
		following := func() string { // the next time at three in the morning of a new year
			now := time.Now().UTC()
			next := time.Date(now.Year(), 1, 1, 3, 0, 0, 0, time.UTC)
			if !next.After(now) {
				next = next.AddDate(1, 0, 0)
			}
			return next.Format(time.RFC3339)
		}
		name := s.Publish(t, platform.Document("yearly", hello, fmt.Sprintf("schedule: {cron: %q}\n", spec)))
		platform.Eventually(t, soon, func() string {
			before := following()
			shown := s.CLI(t, "workflow", "show", name).String()
			for _, next := range []string{before, following()} {
				if regexp.MustCompile(`starts\s+cron ` + regexp.QuoteMeta(spec) + ` \(UTC\)\noverlap\s+allow\njitter\s+0s\n` +
					`catch-up\s+10m0s\nnext\s+` + next +
					`\nthen\s+.*\nfired\s+0, 0 missed, 0 skipped for an open run\n`).MatchString(shown) {
					return ""
				}
			}
			return fmt.Sprintf("the next time is %s, and this is shown: %s", before, shown)
		})
		status, err := s.System.GetStatus(t.Context(), connect.NewRequest(&signalboxv1.GetStatusRequest{}))
		require.NoError(t, err)
		temporal := platform.DialTemporal(t, status.Msg.GetConnection().GetAddress())
		kept := temporal.ScheduleClient().GetHandle(t.Context(), "signalbox-schedule/"+platform.DefaultProject+"/"+name)
		described, err := kept.Describe(t.Context())
		require.NoError(t, err)
		require.Contains(t, described.Schedule.State.Note, spec)

		require.Equal(t, platform.ExitOK, s.CLI(t, "workflow", "delete", name).Code)
		platform.Eventually(t, soon, func() string {
			_, err := kept.Describe(t.Context())
			if _, gone := errors.AsType[*serviceerror.NotFound](err); !gone {
				return fmt.Sprintf("Temporal says of the Schedule: %v", err)
			}
			return ""
		})
	})
}

// overlapping publishes a workflow whose runs rest, and whose schedule fires every second with this overlap.
func overlapping(t *testing.T, s *platform.Server, overlap, rest string) string {
	t.Helper()
	name := s.Publish(t, platform.Document("overlapping", "  - rest: {wait: "+rest+"}\n",
		"  metadata: {signalbox: {schedule: {overlap: "+overlap+"}}}\n", "schedule: {every: {seconds: 1}}\n"))
	requireShown(t, s, name, overlap)
	return name
}

func TestScheduleSkipsFiresOfOpenRuns(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		name := overlapping(t, s, "skip", "PT1H")
		runsBy(t, s, name, 1)
		platform.Eventually(t, soon, func() string {
			shown := s.CLI(t, "workflow", "show", name).String()
			if !regexp.MustCompile(`, [1-9]\d* skipped for an open run`).MatchString(shown) {
				return "no fire was skipped: " + shown
			}
			return ""
		})
		require.Len(t, s.AllRuns(t, name, 100), 1)
		require.Equal(t, platform.ExitOK, s.CLI(t, "workflow", "pause", name).Code)
	})
}

func TestScheduleQueuesOneFire(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		runs := runsBy(t, s, overlapping(t, s, "queue one", "PT2S"), 2)
		earlier := s.Await(t, runs[1].GetId(), soon, "completed")
		require.False(t, runs[0].GetCreateTime().AsTime().Before(earlier.GetEndTime().AsTime()), "they do not overlap")
		require.Equal(t, platform.ExitOK, s.CLI(t, "workflow", "pause", runs[0].GetWorkflow()).Code)
	})
}

func TestScheduleCancelsTheOpenRun(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		runs := runsBy(t, s, overlapping(t, s, "cancel the open one", "PT1H"), 2)
		earlier := s.Await(t, runs[1].GetId(), soon, "canceled")
		require.False(t, runs[0].GetCreateTime().AsTime().Before(earlier.GetEndTime().AsTime()), "they do not overlap")
		require.Equal(t, platform.ExitOK, s.CLI(t, "workflow", "pause", runs[0].GetWorkflow()).Code)
	})
}

// Runs without a pause follow each other within one second, and continue to do so.
func TestContinuousRunsWithoutPause(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		name := s.Publish(t, platform.Document("at-once", hello, "schedule: {after: PT0S}\n"))
		requireShown(t, s, name, "0s after the end of a run")
		s.Start(t, name, "")
		runsBy(t, s, name, 4) // two comparisons a second: two of four runs end within one
		require.Equal(t, platform.ExitOK, s.CLI(t, "workflow", "pause", name).Code)
	})
}

func TestContinuousRunsWithPause(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		name := s.Publish(t, platform.Document("following", hello, "schedule: {after: {seconds: 1}}\n"))
		requireShown(t, s, name, "1s after the end of a run", "none")
		first := s.Start(t, name, "")
		runs := runsBy(t, s, name, 3)
		require.Equal(t, first.GetId(), runs[len(runs)-1].GetId())
		for i := range runs[:len(runs)-1] {
			newer, legacySchema := runs[i], s.Await(t, runs[i+1].GetId(), soon, "completed")
			require.Equal(t, "schedule", newer.GetTrigger())
			pause := newer.GetCreateTime().AsTime().Sub(legacySchema.GetEndTime().AsTime())
			require.GreaterOrEqual(t, pause.Seconds(), 1.0)
			t.Logf("the pause of 1s took %s", pause)
		}
	})
}
