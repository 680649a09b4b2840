package app

import (
	"context"

	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/notice"
	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/admission"
	"github.com/signalbox-dev/signalbox/internal/run/control"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/quotas"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
)

// quotaParts are what gives out what projects may use.
type quotaParts struct {
	service   *quota.Service
	admission *admission.Admission
}

// placing is the store as admission sees it.
type placing struct {
	*quotas.Store

	runs *store.Store
}

// GetRun implements [admission.Store].
func (p placing) GetRun(ctx context.Context, project, id string) (run.Run, error) {
	return p.runs.GetRun(ctx, project, id)
}

// quotas makes the parts over the service of runs. From then on the ends of runs are told to admission.
func (a *App) quotas(
	runs *control.Service, starter run.Engine, manager *conn.Manager, changes *notice.Board, options run.Options, tel *telemetry.Telemetry,
) (quotaParts, error) {
	admitting := admission.New(runs.Service, placing{a.store.Quotas(), a.store}, starter, changes, options)
	a.store.OnPlaces(admitting.Wake)
	manager.OnConnect("admission", func(context.Context, client.Client) error {
		admitting.WakeAll()
		return nil
	})
	return quotaParts{
		service: quota.NewService(a.store.Quotas(), quota.Options{
			Now: options.Now, Admit: admitting.Wake, Engine: a.engine, Runs: runs,
		}),
		admission: admitting,
	}, tel.ObserveQuotas(a.heldUp)
}

// grant is the activity in which runs ask for steps.
func (p quotaParts) grant(ctx context.Context, r flow.QuotaRequest) (flow.QuotaGrant, error) {
	g, err := p.service.Grant(ctx, quota.Request{Project: r.Project, RunID: r.RunID, Granted: r.Granted, Entered: r.Used})
	return flow.QuotaGrant{Steps: g.Steps, ResetAt: g.Until, Used: g.Used, Limit: g.Limit}, err
}

// heldUp is what quotas hold up, as it is measured.
func (a *App) heldUp(ctx context.Context) ([]telemetry.Held, error) {
	held, err := a.store.Quotas().HeldUp(ctx)
	all := make([]telemetry.Held, len(held))
	for i, h := range held {
		all[i] = telemetry.Held(h)
	}
	return all, err
}
