package dispatch

import (
	"context"

	"github.com/signalbox-dev/signalbox/dispatch/internal/pace"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/supervise"
)

// What a reconciliation tells.
type (
	// Report is what one cycle of the supervisor found and did.
	Report = supervise.Report
	// ReportItem is one thing that it did, or would do.
	ReportItem = supervise.Item
	// Action is what is done about something.
	Action = supervise.Action
)

// The actions.
const (
	ActionTerminate   = supervise.Terminate
	ActionPostpone    = supervise.Postpone
	ActionDeleteEntry = supervise.DeleteEntry
	ActionAlert       = supervise.Alert
)

// Reconcile makes one cycle of the supervisor now, as it makes them by itself: it reads the leases, the inbox and the dispatchers that
// are open in Temporal, of all projects, and ends what nobody owns or works for. A dry run acts on nothing. It needs no Start. The error is of
// what could not be read, or of what failed; nothing is done for lack of data.
func (d *Dispatchers) Reconcile(ctx context.Context, dryRun bool) (Report, error) {
	report, err := d.supervisor.Reconcile(ctx, dryRun)
	d.mu.Lock()
	started := d.ctx != nil
	d.mu.Unlock()
	if !started {
		// Nobody else writes the journal. What was done is told of even if who asked for it has gone.
		d.record.Flush(context.WithoutCancel(ctx))
	}
	return report, err
}

// supervise makes the supervisor of a process. Its requests to Temporal have a pace of their own.
func (d *Dispatchers) supervise() *supervise.Supervisor {
	o := d.o
	return supervise.New(supervise.Options{
		ServerID: o.ServerID, Leases: o.Leases, Inbox: o.Inbox, Guard: o.Timing.Owner(), Record: d.record, Log: o.Log,
		Temporal: &supervise.Remote{Client: o.Client, Namespace: o.Namespace, Converter: o.Converter},
		Beats:    d.roster.Entries, Listed: d.roster.Listed,
		Ready: func() error { _, err := o.Client(); return err },
		Pace:  pace.NewLimit(o.Supervisor.Rate, o.Supervisor.MaxTerminations),
		Rules: supervise.Rules{
			Rules: plan.Rules{
				StaleAfter: o.Timing.StaleAfter, Retention: o.Timing.Retention, Most: o.Supervisor.MaxTerminations, LegacyIDs: o.Supervisor.LegacyIDs,
			},
			Interval: o.Supervisor.Interval, Confirm: o.Supervisor.Confirm,
		},
	})
}
