package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/groupcommit"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// maxHandOvers is the maximum number of runs that one statement marks as handed over.
const maxHandOvers = 64

// handOver is a run that Temporal has accepted.
type handOver struct {
	id, executionID string
	at              time.Time
	// missing reports that there is no such run.
	missing bool
}

// MarkHandedOver implements [run.Store]. Calls that arrive while another one is written share the next statement.
func (s *Store) MarkHandedOver(ctx context.Context, id, executionID string, at time.Time) error {
	const operation = "mark run as handed over"
	one := &handOver{id: id, executionID: executionID, at: at}
	_, err := s.handOvers.Do(ctx, struct{}{}, one)
	switch {
	case errors.Is(err, groupcommit.ErrClosed):
		return apperror.New(apperror.Unavailable, apperror.StoreUnavailable, "%s: the store is closed", operation)
	case err != nil:
		return s.db.Explain(ctx, operation, err)
	case one.missing:
		return s.db.Explain(ctx, operation, noRun(id))
	}
	return nil
}

// commitHandOvers writes what Temporal has accepted, with one statement. If rows stay as they were, a second one finds
// those that do not exist.
func (s *Store) commitHandOvers(ctx context.Context, _ struct{}, list []*handOver) ([]*handOver, error) {
	rows := slices.Clone(list)
	for len(rows)&(len(rows)-1) != 0 {
		rows = append(rows, list[0]) // the databases' caches hold the few texts of such numbers
	}
	return list, s.db.Exec(ctx, "mark run as handed over", func(ctx context.Context, c sqldb.Conn) error {
		known, err := sqlrow.Returning(ctx, c, s.texts.handOvers, rows, sqlrow.ScanText)
		if err != nil {
			return err
		}
		var rest []string
		for _, one := range list {
			if !slices.Contains(known, one.id) {
				rest = append(rest, one.id)
			}
		}
		if err := sqlrow.In(ctx, s.db.Dialect(), sqlrow.Distinct(rest), nil,
			func(ctx context.Context, marks string, args []any) error {
				found, err := sqlrow.Collect(ctx, c, `SELECT id FROM runs WHERE id IN `+marks, args, sqlrow.ScanText)
				known = append(known, found...)
				return err
			}); err != nil {
			return err
		}
		for _, one := range list {
			one.missing = !slices.Contains(known, one.id)
		}
		return nil
	})
}

// handOversStatement returns the statement that changes `queued: starting` into `queued: worker`, and returns the runs
// that it changed. It locks rows in the order of their IDs, as updates of runs do.
func handOversStatement(d sqldb.Dialect) *sqlrow.Statement[*handOver] {
	row := func(one *handOver) sqlrow.Fields {
		return sqlrow.Row("id", one.id, "execution_id", one.executionID, "at", sqlrow.Micros(one.at))
	}
	return sqlrow.NewStatement(row, func(columns sqlrow.Fields, rows int) (string, error) {
		values, err := sqlrow.Values(d, columns, rows)
		if err != nil {
			return "", err
		}
		starting := `status = '` + string(run.Queued) + `' AND queued_reason = '` + run.QueuedStarting + `'`
		return `WITH v (` + columns.Names("") + `) AS (` + values + `), locked (id) AS (
SELECT id FROM runs WHERE id IN (SELECT id FROM v) AND ` + starting + ` ORDER BY id` + d.LockRows + `)
UPDATE runs SET queued_reason = '` + run.QueuedWorker + `', status_at = v.at, execution_id = v.execution_id,
sequence = sequence + 1 FROM v WHERE runs.id = v.id AND runs.id IN (SELECT id FROM locked) AND ` + starting + `
RETURNING runs.id`, nil
	})
}
