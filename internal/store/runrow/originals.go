package runrow

import (
	"context"
	"maps"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// OriginalRow is a sealed original value of a placeholder, with its run. The originals are apart from the rows that are
// shown.
//
// Originals are written in the transaction of the rows with the placeholders, which also marks the run as having some.
// The package has no keys and opens nothing.
type OriginalRow struct {
	RunID string
	run.Original
}

// OriginalRows attaches a run's ID to its originals.
func OriginalRows(id string, list ...run.Original) []OriginalRow {
	rows := make([]OriginalRow, len(list))
	for i, o := range list {
		rows[i] = OriginalRow{RunID: id, Original: o}
	}
	return rows
}

// redactedColumn is the column of runs that marks those with any original. It is the last of these columns in order.
const redactedColumn = "redacted"

// WriteOriginals adds originals, or replaces those of the same values, and marks their runs.
func WriteOriginals(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, rows []OriginalRow) error {
	if len(rows) == 0 {
		return nil
	}
	// One statement must not write a row twice; of two originals of one value the later one counts.
	type key struct {
		id, what string
		number   int64
	}
	last := make(map[key]int, len(rows))
	ids := map[string][]string{} // the runs to be marked, by the column
	for i, r := range rows {
		last[key{r.RunID, r.What, r.Number}] = i
		column := redactedColumn
		switch r.What {
		case run.OriginalInput:
			column = "input_redacted"
		case run.OriginalEnd:
			column = "end_redacted"
		}
		ids[column] = append(ids[column], r.RunID)
	}
	var once []OriginalRow
	for i, r := range rows {
		if last[key{r.RunID, r.What, r.Number}] == i {
			once = append(once, r)
		}
	}
	_, err := sqlrow.InsertMany(ctx, c, d, "originals", sqlrow.Replace("run_id, what, number", "key_id", "sealed"), once,
		func(r OriginalRow) sqlrow.Fields { return originalFields(&r) })
	if err != nil {
		return err
	}
	// a row that one statement marks is not written again by the last one
	for _, column := range slices.Sorted(maps.Keys(ids)) {
		set := redactedColumn + ` = TRUE`
		if column != redactedColumn {
			set += `, ` + column + ` = TRUE`
		}
		err := sqlrow.In(ctx, d, sqlrow.Distinct(ids[column]), nil,
			func(ctx context.Context, marks string, args []any) error {
				_, err := c.ExecContext(ctx, `UPDATE runs SET `+set+` WHERE NOT `+column+` AND id IN `+marks, args...)
				return err
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// RemoveOriginals removes the originals of a run.
func RemoveOriginals(ctx context.Context, c sqldb.Conn, id string) error {
	_, err := c.ExecContext(ctx, `DELETE FROM originals WHERE run_id = $1`, id)
	return err
}

// RemoveStepOriginals removes those of a run's steps.
func RemoveStepOriginals(ctx context.Context, c sqldb.Conn, id string) error {
	_, err := c.ExecContext(ctx, `DELETE FROM originals WHERE run_id = $1 AND what = $2`, id, run.OriginalStep)
	return err
}

// Originals reads originals.
type Originals struct{ db *sqldb.DB }

var _ run.SealedStore = (*Originals)(nil)

// NewOriginals returns a store over a database.
func NewOriginals(db *sqldb.DB) *Originals { return &Originals{db: db} }

func originalFields(r *OriginalRow) sqlrow.Fields {
	return sqlrow.Row(
		"run_id", &r.RunID, "what", &r.What, "number", &r.Number, "key_id", &r.KeyID, "sealed", &r.Sealed,
	)
}

// Secrecies implements [run.SealedStore].
func (s *Originals) Secrecies(ctx context.Context, ids []string) (list []run.Secrecy, err error) {
	err = s.db.Read(ctx, "read what is sensitive in runs", func(ctx context.Context, c sqldb.Conn) error {
		list = list[:0]
		at := map[string]int{}
		return sqlrow.In(ctx, s.db.Dialect(), ids, nil, func(ctx context.Context, marks string, args []any) error {
			redacted, err := sqlrow.Collect(ctx, c, `SELECT id, project, document_hash, redacted FROM runs WHERE id IN `+marks,
				args,
				func(row sqlrow.Scanner) (is bool, err error) {
					var one run.Secrecy
					err = row.Scan(&one.RunID, &one.Project, &one.DocumentHash, &is)
					at[one.RunID] = len(list)
					list = append(list, one)
					return is, err
				})
			if err != nil || !slices.Contains(redacted, true) {
				return err
			}
			secrets, err := sqlrow.Collect(ctx, c,
				`SELECT `+sqlrow.Columns(originalFields)+` FROM originals WHERE what = 'taint' AND run_id IN `+
					marks, args, sqlrow.Scan(originalFields))
			for _, r := range secrets {
				if i, known := at[r.RunID]; known {
					list[i].Secrets = append(list[i].Secrets, r.Original)
				}
			}
			return err
		})
	})
	return list, err
}

// SealedOf implements [run.SealedStore].
func (s *Originals) SealedOf(ctx context.Context, id, what string, after, upTo int64) (list []run.Original, err error) {
	err = s.db.Read(ctx, "read originals", func(ctx context.Context, c sqldb.Conn) error {
		rows, err := sqlrow.Collect(ctx, c, `SELECT `+sqlrow.Columns(originalFields)+` FROM originals
WHERE run_id = $1 AND what = $2 AND number > $3 AND number <= $4
ORDER BY number`, []any{id, what, after, upTo}, sqlrow.Scan(originalFields))
		list = list[:0]
		for _, r := range rows {
			list = append(list, r.Original)
		}
		return err
	})
	return list, err
}
