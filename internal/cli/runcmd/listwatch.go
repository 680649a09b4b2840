package runcmd

import (
	"context"
	"errors"
	"strings"
	"time"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/backoff"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// maxWatched is the largest first page of a watched list.
const maxWatched = 200

// listWatch prints the rows of a list as they change, across broken streams and restarts of the server.
type listWatch struct {
	invocation *invocation.Invocation
	request    *signalboxv1.ListRunsRequest
	notes      *lines // reports on stderr that the server cannot be reached
	cursor     string
	away       bool
	tries      int // in a row without a message
}

func watchList(ctx context.Context, s *invocation.Invocation, request *signalboxv1.ListRunsRequest, limit int) error {
	if limit < 1 || limit > maxWatched {
		return exit.Usagef("--limit: with --watch it must be between 1 and %d", maxWatched)
	}
	if s.Format() == output.YAML {
		return exit.Usagef("--watch: use -o table, wide or json")
	}
	patience, stop := s.Patience(ctx)
	defer stop()
	request.PageSize = int32(limit)
	// This call fails at once for a wrong filter or a server that cannot be reached; a watch would keep retrying.
	if _, err := invocation.Call(patience, s, s.Runs().ListRuns, request, "list runs"); err != nil {
		return err
	}
	w := &listWatch{invocation: s, request: request, notes: newLines(s.Err, s.ErrStyle())}
	for {
		err := w.stream(patience)
		if patience.Err() != nil {
			return exit.Errorf(exit.Interrupted, "the watch has ended; the runs continue")
		}
		if err != nil && !passing(err) {
			return s.Failed(err, "watch runs")
		}
		if !w.away {
			w.away = true
			w.notes.lost(s.Address())
		}
		w.tries++
		loop.Sleep(patience, backoff.Delay(firstPause, longestPause, w.tries))
	}
}

// stream prints changes until the stream ends.
func (w *listWatch) stream(ctx context.Context) error {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	watchdog := time.AfterFunc(silence, cut)
	defer watchdog.Stop()
	stream, err := w.invocation.Watches().Watch(ctx, connect.NewRequest(&signalboxv1.WatchRequest{
		Project: w.invocation.Project(), Topics: []*signalboxv1.WatchTopic{{
			Cursor: w.cursor, Topic: &signalboxv1.WatchTopic_Runs{Runs: &signalboxv1.RunsTopic{List: w.request}},
		}},
	}))
	if err != nil {
		return err
	}
	for stream.Receive() {
		watchdog.Reset(silence)
		w.tries = 0
		if w.away {
			w.away = false
			w.notes.found()
		}
		if m := stream.Msg(); !m.GetHeartbeat() {
			w.cursor = m.GetCursor()
			for _, row := range m.GetRuns().GetRows() {
				w.print(row)
			}
		}
	}
	return errors.Join(stream.Err(), stream.Close())
}

func (w *listWatch) print(row *signalboxv1.RunsRow) {
	if w.invocation.Format() == output.JSON {
		_ = output.Line(w.invocation.Out, row) // a reader that hung up does not end the runs
		return
	}
	run := row.GetRun()
	words := []string{run.GetId(), run.GetStatus()}
	if detail := statusDetail(run); detail != "" {
		words = append(words, "("+detail+")")
	}
	words = append(words, run.GetWorkflow(), run.GetVersion())
	if run.GetStepsTotal() > 0 {
		words = append(words, stepCount(run))
	}
	words = append(words, run.GetStuck().GetCode(), errorTitle(run.GetError()))
	if !row.GetMatches() {
		words = append(words, "[no longer matches]")
	}
	line := strings.Join(strings.Fields(strings.Join(words, " ")), " ")
	_ = terminal.Draw(w.invocation.Out, terminal.Line(line)+"\n") // as above
}
