package schema

import (
	"io/fs"

	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// NewFrom returns a migrator with the migrations in a folder.
func NewFrom(db *sqldb.DB, folder fs.FS) (*Migrator, error) { return newMigrator(db, folder) }
