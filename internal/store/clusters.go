package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// inRecordedCluster selects the open runs that the recorded Temporal may have: those that were handed over to it and
// not left in another one.
const inRecordedCluster = `status IN ` + openStatuses + ` AND ` + executedHere + ` AND left_in IS NULL
AND NOT (status = 'queued' AND queued_reason IN ('engine', 'admission'))`

// RunsCluster implements [run.ReconcileStore].
func (s *Store) RunsCluster(ctx context.Context) (h run.RunsCluster, err error) {
	err = s.db.Read(ctx, "read where the runs are", func(ctx context.Context, c sqldb.Conn) error {
		list, err := sqlrow.Collect(ctx, c, `SELECT address, namespace, namespace_id, since FROM runs_cluster`, nil,
			scanRunsCluster)
		if err == nil && len(list) > 0 {
			h = list[0]
		}
		return err
	})
	return h, err
}

func scanRunsCluster(row sqlrow.Scanner) (h run.RunsCluster, err error) {
	err = row.Scan(&h.Address, &h.Namespace, &h.NamespaceID, sqlrow.TimeInto(&h.Since))
	return h, err
}

// Comparisons implements [run.ReconcileStore].
func (s *Store) Comparisons(ctx context.Context) (known run.Comparisons, err error) {
	err = s.db.Read(ctx, "read the comparisons with Temporal", func(ctx context.Context, c sqldb.Conn) error {
		list, err := sqlrow.Collect(ctx, c, `SELECT searched_until, compared_at, restored_at, restored_to FROM runs_cluster`,
			nil, scanComparisons)
		if err == nil && len(list) > 0 {
			known = list[0]
		}
		return err
	})
	return known, err
}

func scanComparisons(row sqlrow.Scanner) (k run.Comparisons, err error) {
	return k, row.Scan(sqlrow.TimeInto(&k.SearchedUntil), sqlrow.TimeInto(&k.ComparedAt), sqlrow.TimeInto(&k.RestoredAt),
		sqlrow.TimeInto(&k.RestoredTo))
}

// RecordForeign implements [run.ReconcileRows].
func (s *Store) RecordForeign(ctx context.Context, list []run.ForeignRuns) error {
	text, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("encode foreign runs: %w", err)
	}
	return s.db.Write(ctx, "record foreign runs", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, `UPDATE runs_cluster SET foreign_runs = $1 WHERE COALESCE(foreign_runs, '') <> $1`,
			string(text))
		return err
	})
}

// MarkSearched implements [run.ReconcileStore].
func (s *Store) MarkSearched(ctx context.Context, from, until time.Time) (marked bool, err error) {
	expected := int64(0)
	if !from.IsZero() {
		expected = from.UnixMicro()
	}
	err = s.db.Write(ctx, "record which executions were searched", func(ctx context.Context, c sqldb.Conn) (err error) {
		marked, err = sqlrow.Affected(ctx, c,
			`UPDATE runs_cluster SET searched_until = $1 WHERE COALESCE(searched_until, 0) = $2`, until.UnixMicro(), expected)
		return err
	})
	return marked && err == nil, err
}

// MarkCompared implements [run.ReconcileStore].
func (s *Store) MarkCompared(ctx context.Context, at time.Time) error {
	return s.db.Exec(ctx, "record a comparison with Temporal", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, `UPDATE runs_cluster SET compared_at = $1`, at.UnixMicro())
		return err
	})
}

// MarkRestored implements [run.ReconcileStore].
func (s *Store) MarkRestored(ctx context.Context, at, to time.Time) error {
	return s.db.Exec(ctx, "record that the database was restored", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, `UPDATE runs_cluster SET restored_at = $1, restored_to = $2`, at.UnixMicro(),
			to.UnixMicro())
		return err
	})
}

// MoveRunsCluster implements [run.ReconcileStore].
func (s *Store) MoveRunsCluster(ctx context.Context, from run.ClusterID, to run.RunsCluster) (bool, error) {
	return s.moveRunsCluster(ctx, from, to, "")
}

// ClaimRuns is MoveRunsCluster unless the recorded Temporal may have open runs: then it returns false.
func (s *Store) ClaimRuns(ctx context.Context, from run.ClusterID, to run.RunsCluster) (bool, error) {
	return s.moveRunsCluster(ctx, from, to, ` AND NOT EXISTS (SELECT 1 FROM runs WHERE `+inRecordedCluster+`)`)
}

func (s *Store) moveRunsCluster(ctx context.Context, from run.ClusterID, to run.RunsCluster,
	condition string) (moved bool, err error) {
	err = s.db.Write(ctx, "record where the runs are", func(ctx context.Context, c sqldb.Conn) (err error) {
		if moved, err = replaceCluster(ctx, c, from, to, condition); err != nil || !moved {
			return err
		}
		return returnRuns(ctx, c, to.ClusterID)
	})
	return moved && err == nil, err
}

func replaceCluster(ctx context.Context, c sqldb.Conn, from run.ClusterID, to run.RunsCluster,
	condition string) (bool, error) {
	values := []any{to.Address, to.Namespace, to.NamespaceID, sqlrow.Micros(to.Since)}
	if from == (run.ClusterID{}) {
		return sqlrow.Affected(ctx, c,
			`INSERT INTO runs_cluster (one, address, namespace, namespace_id, since) VALUES (1, $1, $2, $3, $4)
ON CONFLICT (one) DO NOTHING`, values...)
	}
	return sqlrow.Affected(ctx, c, `UPDATE runs_cluster SET address = $1, namespace = $2, namespace_id = $3, since = $4
WHERE address = $5 AND namespace = $6
AND namespace_id = $7`+condition, append(values, from.Address, from.Namespace, from.NamespaceID)...)
}

