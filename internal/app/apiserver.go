package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/rpc/certificate"
	"github.com/signalbox-dev/signalbox/internal/rpc/permission"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
	"github.com/signalbox-dev/signalbox/internal/token"
)

// newServer creates the API server with its authentication.
func (a *App) newServer(tel *telemetry.Telemetry, options rpc.Options) (*rpc.Server, error) {
	tokens := token.NewService(a.store.Tokens(), a.store, token.Options{Now: time.Now, Log: a.log})
	a.add(step{tokens, false})
	if a.cfg.HasRole(config.RoleAPI) {
		options.Tokens = tokens
	}
	d := &denials{store: a.store, log: a.log, metrics: tel.API, limit: permission.NewLimiter(permission.LimiterOptions{Rate: deniedRate, Burst: deniedBurst, Now: time.Now})}
	options.Access = rpc.Access{Rate: float64(a.cfg.API.RateLimit), Burst: a.cfg.API.Burst, Refused: tel.API.Refused, Denied: d.denied}
	if a.cfg.Auth.Mode == config.ModeTokens {
		options.Access.Authenticator = tokens
	}
	if t := a.cfg.ListenTLS; t.Enabled() {
		keeper, err := certificate.Open(certificate.Files{Cert: t.CertFile, Key: t.KeyFile, ClientCA: t.ClientCAFile})
		if err != nil {
			return nil, err
		}
		options.TLS = keeper.Config()
	}
	return rpc.NewServer(options)
}

const (
	// deniedRate and deniedBurst bound the audit entries for denied calls of one actor, so that repeated attempts cannot fill the database.
	deniedRate  = 1.0 / 60
	deniedBurst = 10
)

// denials records denied calls: in metrics, in the log and, for calls that would change something, in the audit log.
type denials struct {
	store   *store.Store
	log     *slog.Logger
	metrics *telemetry.API
	limit   *permission.Limiter
}

func (d *denials) denied(ctx context.Context, n permission.Denial) {
	reason := ""
	if f, ok := apperror.From(n.Err); ok {
		reason = f.Reason
	}
	d.metrics.Refused(ctx, reason)
	actor, _ := auth.ActorFrom(ctx)
	d.log.WarnContext(ctx, "A call was denied", "method", n.Method, "actor", actor.Name, "token", actor.ID, "project", n.Project, "role", string(n.Role))
	if !n.Changes || d.limit.Take(actor.ID) > 0 {
		return
	}
	// The entry belongs to no project, because the project that the caller named may not exist.
	entry := audit.NewEntry(ctx, time.Now(), audit.AccessDenied, "", n.Method, "")
	entry.Detail, _ = json.Marshal(map[string]string{"project": bounded(n.Project), "role": string(n.Role), "token": actor.ID}) //nolint:errchkjson // texts always encode
	if err := d.store.WriteAudit(ctx, entry); err != nil {
		d.log.WarnContext(ctx, "A denial could not be written to the audit log", "error", err)
	}
}

// bounded truncates text from a caller to the maximum length of a name.
func bounded(name string) string {
	const most = 100
	if len(name) > most {
		return name[:most]
	}
	return name
}
