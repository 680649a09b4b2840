package integration_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

func TestScheduleIsBackfilled(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		// With a jitter Temporal fires the last time of the period after its end.
		name := s.Publish(t, platform.Document("report", noted,
			"  metadata: {signalbox: {schedule: {jitter: PT10M}}}\n", "schedule: {cron: '0 * * * *'}\n"))
		period := []string{"workflow", "backfill", name, "--since", "2026-11-20T01:00:00Z", "--until", "2026-11-20T04:00:00Z"}
		planned := s.CLI(t, append(period, "--dry-run")...)
		require.Equal(t, platform.ExitOK, planned.Code, planned.String())
		require.Equal(t, 4, strings.Count(planned.Stdout, "missed"), planned.String())
		require.Empty(t, s.AllRuns(t, name, 100))

		done := s.CLI(t, period...)
		require.Equal(t, platform.ExitOK, done.Code, done.String())
		require.Equal(t, 4, strings.Count(done.Stdout, "missed"), done.String())
		for _, run := range runsBy(t, s, name, 4) {
			require.Equal(t, "schedule", s.Await(t, run.GetId(), soon, "completed").GetTrigger())
		}
		again := s.CLI(t, period...)
		require.Equal(t, platform.ExitOK, again.Code, again.String())
		require.Contains(t, again.String(), "the schedule fired at all due times of the period")
		require.Len(t, s.AllRuns(t, name, 100), 4)
		audited := s.CLI(t, "audit", "list", "--action", "workflow.backfill", "--subject", name, "--output", "json")
		require.Contains(t, audited.Stdout, `"times": 4`)

		paused := s.CLI(t, "workflow", "pause", name)
		require.Equal(t, platform.ExitOK, paused.Code, paused.String())
		refused := s.CLI(t, "workflow", "backfill", name, "--since", "2026-11-20")
		require.Equal(t, platform.ExitRefused, refused.Code, refused.String())
		require.Contains(t, refused.Stderr, "is paused")
		long := s.CLI(t, "workflow", "backfill", name, "--since", "2026-01-01", "--dry-run")
		require.Equal(t, platform.ExitRefused, long.Code, long.String())
		require.Contains(t, long.Stderr, "more than 1000 times")
	})
}

func TestOperatorsSetASchedule(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		name := s.Publish(t, platform.Document("ticking", hello, "schedule: {every: {seconds: 1}}\n"))
		set := func(flags ...string) platform.Result {
			return s.CLI(t, append([]string{"workflow", "set", name}, flags...)...)
		}
		runsBy(t, s, name, 1)
		stopped := set("--overlap", "queue one", "--jitter", "100ms", "--pause-until", "2h")
		require.Equal(t, platform.ExitOK, stopped.Code, stopped.String())
		requireShown(t, s, name, "queue one", "jitter        100ms", "overlap, jitter, beside the document", "until ")
		// The fires of the time before the change have ended once the times that follow it are paused, and none of them fired.
		platform.Eventually(t, soon, func() string {
			times := s.CLI(t, "workflow", "times", name, "-n", "3")
			if strings.Count(times.Stdout, "paused") < 3 {
				return times.String()
			}
			return ""
		})
		require.Contains(t, s.CLI(t, "workflow", "times", name, "--outcome", "paused").Stdout, "the schedule is paused until ")
		before := len(s.AllRuns(t, name, 100))
		require.Equal(t, platform.ExitOK, set("--pause-until", "none", "--jitter", "none").Code)
		requireShown(t, s, name, "jitter        0s", "overlap, beside the document")
		runsBy(t, s, name, before+2)

		for _, tt := range []struct {
			flags []string
			code  int
			want  string
		}{
			{nil, platform.ExitUsage, "nothing to set"},
			{[]string{"--overlap", "sometimes"}, platform.ExitFailed, `overlap "sometimes" must be one of ["allow" "skip" "queue one" "cancel the open one"]`},
			{[]string{"--time-zone", "Europe/Berlin"}, platform.ExitFailed, "an interval has no time of day"},
			{[]string{"--catch-up", "1s"}, platform.ExitFailed, "must be from 10s to 8760h0m0s"},
			{[]string{"--jitter", "soon"}, platform.ExitUsage, "is no length of time"},
		} {
			refused := set(tt.flags...)
			require.Equal(t, tt.code, refused.Code, refused.String())
			require.Contains(t, refused.Stderr, tt.want)
		}
		require.Equal(t, platform.ExitOK, s.CLI(t, "workflow", "pause", name).Code)
		plain := s.Publish(t, platform.Document("plain", hello))
		refused := s.CLI(t, "workflow", "set", plain, "--overlap", "skip")
		require.Equal(t, platform.ExitRefused, refused.Code, refused.String())
		require.Contains(t, refused.Stderr, "has no schedule with `cron` or `every`")
	})
}
