package embedded

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.temporal.io/server/common/dynamicconfig"
)

const (
	sleepers  = 60 // runs, one every startEach
	sleeps    = 6  // timers of a run, one after the other
	sleepFor  = 500 * time.Millisecond
	startEach = 80 * time.Millisecond
	rounds    = 3
)

// sleep returns how late each of its timers was, until the workflow task that it caused.
func sleep(ctx workflow.Context) (late []time.Duration, err error) {
	for range sleeps {
		due := workflow.Now(ctx).Add(sleepFor)
		if err := workflow.Sleep(ctx, sleepFor); err != nil {
			return nil, err
		}
		late = append(late, workflow.Now(ctx).Sub(due))
	}
	return late, nil
}

// TestTimersFireOnTime runs the same load of timers against a server and against one with Temporal's own settings for
// timers, at the same time. Both are slowed down by the machine in the same way. One of several rounds must show the
// difference.
func TestTimersFireOnTime(t *testing.T) {
	t.Parallel()
	usual := dynamicConfig()
	delete(usual, dynamicconfig.MakeKey(timerPolls))
	delete(usual, dynamicconfig.MakeKey(timerReaders))
	delete(usual, dynamicconfig.MakeKey(timerMoves))
	server, tuned := serve(t, dynamicConfig())
	_, other := serve(t, usual)
	var late [2]time.Duration
	for round := range rounds { // what else the machine does may slow down one of them
		var group sync.WaitGroup
		for i, c := range []client.Client{tuned, other} {
			group.Go(func() { late[i] = lateness(t, c, round) })
		}
		group.Wait()
		t.Logf("half of the timers are later than %v, with Temporal's settings than %v", late[0], late[1])
		require.Zero(t, furtherReaders(t, server), "the timers have one reader")
		if late[0] < late[1] {
			return
		}
	}
	t.Fatalf("timers are no more on time than with Temporal's settings, in %d rounds", rounds)
}

// serve starts a server with a worker for sleep.
func serve(t *testing.T, settings dynamicconfig.StaticClient) (*Server, client.Client) {
	t.Helper()
	s := New(Options{DataFile: filepath.Join(t.TempDir(), "temporal.db"), Namespace: "default",
		Log: slog.New(slog.DiscardHandler)})
	s.settings = settings
	last := context.WithoutCancel(t.Context())
	t.Cleanup(func() { require.NoError(t, s.Stop(last)) })
	require.NoError(t, s.Start(t.Context()))
	c, err := client.Dial(client.Options{
		HostPort: s.Address(), Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	w := worker.New(c, "sleepers", worker.Options{})
	w.RegisterWorkflow(sleep)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return s, c
}

// furtherReaders returns how often the timers had more than one reader when they were counted: twice a minute, and
// whenever a range of timers has moved to another one.
func furtherReaders(t *testing.T, s *Server) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.MetricsURL(), http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	page, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	const readers = `(?m)^queue_reader_count_bucket\{operation="TimerQueueProcessor",.*le="(1|\+Inf)"\} (\d+)$`
	counts := regexp.MustCompile(readers).FindAllSubmatch(page, -1)
	if len(counts) == 0 {
		return 0 // not counted yet
	}
	require.Len(t, counts, 2)
	one, err := strconv.Atoi(string(counts[0][2]))
	require.NoError(t, err)
	all, err := strconv.Atoi(string(counts[1][2]))
	require.NoError(t, err)
	return all - one
}

// lateness runs the load and returns the median lateness of its timers.
func lateness(t *testing.T, c client.Client, round int) time.Duration {
	t.Helper()
	tick := time.NewTicker(startEach)
	defer tick.Stop()
	results := make([][]time.Duration, sleepers)
	errs := make([]error, sleepers)
	var group sync.WaitGroup
	for i := range sleepers {
		<-tick.C
		group.Go(func() {
			r, err := c.ExecuteWorkflow(t.Context(),
				client.StartWorkflowOptions{TaskQueue: "sleepers", ID: fmt.Sprint("sleeper-", round, "-", i)}, sleep)
			if err == nil {
				err = r.Get(t.Context(), &results[i])
			}
			errs[i] = err
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	all := slices.Sorted(slices.Values(slices.Concat(results...)))
	if len(all) == 0 {
		return 0
	}
	return all[len(all)/2]
}
