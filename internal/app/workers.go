package app

import (
	temporalworker "go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/engine/httpcall"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/activity"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// workers executes the runs of the projects that this process serves.
type workers struct {
	*engine.Workers

	// parking parks the projects in which nothing happens.
	parking *project.Parking
	// heartbeat registers the process periodically, and immediately after each connection to Temporal.
	heartbeat *worker.Heartbeat
}

// parkingStore implements [project.ParkingStore].
type parkingStore struct {
	*activity.Projects
	*store.Store
}

// newCaller returns the client of all HTTP requests for workflows: the calls of runs, and the resources of documents.
func newCaller(c *components) *httpcall.Caller {
	return httpcall.New(httpcall.Options{
		AllowPrivate: c.cfg.Calls.Networks(), UserAgent: "signalbox/" + c.version, Secrets: c.secrets(),
		Repeated: c.connection.engine.Repeated, Writable: c.connection.engine.Payloads().Writable,
		Propagate: c.telemetry.Propagates(), MaxRetryAfter: c.cfg.Calls.MaxRetryAfter,
	})
}

func newWorkers(c *components) *workers {
	cfg := c.cfg.Worker
	executes := engine.NewWorkers(c.connection.engine, c.storage.Activity(), c.calls, engine.WorkerOptions{
		Children: c.runs.children,
		Events:   c.events.service, Publisher: event.Platform{Service: c.events.service},
		Turns:           c.turns,
		Quota:           c.quotas.service,
		Runners:         permittedPrograms(c.storage, c.cfg.Runner.Kinds),
		Extend:          func(_ string, r temporalworker.Registry) { c.events.dispatchers.Register(r) },
		Served:          c.events.serve,
		Owns:            c.events.owns,
		Retire:          c.events.retire,
		Timers:          c.telemetry.Runs.Fired,
		Projects:        c.cfg.Projects,
		WorkflowTasks:   cfg.MaxConcurrentWorkflowTasks,
		Activities:      cfg.MaxConcurrentActivities,
		LocalActivities: cfg.MaxConcurrentLocalActivities,
		StopTimeout:     cfg.StopTimeout,
	})
	heartbeat := worker.NewHeartbeat(c.storage, c.serverID, c.cfg.Projects, worker.Sources{
		Fingerprint: c.connection.fingerprint, Busy: executes.Busy, Processor: c.processor.State,
	})
	c.connection.onConnect("worker heartbeat", heartbeat.Wake)
	c.storage.Activity().OnActive(executes.Wake)
	return &workers{
		Workers:   executes,
		parking:   project.NewParking(parkingStore{c.storage.Activity(), c.storage.Store}, cfg.ParkAfter),
		heartbeat: heartbeat,
	}
}
