package app

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/pending"
	"github.com/signalbox-dev/signalbox/internal/store"
)

// quotaControl enforces the quotas of projects.
type quotaControl struct {
	service   *quota.Service
	admission *pending.Admission
}

// admissionStore is the store that admission uses.
type admissionStore struct {
	*store.Quotas

	runs *store.Store
}

// GetRun implements [run.AdmissionStore].
func (p admissionStore) GetRun(ctx context.Context, project, id string) (run.Run, error) {
	return p.runs.GetRun(ctx, project, id)
}

// newQuotaControl creates the parts. After it returns, the store notifies admission when a run can be admitted.
func newQuotaControl(p *process, s *storage, r *records, c *connection, runs *runs) (*quotaControl, error) {
	admission := pending.NewAdmission(runs.service.Service, admissionStore{s.Quotas(), s.Store}, r.changes, runs.options)
	s.OnAdmissible(admission.Wake)
	c.onConnect("admission", admission.WakeAll)
	service := quota.NewService(s.Quotas(),
		quota.Options{Now: time.Now, Admit: admission.Wake, Engine: c.engine, Runs: runs.service})
	return &quotaControl{service, admission}, p.telemetry.ObserveQuotas(s.Quotas().HeldUp)
}

// grant is the activity in which runs request steps.
func (q *quotaControl) grant(ctx context.Context, r flow.QuotaRequest) (flow.QuotaGrant, error) {
	g, err := q.service.Grant(ctx, quota.Request{Project: r.Project, RunID: r.RunID, Granted: r.Granted, Entered: r.Used})
	return flow.QuotaGrant{Steps: g.Steps, ResetAt: g.Until, Used: g.Used, Limit: g.Limit}, err
}
