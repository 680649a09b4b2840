package dispatch

import (
	"context"
	"errors"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/overview"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/supervisor"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

// OverviewOptions configure [NewOverview]. Fields other than Names equal those of [Options] and [SupervisorOptions]
// with the same name.
type OverviewOptions struct {
	Client    func() (client.Client, error)
	Namespace string
	Converter converter.DataConverter
	Leases    lease.Store
	Inbox     inbox.Inbox
	Timing    Timing
	LegacyIDs []string
	// Names returns names to list even if no source has a dispatcher for them, such as dispatchers that were never
	// started, and those of them that no process serves for lack of work, which are shown as parked; nil means none. If it
	// fails, dispatchers are shown as if the inbox could not be read.
	Names func(ctx context.Context) (all, unserved []Name, err error)
}

// Overview reads dispatchers and workers. It does not need [Dispatchers] in its process, and is safe for concurrent
// use.
type Overview struct{ sources overview.Sources }

// NewOverview validates the options and returns an overview.
func NewOverview(o OverviewOptions) (*Overview, error) {
	timing := o.Timing.WithDefaults()
	violations := []error{timing.Validate()}
	if o.Client == nil || o.Namespace == "" || o.Leases == nil || o.Inbox == nil {
		violations = append(violations, errors.New("client, namespace, leases and inbox are required"))
	}
	for _, pattern := range o.LegacyIDs {
		violations = append(violations, wire.ValidatePattern(pattern))
	}
	if err := errors.Join(violations...); err != nil {
		return nil, err
	}
	if o.Converter == nil {
		o.Converter = converter.GetDefaultDataConverter()
	}
	return &Overview{overview.Sources{
		Leases: o.Leases, Inbox: o.Inbox, Names: o.Names,
		Temporal: &supervisor.Remote{Client: o.Client, Namespace: o.Namespace, Converter: o.Converter},
		Rules:    plan.Rules{StaleAfter: timing.StaleAfter, Retention: timing.Retention, LegacyIDs: o.LegacyIDs},
	}}, nil
}

// List returns the dispatchers of all sources and of [OverviewOptions.Names], ordered by name. It fails only if no
// source can be read; each dispatcher has the errors of the sources that could not.
func (o *Overview) List(ctx context.Context) ([]dispatchtype.Dispatcher, error) {
	return o.sources.List(ctx)
}

// Get returns one dispatcher with its answer to a state query, which takes at most two seconds. A dispatcher that no
// source has is [dispatchtype.Missing], unless it is one of the unserved of [OverviewOptions.Names].
func (o *Overview) Get(ctx context.Context, name Name) (dispatchtype.Dispatcher, error) {
	return o.sources.Get(ctx, name)
}

// Workers returns all processes ordered by server ID, with their registrations, and the sources that could not be read.
// It fails only if neither heartbeats nor registrations can be read.
func (o *Overview) Workers(ctx context.Context) ([]dispatchtype.Worker, []dispatchtype.PartError, error) {
	return o.sources.Workers(ctx)
}
