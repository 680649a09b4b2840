package app

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/server"
)

// problems lists what operators have to act on. Only processes with the API role have it; one elected process records.
type problems struct {
	service     *problem.Service
	recorder    *problem.Recorder
	dispatchers *dispatcher.Service
}

func newProblems(c *components) (*problems, error) {
	dispatchers := dispatcher.NewService(dispatcher.Options{
		Overview: c.events.overview, Operator: c.events.dispatchers, History: c.events.service, Audit: c.storage,
		Name: dispatcherName, Now: time.Now,
	})
	rows := c.storage.Problems()
	lost := func(ctx context.Context) ([]server.Server, bool, error) {
		return c.heartbeat.Lost(ctx, c.cfg.Servers.LostAfter)
	}
	service := problem.NewService(problem.Options{
		Source: rows, Store: rows, Projects: c.storage, Dispatchers: dispatchers, Connection: c.connection.manager.Status,
		Health:           c.health.Report,
		RunawayPerMinute: c.cfg.Runs.RunawayPerMinute,
		Retries:          problem.Retries{Attempts: c.cfg.Runs.RetryingAttempts, After: c.cfg.Runs.RetryingAfter},
		LostServers:      lost, TaskQueue: contract.TaskQueue, Metrics: c.telemetry.Problems, Now: time.Now, StartedAt: time.Now(),
	})
	return &problems{service, problem.NewRecorder(service, rows), dispatchers}, c.telemetry.ObserveProblems(service.Gauges)
}
