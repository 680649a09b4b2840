package store

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/sealingkey"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// RecordSealingKey implements [sealingkey.Store].
func (s *Store) RecordSealingKey(ctx context.Context, id, fingerprint string) error {
	return s.db.Exec(ctx, "record the active sealing key", func(ctx context.Context, c sqldb.Conn) error {
		now := s.db.Dialect().Now
		_, err := c.ExecContext(ctx,
			`INSERT INTO sealing_keys (id, fingerprint, first_at, last_at) VALUES ($1, $2, `+now+`, `+now+`)
ON CONFLICT (id) DO UPDATE SET last_at = excluded.last_at`, id, fingerprint)
		return err
	})
}

// SealingKeys implements [sealingkey.Store].
func (s *Store) SealingKeys(ctx context.Context) (list []sealingkey.Key, err error) {
	err = s.db.Read(ctx, "list sealing keys", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, `SELECT id, fingerprint, first_at, last_at FROM sealing_keys ORDER BY id`, nil,
			func(row sqlrow.Scanner) (k sealingkey.Key, err error) {
				err = row.Scan(&k.ID, &k.Fingerprint, sqlrow.TimeInto(&k.FirstAt), sqlrow.TimeInto(&k.LastAt))
				return k, err
			})
		return err
	})
	return list, err
}

// SealingKeyUses implements [sealingkey.Store].
func (s *Store) SealingKeyUses(ctx context.Context) (uses sealingkey.Uses, err error) {
	err = s.db.ReadList(ctx, "count what needs sealing keys", func(ctx context.Context, c sqldb.Conn) error {
		uses = sealingkey.Uses{}
		late := sealingkey.Late.Microseconds()
		runs, err := sqlrow.Collect(ctx, c,
			`SELECT k.id, (SELECT COUNT(*) FROM runs WHERE status IN `+openStatuses+` AND created_at <= k.last_at + $1)
FROM sealing_keys k`, []any{late}, scanKeyCount)
		if err != nil {
			return err
		}
		for _, n := range runs {
			uses.Add(n.id, sealingkey.Use{Runs: n.count})
		}
		waiting, err := sqlrow.Collect(ctx, c, `SELECT e.original_key, COUNT(*) FROM deliveries d
JOIN events e ON e.project = d.project AND e.position = d.position
WHERE d.status = 'pending' AND e.original_key IS NOT NULL GROUP BY e.original_key
UNION ALL SELECT e.original_key, COUNT(*) FROM events e LEFT JOIN dispatchers p ON p.project = e.project
WHERE e.position > COALESCE(p.routed, 0) AND e.original_key IS NOT NULL GROUP BY e.original_key`, nil, scanKeyCount)
		if err != nil {
			return err
		}
		for _, n := range waiting {
			uses.Add(n.id, sealingkey.Use{Events: n.count})
		}
		sets, err := sqlrow.Collect(ctx, c, `SELECT key FROM partials`, nil, sqlrow.ScanText)
		if err != nil {
			return err
		}
		for _, stored := range sets {
			if id, isSealed := sealed.KeyOfSet(stored); isSealed {
				uses.Add(id, sealingkey.Use{Sets: 1})
			}
		}
		webhooks, err := sqlrow.Collect(ctx, c, `SELECT sealed FROM webhooks`, nil,
			func(row sqlrow.Scanner) (b []byte, err error) {
				err = row.Scan(&b)
				return b, err
			})
		if err != nil {
			return err
		}
		for _, stored := range webhooks {
			if id, err := keyring.KeyOf(stored); err == nil {
				uses.Add(id, sealingkey.Use{Webhooks: 1})
			}
		}
		return s.addStarts(ctx, c, uses)
	})
	return uses, err
}

// keyCount is a number about a key.
type keyCount struct {
	id    string
	count int64
}

func scanKeyCount(row sqlrow.Scanner) (n keyCount, err error) {
	err = row.Scan(&n.id, &n.count)
	return n, err
}

// addStarts counts the workflows whose next start was scheduled at the end of a run, while a key was active: that start
// may not be due yet.
func (s *Store) addStarts(ctx context.Context, c sqldb.Conn, uses sealingkey.Uses) error {
	specs, err := sqlrow.Collect(ctx, c, `SELECT timer FROM triggers WHERE timer IS NOT NULL`, nil,
		func(row sqlrow.Scanner) (t event.TimerSpec, err error) {
			err = row.Scan(sqlrow.JSONInto(&t))
			return t, err
		})
	if err != nil {
		return err
	}
	ages, err := sqlrow.Collect(ctx, c, `SELECT id, `+s.db.Dialect().Now+` - last_at FROM sealing_keys`, nil, scanKeyCount)
	if err != nil {
		return err
	}
	for _, t := range specs {
		for _, age := range ages {
			if t.Follows() && age.count < (t.After+sealingkey.Late).Microseconds() {
				uses.Add(age.id, sealingkey.Use{Starts: 1})
			}
		}
	}
	return nil
}
