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

// batching are the parts that do one thing to many runs.
type batching struct {
	service *batch.Service
	runner  *batch.Runner
}

// batching makes them. Every process can do the work; one of all does.
func (a *App) batching(manager *conn.Manager, workflows *workflow.Service, runs *control.Service, work batch.WorkStore) batching {
	runner := batch.NewRunner(work, controls{runs}, time.Now)
	manager.OnConnect("batches", func(context.Context, client.Client) error {
		runner.Wake()
		return nil
	})
	return batching{batch.NewService(a.store.Batches(), workflows, runner.Wake, time.Now), runner}
}

// controls are what batches do to runs.
type controls struct{ *control.Service }

// Replay implements [batch.Controls].
func (c controls) Replay(ctx context.Context, req batch.ReplayRequest) (string, error) {
	made, _, err := c.Service.Replay(ctx, control.ReplayRequest{
		Project: req.Project, RunID: req.RunID, Version: req.Version, Reason: req.Reason, RequestID: req.RequestID,
	})
	return made.ID, err
}
