package app

import (
	"context"

	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
	"github.com/signalbox-dev/signalbox/internal/run/pending"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/quotas"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
)

// quotaParts holds the parts that enforce project quotas.
type quotaParts struct {
	service   *quota.Service
	admission *pending.Admission
}

// admissionStore is the store that admission uses.
type admissionStore struct {
	*quotas.Store

	runs *store.Store
}

// GetRun implements [run.AdmissionStore].
func (p admissionStore) GetRun(ctx context.Context, project, id string) (run.Run, error) {
	return p.runs.GetRun(ctx, project, id)
}

// newQuotaParts creates the parts. After it returns, the store notifies admission when a run can be admitted.
func (a *App) newQuotaParts(
	runs *control.Service, manager *conn.Manager, changes *pubsub.Notifier, options run.Options, tel *telemetry.Telemetry,
) (quotaParts, error) {
	admitting := pending.NewAdmission(runs.Service, admissionStore{a.store.Quotas(), a.store}, changes, options)
	a.store.OnAdmissible(admitting.Wake)
	manager.OnConnect("admission", func(context.Context, client.Client) error {
		admitting.WakeAll()
		return nil
	})
	return quotaParts{
		service: quota.NewService(a.store.Quotas(), quota.Options{
			Now: options.Now, Admit: admitting.Wake, Engine: a.engine, Runs: runs,
		}),
		admission: admitting,
	}, tel.ObserveQuotas(a.store.Quotas().HeldUp)
}

// grant is the activity in which runs request steps.
func (p quotaParts) grant(ctx context.Context, r flow.QuotaRequest) (flow.QuotaGrant, error) {
	g, err := p.service.Grant(ctx, quota.Request{Project: r.Project, RunID: r.RunID, Granted: r.Granted, Entered: r.Used})
	return flow.QuotaGrant{Steps: g.Steps, ResetAt: g.Until, Used: g.Used, Limit: g.Limit}, err
}
