package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/annotation"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/rpc/handler"
	"github.com/signalbox-dev/signalbox/internal/rpc/permission"
	"github.com/signalbox-dev/signalbox/internal/run/explain"
	"github.com/signalbox-dev/signalbox/internal/run/livelist"
	"github.com/signalbox-dev/signalbox/internal/run/read"
	"github.com/signalbox-dev/signalbox/internal/run/statistics"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/search"
	"github.com/signalbox-dev/signalbox/internal/session"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
	"github.com/signalbox-dev/signalbox/internal/token"
	"github.com/signalbox-dev/signalbox/internal/view"
	"github.com/signalbox-dev/signalbox/internal/webui"
)

// newTokens creates the service of API tokens.
func newTokens(p *process, s *storage) *token.Service {
	return token.NewService(s.Tokens(), s, token.Options{Now: time.Now, Log: p.log})
}

// newAPI creates the API server with its authentication. A process without the API role serves only health, metrics and
// its own system status.
func newAPI(c *components, tokens *token.Service) (*rpc.Server, error) {
	metrics, cfg := c.telemetry.API, c.cfg
	d := &denials{
		store: c.storage.Store, log: c.log, metrics: metrics,
		limit: permission.NewLimiter(permission.LimiterOptions{Rate: deniedRate, Burst: deniedBurst, Now: time.Now}),
	}
	options := rpc.Options{
		Address: cfg.Listen, MaxConnections: cfg.API.MaxConnections, MaxRequestBytes: int64(cfg.API.MaxRequestBytes),
		Metrics: c.telemetry.Handler(), Livez: http.HandlerFunc(c.health.Livez), Readyz: http.HandlerFunc(c.health.Readyz),
		Serving:      func(ctx context.Context) bool { return c.health.Report(ctx).Status != health.Unavailable },
		Interceptors: c.telemetry.Interceptors(),
		Access: rpc.Access{
			Rate: float64(cfg.API.RateLimit), Burst: cfg.API.Burst, Refused: metrics.Refused, Denied: d.denied},
		Services: handler.Services{
			System: handler.SystemInfo{
				Version: c.version, Interpreter: interp.Version, ServerID: c.serverID,
				QueuesRuns: cfg.Runs.QueueWhenUnavailable.Enabled},
			TemporalNamespace: cfg.Temporal.Namespace, TemporalUI: cfg.Temporal.UIURL, TaskQueue: contract.TaskQueue,
			Platform: newStatus(c),
		},
	}
	if cfg.Auth.Mode == config.ModeTokens {
		options.Access.Authenticator = tokens
	}
	if cfg.HasRole(config.RoleAPI) {
		if err := addServices(&options, c, tokens); err != nil {
			return nil, err
		}
	}
	if t := cfg.ListenTLS; t.Enabled() {
		certificate, err := rpc.OpenCertificate(
			rpc.CertificateFiles{Cert: t.CertFile, Key: t.KeyFile, ClientCA: t.ClientCAFile})
		if err != nil {
			return nil, err
		}
		options.TLS = certificate.Config()
		if err := c.telemetry.ObserveListener(func(ctx context.Context) (renewal, expiry time.Time) {
			found := certificate.Current(ctx)
			return renewalDue(found), found.NotAfter
		}); err != nil {
			return nil, err
		}
	}
	return rpc.NewServer(options)
}

// addServices adds what only a process with the API role serves.
func addServices(options *rpc.Options, c *components, tokens *token.Service) (err error) {
	events, s := c.events, c.storage
	options.Tokens, options.Audit = tokens, s
	options.Sessions = session.NewService(s.Sessions(), tokens,
		session.Options{Idle: c.cfg.Auth.SessionIdle, Max: c.cfg.Auth.SessionMax, Now: time.Now, Log: c.log})
	options.Projects, options.Workflows, options.Clock = c.definitions.projects, c.definitions.workflows,
		c.connection.engine.Schedules()
	options.Functions = c.definitions.functions
	options.Statistics = statistics.NewService(statistics.Options{
		Store: s.Statistics(), Runs: s, Workflows: c.definitions.workflows, Documents: s.documents, Now: time.Now,
	})
	options.Search = search.NewService(s.Search(), time.Now)
	options.Annotations = annotation.NewService(annotation.Options{
		Outages: s.Annotations(), Publications: s.Annotations(), Owners: events.service, Projects: s,
		TaskQueue: contract.TaskQueue, Now: time.Now,
	})
	options.Runs, options.Batches, options.Quotas = c.runs.service, c.batches.service, c.quotas.service
	options.Webhooks = c.webhooks.service
	options.Views = view.NewService(s.Views(), c.runs.service, time.Now)
	options.RunLists = livelist.New(s.sealed.rows, c.records.changes)
	options.Events, options.EventLimits, options.RunDeliveries = events.service, eventLimits(c.cfg), events.service
	options.Dispatchers, options.Problems = c.problems.dispatchers, c.problems.service
	options.Unredacted = sealed.NewViewer(s.sealed.Sealer, c.runs.service, s, time.Now)
	options.StepValues = read.NewStepValueReader(
		read.StepValueOptions{Runs: c.runs.service, Source: c.connection.engine, Redactor: s.sealed.Sealer})
	options.Logs = read.NewLogReader(read.LogOptions{
		Store: s, Runs: c.runs.service, Running: c.connection.engine.RunningLogs, Redact: s.sealed.Sealer.Text,
	})
	options.Explainer = explain.New(explain.Options{
		Store: s.Waits(), Events: s.sealed.events, Runs: c.runs.service, Redactor: s.sealed.Sealer, Documents: s.documents,
		Key: interp.EntryKey,
	})
	ui, err := webui.New(webui.Built())
	if err != nil {
		return err
	}
	options.UI = ui
	options.Codec, err = codecEndpoint(c)
	return err
}

// codecEndpoint returns the codec endpoint for Temporal's UI, if it is enabled.
func codecEndpoint(c *components) (codec rpc.Codec, err error) {
	if !c.cfg.Encryption.CodecEndpoint {
		return rpc.Codec{}, nil
	}
	codec.Origins = c.cfg.Encryption.CodecOrigins
	codec.Path, codec.Handler, codec.MaxBytes, err = c.connection.engine.CodecEndpoint(
		func(ctx context.Context, namespace string) error {
			return c.storage.WriteAudit(ctx, audit.NewEntry(ctx, time.Now(), audit.PayloadsOpen, "", namespace, ""))
		})
	return codec, err
}

const (
	// deniedRate and deniedBurst bound the audit entries for denied calls of one actor, so that repeated attempts cannot
	// fill the database.
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
	d.log.WarnContext(ctx, "A call was denied", "method", n.Method, "actor", actor.Name, "token", actor.ID,
		"project", n.Project, "role", string(n.Role))
	if !n.Changes || d.limit.Take(actor.ID) > 0 {
		return
	}
	// The entry belongs to no project, because the project that the caller named may not exist.
	entry := audit.NewEntry(ctx, time.Now(), audit.AccessDenied, "", n.Method, "")
	entry.Detail, _ = json.Marshal( //nolint:errchkjson // texts always encode
		map[string]string{"project": bounded(n.Project), "role": string(n.Role),
			"token": actor.ID})
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
