package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/system"
)

// Facts describes the database. Each fact is read on its own: one that fails leaves the others known.
func (s *Store) Facts(ctx context.Context) system.StoreFacts {
	db, migrator := s.db, s.migrator
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
		return db.Read(ctx, doing, func(ctx context.Context, c sqldb.Conn) error {
			return c.QueryRowContext(ctx, query).Scan(into)
		})
	}
	version := value("read the version of the database", dialect.Version, &f.Version)
	size := value("read the size of the database", dialect.Size, &f.Bytes)
	var clock, schema error
	f.ClockSkew, clock = s.ClockSkew(ctx)
	f.Schema, schema = migrator.Version(ctx)
	f.Err = errors.Join(version, size, clock, schema)
	return f
}

// ClockSkew reads how far the database's clock is ahead of that of this process, negative where it is behind.
func (s *Store) ClockSkew(ctx context.Context) (skew time.Duration, err error) {
	err = s.db.Read(ctx, "read the clock of the database", func(ctx context.Context, c sqldb.Conn) error {
		var now time.Time
		asked := time.Now()
		err := c.QueryRowContext(ctx, `SELECT `+s.db.Dialect().Now).Scan(sqlrow.TimeInto(&now))
		skew = clockDifference(asked, now, time.Now())
		return err
	})
	return skew, err
}

// clockDifference returns the least difference of two clocks that explains a time which one of them had between two times of
// the other. A slow answer is no difference. SQLite's clock has milliseconds.
func clockDifference(before, at, after time.Time) time.Duration {
	if early := at.Sub(before.Truncate(time.Millisecond)); early < 0 {
		return early
	}
	return max(0, at.Sub(after))
}
