// Package facts reads the facts of the database that the status of the platform shows: versions, size, latency and connections.
//
//	status := facts.Read(ctx, db, migrator)
//
// Each fact is read on its own: one that fails leaves the others known.
package facts

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/store/schema"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/system"
)

// Read describes the database.
func Read(ctx context.Context, db *sqldb.DB, migrator *schema.Migrator) system.StoreFacts {
	dialect := db.Dialect()
	f := system.StoreFacts{Driver: string(dialect.Driver), Location: db.PlainLocation(), Required: migrator.Latest()}
	pools := db.Pools()
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		p := pools[name]
		f.Pools = append(f.Pools, system.Pool{Name: name, InUse: p.InUse, Limit: p.MaxOpenConnections, Waits: p.WaitCount})
	}
	begun := time.Now()
	if f.Err = db.Ping(ctx); f.Err != nil {
		return f // the other calls would wait for the same database
	}
	f.Latency = time.Since(begun)
	value := func(doing, query string, into any) error {
		return db.Read(ctx, doing, func(ctx context.Context, c sqldb.Conn) error { return c.QueryRowContext(ctx, query).Scan(into) })
	}
	version := value("read the version of the database", dialect.Version, &f.Version)
	size := value("read the size of the database", dialect.Size, &f.Bytes)
	var schema error
	f.Schema, schema = migrator.Version(ctx)
	f.Err = errors.Join(version, size, schema)
	return f
}
