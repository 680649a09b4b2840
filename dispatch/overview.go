package dispatch

import (
	"context"
	"errors"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/overview"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/supervise"
	"github.com/signalbox-dev/signalbox/lease"
)

// What an overview tells.
type (
	// Dispatcher is one dispatcher, seen from all sides: the leases, the inbox, and Temporal.
	Dispatcher = overview.Dispatcher
	// DispatcherStatus is what a dispatcher is doing.
	DispatcherStatus = overview.Status
	// DispatcherLease is its owner's entry.
	DispatcherLease = overview.Lease
	// Execution is an open workflow of a dispatcher.
	Execution = overview.Execution
	// DispatcherState is what a dispatcher says of itself.
	DispatcherState = contract.State
	// RegisteredWorker is a worker as a dispatcher knows it.
	RegisteredWorker = contract.Worker
	// Worker is a process that works for dispatchers.
	Worker = overview.Worker
	// WorkerStatus is what its heartbeat says of it.
	WorkerStatus = overview.WorkerStatus
	// Beat is what a worker says of itself.
	Beat = contract.Beat
	// PartError is a side that could not be asked.
	PartError = overview.Error
	// Part is a side from which dispatchers are seen.
	Part = overview.Part
	// Class is what the supervisor makes of a dispatcher.
	Class = plan.Class
)

// The statuses of dispatchers.
const (
	Routing = overview.Routing // it has work and does it, or looks out for some
	Parked  = overview.Parked  // it sleeps until its doorbell rings
	Stale   = overview.Stale   // nobody owns it or works for it; the supervisor ends it
	Missing = overview.Missing // nothing is open in Temporal
	Foreign = overview.Foreign // its ID is taken by what is none of ours
	// NoWorkers: no live worker serves its project, so nothing is routed.
	NoWorkers = overview.NoWorkers
	Unknown   = overview.Unknown // a source that decides it could not be read
)

// The statuses of workers.
const (
	WorkerAlive   = overview.Alive         // its heartbeat is there
	WorkerLate    = overview.Late          // its heartbeat did not come in time
	WorkerStopped = overview.Stopped       // it said that it stops
	WorkerSilent  = overview.Silent        // registered, and without a heartbeat
	WorkerUnknown = overview.UnknownWorker // registered, and its heartbeat cannot be asked for
)

// The sides from which a dispatcher is seen.
const (
	PartLeases   = overview.PartLeases
	PartInbox    = overview.PartInbox
	PartTemporal = overview.PartTemporal
	PartState    = overview.PartState // the dispatcher itself
)

// OverviewOptions say where an overview reads. They are those of [Options] by the same names, and Names.
type OverviewOptions struct {
	Client    func() (client.Client, error)
	Namespace string
	Converter converter.DataConverter
	Leases    lease.Store
	Inbox     inbox.Inbox
	Timing    Timing
	LegacyIDs []string
	// Names returns the names that are listed even if no side knows a dispatcher of theirs, as one that has never been started; nil for none.
	// Where it fails, dispatchers are shown as if the inbox could not be asked.
	Names func(ctx context.Context) ([]Name, error)
}

// Overview tells of dispatchers and workers. It needs no [Dispatchers] in its process, and is safe for concurrent use.
type Overview struct{ sources overview.Sources }

// NewOverview returns an overview.
func NewOverview(o OverviewOptions) (*Overview, error) {
	timing := o.Timing.WithDefaults()
	problems := []error{timing.Validate()}
	if o.Client == nil || o.Namespace == "" || o.Leases == nil || o.Inbox == nil {
		problems = append(problems, errors.New("client, namespace, leases and inbox are needed"))
	}
	for _, pattern := range o.LegacyIDs {
		problems = append(problems, contract.ValidatePattern(pattern))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	if o.Converter == nil {
		o.Converter = converter.GetDefaultDataConverter()
	}
	return &Overview{overview.Sources{
		Leases: o.Leases, Inbox: o.Inbox, Names: o.Names, Temporal: &supervise.Remote{Client: o.Client, Namespace: o.Namespace, Converter: o.Converter},
		Rules: plan.Rules{StaleAfter: timing.StaleAfter, Retention: timing.Retention, LegacyIDs: o.LegacyIDs},
	}}, nil
}

// List returns all dispatchers that any side knows, and those of the names in the options, in the order of their names. It fails only where no side can be asked;
// of a side that cannot, each dispatcher says so.
func (o *Overview) List(ctx context.Context) ([]Dispatcher, error) { return o.sources.List(ctx) }

// Get returns one dispatcher, and asks it how it is: that takes two seconds at most. One that no side knows is [Missing].
func (o *Overview) Get(ctx context.Context, name Name) (Dispatcher, error) {
	return o.sources.Get(ctx, name)
}

// Workers returns all processes in the order of their server IDs, with the dispatchers that know them, and which side could not be
// asked. It fails only where neither heartbeats nor registrations can be.
func (o *Overview) Workers(ctx context.Context) ([]Worker, []PartError, error) {
	return o.sources.Workers(ctx)
}
