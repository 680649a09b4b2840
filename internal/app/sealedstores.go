package app

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/explain"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store"
)

// sealedStores holds the stores that seal sensitive data of runs: values written through them are replaced by marks, and the originals are
// stored sealed.
type sealedStores struct {
	*sealed.Sealer

	rows     *sealed.Rows
	events   *sealed.Events
	verdicts *sealed.Verdicts
	batches  *sealed.Batches
}

func newSealedStores(keys *keyring.Ring, s *store.Store, documents run.Documents) *sealedStores {
	v := sealed.New(keys, s.Originals(), documents)
	return &sealedStores{v, v.Rows(s), v.Events(s.Events()), v.Verdicts(s.Verdicts()), v.Batches(s.Batches())}
}

// newExplainer creates the service that explains what runs wait for.
func (a *App) newExplainer(stores *sealedStores, documents run.Documents) *explain.Service {
	return explain.New(explain.Options{
		Store: a.store.Waits(), Redactor: stores.Sealer, Documents: documents, Key: interp.EntryKey, TakenSince: interp.BoundedSince,
	})
}

// codecEndpoint returns the codec endpoint for Temporal's UI, if it is enabled.
func (a *App) codecEndpoint() (rpc.Codec, error) {
	if !a.cfg.Encryption.CodecEndpoint {
		return rpc.Codec{}, nil
	}
	note := func(ctx context.Context, namespace string) error {
		return a.store.WriteAudit(ctx, audit.NewEntry(ctx, time.Now(), audit.PayloadsOpen, "", namespace, ""))
	}
	handler, err := codec.Endpoint(a.keys, a.payloads.External(), note)
	if err != nil {
		return rpc.Codec{}, err
	}
	return rpc.Codec{Path: codec.EndpointPath, Handler: handler, Origins: a.cfg.Encryption.CodecOrigins}, nil
}
