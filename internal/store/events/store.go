package events

import (
	"context"
	"database/sql"
	"errors"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// Store keeps events in a database. It is safe for concurrent use, also by several processes on one Postgres.
type Store struct{ db *sqldb.DB }

var (
	_ event.Store      = (*Store)(nil)
	_ event.TimerStore = (*Store)(nil)
)

// New returns a store on an open database, whose schema is for package store to bring up.
func New(db *sqldb.DB) *Store { return &Store{db: db} }

// accepting is a project's row of inboxes.
type accepting struct {
	head   int64
	parked bool
	// receivedAt is when the newest event came, now the database's time; in microseconds.
	receivedAt, now int64
}

// lockInbox reads the row and holds it until the transaction ends: lock is one of the dialect's suffixes. It makes the row for a
// project that has none yet.
func (s *Store) lockInbox(ctx context.Context, c sqldb.Conn, project, lock string) (a accepting, err error) {
	for {
		err = c.QueryRowContext(ctx, `SELECT head, parked, received_at, `+s.db.Dialect().Now+` FROM inboxes WHERE project = $1`+lock, project).
			Scan(&a.head, &a.parked, &a.receivedAt, &a.now)
		if !errors.Is(err, sql.ErrNoRows) {
			return a, err
		}
		if err := makeInbox(ctx, c, project); err != nil {
			return a, err
		}
	}
}

func makeInbox(ctx context.Context, c sqldb.Conn, project string) error {
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

// taking is a project's row of dispatchers.
type taking struct {
	project string
	epoch   int64
	routed  int64
	// pending counts the deliveries that are neither done nor dead.
	pending int64
	// now is the database's time in microseconds.
	now int64
}

// own reads the owner's row and holds it until the transaction ends; [inbox.ErrFenced] when it is not the owner's.
func (s *Store) own(ctx context.Context, c sqldb.Conn, project string, o inbox.Owner) (taking, error) {
	t := taking{project: project, epoch: o.Epoch}
	d := s.db.Dialect()
	err := c.QueryRowContext(ctx, `SELECT routed, pending, `+d.Now+` FROM dispatchers WHERE project = $1 AND epoch = $2 AND holder = $3`+d.LockRows,
		project, o.Epoch, o.Holder).Scan(&t.routed, &t.pending, &t.now)
	if errors.Is(err, sql.ErrNoRows) {
		return t, inbox.ErrFenced
	}
	return t, err
}

// keep writes the row that own has read, as progress.
func (t taking) keep(ctx context.Context, c sqldb.Conn) error {
	_, err := c.ExecContext(ctx, `UPDATE dispatchers SET routed = $2, pending = $3, progressed_at = $4 WHERE project = $1`,
		t.project, t.routed, t.pending, t.now)
	return err
}
