package store

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/runrow"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// ListRuns implements [run.Store].
func (s *Store) ListRuns(ctx context.Context, f run.Filter) (list []run.Run, err error) {
	err = s.db.ReadList(ctx, "list runs", func(ctx context.Context, c sqldb.Conn) error {
		spread, err := runrow.SpreadOf(ctx, c, s.db.Dialect(), f)
		if err != nil {
			return err
		}
		query, args := runrow.Page(f, sqlrow.Columns(headFields), spread)
		list, err = sqlrow.Collect(ctx, c, query, args, scanHead)
		if err == nil && len(list) == 0 {
			return needProjectOf(ctx, c, f)
		}
		if err != nil {
			return err
		}
		return runrow.Attach(ctx, c, s.db.Dialect(), list)
	})
	return list, err
}

// RowVersions implements [run.Store].
func (s *Store) RowVersions(ctx context.Context, f run.Filter) (list []run.RowVersion, err error) {
	err = s.db.ReadList(ctx, "list versions of runs", func(ctx context.Context, c sqldb.Conn) error {
		spread, err := runrow.SpreadOf(ctx, c, s.db.Dialect(), f)
		if err != nil {
			return err
		}
		query, args := runrow.Page(f, `id, sequence`, spread)
		list, err = sqlrow.Collect(ctx, c, query, args, func(row sqlrow.Scanner) (v run.RowVersion, err error) {
			return v, row.Scan(&v.ID, &v.Sequence)
		})
		if err == nil && len(list) == 0 {
			return needProjectOf(ctx, c, f)
		}
		return err
	})
	return list, err
}

// needProjectOf returns an error if the project of an empty list does not exist.
func needProjectOf(ctx context.Context, c sqldb.Conn, f run.Filter) error {
	if len(f.IDs) > 0 {
		return nil
	}
	return ledger.NeedProject(ctx, c, f.Project)
}

// CountRuns implements [run.Store].
func (s *Store) CountRuns(ctx context.Context, f run.Filter) (counts run.Counts, err error) {
	err = s.db.Read(ctx, "count runs", func(ctx context.Context, c sqldb.Conn) error {
		counts = run.Counts{Statuses: map[string]int64{}, Stuck: map[string]int64{}}
		spread, err := runrow.CountSpreadOf(ctx, c, s.db.Dialect(), f)
		if err != nil {
			return err
		}
		query, args := runrow.ByStatus(f, spread, run.MaxCount)
		if err := count(ctx, c, query, args, counts.Statuses); err != nil {
			return err
		}
		for _, status := range run.Statuses() {
			if status.Terminal() && counts.Statuses[string(status)] > run.MaxCount {
				counts.Statuses[string(status)] = run.MaxCount
				counts.More = append(counts.More, status)
			}
		}
		if len(counts.Statuses) == 0 {
			return ledger.NeedProject(ctx, c, f.Project)
		}
		query, args = runrow.ByCode(f)
		return count(ctx, c, query, args, counts.Stuck)
	})
	return counts, err
}

// CountBuckets implements [run.Store].
func (s *Store) CountBuckets(ctx context.Context, f run.Filter,
	length time.Duration) (buckets []run.Bucket, err error) {
	err = s.db.Read(ctx, "count runs by time", func(ctx context.Context, c sqldb.Conn) error {
		buckets = nil
		for start := f.Since; start.Before(f.Until); start = start.Add(length) {
			buckets = append(buckets, run.Bucket{Start: start, Statuses: map[string]int64{}})
		}
		spread, err := runrow.SpreadOf(ctx, c, s.db.Dialect(), f)
		if err != nil {
			return err
		}
		query, args := runrow.ByBucket(f, spread, length)
		_, err = sqlrow.Collect(ctx, c, query, args, func(row sqlrow.Scanner) (n int64, err error) {
			var status string
			var number int
			if err := row.Scan(&status, &number, &n); err != nil {
				return 0, err
			}
			if number >= 0 && number < len(buckets) && n > 0 {
				buckets[number].Statuses[status] = n
			}
			return n, nil
		})
		return err
	})
	return buckets, err
}

// count reads names with their counts, and omits counts of zero.
func count(ctx context.Context, c sqldb.Conn, query string, args []any, into map[string]int64) error {
	_, err := sqlrow.Collect(ctx, c, query, args, func(row sqlrow.Scanner) (n int64, err error) {
		var name string
		if err := row.Scan(&name, &n); err != nil {
			return 0, err
		}
		if n > 0 {
			into[name] = n
		}
		return n, nil
	})
	return err
}
