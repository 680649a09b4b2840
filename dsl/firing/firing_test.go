package firing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl/firing"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return parsed
}

func TestTimes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec         firing.Spec
		since, until string
		want         []string
	}{
		"in UTC": {
			firing.Spec{Cron: "0 6 * * 1-5"}, "2026-01-02T06:00:00Z", "2026-01-06T06:00:00Z",
			[]string{"2026-01-05T06:00:00Z", "2026-01-06T06:00:00Z"}},
		"in a time zone": {
			firing.Spec{Cron: "0 6 * * *", Zone: "Europe/Berlin"}, "2026-03-28T00:00:00Z", "2026-03-30T00:00:00Z",
			[]string{"2026-03-28T05:00:00Z", "2026-03-29T04:00:00Z"}},
		"a skipped hour": {
			firing.Spec{Cron: "30 2 * * *", Zone: "Europe/Berlin"}, "2026-03-28T00:00:00Z", "2026-03-31T00:00:00Z",
			[]string{"2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"}},
		"a repeated hour, east of Greenwich": {
			firing.Spec{Cron: "30 2 * * *", Zone: "Europe/Berlin"}, "2026-10-24T22:00:00Z", "2026-10-26T02:00:00Z",
			[]string{"2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"}},
		"the hour before a repeated hour, east of Greenwich": {
			firing.Spec{Cron: "30 1 * * *", Zone: "Europe/Berlin"}, "2026-10-24T22:00:00Z", "2026-10-26T02:00:00Z",
			[]string{"2026-10-24T23:30:00Z", "2026-10-26T00:30:00Z"}},
		"a repeated hour, west of Greenwich": {
			firing.Spec{Cron: "30 1 * * *", Zone: "America/New_York"}, "2026-11-01T03:00:00Z", "2026-11-02T10:00:00Z",
			[]string{"2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z", "2026-11-02T06:30:00Z"}},
		"every hour of a day with a repeated one": {
			firing.Spec{Cron: "0 0-3 * * *", Zone: "America/New_York"}, "2026-11-01T03:00:00Z", "2026-11-01T09:00:00Z",
			[]string{"2026-11-01T04:00:00Z", "2026-11-01T05:00:00Z", "2026-11-01T06:00:00Z", "2026-11-01T07:00:00Z",
				"2026-11-01T08:00:00Z"}},
		"an interval from the publication": {
			firing.Spec{Every: 90 * time.Minute, Since: at(t, "2026-01-01T00:00:07Z")}, "2026-01-01T00:00:07Z",
			"2026-01-01T03:00:07Z", []string{"2026-01-01T01:30:07Z", "2026-01-01T03:00:07Z"}},
		"not before a start": {
			firing.Spec{Cron: "@hourly", Start: at(t, "2026-01-01T05:00:00Z")}, "2026-01-01T00:00:00Z", "2026-01-01T06:00:00Z",
			[]string{"2026-01-01T05:00:00Z", "2026-01-01T06:00:00Z"}},
		"only in leap years": {
			firing.Spec{Cron: "0 0 29 2 *"}, "2026-01-01T00:00:00Z", "2033-01-01T00:00:00Z",
			[]string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
	}
	for name, tt := range tests {
		times, err := firing.New(tt.spec)
		require.NoError(t, err, name)
		list, more := times.Between(at(t, tt.since), at(t, tt.until), 10)
		require.False(t, more, name)
		got := []string{}
		for _, due := range list {
			got = append(got, due.Format(time.RFC3339))
		}
		require.Equal(t, tt.want, got, name)
	}
}

func TestBetweenIsLimited(t *testing.T) {
	t.Parallel()
	times, err := firing.New(firing.Spec{Cron: "* * * * *"})
	require.NoError(t, err)
	list, more := times.Between(at(t, "2026-01-01T00:00:00Z"), at(t, "2026-01-01T00:03:00Z"), 2)
	require.Len(t, list, 2)
	require.True(t, more)
	list, more = times.Between(at(t, "2026-01-01T00:00:00Z"), at(t, "2026-01-01T00:02:00Z"), 2)
	require.Len(t, list, 2)
	require.False(t, more)
}

func TestNewestAreTheLastOfAllTimes(t *testing.T) {
	t.Parallel()
	since, until := at(t, "2026-01-01T00:00:00Z"), at(t, "2026-11-27T12:00:30Z")
	for _, spec := range []firing.Spec{
		{Cron: "*/7 * * * *"}, {Cron: "30 2 * * *", Zone: "Europe/Berlin"}, {Cron: "0 0 1 * *"}, {Cron: "0 0 29 2 *"},
		{Every: 90 * time.Minute, Since: since}, {Every: 11 * time.Minute, Since: since, Start: at(t, "2026-11-27T11:00:00Z")},
	} {
		times, err := firing.New(spec)
		require.NoError(t, err)
		all, more := times.Between(since, until, 1_000_000)
		require.False(t, more)
		for _, limit := range []int{1, 3, 50} {
			require.Equal(t, all[max(0, len(all)-limit):], times.Newest(since, until, limit), "%v, %d", spec, limit)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, spec := range []firing.Spec{{}, {Every: time.Millisecond}, {Cron: "* *"}, {Cron: "* * * * *", Zone: "Mars/Phobos"},
		{Cron: "* * * * *", Zone: "Local"}} {
		_, err := firing.New(spec)
		require.Error(t, err, spec)
	}
}

func TestListsHaveOneMeaning(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"0 6 * * 1-7":                 "0 6 * * *",
		"0 6 * * 5-7":                 "0 6 * * 0,5,6",
		"*/20 1-3 31 jan,DEC *":       "0,20,40 1,2,3 31 1,12 *",
		"@weekly":                     "0 0 * * 0",
		"* *":                         "* *",
		"50/5,7 0 * 1-12/6 mon-thu/2": "7,50,55 0 * 1,7 1,3",
	} {
		require.Equal(t, want, firing.Lists(expression))
	}
}
