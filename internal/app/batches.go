package app

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/run/control"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// batchParts holds the parts that apply one action to many runs.
type batchParts struct {
	service *batch.Service
	runner  *batch.Runner
}

// newBatchParts creates them. Every process starts a runner; one elected process executes the batches.
func (a *App) newBatchParts(manager *conn.Manager, workflows *workflow.Service, runs *control.Service, work batch.WorkStore) batchParts {
	runner := batch.NewRunner(work, controls{runs}, time.Now)
	manager.OnConnect("batches", func(context.Context, client.Client) error {
		runner.Wake()
		return nil
	})
	return batchParts{batch.NewService(a.store.Batches(), workflows, runner.Wake, time.Now), runner}
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
