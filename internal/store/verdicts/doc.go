// Package verdicts keeps why runs are stuck, and finds those that may be.
//
//	v := verdicts.New(db, events)
//	candidates, err := v.Overdue(ctx, before, stuck.Cursor{}, limit)
//	changed, err := v.ChangeVerdicts(ctx, project, now, changes)
//	err = verdicts.Attach(ctx, c, dialect, runs) // within a read of package store
//
// A verdict is given in one transaction with the event that tells of it, and with a new sequence of its run, which is what watches
// look at. It counts while the run has that sequence: the projection need not know of verdicts.
package verdicts
