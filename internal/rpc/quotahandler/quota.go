// Package quotahandler answers the QuotaService: it translates between messages and the domain's service of quotas and decides
// nothing else.
//
//	path, h := signalboxv1connect.NewQuotaServiceHandler(quotahandler.New(quotas))
package quotahandler

import (
	"context"
	"math"
	"time"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
)

// Service is the domain's side of quotas. What is wrong with a quota or its project is its to say.
type Service interface {
	Get(ctx context.Context, project string) (quota.Usage, error)
	Set(ctx context.Context, project string, q quota.Quota) (quota.Usage, error)
	// Resume tells runs that wait for steps to go on, all where no IDs are given, and returns how many it told.
	Resume(ctx context.Context, project string, ids []string, reason string) (int, error)
}

// Handler answers signalbox.v1.QuotaService.
type Handler struct{ service Service }

// New returns the handler.
func New(service Service) *Handler { return &Handler{service: service} }

// GetQuota returns a project's quota and how much of it is used.
func (h *Handler) GetQuota(
	ctx context.Context, req *connect.Request[signalboxv1.GetQuotaRequest],
) (*connect.Response[signalboxv1.GetQuotaResponse], error) {
	u, err := h.service.Get(ctx, message.ProjectOf(req.Msg.GetProject()))
	return message.Reply(&signalboxv1.GetQuotaResponse{
		Quota: quotaMessage(u.Quota), AdmittedRuns: u.Admitted, QueuedRuns: u.Queued, UsedSteps: u.Used, ResetTime: message.Timestamp(u.Next),
		WaitingRuns: u.Waiting,
	}, err)
}

// SetQuota replaces a project's quota.
func (h *Handler) SetQuota(
	ctx context.Context, req *connect.Request[signalboxv1.SetQuotaRequest],
) (*connect.Response[signalboxv1.SetQuotaResponse], error) {
	u, err := h.service.Set(ctx, message.ProjectOf(req.Msg.GetProject()), quotaOf(req.Msg.GetQuota()))
	return message.Reply(&signalboxv1.SetQuotaResponse{Quota: quotaMessage(u.Quota)}, err)
}

// ResumeQuota lets runs that wait for steps go on.
func (h *Handler) ResumeQuota(
	ctx context.Context, req *connect.Request[signalboxv1.ResumeQuotaRequest],
) (*connect.Response[signalboxv1.ResumeQuotaResponse], error) {
	m := req.Msg
	resumed, err := h.service.Resume(ctx, message.ProjectOf(m.GetProject()), m.GetRunIds(), m.GetReason())
	return message.Reply(&signalboxv1.ResumeQuotaResponse{Resumed: int64(resumed)}, err)
}

func quotaMessage(q quota.Quota) *signalboxv1.Quota {
	return &signalboxv1.Quota{ConcurrentRuns: q.ConcurrentRuns, Steps: q.Steps, PeriodSeconds: int64(q.Period / time.Second)}
}

func quotaOf(m *signalboxv1.Quota) quota.Quota {
	return quota.Quota{ConcurrentRuns: m.GetConcurrentRuns(), Steps: m.GetSteps(), Period: seconds(m.GetPeriodSeconds())}
}

// seconds as a duration; what is beyond the longest one is that one, which no quota may have.
func seconds(n int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Second)
	return time.Duration(max(-most, min(n, most))) * time.Second
}
