package app

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/config/dsn"
	"github.com/signalbox-dev/signalbox/internal/cutover"
	"github.com/signalbox-dev/signalbox/internal/store/legacy"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
)

// migration adds the part that follows an older engine's database, where one is named. Every process has it; one of all works.
func (a *App) migration(tel *telemetry.Telemetry) {
	m := a.cfg.Migration
	if m.From == "" {
		return
	}
	driver := sqldb.SQLite
	if dsn.IsPostgres(m.From.Reveal()) {
		driver = sqldb.Postgres
	}
	source := a.store.FollowLegacy(legacy.Options{Driver: driver, DSN: m.From.Reveal(), Project: m.Project, Namespace: m.Namespace, Now: time.Now})
	a.then(step{cutover.New(a.store, source, cutover.Options{Interval: m.Interval, Metrics: tel.Cutover}), false})
}
