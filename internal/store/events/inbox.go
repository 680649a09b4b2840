package events

import (
	"context"
	"database/sql"
	"errors"

	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// Intake stores events. It is safe for concurrent use.
type Intake struct {
	db *sqldb.DB
	// active records activity in a project, before work is inserted.
	active func(ctx context.Context, project string) error
}

// newIntake returns a store on an open database.
func newIntake(db *sqldb.DB, active func(ctx context.Context, project string) error) *Intake {
	return &Intake{db: db, active: active}
}

// Inbox is a project's row of inboxes.
type Inbox struct {
	// Head is the position of the newest event.
	Head int64
	// Parked reports whether the project's dispatcher is parked.
	Parked bool
	// ReceivedAt is the time of the newest event, Now the database's time; in microseconds.
	ReceivedAt, Now int64
}

// Lock reads and locks the row until the transaction ends: lock is one of the dialect's suffixes. It creates the row
// for a project that has none yet.
func (s *Intake) Lock(ctx context.Context, c sqldb.Conn, project, lock string) (a Inbox, err error) {
	for {
		err = c.QueryRowContext(ctx,
			`SELECT head, parked, received_at, `+s.db.Dialect().Now+` FROM inboxes WHERE project = $1`+lock, project).
			Scan(&a.Head, &a.Parked, &a.ReceivedAt, &a.Now)
		if !errors.Is(err, sql.ErrNoRows) {
			return a, err
		}
		if err := Make(ctx, c, project); err != nil {
			return a, err
		}
	}
}

// Make creates the row unless it exists.
func Make(ctx context.Context, c sqldb.Conn, project string) error {
	if project == "" {
		return ledger.NoProject(project)
	}
	if err := ledger.NeedProject(ctx, c, project); err != nil {
		return err
	}
	_, err := c.ExecContext(ctx,
		`INSERT INTO inboxes (project, head, parked, received_at) VALUES ($1, 0, FALSE, 0) ON CONFLICT (project) DO NOTHING`,
		project)
	return err
}

// Position returns the position of the newest event. Until the transaction ends, no process can accept another one.
func (s *Intake) Position(ctx context.Context, c sqldb.Conn, project string) (int64, error) {
	a, err := s.Lock(ctx, c, project, s.db.Dialect().ShareRows)
	return a.Head, err
}
