package lists

import (
	"fmt"
	"time"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/database"
	"github.com/signalbox-dev/signalbox/test/platform"
)

const (
	// apart is the time between the starts of two runs.
	apart = 30 * time.Second
	// reported bounds the time until verdicts are reported, flushed the time until Postgres publishes its statistics.
	reported, flushed = 5 * time.Minute, 15 * time.Second
)

// first is the creation time of the first run.
func first() time.Time { return time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC) }

// table is the table of runs.
type table struct {
	*database.Session

	rows int
}

func open(t platform.T, dsn string) *table { return &table{Session: database.Connect(t, dsn)} }

// grow adds runs up to a size, spread over months: most have ended, few have failed, one in two hundred is open. It
// returns the time until the open runs without progress were reported, and their number. The server groups the failed
// ones, which replaces their rows: this ends before the database is vacuumed, as in a database whose runs were
// executed.
func (b *table) grow(t platform.T, s *platform.Server, size int) (time.Duration, int64) {
	b.Do(t, `INSERT INTO runs (id, project, workflow, version, document_hash, status, queued_reason, waiting_kind, status_at,
cancel_requested, cancel_reason, request_id, trigger_kind, actor, created_at, started_at, ended_at, steps_total, steps_done, sequence,
position, state_position, interpreter, execution_id, input, output)
SELECT substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-7' || substr(md5(i::text), 1, 3) || '-8' || substr(md5(i::text), 4, 3) || '-' || substr(md5(i::text), 7, 12),
'default', 'bench/w' || i % 20, '1.0.0', 'sha256:aa', status, CASE status WHEN 'queued' THEN 'worker' ELSE '' END, CASE status WHEN 'waiting' THEN 'event' ELSE '' END,
at, FALSE, '', 'order-' || i % 1000 || '-' || i, CASE WHEN i % 100 = 3 THEN 'replay' WHEN i % 5 = 0 THEN 'event' WHEN i % 7 = 0 THEN 'schedule' ELSE 'api' END,
'ada', at, at::bigint, CASE WHEN status IN ('queued', 'running', 'waiting') THEN NULL ELSE at + 1500000 END, 3, 3, 4, 9, 9, 2, md5(i::text),
'{"customer":"ada","items":[1,2,3],"note":"' || md5(i::text) || '"}', '{"ok":true}'
FROM (SELECT i, $3::bigint + i * $4::bigint AS at, lpad(to_hex(($3::bigint + i * $4::bigint) / 1000), 12, '0') AS h,
CASE WHEN i % 50 = 11 THEN 'failed' WHEN i % 100 = 21 THEN 'canceled' WHEN i % 400 = 31 THEN 'queued' WHEN i % 800 = 32 THEN 'running'
WHEN i % 400 = 33 THEN 'waiting' ELSE 'completed' END AS status FROM generate_series($1::bigint, $2::bigint - 1) AS i) AS made`,
		b.rows, size, first().UnixMicro(), apart.Microseconds())
	b.Do(t, `INSERT INTO run_terms (run_id, term, kinds, project, created_at)
SELECT id, word, SUM(DISTINCT kind), project, created_at FROM (
SELECT id, project, created_at, 1 AS kind, unnest(string_to_array(request_id, '-')) AS word FROM runs WHERE created_at >= $1
UNION ALL SELECT id, project, created_at, 2, unnest(ARRAY['payment', 'refused', '503', 'card' || right(request_id, 2)]) FROM runs
WHERE created_at >= $1 AND status = 'failed') AS words GROUP BY id, word, project, created_at`,
		first().UnixMicro()+int64(b.rows)*apart.Microseconds())
	b.rows = size
	began := time.Now()
	b.Do(t, `VACUUM ANALYZE runs`)
	b.Do(t, `VACUUM ANALYZE run_terms`)
	var want, have int64
	if err := b.QueryRow(t.Context(),
		`SELECT COUNT(*) FROM runs WHERE status IN ('queued', 'running')`).Scan(&want); err != nil {
		t.Fatalf("count what is stuck: %v", err)
	}
	platform.Eventually(t, reported, func() string {
		res, err := s.Runs.CountRuns(t.Context(),
			connect.NewRequest(&signalboxv1.CountRunsRequest{Project: platform.DefaultProject}))
		if err != nil {
			return err.Error()
		}
		if have = res.Msg.GetStuck()["NO_POLLER"]; have < want {
			return "not all are reported"
		}
		return ""
	})
	took := time.Since(began)
	platform.Eventually(t, reported, func() string {
		var left int64
		err := b.QueryRow(t.Context(),
			`SELECT COUNT(*) FROM runs WHERE status = 'failed' AND failure_group = '' AND trigger_kind <> 'import'`).Scan(&left)
		switch {
		case err != nil:
			return err.Error()
		case left > 0:
			return fmt.Sprintf("%d failed runs are not grouped yet", left)
		}
		return ""
	})
	b.Do(t, `VACUUM ANALYZE runs`)
	b.Do(t, `VACUUM ANALYZE run_verdicts`)
	return took, have
}

// reads has the rows of runs that Postgres has read.
type reads struct{ sequential, indexed float64 }

func (r reads) minus(before reads, lists int) reads {
	return reads{(r.sequential - before.sequential) / float64(lists), (r.indexed - before.indexed) / float64(lists)}
}

// reads waits until Postgres has published the statistics so far: an idle session does so after ten seconds.
func (b *table) reads(t platform.T) (r reads) {
	began := time.Now()
	platform.Eventually(t, 2*flushed, func() string {
		err := b.QueryRow(t.Context(),
			`SELECT seq_tup_read, (SELECT SUM(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'runs')
FROM pg_stat_user_tables WHERE relname = 'runs'`).Scan(&r.sequential, &r.indexed)
		switch {
		case err != nil:
			return err.Error()
		case time.Since(began) < flushed:
			return "not all is counted yet"
		}
		return ""
	})
	return r
}
