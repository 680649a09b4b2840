package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

// Types of the options.
type (
	// Timing has the durations of leases, heartbeats and checks.
	Timing = dispatchtype.Timing
	// SupervisorOptions configure the supervisor, which cleans up after crashed processes.
	SupervisorOptions = dispatchtype.Supervisor
)

// Options configure [New].
type Options struct {
	// ServerID identifies this process among all processes; it must differ after each start.
	ServerID string
	// Build is the version of the program, for display.
	Build string
	// Describe returns further facts for the heartbeat, at most about 2 KiB; may be nil. It is called for each heartbeat
	// and must return quickly.
	Describe func() map[string]string
	// Client returns the current client, or an error while there is none. It is called for each request.
	Client func() (client.Client, error)
	// Polls reports whether this process's worker polls the dispatcher's task queue now. While it returns false, the
	// process acquires no lease of that dispatcher, and keeps the lease that it holds. It is called often and must return
	// quickly; nil means always true.
	Polls func(Name) bool
	// Left returns those of the processes that have ended in an orderly way. It is called before workers without a
	// heartbeat are evicted: a lease store in memory loses the resigned heartbeats at a restart. Nil means none.
	Left func(ctx context.Context, serverIDs []string) ([]string, error)
	// Namespace is the Temporal namespace of the clients.
	Namespace string
	// Converter is the data converter of the clients, for memos; nil means the SDK's default.
	Converter converter.DataConverter
	Leases    lease.Store
	Inbox     inbox.Inbox
	// Journal receives the changes of dispatchers; may be nil.
	Journal    dispatchtype.Journal
	Timing     Timing
	Supervisor SupervisorOptions
	// Metrics receives the metrics; nil discards them.
	Metrics client.MetricsHandler
	// Log receives the log lines; nil discards them.
	Log *slog.Logger
}

// Validate returns all violations of the options, joined.
func (o Options) Validate() error {
	o = o.withDefaults()
	var violations []error
	if o.ServerID == "" || len(wire.WorkerKey(o.ServerID)) > min(lease.MaxKey, lease.MaxHolder) {
		violations = append(violations,
			fmt.Errorf("server ID %q: needs 1 to %d bytes", o.ServerID,
				min(lease.MaxKey, lease.MaxHolder)-len(wire.WorkerKey(""))))
	}
	for _, needed := range []struct {
		name    string
		missing bool
	}{
		{"client", o.Client == nil},
		{"namespace", o.Namespace == ""},
		{"leases", o.Leases == nil},
		{"inbox", o.Inbox == nil},
	} {
		if needed.missing {
			violations = append(violations, fmt.Errorf("%s: missing", needed.name))
		}
	}
	for _, pattern := range o.Supervisor.LegacyIDs {
		violations = append(violations, wire.ValidatePattern(pattern))
	}
	violations = append(violations, o.Timing.Validate(), o.Supervisor.Validate(o.Timing.StaleAfter))
	return errors.Join(violations...)
}

func (o Options) withDefaults() Options {
	o.Timing = o.Timing.WithDefaults()
	o.Supervisor = o.Supervisor.WithDefaults()
	if o.Converter == nil {
		o.Converter = converter.GetDefaultDataConverter()
	}
	if o.Metrics == nil {
		o.Metrics = client.MetricsNopHandler
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
