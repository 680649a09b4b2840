package events

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// The parts of the store.
type (
	events     = Intake
	interests  = Interests
	deliveries = Deliveries
)

// Store stores events in a database. It is safe for concurrent use, also by several processes on one Postgres.
type Store struct {
	*events
	*interests
	*deliveries

	db *sqldb.DB
}

var (
	_ sealed.EventStore = (*Store)(nil)
	_ event.TimerStore  = (*Store)(nil)
)

// New returns a store on an open database. Package store migrates its schema. active records activity in a project,
// before events or deliveries are written that its dispatcher has to process.
func New(db *sqldb.DB, active func(ctx context.Context, project string) error) *Store {
	in := newIntake(db, active)
	wants := newInterests(db, in)
	return &Store{events: in, interests: wants, deliveries: newDeliveries(db, in, wants), db: db}
}

// Outbox returns the part of the store for events that are committed with what they report.
func (s *Store) Outbox() *Outbox { return &Outbox{s.db, s.events} }
