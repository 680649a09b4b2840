package app

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/config/dsn"
	"github.com/signalbox-dev/signalbox/internal/migrate"
	"github.com/signalbox-dev/signalbox/internal/migrate/legacy"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// newMigration creates the part that copies runs from an older engine's database. One elected process does the work.
func newMigration(p *process, s *storage) *migrate.Follower {
	m := p.cfg.Migration
	driver := sqldb.SQLite
	if dsn.IsPostgres(m.From.Reveal()) {
		driver = sqldb.Postgres
	}
	source := legacy.NewFollower(s.Database(), legacy.Options{
		Driver: driver, DSN: m.From.Reveal(), Project: m.Project, Namespace: m.Namespace, Now: time.Now,
	})
	return migrate.New(s, source, migrate.Options{Interval: m.Interval, Metrics: p.telemetry.Migration})
}
