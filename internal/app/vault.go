package app

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/engine/payload"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/explain"
	"github.com/signalbox-dev/signalbox/internal/run/vault"
	"github.com/signalbox-dev/signalbox/internal/seal"
	"github.com/signalbox-dev/signalbox/internal/store"
)

// sealing are the stores of what may hold data of runs: what is written through them has marks and sealed originals.
type sealing struct {
	*vault.Vault

	rows     *vault.Rows
	events   *vault.Events
	verdicts *vault.Verdicts
	batches  *vault.Batches
}

func newSealing(keys *seal.Ring, s *store.Store, documents run.Documents) *sealing {
	v := vault.New(keys, s.Originals(), documents)
	return &sealing{v, v.Rows(s), v.Events(s.Events()), v.Verdicts(s.Verdicts()), v.Batches(s.Batches())}
}

// explaining says what runs wait for.
func (a *App) explaining(safe *sealing, documents run.Documents) *explain.Service {
	return explain.New(explain.Options{Store: a.store.Waits(), Redactor: safe.Vault, Documents: documents, Key: interp.EntryKey})
}

// inspecting starts runs with their original inputs, and looks at them in Temporal.
type inspecting struct {
	*vault.Starter
	run.Inspector
}

// codec is the endpoint for Temporal's UI, where it is wanted.
func (a *App) codec() (rpc.Codec, error) {
	if !a.cfg.Encryption.CodecEndpoint {
		return rpc.Codec{}, nil
	}
	note := func(ctx context.Context, namespace string) error {
		return a.store.WriteAudit(ctx, audit.NewEntry(ctx, time.Now(), audit.PayloadsOpen, "", namespace, ""))
	}
	handler, err := payload.Endpoint(a.keys, a.payloads.External(), note)
	if err != nil {
		return rpc.Codec{}, err
	}
	return rpc.Codec{Path: payload.EndpointPath, Handler: handler, Origins: a.cfg.Encryption.CodecOrigins}, nil
}
