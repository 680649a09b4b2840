package events

import (
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run/vault"
	"github.com/signalbox-dev/signalbox/internal/store/events/delivery"
	"github.com/signalbox-dev/signalbox/internal/store/events/intake"
	"github.com/signalbox-dev/signalbox/internal/store/events/interest"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// Parts of the store, named for what they keep.
type (
	events     = intake.Store
	interests  = interest.Store
	deliveries = delivery.Store
)

// Store keeps events in a database. It is safe for concurrent use, also by several processes on one Postgres.
type Store struct {
	*events
	*interests
	*deliveries

	db *sqldb.DB
}

var (
	_ vault.EventStore = (*Store)(nil)
	_ event.TimerStore = (*Store)(nil)
)

// New returns a store on an open database, whose schema is for package store to bring up.
func New(db *sqldb.DB) *Store {
	in := intake.New(db)
	wants := interest.New(db, in)
	return &Store{events: in, interests: wants, deliveries: delivery.New(db, in, wants), db: db}
}
