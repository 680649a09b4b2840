// Package originals keeps what the marks in runs stand for, sealed, apart from the rows that are shown.
//
// What is written is written in the transaction of the rows with the marks, and says of the run that it has some. The package opens
// nothing: it has no keys.
package originals

import (
	"context"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Row is an original with its run.
type Row struct {
	RunID string
	run.Original
}

// Of names the run of originals.
func Of(id string, list ...run.Original) []Row {
	rows := make([]Row, len(list))
	for i, o := range list {
		rows[i] = Row{RunID: id, Original: o}
	}
	return rows
}

// Write adds originals, or replaces those of the same values, and marks their runs.
func Write(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	// One statement may not write a row twice; of two of the same value the later one counts.
	type key struct {
		id, what string
		number   int64
	}
	last := make(map[key]int, len(rows))
	var ids []string
	for i, r := range rows {
		last[key{r.RunID, r.What, r.Number}] = i
		ids = append(ids, r.RunID)
	}
	var once []Row
	for i, r := range rows {
		if last[key{r.RunID, r.What, r.Number}] == i {
			once = append(once, r)
		}
	}
	_, err := sqlrow.InsertMany(ctx, c, d, "originals", "run_id, what, number, key_id, sealed",
		" ON CONFLICT (run_id, what, number) DO UPDATE SET key_id = excluded.key_id, sealed = excluded.sealed", once,
		func(r Row) ([]any, error) { return []any{r.RunID, r.What, r.Number, r.KeyID, r.Sealed}, nil })
	if err != nil {
		return err
	}
	return sqlrow.In(ctx, d, sqlrow.Distinct(ids), nil, func(ctx context.Context, marks string, args []any) error {
		_, err := c.ExecContext(ctx, `UPDATE runs SET redacted = TRUE WHERE NOT redacted AND id IN `+marks, args...)
		return err
	})
}

// Remove removes the originals of a run.
func Remove(ctx context.Context, c sqldb.Conn, id string) error {
	_, err := c.ExecContext(ctx, `DELETE FROM originals WHERE run_id = $1`, id)
	return err
}

// RemoveSteps removes those of a run's steps.
func RemoveSteps(ctx context.Context, c sqldb.Conn, id string) error {
	_, err := c.ExecContext(ctx, `DELETE FROM originals WHERE run_id = $1 AND what = $2`, id, run.OriginalStep)
	return err
}

// Store reads originals.
type Store struct{ db *sqldb.DB }

var _ run.SealedStore = (*Store)(nil)

// New returns a store over a database.
func New(db *sqldb.DB) *Store { return &Store{db: db} }

func scan(row sqlrow.Scanner) (r Row, err error) {
	err = row.Scan(&r.RunID, &r.What, &r.Number, &r.KeyID, &r.Sealed)
	return r, err
}

const columns = `run_id, what, number, key_id, sealed`

// Secrecies implements [run.SealedStore].
func (s *Store) Secrecies(ctx context.Context, ids []string) (list []run.Secrecy, err error) {
	err = s.db.Read(ctx, "read what is sensitive in runs", func(ctx context.Context, c sqldb.Conn) error {
		list = list[:0]
		at := map[string]int{}
		return sqlrow.In(ctx, s.db.Dialect(), ids, nil, func(ctx context.Context, marks string, args []any) error {
			redacted, err := sqlrow.Collect(ctx, c, `SELECT id, document_hash, redacted FROM runs WHERE id IN `+marks, args,
				func(row sqlrow.Scanner) (is bool, err error) {
					var one run.Secrecy
					err = row.Scan(&one.RunID, &one.DocumentHash, &is)
					at[one.RunID] = len(list)
					list = append(list, one)
					return is, err
				})
			if err != nil || !slices.Contains(redacted, true) {
				return err
			}
			taints, err := sqlrow.Collect(ctx, c, `SELECT `+columns+` FROM originals WHERE what = 'taint' AND run_id IN `+marks, args, scan)
			for _, r := range taints {
				if i, known := at[r.RunID]; known {
					list[i].Taint = append(list[i].Taint, r.Original)
				}
			}
			return err
		})
	})
	return list, err
}

// SealedOf implements [run.SealedStore].
func (s *Store) SealedOf(ctx context.Context, id, what string, after, upTo int64) (list []run.Original, err error) {
	err = s.db.Read(ctx, "read originals", func(ctx context.Context, c sqldb.Conn) error {
		rows, err := sqlrow.Collect(ctx, c, `SELECT `+columns+` FROM originals
WHERE run_id = $1 AND what = $2 AND number > $3 AND number <= $4 ORDER BY number`, []any{id, what, after, upTo}, scan)
		list = list[:0]
		for _, r := range rows {
			list = append(list, r.Original)
		}
		return err
	})
	return list, err
}
