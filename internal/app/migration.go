package app

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/config/dsn"
	"github.com/signalbox-dev/signalbox/internal/migrate"
	"github.com/signalbox-dev/signalbox/internal/store/legacy"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
)

// addMigration adds the part that copies runs from an older engine's database, if one is configured. One elected process does the work.
func (a *App) addMigration(tel *telemetry.Telemetry) {
	m := a.cfg.Migration
	if m.From == "" {
		return
	}
	driver := sqldb.SQLite
	if dsn.IsPostgres(m.From.Reveal()) {
		driver = sqldb.Postgres
	}
	source := a.store.FollowLegacy(legacy.Options{Driver: driver, DSN: m.From.Reveal(), Project: m.Project, Namespace: m.Namespace, Now: time.Now})
	a.add(step{migrate.New(a.store, source, migrate.Options{Interval: m.Interval, Metrics: tel.Cutover}), false})
}
