package app

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/run/control"
)

// batches applies one action to many runs. Every process starts a runner; one elected process executes the batches.
type batches struct {
	service *batch.Service
	runner  *batch.Runner
	// observer stores the outcomes of the runs that batches started.
	observer *batch.Observer
}

func newBatches(s *storage, c *connection, d *definitions, runs *runs, metrics batch.Metrics) *batches {
	runner := batch.NewRunner(s.sealed.batches, controls{runs.service}, time.Now)
	c.onConnect("batches", runner.Wake)
	return &batches{
		service: batch.NewService(s.Batches(), d.workflows, runner.Wake, time.Now), runner: runner,
		observer: batch.NewObserver(s.Batches(), metrics),
	}
}

// controls adapts the run controls to batches.
type controls struct{ runService }

// Replay implements [batch.Controls].
func (c controls) Replay(ctx context.Context, req batch.ReplayRequest) (string, error) {
	made, _, err := c.runService.Replay(ctx, control.ReplayRequest{
		Project: req.Project, RunID: req.RunID, Version: req.Version, Reason: req.Reason, RequestID: req.RequestID,
	})
	return made.ID, err
}
