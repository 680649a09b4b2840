package events

import (
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// Interests stores subscriptions. It is safe for concurrent use.
type Interests struct {
	db     *sqldb.DB
	events *Intake
}

// newInterests returns a store on an open database that uses the store of events.
func newInterests(db *sqldb.DB, events *Intake) *Interests { return &Interests{db: db, events: events} }
