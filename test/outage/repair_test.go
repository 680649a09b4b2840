package outage_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/database"
	"github.com/signalbox-dev/signalbox/test/load"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// The rows of many runs become stale: the database does not answer while they complete, and their worker
// is killed with the unwritten records. Two workers rebuild the rows, each once, and one of them is killed meanwhile.
func TestWorkerKilledWhileRowsAreRepaired(t *testing.T) {
	t.Parallel()
	if !platform.HasPostgres() {
		t.Skipf("%s is not set; `make test` starts a Postgres", platform.PostgresVariable)
	}
	temporal, store := platform.StartTemporal(t), platform.Postgres(t)
	options := func(role string) platform.ServerOptions {
		return platform.ServerOptions{Temporal: temporal.Address, Store: store, Roles: []string{role}}
	}
	api, lost := platform.StartServer(t, options(platform.API)), platform.StartServer(t, options(platform.Worker))
	l := load.New(api, api.Publish(t, platform.Document("repaired", "  - pause: {wait: {seconds: 10}}\n"+hello)))
	var ids []string
	count := promise.Trials(200, 1000)
	concurrently(count, func(n int) { l.Send(t.Context(), n) })
	for _, r := range l.Of(load.Accepted) {
		ids = append(ids, r.Run)
	}
	require.Len(t, ids, count)

	unlock := database.LockPostgres(t, store)
	c := platform.DialTemporal(t, temporal.Address)
	platform.Eventually(t, soon, func() string {
		open, err := platform.CountExecutions(t.Context(), c,
			"WorkflowType = 'signalbox.run' AND ExecutionStatus = 'Running'")
		if err != nil || open > 0 {
			return fmt.Sprintf("%d runs are open in Temporal: %v", open, err)
		}
		return ""
	})
	lost.Kill()
	unlock()

	workers := []*platform.Server{
		platform.LaunchServer(t, options(platform.Worker)), platform.LaunchServer(t, options(platform.Worker))}
	// A read of a stale row triggers its repair. The first worker is killed while rows are read.
	var reads sync.WaitGroup
	defer reads.Wait()
	reads.Go(func() {
		concurrently(count, func(n int) {
			_, _, _ = api.Get(t.Context(), "/v1/projects/"+platform.DefaultProject+"/runs/"+ids[n])
		})
	})
	platform.Eventually(t, soon, func() string { // until one has a tenth, which is the first worker then
		if len(rebuilt(t, workers[1])) > len(rebuilt(t, workers[0])) {
			slices.Reverse(workers)
		}
		if n := len(rebuilt(t, workers[0])); n < count/10 {
			return fmt.Sprintf("the first worker has rebuilt the rows of %d runs", n)
		}
		return ""
	})
	workers[0].Kill()
	killed := time.Now()
	done := len(rebuilt(t, workers[0])) + len(rebuilt(t, workers[1]))
	require.Less(t, done, count, "all rows were repaired before the worker was killed")

	reads.Wait()
	load.Judge(t, load.Evidence{Loads: []*load.Load{l}, Server: api, Temporal: c, Limit: soon})
	took := time.Since(killed)
	times := map[string]int{}
	for _, w := range workers {
		for _, id := range rebuilt(t, w) {
			times[id]++
			require.Equal(t, 1, times[id], "run %s was rebuilt again", id)
		}
	}
	require.Greater(t, len(times), done, "the other worker continues")
	promise.Record(t, promise.Figure{Promise: "P-R1", What: fmt.Sprintf("one of two workers killed after %d of %d "+
		"repairs: until all rows are as in Temporal, each rebuilt once", done, count),
		Aim: "1 minute", Trials: 1, Figure: promise.Round(took).String()})
	promise.Within(t, "the repair of all rows", took, time.Minute)
}

// concurrently calls do the given number of times, a few calls at a time.
func concurrently(times int, do func(n int)) {
	var group sync.WaitGroup
	const width = 8
	for first := range width {
		group.Go(func() {
			for n := first; n < times; n += width {
				do(n)
			}
		})
	}
	group.Wait()
}

// rebuilt returns the runs whose rows a server has rebuilt, by its log.
func rebuilt(t *testing.T, s *platform.Server) (ids []string) {
	t.Helper()
	for line := range strings.Lines(s.Output()) {
		if !strings.Contains(line, "Rows of a run were rebuilt from its history") {
			continue
		}
		var said struct {
			Run string `json:"run_id"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &said))
		ids = append(ids, said.Run)
	}
	return ids
}
