package problem

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSeriesCountsByHourOrByDay has failures at both ends of a day and of a week. Hour 1001 is one whose clock is ahead.
func TestSeriesCountsByHourOrByDay(t *testing.T) {
	t.Parallel()
	at := func(hour int64) time.Time { return time.Unix(hour*3600, 0).UTC() }
	series := func(hours map[int64]int64) *Series {
		return seriesOf(FailureGroup{Hours: hours}, at(1000).Add(59*time.Minute))
	}
	day := make([]int64, 24)
	day[0], day[22], day[23] = 2, 3, 5
	require.Equal(t, &Series{Start: at(977), Interval: time.Hour, Counts: day},
		series(map[int64]int64{977: 2, 999: 3, 1000: 1, 1001: 4}))
	require.Equal(t, &Series{Start: at(833), Interval: 24 * time.Hour, Counts: []int64{12, 0, 0, 0, 0, 2, 5}},
		series(map[int64]int64{800: 8, 833: 4, 976: 2, 977: 1, 1000: 3, 1001: 1}))
}
