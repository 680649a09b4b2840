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
}

func newBatches(s *storage, c *connection, d *definitions, runs *runs) *batches {
	runner := batch.NewRunner(s.sealed.batches, controls{runs.service}, time.Now)
	c.onConnect("batches", runner.Wake)
	return &batches{batch.NewService(s.Batches(), d.workflows, runner.Wake, time.Now), runner}
}

// controls adapts the run controls to batches.
type controls struct{ *control.Service }

// Replay implements [batch.Controls].
func (c controls) Replay(ctx context.Context, req batch.ReplayRequest) (string, error) {
	made, _, err := c.Service.Replay(ctx, control.ReplayRequest{
		Project: req.Project, RunID: req.RunID, Version: req.Version, Reason: req.Reason, RequestID: req.RequestID,
	})
	return made.ID, err
}
