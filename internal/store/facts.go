package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/system"
)

// Facts describes the database. Each fact is read on its own: one that fails leaves the others known.
func (s *Store) Facts(ctx context.Context) system.StoreFacts {
	dialect := s.db.Dialect()
	f := system.StoreFacts{Driver: string(dialect.Driver), Location: s.db.Location(), Required: s.migrator.Latest()}
	pools := s.db.Pools()
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		p := pools[name]
		f.Pools = append(f.Pools, system.Pool{Name: name, InUse: p.InUse, Limit: p.MaxOpenConnections, Waits: p.WaitCount})
	}
	begun := time.Now()
	if f.Err = s.db.Ping(ctx); f.Err != nil {
		return f // the other calls would wait for the same database
	}
	f.Latency = time.Since(begun)
	value := func(doing, query string, into any) error {
		return s.db.Read(ctx, doing, func(ctx context.Context, c sqldb.Conn) error { return c.QueryRowContext(ctx, query).Scan(into) })
	}
	version := value("read the version of the database", dialect.Version, &f.Version)
	size := value("read the size of the database", dialect.Size, &f.Bytes)
	var schema error
	f.Schema, schema = s.migrator.Version(ctx)
	f.Err = errors.Join(version, size, schema)
	return f
}
