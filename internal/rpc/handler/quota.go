package handler

import (
	"context"
	"math"
	"time"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
)

// QuotaService is the domain's service of quotas. It validates quotas and projects.
type QuotaService interface {
	Get(ctx context.Context, project string) (quota.Usage, error)
	Set(ctx context.Context, project string, q quota.Quota) (quota.Usage, error)
	// Resume resumes runs that wait for steps, all of them if no IDs are given, and returns how many it resumed.
	Resume(ctx context.Context, project string, ids []string, reason string) (int, error)
}

// Quotas implements signalbox.v1.QuotaService.
type Quotas struct{ service QuotaService }

// GetQuota returns a project's quota and its use.
func (h *Quotas) GetQuota(
	ctx context.Context, req *connect.Request[signalboxv1.GetQuotaRequest],
) (*connect.Response[signalboxv1.GetQuotaResponse], error) {
	u, err := h.service.Get(ctx, message.ProjectOf(req.Msg.GetProject()))
	return message.Reply(&signalboxv1.GetQuotaResponse{
		Quota: quotaMessage(u.Quota), AdmittedRuns: u.Admitted, QueuedRuns: u.Queued, UsedSteps: u.Used,
		ResetTime:   message.Timestamp(u.Next),
		WaitingRuns: u.Waiting,
	}, err)
}

// SetQuota replaces a project's quota.
func (h *Quotas) SetQuota(
	ctx context.Context, req *connect.Request[signalboxv1.SetQuotaRequest],
) (*connect.Response[signalboxv1.SetQuotaResponse], error) {
	u, err := h.service.Set(ctx, message.ProjectOf(req.Msg.GetProject()), quotaOf(req.Msg.GetQuota()))
	return message.Reply(&signalboxv1.SetQuotaResponse{Quota: quotaMessage(u.Quota)}, err)
}

// ResumeQuota resumes runs that wait for steps.
func (h *Quotas) ResumeQuota(
	ctx context.Context, req *connect.Request[signalboxv1.ResumeQuotaRequest],
) (*connect.Response[signalboxv1.ResumeQuotaResponse], error) {
	m := req.Msg
	resumed, err := h.service.Resume(ctx, message.ProjectOf(m.GetProject()), m.GetRunIds(), m.GetReason())
	return message.Reply(&signalboxv1.ResumeQuotaResponse{Resumed: int64(resumed)}, err)
}

func quotaMessage(q quota.Quota) *signalboxv1.Quota {
	return &signalboxv1.Quota{
		ConcurrentRuns: q.ConcurrentRuns, Steps: q.Steps, PeriodSeconds: int64(q.Period / time.Second)}
}

func quotaOf(m *signalboxv1.Quota) quota.Quota {
	return quota.Quota{ConcurrentRuns: m.GetConcurrentRuns(), Steps: m.GetSteps(), Period: seconds(m.GetPeriodSeconds())}
}

// seconds converts to a duration. Values beyond the longest duration become that one, which is over the limit of every
// quota.
func seconds(n int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Second)
	return time.Duration(max(-most, min(n, most))) * time.Second
}
