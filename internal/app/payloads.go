package app

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/payload"
	"github.com/signalbox-dev/signalbox/internal/payload/bucket"
	"github.com/signalbox-dev/signalbox/internal/store"
)

// largeValues has the stores of large payloads.
type largeValues struct {
	*payload.Stores

	// separate is the database of payloads apart from Signalbox's own; nil if there is none.
	separate *store.SeparatePayloads
}

// openLargeValues opens the configured store of payloads over the table of Signalbox's own database, from which values
// are still read after a change of the configuration. It does not connect: a server starts while that store is
// unavailable.
func openLargeValues(ctx context.Context, cfg *config.Config, table payload.Store) (*largeValues, error) {
	switch cfg.Payloads.Store {
	case config.PayloadsFolder:
		values, err := payload.OpenFolder(cfg.Payloads.Folder)
		return &largeValues{Stores: payload.NewStores(values, table)}, err
	case config.PayloadsS3:
		values, err := bucket.Open(bucket.Options(cfg.Payloads.S3), payload.CallTimeout)
		return &largeValues{Stores: payload.NewStores(values, table)}, err
	case config.PayloadsPostgres:
		separate, err := store.OpenSeparatePayloads(ctx,
			store.SeparateOptions{DSN: cfg.Payloads.DSN.Reveal(), Create: cfg.Store.AutoMigrate})
		if err != nil {
			return nil, err
		}
		return &largeValues{Stores: payload.NewStores(separate, table), separate: separate}, nil
	default:
		return &largeValues{Stores: payload.NewStores(table)}, nil
	}
}

// Stop closes the connections.
func (l *largeValues) Stop(context.Context) error {
	if l.separate == nil {
		return nil
	}
	return l.separate.Close()
}

// CheckPayloads connects to the store of payloads, if that is not Signalbox's own database, and reports why values
// cannot be stored there. A server starts nevertheless.
func CheckPayloads(ctx context.Context, cfg *config.Config) config.Violations {
	if cfg.Payloads.Store == config.PayloadsDatabase {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if err := checkPayloads(ctx, cfg); err != nil {
		return config.Violations{{Path: "payloads.store", Source: cfg.Payloads.Store, Message: err.Error(), Heals: true}}
	}
	return nil
}

func checkPayloads(ctx context.Context, cfg *config.Config) (err error) {
	values, err := openLargeValues(ctx, cfg, nil)
	if err != nil {
		return err
	}
	defer func() {
		if failed := values.Stop(ctx); err == nil {
			err = failed
		}
	}()
	if values.separate != nil && cfg.Store.AutoMigrate {
		return values.separate.Ping(ctx) // a server creates its table
	}
	return values.Writable(ctx)
}

// MigratePayloads creates the table in the database of payloads if it is missing, and reports its name if it did; empty
// if there is no such database.
func MigratePayloads(ctx context.Context, cfg *config.Config) (created string, err error) {
	values, err := openLargeValues(ctx, cfg, nil)
	if err != nil || values.separate == nil {
		return "", err
	}
	defer func() {
		if failed := values.Stop(ctx); err == nil {
			err = failed
		}
	}()
	made, err := values.separate.Create(ctx)
	if made {
		created = values.separate.String()
	}
	return created, err
}
