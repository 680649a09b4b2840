package integration_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/feed"
	"github.com/signalbox-dev/signalbox/test/platform"
)

var cachedRuns = regexp.MustCompile(`(?m)^temporal_sticky_cache_size(?:\{.*\})? (\S+)$`)

// Runs that wait leave the memory of the worker once there are more than it may keep, the longest unused first; they
// continue from their histories when their event comes.
func TestRunsThatWaitLeaveTheCache(t *testing.T) {
	t.Parallel()
	const kind, waiting, most = "io.example.cached", 400, 16 << 20 / (72 << 10)
	temporal := platform.StartTemporal(t)
	s := platform.StartServer(t, platform.ServerOptions{
		Temporal: temporal.Address, Store: platform.SQLite(t), Args: []string{"--worker-cache", "16MiB"}})
	workflow := s.Publish(t, platform.Document("cached", "  - hear: {listen: {to: {one: {with: {type: "+kind+"}}}}}\n"+
		"  - keep: {set: {n: '${ $workflow.input.n }'}}\n"))
	next := make(chan int, waiting)
	for n := range waiting {
		next <- n
	}
	var ids [waiting]string
	require.NoError(t, platform.Concurrently(waiting, 16, func() error {
		n := <-next
		run, err := s.TryStart(t.Context(), workflow, fmt.Sprintf(`{"n":%d}`, n))
		ids[n] = run.GetId()
		return err
	}))
	for _, id := range ids {
		s.Await(t, id, time.Minute, "waiting")
	}
	cached := func() int {
		_, page, err := s.Get(t.Context(), "/metrics")
		require.NoError(t, err)
		most := 0 // each type of workflow has a series with the number of all
		for _, m := range cachedRuns.FindAllStringSubmatch(page, -1) {
			n, err := strconv.ParseFloat(m[1], 64)
			require.NoError(t, err)
			most = max(most, int(n))
		}
		return most
	}
	require.Positive(t, cached())
	require.LessOrEqual(t, cached(), most)

	events := feed.New(feed.Options{Type: kind, Servers: []*platform.Server{s}})
	require.Len(t, events.Send(t.Context(), 0, 1), 1)
	for n, id := range ids {
		require.JSONEq(t, fmt.Sprintf(`{"n":%d}`, n), s.Await(t, id, time.Minute, "completed").GetOutput().GetJson())
	}
	require.LessOrEqual(t, cached(), most)
}
