package interest

import (
	"github.com/signalbox-dev/signalbox/internal/store/events/intake"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// Store keeps what wants events. It is safe for concurrent use.
type Store struct {
	db     *sqldb.DB
	events *intake.Store
}

// New returns a store on an open database, beside the one that keeps the events.
func New(db *sqldb.DB, events *intake.Store) *Store { return &Store{db: db, events: events} }
