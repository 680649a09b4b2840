package app

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/match"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/migrate"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// storage has the database, and what reads and writes it in a form of its own.
type storage struct {
	*store.Store

	sealed    *sealedStores
	documents *engine.Documents
	// values are the stores of the large payloads that Temporal histories refer to.
	values *largeValues
	// migration copies runs from an older engine's database.
	migration *migrate.Migration
}

func openStorage(ctx context.Context, p *process) (*storage, error) {
	called, err := storeMetrics(p)
	if err != nil {
		return nil, err
	}
	opened, err := store.Open(ctx, store.Options{
		Driver: sqldb.Driver(p.cfg.Store.Driver), DSN: p.cfg.Store.DSN.Reveal(), AutoMigrate: p.cfg.Store.AutoMigrate,
		Called: called, RecordEvery: project.RecordEvery(p.cfg.Worker.ParkAfter),
	})
	if err != nil {
		return nil, err
	}
	values, err := openLargeValues(ctx, p.cfg, opened.Payloads())
	if err != nil {
		return nil, errors.Join(err, opened.Stop(ctx))
	}
	documents := engine.NewDocuments(opened, documentLimits(p.cfg))
	return &storage{
		Store: opened, documents: documents,
		sealed: newSealedStores(p.keys, opened, documents, match.New(match.Options{}).Search(p.cfg.Events.MaxLookback)),
		values: values, migration: migrate.New(opened, p.cfg.Migration, p.telemetry.Migration),
	}, nil
}

// storeMetrics returns the function that measures calls to the database.
func storeMetrics(p *process) (func(context.Context, sqldb.Operation, sqldb.Failure, time.Duration), error) {
	system := "sqlite"
	if sqldb.Driver(p.cfg.Store.Driver) == sqldb.Postgres {
		system = "postgresql" // OpenTelemetry's name
	}
	var operations []string
	for _, operation := range sqldb.Operations() {
		operations = append(operations, string(operation))
	}
	metrics, err := p.telemetry.Store(system, operations...)
	return func(ctx context.Context, operation sqldb.Operation, failure sqldb.Failure, took time.Duration) {
		metrics.Called(ctx, string(operation), string(failure), took)
	}, err
}

func documentLimits(cfg *config.Config) dsl.Limits {
	limits := dsl.DefaultLimits()
	limits.MaxBytes = int(cfg.Workflows.MaxDefinitionBytes)
	return limits
}

// sealedStores holds the stores that seal sensitive data of runs: values written through them are replaced by marks,
// and the originals are stored sealed.
type sealedStores struct {
	*sealed.Sealer

	rows     *sealed.Rows
	events   *sealed.Events
	verdicts *sealed.Verdicts
	batches  *sealed.Batches
}

func newSealedStores(keys *keyring.Ring, s *store.Store, documents run.Documents, earlier event.Earlier) *sealedStores {
	v := sealed.New(keys, s.Originals(), documents)
	return &sealedStores{v, v.Rows(s), v.Events(s.Events(), earlier), v.Verdicts(s.Verdicts()), v.Batches(s.Batches())}
}
