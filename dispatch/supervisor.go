package dispatch

import (
	"context"

	"golang.org/x/time/rate"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/supervisor"
)

// Reconcile runs one supervisor cycle now, the same as the periodic ones. It reads the leases, the inbox and the open
// dispatchers in Temporal, of all projects, and terminates dispatchers that have neither an owner nor a worker. A dry
// run only reports. Reconcile does not need Start. The error is a failed read or a failed action; missing data never
// causes an action.
func (d *Dispatchers) Reconcile(ctx context.Context, dryRun bool) (dispatchtype.Report, error) {
	report, err := d.supervisor.Reconcile(ctx, dryRun)
	d.mu.Lock()
	started := d.ctx != nil
	d.mu.Unlock()
	if !started {
		// The journal's writer does not run. The entries are written even if the caller has canceled its context.
		d.record.Flush(context.WithoutCancel(ctx))
	}
	return report, err
}

// newSupervisor returns the supervisor of a process. Its requests to Temporal have their own rate limit.
func (d *Dispatchers) newSupervisor() *supervisor.Supervisor {
	o := d.o
	return supervisor.New(supervisor.Options{
		ServerID: o.ServerID, Leases: o.Leases, Inbox: o.Inbox, Guard: o.Timing.Owner(), Record: d.record, Log: o.Log,
		Temporal:   &supervisor.Remote{Client: o.Client, Namespace: o.Namespace, Converter: o.Converter},
		Heartbeats: d.heartbeats.Entries, Listed: d.heartbeats.Listed,
		Ready: func() error { _, err := o.Client(); return err },
		Pace:  rate.NewLimiter(rate.Limit(o.Supervisor.Rate), o.Supervisor.MaxTerminations),
		Rules: supervisor.Rules{
			Rules: plan.Rules{
				StaleAfter: o.Timing.StaleAfter, Retention: o.Timing.Retention, MaxActions: o.Supervisor.MaxTerminations,
				LegacyIDs: o.Supervisor.LegacyIDs,
			},
			Interval: o.Supervisor.Interval, Confirm: o.Supervisor.Confirm,
		},
	})
}
