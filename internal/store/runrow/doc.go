// Package runrow stores what belongs to runs beside their own row, in the store's database: listings, summaries of
// steps, sealed originals, repair requests, awaited runs, what a run waits for, and why it is stuck. Package store
// calls it in its own transactions.
//
// # Verdicts
//
// [VerdictRows] stores the reasons why runs are stuck, and finds runs that may be stuck.
//
//	v := runrow.NewVerdictRows(db, events)
//	candidates, err := v.Overdue(ctx, before, diagnose.Cursor{}, limit)
//	changed, err := v.ChangeVerdicts(ctx, project, now, changes)
//	err = runrow.AttachStuck(ctx, c, dialect, runs) // within a read of package store
//
// A verdict is written in one transaction with the event that reports it, and with a new sequence of its run, so that
// watchers receive it. It applies while the run has that sequence: the projection need not handle verdicts.
package runrow
