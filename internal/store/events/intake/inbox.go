package intake

import (
	"context"
	"database/sql"
	"errors"

	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// Store keeps events. It is safe for concurrent use.
type Store struct{ db *sqldb.DB }

// New returns a store on an open database.
func New(db *sqldb.DB) *Store { return &Store{db: db} }

// Inbox is a project's row of inboxes.
type Inbox struct {
	// Head is the position of the newest event.
	Head int64
	// Parked tells that the project's dispatcher sleeps.
	Parked bool
	// ReceivedAt is when the newest event came, Now the database's time; in microseconds.
	ReceivedAt, Now int64
}

// Lock reads the row and holds it until the transaction ends: lock is one of the dialect's suffixes. It makes the row for a
// project that has none yet.
func (s *Store) Lock(ctx context.Context, c sqldb.Conn, project, lock string) (a Inbox, err error) {
	for {
		err = c.QueryRowContext(ctx, `SELECT head, parked, received_at, `+s.db.Dialect().Now+` FROM inboxes WHERE project = $1`+lock, project).
			Scan(&a.Head, &a.Parked, &a.ReceivedAt, &a.Now)
		if !errors.Is(err, sql.ErrNoRows) {
			return a, err
		}
		if err := Make(ctx, c, project); err != nil {
			return a, err
		}
	}
}

// Make makes the row unless it is there.
func Make(ctx context.Context, c sqldb.Conn, project string) error {
	if project == "" {
		return ledger.NoProject(project)
	}
	if err := ledger.NeedProject(ctx, c, project); err != nil {
		return err
	}
	_, err := c.ExecContext(ctx, `INSERT INTO inboxes (project, head, parked, received_at) VALUES ($1, 0, FALSE, 0) ON CONFLICT (project) DO NOTHING`,
		project)
	return err
}

// Position of the newest event, which nobody who accepts events can move before the transaction ends.
func (s *Store) Position(ctx context.Context, c sqldb.Conn, project string) (int64, error) {
	a, err := s.Lock(ctx, c, project, s.db.Dialect().ShareRows)
	return a.Head, err
}
