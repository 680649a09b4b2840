package integration_test

import (
	"fmt"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// startMany starts runs of a workflow and returns their IDs.
func startMany(t *testing.T, s *platform.Server, workflow string, n int) []string {
	t.Helper()
	made := make(chan string, n)
	require.NoError(t, platform.Concurrently(n, 8, func() error {
		r, err := s.TryStart(t.Context(), workflow, "")
		made <- r.GetId()
		return err
	}))
	close(made)
	var ids []string
	for id := range made {
		ids = append(ids, id)
	}
	return ids
}

func startBatch(t *testing.T, s *platform.Server, m *signalboxv1.StartBatchRequest) *signalboxv1.Batch {
	t.Helper()
	m.Project = platform.DefaultProject
	if m.GetReason() == "" {
		m.Reason = "a test"
	}
	res, err := s.Batches.StartBatch(t.Context(), connect.NewRequest(m))
	require.NoError(t, err)
	require.True(t, res.Msg.GetCreated())
	return res.Msg.GetBatch()
}

func awaitBatch(t *testing.T, s *platform.Server, id string, limit time.Duration,
	ok func(*signalboxv1.Batch) bool) *signalboxv1.Batch {
	t.Helper()
	var b *signalboxv1.Batch
	platform.Eventually(t, limit, func() string {
		res, err := s.Batches.GetBatch(t.Context(),
			connect.NewRequest(&signalboxv1.GetBatchRequest{Project: platform.DefaultProject, Id: id}))
		if err != nil {
			return err.Error()
		}
		if b = res.Msg.GetBatch(); !ok(b) {
			return b.String()
		}
		return ""
	})
	return b
}

func batchEnded(b *signalboxv1.Batch) bool { return b.GetStatus() == "completed" }

// replayed reports whether a batch has started all of its replays, of which some may be open.
func replayed(b *signalboxv1.Batch) bool { return b.GetStatus() == "started" || batchEnded(b) }

func batchItems(t *testing.T, s *platform.Server, id, status string) (items []*signalboxv1.BatchItem) {
	t.Helper()
	for token := ""; ; {
		res, err := s.Batches.ListBatchItems(t.Context(), connect.NewRequest(&signalboxv1.ListBatchItemsRequest{
			Project: platform.DefaultProject, Id: id, Status: status, PageSize: 1000, PageToken: token,
		}))
		require.NoError(t, err)
		items = append(items, res.Msg.GetItems()...)
		if token = res.Msg.GetNextPageToken(); token == "" {
			return items
		}
	}
}

// requireReplayedOnce requires that each original has one replay, which is the one that its item names.
func requireReplayedOnce(t *testing.T, s *platform.Server, workflow, id string, originals []string) {
	t.Helper()
	replays := map[string]string{}
	for _, item := range batchItems(t, s, id, "started") {
		replays[item.GetRunId()] = item.GetNewRunId()
	}
	require.Len(t, replays, len(originals))
	require.Len(t, s.AllRuns(t, workflow, 500), 2*len(originals), "there is no further run")
	work := make(chan string, len(originals))
	for _, original := range originals {
		work <- original
	}
	require.NoError(t, platform.Concurrently(len(originals), 8, func() error {
		original := <-work
		res, err := s.Runs.GetRun(t.Context(),
			connect.NewRequest(&signalboxv1.GetRunRequest{Project: platform.DefaultProject, Id: original}))
		if err != nil {
			return err
		}
		if got := res.Msg.GetRun().GetReplays(); len(got) != 1 || got[0] != replays[original] {
			return fmt.Errorf("run %s has the replays %v, its item %s", original, got, replays[original])
		}
		return nil
	}))
}

// manyRuns returns how many runs are replayed while servers are killed, and the rate.
func manyRuns() (n int, rate float64) {
	return promise.Trials(200, 10_000), float64(promise.Trials(120, 500))
}

func TestReplayOfManyRunsSurvivesKill(t *testing.T) {
	t.Parallel()
	n, rate := manyRuns()
	temporal := platform.StartTemporal(t)
	options := platform.ServerOptions{Temporal: temporal.Address, Store: platform.SQLite(t), Port: platform.FreePort(t)}
	s := platform.StartServer(t, options)
	name := s.Publish(t, platform.Document("replayed", hello))
	originals := startMany(t, s, name, n)
	begun := time.Now()
	b := startBatch(t, s, &signalboxv1.StartBatchRequest{
		Action: "replay", Rate: rate, Filter: &signalboxv1.RunFilter{Workflow: name}})
	awaitBatch(t, s, b.GetId(), 5*time.Minute, func(b *signalboxv1.Batch) bool {
		return b.GetOutcomes().GetStarted() >= int64(n/4)
	})
	s.Kill()
	s = platform.StartServer(t, options)
	b = awaitBatch(t, s, b.GetId(), 5*time.Minute, batchEnded)
	took := promise.Round(time.Since(begun))
	require.EqualValues(t, n, b.GetOutcomes().GetCompleted(), b.String())
	require.EqualValues(t, n, b.GetTotal(), "the batch does not select its own replays")
	requireReplayedOnce(t, s, name, b.GetId(), originals)
	promise.Record(t, promise.Figure{
		Promise: "E5", What: fmt.Sprintf("%d runs replayed as one batch, the only server killed and started again: each "+
			"once; until all had completed", n),
		Trials: n, Figure: took.String(),
	})
}

func TestAnotherServerResumesBatch(t *testing.T) {
	t.Parallel()
	needPostgres(t)
	n, rate := manyRuns()
	store := platform.Postgres(t)
	temporal := platform.StartTemporal(t)
	first := platform.StartServer(t, platform.ServerOptions{Temporal: temporal.Address, Store: store})
	second := platform.StartServer(t, platform.ServerOptions{Temporal: temporal.Address, Store: store})
	name := first.Publish(t, platform.Document("replayed", hello))
	originals := startMany(t, first, name, n)
	b := startBatch(t, first,
		&signalboxv1.StartBatchRequest{Action: "replay", Rate: rate, Filter: &signalboxv1.RunFilter{Workflow: name}})
	awaitBatch(t, second, b.GetId(), 5*time.Minute, func(b *signalboxv1.Batch) bool {
		return b.GetOutcomes().GetStarted() >= int64(n/4)
	})
	first.Kill() // it received the batch, so it executes it
	killed, was := time.Now(), awaitBatch(t, second, b.GetId(), soon, func(*signalboxv1.Batch) bool {
		return true
	}).GetOutcomes().GetStarted()
	awaitBatch(t, second, b.GetId(), soon, func(b *signalboxv1.Batch) bool { return b.GetOutcomes().GetStarted() > was })
	resumed := promise.Round(time.Since(killed))
	b = awaitBatch(t, second, b.GetId(), 5*time.Minute, batchEnded)
	require.EqualValues(t, n, b.GetOutcomes().GetCompleted(), b.String())
	requireReplayedOnce(t, second, name, b.GetId(), originals)
	promise.Record(t, promise.Figure{
		Promise: "E5", What: fmt.Sprintf("%d runs replayed as one batch, one of two servers killed at it: each once; until "+
			"the other went on", n),
		Trials: n, Figure: resumed.String(),
	})
}

func TestBatchesByCommandLine(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		name := s.Publish(t, platform.Document("batched", waits(600)))
		ids := startMany(t, s, name, 30)
		for _, id := range ids[:2] {
			s.Await(t, id, soon, "waiting")
		}
		args := []string{"batch", "start", "--action", "cancel", "--workflow", name, "--reason", "wrong prices", "--rate",
			"10"}
		dry := s.CLI(t, append(args, "--dry-run")...)
		require.Equal(t, "dry run: would cancel 30 runs of 30 selected\n", dry.Stderr, dry.String())

		started := s.CLI(t, append(args, "--request-id", name, "-o", "json")...)
		require.Zero(t, started.Code, started.String())
		var b struct{ ID string }
		started.JSON(t, &b)
		var again struct{ ID string }
		s.CLI(t, append(args, "--request-id", name, "-o", "json")...).JSON(t, &again)
		require.Equal(t, b.ID, again.ID)
		require.Zero(t, s.CLI(t, "batch", "pause", b.ID).Code)
		held := awaitBatch(t, s, b.ID, soon, func(b *signalboxv1.Batch) bool { return b.GetStatus() == "paused" })
		require.Positive(t, held.GetPending(), "a batch of three seconds was paused in the first")
		require.Zero(t, s.CLI(t, "batch", "unpause", b.ID).Code)
		done := awaitBatch(t, s, b.ID, soon, batchEnded)
		require.EqualValues(t, 30, done.GetSucceeded())
		for _, id := range ids {
			require.Equal(t, "wrong prices (batch "+b.ID+")", s.Await(t, id, soon, "canceled").GetCancelReason())
		}
		// They have ended, so a second cancellation of each is refused, and a run of another project is not found.
		waited := s.CLI(t, "batch", "start", "--action", "terminate", "--reason", "again", "--wait", "--rate", "500", ids[0],
			ids[1], "no-such-run")
		require.Zero(t, waited.Code, waited.String())
		require.Contains(t, waited.Stdout, "3: 3 refused")
		list := s.CLI(t, "batch", "list", "-o", "json", "--limit", "0")
		require.Contains(t, list.Stdout, b.ID)
		log := s.CLI(t, "audit", "list", "--subject", ids[0], "-o", "json")
		require.Contains(t, log.Stdout, "batch "+b.ID, log.String())
	})
}

