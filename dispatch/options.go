package dispatch

import (
	"errors"
	"fmt"
	"log/slog"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/terms"
	"github.com/signalbox-dev/signalbox/lease"
)

// What is shared with those who embed dispatchers.
type (
	// Timing says how long things last.
	Timing = terms.Timing
	// SupervisorOptions say how a process looks for what others left behind.
	SupervisorOptions = terms.Supervisor
	// Journal keeps what became of dispatchers.
	Journal = terms.Journal
	// OwnerChange is a dispatcher that has another owner.
	OwnerChange = terms.OwnerChange
	// Termination is a workflow that was terminated.
	Termination = terms.Termination
	// Eviction is a batch of workers that a dispatcher struck off its list.
	Eviction = terms.Eviction
	// ForeignWorkflow is a workflow that has taken the ID of a dispatcher.
	ForeignWorkflow = terms.Foreign
	// Outcome is how an attempt to own a dispatcher ended.
	Outcome = terms.Outcome
)

// The outcomes of an attempt to own a dispatcher.
const (
	ColdStart = terms.ColdStart
	Joined    = terms.Joined
	Handover  = terms.Handover
	Takeover  = terms.Takeover
	Lost      = terms.Lost
	Failed    = terms.Failed
)

// Options say what a process needs to own and work for dispatchers.
type Options struct {
	// ServerID names this process among all; another one after each start.
	ServerID string
	// Build is the version of the program, for people.
	Build string
	// Describe returns further facts for the heartbeat, at most about 2 KiB; may be nil. It must be quick.
	Describe func() map[string]string
	// Client returns the client to use now, or why there is none. It is asked for each request.
	Client func() (client.Client, error)
	// Polls tells whether this process's worker polls the task queue of a dispatcher now. While it does not, the process leaves the
	// dispatcher to others, and keeps what it owns. It is asked often and must be quick; nil: as if it always did.
	Polls func(Name) bool
	// Namespace is the clients' namespace.
	Namespace string
	// Converter is the data converter of the clients, for memos; nil: the SDK's default.
	Converter converter.DataConverter
	Leases    lease.Store
	Inbox     inbox.Inbox
	// Journal is told of changes; may be nil.
	Journal    Journal
	Timing     Timing
	Supervisor SupervisorOptions
	// Metrics is where the metrics go; nil: nowhere.
	Metrics client.MetricsHandler
	// Log gets the log lines; nil: nowhere.
	Log *slog.Logger
}

// Validate returns what is wrong with the options, all of it.
func (o Options) Validate() error {
	o = o.withDefaults()
	var problems []error
	if o.ServerID == "" || len(contract.WorkerKey(o.ServerID)) > min(lease.MaxKey, lease.MaxHolder) {
		problems = append(problems, fmt.Errorf("server ID %q: needs 1 to %d bytes", o.ServerID, min(lease.MaxKey, lease.MaxHolder)-len(contract.WorkerKey(""))))
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
			problems = append(problems, fmt.Errorf("%s: missing", needed.name))
		}
	}
	for _, pattern := range o.Supervisor.LegacyIDs {
		problems = append(problems, contract.ValidatePattern(pattern))
	}
	problems = append(problems, o.Timing.Validate(), o.Supervisor.Validate(o.Timing.StaleAfter))
	return errors.Join(problems...)
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
