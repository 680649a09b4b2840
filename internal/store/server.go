package store

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/server"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// BeatServer implements [server.Store].
func (s *Store) BeatServer(ctx context.Context, v server.Server, forget time.Duration) error {
	roles, err := sqlrow.AsJSON(v.Roles, false)
	if err != nil {
		return err
	}
	now := s.db.Dialect().Now
	return s.db.Write(ctx, "write a server's heartbeat", func(ctx context.Context, c sqldb.Conn) error {
		id, instance := sqlrow.Mended(v.ID), sqlrow.Mended(v.Instance)
		if _, err := c.ExecContext(ctx,
			`DELETE FROM servers WHERE beat_at < `+now+` - $1 OR instance = $2 AND id <> $3 AND started_at < $4`,
			forget.Microseconds(), instance, id, v.StartedAt.UnixMicro()); err != nil {
			return err
		}
		_, err := c.ExecContext(ctx,
			`INSERT INTO servers (id, instance, roles, version, started_at, beat_at) VALUES ($1, $2, $3, $4, $5, `+now+`)
ON CONFLICT (id) DO UPDATE SET beat_at =
excluded.beat_at`, id, instance, roles, sqlrow.Mended(v.Version), v.StartedAt.UnixMicro())
		return err
	})
}

// LeaveServer implements [server.Store].
func (s *Store) LeaveServer(ctx context.Context, id string) error {
	return s.db.Exec(ctx, "remove a stopped server", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, `DELETE FROM servers WHERE id = $1`, sqlrow.Mended(id))
		return err
	})
}

// SilentServers implements [server.Store].
func (s *Store) SilentServers(ctx context.Context, olderThan time.Duration,
	limit int) (list []server.Server, err error) {
	err = s.db.Read(ctx, "list servers without heartbeats", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, `SELECT id, instance, roles, version, started_at, beat_at
FROM servers WHERE beat_at < `+s.db.Dialect().Now+` - $1
ORDER BY beat_at DESC, id`+sqlrow.Limit(limit), []any{olderThan.Microseconds()}, scanServer)
		return err
	})
	return list, err
}

func scanServer(row sqlrow.Scanner) (v server.Server, err error) {
	err = row.Scan(&v.ID, &v.Instance, sqlrow.JSONInto(&v.Roles), &v.Version, sqlrow.TimeInto(&v.StartedAt),
		sqlrow.TimeInto(&v.SeenAt))
	return v, err
}
