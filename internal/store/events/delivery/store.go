package delivery

import (
	"context"
	"database/sql"
	"errors"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/store/events/intake"
	"github.com/signalbox-dev/signalbox/internal/store/events/interest"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// Store keeps deliveries. It is safe for concurrent use.
type Store struct {
	db     *sqldb.DB
	events *intake.Store
	wants  *interest.Store
}

// New returns a store on an open database, beside those that keep the events and what wants them.
func New(db *sqldb.DB, events *intake.Store, wants *interest.Store) *Store {
	return &Store{db: db, events: events, wants: wants}
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