func TestRetriedBatchRepeatsFailedItemsOnly(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		name := s.Publish(t, platform.Document("retried", hello))
		ids := startMany(t, s, name, 4)
		require.Zero(t, s.CLI(t, "workflow", "pause", name, "--reason", "closed").Code)
		b := startBatch(t, s, &signalboxv1.StartBatchRequest{Action: "replay", RunIds: append(ids, "no-such-run")})
		b = awaitBatch(t, s, b.GetId(), soon, batchEnded)
		require.Equal(t, []int64{4, 1}, []int64{b.GetFailed(), b.GetRefused()}, b.String())
		require.Contains(t, batchItems(t, s, b.GetId(), "failed")[0].GetError(), "is paused (closed)")
		require.Zero(t, s.CLI(t, "workflow", "unpause", name).Code)
		require.Zero(t, s.CLI(t, "batch", "retry", b.GetId()).Code)
		b = awaitBatch(t, s, b.GetId(), soon, batchEnded)
		require.Equal(t, []int64{4, 1, 0}, []int64{b.GetOutcomes().GetCompleted(), b.GetRefused(), b.GetFailed()}, b.String())
		requireReplayedOnce(t, s, name, b.GetId(), ids)
		requireOneLine(t, s.CLI(t, "batch", "retry", b.GetId()), platform.ExitRefused, "BATCH_NOTHING_FAILED")
		requireOneLine(t, s.CLI(t, "batch", "pause", b.GetId()), platform.ExitRefused, "BATCH_ENDED")
		requireOneLine(t, s.CLI(t, "batch", "show", "no-such"), platform.ExitNotFound, "BATCH_NOT_FOUND")
	})
}
