package dispatch

import (
	"context"
	"errors"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/overview"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/supervisor"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

// Types of an overview's results.
type (
	// Dispatcher is one dispatcher as the leases, the inbox and Temporal show it.
	Dispatcher = overview.Dispatcher
	// DispatcherStatus is the current state of a dispatcher.
	DispatcherStatus = overview.Status
	// DispatcherLease is the entry of its owner.
	DispatcherLease = overview.Lease
	// Execution is an open workflow of a dispatcher.
	Execution = overview.Execution
	// DispatcherState is a dispatcher's answer to the state query.
	DispatcherState = wire.State
	// RegisteredWorker is a worker as registered with a dispatcher.
	RegisteredWorker = wire.Worker
	// Worker is a process that serves dispatchers.
	Worker = overview.Worker
	// WorkerStatus is the status that the heartbeat shows.
	WorkerStatus = overview.WorkerStatus
	// Heartbeat is the content of a worker's heartbeat.
	Heartbeat = wire.Beat
	// PartError is a source that could not be read.
	PartError = overview.Error
	// Part is a source of an overview.
	Part = overview.Part
	// Class is the supervisor's classification of a dispatcher.
	Class = plan.Class
)

// The statuses of dispatchers.
const (
	Routing = overview.Routing // it delivers events, or polls for more
	Parked  = overview.Parked  // it waits for its doorbell signal
	Stale   = overview.Stale   // it has neither an owner nor a worker; the supervisor terminates it
	Missing = overview.Missing // nothing is open in Temporal
	Foreign = overview.Foreign // a foreign workflow has its ID
	// NoWorkers: no live worker serves its project, so nothing is routed.
	NoWorkers = overview.NoWorkers
	Unknown   = overview.Unknown // a source that determines the status could not be read
)

// The statuses of workers.
const (
	WorkerAlive   = overview.Alive         // its heartbeat is current
	WorkerLate    = overview.Late          // its heartbeat has expired
	WorkerStopped = overview.Stopped       // it resigned its heartbeat
	WorkerSilent  = overview.Silent        // registered, without a heartbeat
	WorkerUnknown = overview.UnknownWorker // registered, and its heartbeat cannot be read
)

// The sources of an overview.
const (
	PartLeases   = overview.PartLeases
	PartInbox    = overview.PartInbox
	PartTemporal = overview.PartTemporal
	PartState    = overview.PartState // the dispatcher itself
)

// OverviewOptions configure [NewOverview]. Fields other than Names equal those of [Options] and [SupervisorOptions] with the same name.
type OverviewOptions struct {
	Client    func() (client.Client, error)
	Namespace string
	Converter converter.DataConverter
	Leases    lease.Store
	Inbox     inbox.Inbox
	Timing    Timing
	LegacyIDs []string
	// Names returns names to list even if no source has a dispatcher for them, such as dispatchers that were never started; nil means none.
	// If it fails, dispatchers are shown as if the inbox could not be read.
	Names func(ctx context.Context) ([]Name, error)
}

// Overview reads dispatchers and workers. It does not need [Dispatchers] in its process, and is safe for concurrent use.
type Overview struct{ sources overview.Sources }

// NewOverview validates the options and returns an overview.
func NewOverview(o OverviewOptions) (*Overview, error) {
	timing := o.Timing.WithDefaults()
	problems := []error{timing.Validate()}
	if o.Client == nil || o.Namespace == "" || o.Leases == nil || o.Inbox == nil {
		problems = append(problems, errors.New("client, namespace, leases and inbox are required"))
	}
	for _, pattern := range o.LegacyIDs {
		problems = append(problems, wire.ValidatePattern(pattern))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	if o.Converter == nil {
		o.Converter = converter.GetDefaultDataConverter()
	}
	return &Overview{overview.Sources{
		Leases: o.Leases, Inbox: o.Inbox, Names: o.Names, Temporal: &supervisor.Remote{Client: o.Client, Namespace: o.Namespace, Converter: o.Converter},
		Rules: plan.Rules{StaleAfter: timing.StaleAfter, Retention: timing.Retention, LegacyIDs: o.LegacyIDs},
	}}, nil
}

// List returns the dispatchers of all sources and of [OverviewOptions.Names], ordered by name. It fails only if no source can be read; each
// dispatcher has the errors of the sources that could not.
func (o *Overview) List(ctx context.Context) ([]Dispatcher, error) { return o.sources.List(ctx) }

// Get returns one dispatcher with its answer to a state query, which takes at most two seconds. A dispatcher that no source has is
// [Missing].
func (o *Overview) Get(ctx context.Context, name Name) (Dispatcher, error) {
	return o.sources.Get(ctx, name)
}

// Workers returns all processes ordered by server ID, with their registrations, and the sources that could not be read. It fails only if
// neither heartbeats nor registrations can be read.
func (o *Overview) Workers(ctx context.Context) ([]Worker, []PartError, error) {
	return o.sources.Workers(ctx)
}
