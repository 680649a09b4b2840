package app

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/run/start"
)

// quotaControl enforces the quotas of projects.
type quotaControl struct {
	service   *quota.Service
	admission *start.Admission
}

// newQuotaControl creates the parts. After it returns, the store notifies admission when a run can be admitted.
func newQuotaControl(p *process, s *storage, r *records, c *connection, runs *runs) (*quotaControl, error) {
	admission := start.NewAdmission(runs.starts, s.Quotas(), s, r.changes, runs.options)
	s.OnAdmissible(admission.Wake)
	c.onConnect("admission", admission.WakeAll)
	service := quota.NewService(s.Quotas(),
		quota.Options{Now: time.Now, Admit: admission.Wake, Engine: c.engine, Runs: runs.service})
	return &quotaControl{service, admission}, p.telemetry.ObserveQuotas(s.Quotas().HeldUp)
}
