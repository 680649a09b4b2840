// Package migrate copies the runs of an older engine's database into this one: once, or while old processes still write
// to it, so that new data is copied within a minute and no run of that engine appears to be in progress.
//
//	m := migrate.New(store, cfg.Migration, tel.Migration) // a part of the process, which follows migration.from
//	report, err := migrate.Import(ctx, store, migrate.Options{DSN: dsn, Now: time.Now, Progress: os.Stderr})
//
// No other part waits for it: without the source, everything else works. The code that reads and copies is internal to
// this package.
package migrate

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/migrate/internal/legacy"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store"
)

// Options configure an import.
type Options = legacy.Options

// Report is the result of an import or a dry run.
type Report = legacy.Report

// Import copies new and changed runs, once.
func Import(ctx context.Context, into *store.Store, o Options) (Report, error) {
	return legacy.Import(ctx, into.Database(), o)
}

// Migration is the part of a process that copies the changes of an older engine's database. Without one in the settings
// it does nothing.
type Migration struct {
	store    *store.Store
	follower *follower // nil without a database
}

// New returns the part. It reads nothing before Start.
func New(into *store.Store, settings config.Migration, metrics Metrics) *Migration {
	m := &Migration{store: into}
	if settings.From != "" {
		source := legacy.NewFollower(into.Database(), Options{
			DSN: settings.From.Reveal(), Project: settings.Project, Namespace: settings.Namespace, Now: time.Now,
		})
		m.follower = newFollower(into, source, settings.Interval, metrics)
	}
	return m
}

// Rows returns the imported runs for the reconciler.
func (m *Migration) Rows() run.ImportedRows { return legacy.Rows{Store: m.store} }

// Start starts the passes.
func (m *Migration) Start(ctx context.Context) error {
	if m.follower == nil {
		return nil
	}
	return m.follower.Start(ctx)
}

// Stop lets the pass in progress finish within ctx.
func (m *Migration) Stop(ctx context.Context) error {
	if m.follower == nil {
		return nil
	}
	return m.follower.Stop(ctx)
}
