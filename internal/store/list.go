package store

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/listing"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/store/verdicts"
)

// ListRuns implements [run.Store].
func (s *Store) ListRuns(ctx context.Context, f run.Filter) (list []run.Run, err error) {
	err = s.db.Read(ctx, "list runs", func(ctx context.Context, c sqldb.Conn) error {
		few, err := listing.Few(ctx, c, f)
		if err != nil {
			return err
		}
		query, args := listing.Page(f, runHead, few)
		list, err = sqlrow.Collect(ctx, c, query, args, scanHead)
		if err == nil && len(list) == 0 {
			return ledger.NeedProject(ctx, c, f.Project)
		}
		if err != nil {
			return err
		}
		return verdicts.Attach(ctx, c, s.db.Dialect(), list)
	})
	return list, err
}

// CountRuns implements [run.Store]. Both counts are read from indexes alone, but for the verdicts' runs.
func (s *Store) CountRuns(ctx context.Context, f run.Filter) (counts run.Counts, err error) {
	type count struct {
		of string
		n  int64
	}
	read := func(ctx context.Context, c sqldb.Conn, query string, w sqlrow.Where, into *map[string]int64) error {
		found, err := sqlrow.Collect(ctx, c, query, w.Args, func(row sqlrow.Scanner) (k count, err error) { return k, row.Scan(&k.of, &k.n) })
		*into = make(map[string]int64, len(found))
		for _, k := range found {
			(*into)[k.of] = k.n
		}
		return err
	}
	var rows, stuck sqlrow.Where
	rows.Is("runs.project", "=", f.Project)
	rows.IsText("runs.workflow", f.Workflow)
	listing.Period(&rows, f, "runs.created_at")
	stuck.Is("v.project", "=", f.Project)
	stuck.IsText("runs.workflow", f.Workflow)
	listing.Period(&stuck, f, "v.created_at")
	err = s.db.Read(ctx, "count runs", func(ctx context.Context, c sqldb.Conn) error {
		if err := read(ctx, c, `SELECT status, COUNT(*) FROM runs`+rows.String()+` GROUP BY status`, rows, &counts.Statuses); err != nil {
			return err
		}
		err := read(ctx, c, `SELECT v.code, COUNT(*) FROM run_verdicts v JOIN runs ON runs.id = v.run_id AND runs.sequence = v.sequence`+
			stuck.String()+` GROUP BY v.code`, stuck, &counts.Problems)
		if err == nil && len(counts.Statuses) == 0 {
			return ledger.NeedProject(ctx, c, f.Project)
		}
		return err
	})
	return counts, err
}