// returnRuns makes the runs that were left in a Temporal, which holds the runs again, runs like all others. They are
// lost, and so no longer left, where it is the same address with another namespace ID.
func returnRuns(ctx context.Context, c sqldb.Conn, to run.ClusterID) error {
	found, err := sqlrow.Collect(ctx, c, `SELECT DISTINCT left_in FROM runs WHERE left_in IS NOT NULL`, nil,
		func(row sqlrow.Scanner) (text string, err error) {
			return text, row.Scan(&text)
		})
	if err != nil {
		return err
	}
	for _, text := range found {
		var left run.ClusterID
		if err := json.Unmarshal([]byte(text), &left); err != nil {
			return fmt.Errorf("reading where runs were left: %w", err)
		}
		if run.DifferentCluster(left, to) {
			continue
		}
		if _, err := c.ExecContext(ctx, `UPDATE runs SET left_in = NULL WHERE left_in = $1`, text); err != nil {
			return err
		}
	}
	return nil
}

// OpenInCluster counts the open runs that the recorded Temporal may have, by project.
func (s *Store) OpenInCluster(ctx context.Context) (open map[string]int64, err error) {
	err = s.db.Read(ctx, "count the runs in Temporal", func(ctx context.Context, c sqldb.Conn) (err error) {
		open, err = openInCluster(ctx, c)
		return err
	})
	return open, err
}

func openInCluster(ctx context.Context, c sqldb.Conn) (map[string]int64, error) {
	type count struct {
		project string
		runs    int64
	}
	list, err := sqlrow.Collect(ctx, c, `SELECT project, COUNT(*) FROM runs WHERE `+inRecordedCluster+` GROUP BY project`,
		nil,
		func(row sqlrow.Scanner) (n count, err error) { return n, row.Scan(&n.project, &n.runs) })
	open := make(map[string]int64, len(list))
	for _, n := range list {
		open[n.project] = n.runs
	}
	return open, err
}

// AdoptCluster is MoveRunsCluster although the recorded Temporal may have open runs. Those are left there: left counts
// them by project. It writes e. When the recorded Temporal is no longer from, it changes nothing and returns false.
func (s *Store) AdoptCluster(
	ctx context.Context, from run.ClusterID, to run.RunsCluster, e audit.Entry,
) (left map[string]int64, adopted bool, err error) {
	text, err := sqlrow.AsJSON(from, false)
	if err != nil {
		return nil, false, err
	}
	err = s.db.Write(ctx, "adopt another Temporal", func(ctx context.Context, c sqldb.Conn) (err error) {
		if adopted, err = replaceCluster(ctx, c, from, to, ""); err != nil || !adopted {
			return err
		}
		if left, err = openInCluster(ctx, c); err != nil {
			return err
		}
		// In this order: the runs that were left in the adopted Temporal stay unmarked.
		if _, err := c.ExecContext(ctx, `UPDATE runs SET left_in = $1 WHERE `+inRecordedCluster, text); err != nil {
			return err
		}
		if err := returnRuns(ctx, c, to.ClusterID); err != nil {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
	return left, adopted && err == nil, err
}

// LeftRuns implements [run.ReconcileStore].
func (s *Store) LeftRuns(ctx context.Context) (left map[string]run.ClusterID, err error) {
	type entry struct {
		id string
		in run.ClusterID
	}
	err = s.db.Read(ctx, "list runs that were left in another Temporal", func(ctx context.Context, c sqldb.Conn) error {
		list, err := sqlrow.Collect(ctx, c,
			`SELECT id, left_in FROM runs WHERE left_in IS NOT NULL AND status IN `+openStatuses, nil,
			func(row sqlrow.Scanner) (e entry, err error) { return e, row.Scan(&e.id, sqlrow.JSONInto(&e.in)) })
		left = make(map[string]run.ClusterID, len(list))
		for _, e := range list {
			left[e.id] = e.in
		}
		return err
	})
	return left, err
}

// LeftIn implements [control.ClusterReader].
func (s *Store) LeftIn(ctx context.Context, id string) (left run.ClusterID, err error) {
	err = s.db.Read(ctx, "read where a run was left", func(ctx context.Context, c sqldb.Conn) error {
		list, err := sqlrow.Collect(ctx, c, `SELECT left_in FROM runs WHERE id = $1 AND left_in IS NOT NULL`, []any{id},
			func(row sqlrow.Scanner) (in run.ClusterID, err error) { return in, row.Scan(sqlrow.JSONInto(&in)) })
		if len(list) > 0 {
			left = list[0]
		}
		return err
	})
	return left, err
}

// WorkerClusters implements [run.ReconcileStore].
func (s *Store) WorkerClusters(ctx context.Context) (list []run.ClusterID, err error) {
	err = s.db.Read(ctx, "list the Temporal servers of workers", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, `SELECT DISTINCT address, namespace, namespace_id FROM workers
WHERE namespace_id <> '' AND beat_at >= `+s.db.Dialect().Now+` - $1 ORDER BY address, namespace, namespace_id`,
			[]any{worker.AliveFor.Microseconds()}, scanClusterID)
		return err
	})
	return list, err
}

func scanClusterID(row sqlrow.Scanner) (p run.ClusterID, err error) {
	err = row.Scan(&p.Address, &p.Namespace, &p.NamespaceID)
	return p, err
}
