package store

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/session"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Sessions stores sessions of browsers. It is safe for concurrent use, also by several processes on one Postgres.
type Sessions struct{ db *sqldb.DB }

var _ session.Store = (*Sessions)(nil)

// storedSession is one row.
type storedSession struct {
	session session.Session
	hash    []byte
}

func sessionFields(k *storedSession) sqlrow.Fields {
	s := &k.session
	return sqlrow.Row(
		"id", &s.ID, "hash", sqlrow.HexInto(&k.hash), "created_at", sqlrow.TimeInto(&s.CreatedAt),
		"last_used_at", sqlrow.TimeInto(&s.LastUsedAt), "idle", sqlrow.DurationInto(&s.Idle),
		"expires_at", sqlrow.TimeInto(&s.ExpiresAt), "ended_at", sqlrow.TimeInto(&s.EndedAt),
	)
}

// sessionQuery selects sessions with their tokens, which are never deleted.
func sessionQuery() string {
	return `SELECT ` + sessionFields(&storedSession{}).Names("s.") + `, ` + tokenFields(&storedToken{}).Names("t.") +
		` FROM sessions s JOIN tokens t ON t.id = s.token`
}

func scanSession(row sqlrow.Scanner) (k storedSession, err error) {
	var t storedToken
	err = row.Scan(append(sessionFields(&k), tokenFields(&t)...).Into()...)
	k.session.Token = t.token
	return k, err
}

// CreateSession implements [session.Store].
func (s *Sessions) CreateSession(ctx context.Context, one session.Session, hash []byte, e audit.Entry,
	check func(session.Counts) error) error {
	return s.db.Write(ctx, "create session", func(ctx context.Context, c sqldb.Conn) error {
		if _, err := getToken(ctx, c, one.Token.ID, s.db.Dialect().LockRows); err != nil {
			return err // the lock makes other sign-ins with the token wait, so that each counts all before it
		}
		counts, err := countSessions(ctx, c, one)
		if err != nil {
			return err
		}
		if err := check(counts); err != nil {
			return err
		}
		_, err = sqlrow.Insert(ctx, c, "sessions",
			append(sessionFields(&storedSession{one, hash}), sqlrow.Col("token", one.Token.ID)), "")
		if err != nil {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
}

// countSessions counts the sessions of the token of one when that one is created.
func countSessions(ctx context.Context, c sqldb.Conn, one session.Session) (n session.Counts, err error) {
	err = c.QueryRowContext(ctx,
		`SELECT COUNT(CASE WHEN ended_at IS NULL AND expires_at > $2 AND last_used_at + idle > $2 THEN 1 END),
			COUNT(CASE WHEN created_at > $3 THEN 1 END)
FROM sessions WHERE token = $1`, one.Token.ID, one.CreatedAt.UnixMicro(), one.CreatedAt.Add(-time.Minute).UnixMicro()).Scan(&n.Open, &n.LastMinute)
	return n, err
}

// GetSession implements [session.Store].
func (s *Sessions) GetSession(ctx context.Context, id string) (session.Session, []byte, error) {
	var k storedSession
	err := s.db.Read(ctx, "get session", func(ctx context.Context, c sqldb.Conn) (err error) {
		k, err = getSession(ctx, c, id)
		return err
	})
	return k.session, k.hash, err
}

// GetSessions implements [session.Store].
func (s *Sessions) GetSessions(ctx context.Context, ids []string) (map[string]session.Stored, error) {
	found := map[string]session.Stored{}
	var w sqlrow.Where
	sqlrow.OneOf(&w, "s.id", paddedIDs(ids))
	err := s.db.Read(ctx, "get sessions", func(ctx context.Context, c sqldb.Conn) error {
		list, err := sqlrow.Collect(ctx, c, sessionQuery()+w.String(), w.Args, scanSession)
		for _, k := range list {
			found[k.session.ID] = session.Stored{Session: k.session, Hash: k.hash}
		}
		return err
	})
	return found, err
}

func getSession(ctx context.Context, c sqldb.Conn, id string) (storedSession, error) {
	return sqlrow.One(ctx, c, sessionQuery()+` WHERE s.id = $1`, []any{id}, scanSession, func() error {
		return apperror.New(apperror.NotFound, apperror.SessionNotFound, "there is no session %q", id)
	})
}

// ListSessions implements [session.Store].
func (s *Sessions) ListSessions(ctx context.Context, at time.Time, after *session.Cursor,
	limit int) (list []session.Session, err error) {
	var w sqlrow.Where
	now := w.Arg(at.UnixMicro())
	w.Conditions = append(w.Conditions, "s.ended_at IS NULL", "s.expires_at > "+now, "s.last_used_at + s.idle > "+now)
	if after != nil {
		created, id := w.Arg(after.CreatedAt.UnixMicro()), w.Arg(after.ID)
		w.Conditions = append(w.Conditions, "(s.created_at, s.id) < ("+created+", "+id+")")
	}
	query := sessionQuery() + w.String() + ` ORDER BY s.created_at DESC, s.id DESC` + sqlrow.Limit(limit)
	err = s.db.Read(ctx, "list sessions", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c, query, w.Args, func(row sqlrow.Scanner) (session.Session, error) {
			k, err := scanSession(row)
			return k.session, err
		})
		return err
	})
	return list, err
}

// TouchSession implements [session.Store].
func (s *Sessions) TouchSession(ctx context.Context, id string, at time.Time, every time.Duration) error {
	return s.db.Exec(ctx, "note the use of a session", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, `UPDATE sessions SET last_used_at = $1 WHERE id = $2 AND last_used_at <= $3`,
			at.UnixMicro(), id, at.Add(-every).UnixMicro())
		return err
	})
}

// EndSession implements [session.Store].
func (s *Sessions) EndSession(ctx context.Context, id string, at time.Time,
	e audit.Entry) (one session.Session, err error) {
	err = s.db.Write(ctx, "end session", func(ctx context.Context, c sqldb.Conn) error {
		changed, err := sqlrow.Affected(ctx, c, `UPDATE sessions SET ended_at = $1 WHERE id = $2 AND ended_at IS NULL`,
			at.UnixMicro(), id)
		if err != nil {
			return err
		}
		k, err := getSession(ctx, c, id)
		if one = k.session; err != nil || !changed {
			return err
		}
		return ledger.Add(ctx, c, e)
	})
	return one, err
}

// DeleteSessions deletes up to limit sessions that had ended before the given time, and returns how many.
func (s *Sessions) DeleteSessions(ctx context.Context, before time.Time, limit int) (deleted int64, err error) {
	err = s.db.Exec(ctx, "delete ended sessions", func(ctx context.Context, c sqldb.Conn) error {
		result, err := c.ExecContext(ctx, `DELETE FROM sessions WHERE id IN (
SELECT id FROM sessions WHERE ended_at < $1 OR expires_at < $1
OR last_used_at + idle < $1`+sqlrow.Limit(limit)+`)`, before.UnixMicro())
		if err != nil {
			return err
		}
		deleted, err = result.RowsAffected()
		return err
	})
	return deleted, err
}
