package app

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/reconcile"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/quotas"
)

// quotaControl enforces the quotas of projects.
type quotaControl struct {
	service   *quota.Service
	admission *reconcile.Admission
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

// newQuotaControl creates the parts. After it returns, the store notifies admission when a run can be admitted.
func newQuotaControl(p *process, s *storage, r *records, c *connection, runs *runs) (*quotaControl, error) {
	admission := reconcile.NewAdmission(runs.service.Service, admissionStore{s.Quotas(), s.Store}, r.changes, runs.options)
	s.OnAdmissible(admission.Wake)
	c.onConnect("admission", admission.WakeAll)
	service := quota.NewService(s.Quotas(),
		quota.Options{Now: time.Now, Admit: admission.Wake, Engine: c.engine, Runs: runs.service})
	return &quotaControl{service, admission}, p.telemetry.ObserveQuotas(s.Quotas().HeldUp)
}
