package app

import (
	"context"

	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/admission"
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
	runs *run.Service, manager *conn.Manager, changes *run.Changes, options run.Options, tel *telemetry.Telemetry,
) (quotaParts, error) {
	admitting := admission.New(runs, placing{a.store.Quotas(), a.store}, a.engine, changes, options)
	a.store.OnPlaces(admitting.Wake)
	manager.OnConnect("admission", func(context.Context, client.Client) error {
		admitting.WakeAll()
		return nil
	})
	return quotaParts{
		service:   quota.NewService(a.store.Quotas(), quota.Options{Now: options.Now, Admit: admitting.Wake}),
		admission: admitting,
	}, tel.ObserveQuotas(a.heldUp)
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
