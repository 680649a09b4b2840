package app

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/engine/payload"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/vault"
)

// inspecting starts runs with their original inputs, and looks at them in Temporal.
type inspecting struct {
	*vault.Starter
	run.Inspector
}

// codec is the endpoint for Temporal's UI, where it is wanted.
func (a *App) codec() rpc.Codec {
	if !a.cfg.Encryption.CodecEndpoint {
		return rpc.Codec{}
	}
	note := func(ctx context.Context, namespace string) error {
		return a.store.WriteAudit(ctx, audit.NewEntry(ctx, time.Now(), audit.PayloadsOpen, "", namespace, ""))
	}
	return rpc.Codec{Path: payload.EndpointPath, Handler: payload.Endpoint(a.keys, note), Origins: a.cfg.Encryption.CodecOrigins}
}
