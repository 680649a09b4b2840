package events

import (
	"context"
	"database/sql"
	"errors"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// Deliveries stores deliveries. It is safe for concurrent use.
type Deliveries struct {
	db            *sqldb.DB
	events        *Intake
	subscriptions *Interests
}

// newDeliveries returns a store on an open database that uses the stores of events and of subscriptions.
func newDeliveries(db *sqldb.DB, events *Intake, subscriptions *Interests) *Deliveries {
	return &Deliveries{db: db, events: events, subscriptions: subscriptions}
}

// dispatcherRow is a project's row of dispatchers.
type dispatcherRow struct {
	project string
	epoch   int64
	routed  int64
	// pending is the number of deliveries that are neither done nor dead.
	pending int64
	// now is the database's time in microseconds.
	now int64
}

// lockOwned reads and locks the dispatcher's row until the transaction ends; [inbox.ErrFenced] if o is not its owner.
func (s *Deliveries) lockOwned(ctx context.Context, c sqldb.Conn, project string,
	o inbox.Owner) (dispatcherRow, error) {
	t := dispatcherRow{project: project, epoch: o.Epoch}
	d := s.db.Dialect()
	err := c.QueryRowContext(ctx,
		`SELECT routed, pending, `+d.Now+` FROM dispatchers WHERE project = $1 AND epoch = $2 AND holder = $3`+d.LockRows,
		project, o.Epoch, o.Holder).Scan(&t.routed, &t.pending, &t.now)
	if errors.Is(err, sql.ErrNoRows) {
		return t, inbox.ErrFenced
	}
	return t, err
}

// save writes the row that own has read, and records progress.
func (t dispatcherRow) save(ctx context.Context, c sqldb.Conn) error {
	_, err := c.ExecContext(ctx, `UPDATE dispatchers SET routed = $2, pending = $3, progressed_at = $4 WHERE project = $1`,
		t.project, t.routed, t.pending, t.now)
	return err
}
