package handler

import (
	"context"
	"encoding/json"
	"time"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/webhook"
)

// WebhookService is the domain's service of webhooks.
type WebhookService interface {
	List(ctx context.Context, project string) ([]webhook.Webhook, error)
	Get(ctx context.Context, project, name string) (webhook.Webhook, error)
	// Create and RotateSecret also return the secret.
	Create(ctx context.Context, w webhook.Webhook, t webhook.Target) (webhook.Webhook, string, error)
	Update(ctx context.Context, project, name string, u webhook.Update) (webhook.Webhook, error)
	Pause(ctx context.Context, project, name, reason string) (webhook.Webhook, error)
	Unpause(ctx context.Context, project, name string) (webhook.Webhook, error)
	RotateSecret(ctx context.Context, project, name string, keep time.Duration) (webhook.Webhook, string, error)
	Delete(ctx context.Context, project, name string) error
	Test(ctx context.Context, project, name string) (webhook.Delivery, error)
	Deliveries(ctx context.Context, project, name string, f webhook.DeliveryFilter) ([]webhook.Delivery, error)
	Delivery(ctx context.Context, project, id string) (webhook.Delivery, error)
	Redeliver(ctx context.Context, project, id, reason string) (webhook.Delivery, error)
}

// defaultKeep is how long the previous secret is valid where a rotation does not say it.
const defaultKeep = 24 * time.Hour

// Webhooks implements signalbox.v1.WebhookService.
type Webhooks struct{ service WebhookService }

// CreateWebhook creates a webhook.
func (h *Webhooks) CreateWebhook(
	ctx context.Context, req *connect.Request[signalboxv1.CreateWebhookRequest],
) (*connect.Response[signalboxv1.CreateWebhookResponse], error) {
	m := req.Msg
	w, secret, err := h.service.Create(ctx, webhook.Webhook{
		Project: message.ProjectOf(m.GetProject()), Name: m.GetName(), Format: webhook.Format(m.GetFormat()),
		Filter: webhookFilterOf(m.GetFilter()),
	}, webhook.Target{URL: m.GetUrl(), RoutingKey: m.GetRoutingKey()})
	return message.Reply(&signalboxv1.CreateWebhookResponse{Webhook: webhookMessage(w), Secret: secret}, err)
}

// ListWebhooks lists the webhooks of a project.
func (h *Webhooks) ListWebhooks(
	ctx context.Context, req *connect.Request[signalboxv1.ListWebhooksRequest],
) (*connect.Response[signalboxv1.ListWebhooksResponse], error) {
	list, err := h.service.List(ctx, message.ProjectOf(req.Msg.GetProject()))
	res := &signalboxv1.ListWebhooksResponse{}
	for _, w := range list {
		res.Webhooks = append(res.Webhooks, webhookMessage(w))
	}
	return message.Reply(res, err)
}

// GetWebhook returns a webhook.
func (h *Webhooks) GetWebhook(
	ctx context.Context, req *connect.Request[signalboxv1.GetWebhookRequest],
) (*connect.Response[signalboxv1.GetWebhookResponse], error) {
	w, err := h.service.Get(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetName())
	return message.Reply(&signalboxv1.GetWebhookResponse{Webhook: webhookMessage(w)}, err)
}

// UpdateWebhook changes the settings of a webhook.
func (h *Webhooks) UpdateWebhook(
	ctx context.Context, req *connect.Request[signalboxv1.UpdateWebhookRequest],
) (*connect.Response[signalboxv1.UpdateWebhookResponse], error) {
	m := req.Msg
	u := webhook.Update{URL: m.Url, RoutingKey: m.RoutingKey}
	if m.GetFilter() != nil {
		f := webhookFilterOf(m.GetFilter())
		u.Filter = &f
	}
	w, err := h.service.Update(ctx, message.ProjectOf(m.GetProject()), m.GetName(), u)
	return message.Reply(&signalboxv1.UpdateWebhookResponse{Webhook: webhookMessage(w)}, err)
}

// PauseWebhook pauses a webhook.
func (h *Webhooks) PauseWebhook(
	ctx context.Context, req *connect.Request[signalboxv1.PauseWebhookRequest],
) (*connect.Response[signalboxv1.PauseWebhookResponse], error) {
	w, err := h.service.Pause(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetName(), req.Msg.GetReason())
	return message.Reply(&signalboxv1.PauseWebhookResponse{Webhook: webhookMessage(w)}, err)
}

// UnpauseWebhook continues a webhook.
func (h *Webhooks) UnpauseWebhook(
	ctx context.Context, req *connect.Request[signalboxv1.UnpauseWebhookRequest],
) (*connect.Response[signalboxv1.UnpauseWebhookResponse], error) {
	w, err := h.service.Unpause(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetName())
	return message.Reply(&signalboxv1.UnpauseWebhookResponse{Webhook: webhookMessage(w)}, err)
}

// RotateWebhookSecret replaces the secret of a webhook.
func (h *Webhooks) RotateWebhookSecret(
	ctx context.Context, req *connect.Request[signalboxv1.RotateWebhookSecretRequest],
) (*connect.Response[signalboxv1.RotateWebhookSecretResponse], error) {
	keep := defaultKeep
	if m := req.Msg.GetKeepPrevious(); m != nil {
		if m.CheckValid() != nil {
			return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument,
				"keep_previous is not a duration").WithField("keep_previous", "is not a duration")
		}
		keep = m.AsDuration()
	}
	w, secret, err := h.service.RotateSecret(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetName(), keep)
	return message.Reply(&signalboxv1.RotateWebhookSecretResponse{Webhook: webhookMessage(w), Secret: secret}, err)
}

// DeleteWebhook deletes a webhook.
func (h *Webhooks) DeleteWebhook(
	ctx context.Context, req *connect.Request[signalboxv1.DeleteWebhookRequest],
) (*connect.Response[signalboxv1.DeleteWebhookResponse], error) {
	err := h.service.Delete(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetName())
	return message.Reply(&signalboxv1.DeleteWebhookResponse{}, err)
}

// TestWebhook sends a test event.
func (h *Webhooks) TestWebhook(
	ctx context.Context, req *connect.Request[signalboxv1.TestWebhookRequest],
) (*connect.Response[signalboxv1.TestWebhookResponse], error) {
	d, err := h.service.Test(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetName())
	return message.Reply(&signalboxv1.TestWebhookResponse{Delivery: deliveryMessage(d)}, err)
}

// ListWebhookDeliveries lists deliveries, newest first.
func (h *Webhooks) ListWebhookDeliveries(
	ctx context.Context, req *connect.Request[signalboxv1.ListWebhookDeliveriesRequest],
) (*connect.Response[signalboxv1.ListWebhookDeliveriesResponse], error) {
	m := req.Msg
	var f webhook.DeliveryFilter
	for _, status := range m.GetStatuses() {
		f.Statuses = append(f.Statuses, webhook.Status(status))
	}
	found, next, err := listPage(m, pageDefault, pageMost,
		func(after *webhook.DeliveryCursor, limit int) ([]webhook.Delivery, error) {
			f.After, f.Limit = after, limit
			return h.service.Deliveries(ctx, message.ProjectOf(m.GetProject()), m.GetName(), f)
		}, func(d webhook.Delivery) webhook.DeliveryCursor {
			return webhook.DeliveryCursor{At: d.CreatedAt, ID: d.ID}
		})
	res := &signalboxv1.ListWebhookDeliveriesResponse{NextPageToken: next}
	for _, d := range found {
		res.Deliveries = append(res.Deliveries, deliveryMessage(d))
	}
	return message.Reply(res, err)
}

// GetWebhookDelivery returns a delivery.
func (h *Webhooks) GetWebhookDelivery(
	ctx context.Context, req *connect.Request[signalboxv1.GetWebhookDeliveryRequest],
) (*connect.Response[signalboxv1.GetWebhookDeliveryResponse], error) {
	d, err := h.service.Delivery(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetId())
	return message.Reply(&signalboxv1.GetWebhookDeliveryResponse{Delivery: deliveryMessage(d)}, err)
}

// RedeliverWebhookDelivery makes a delivery due.
func (h *Webhooks) RedeliverWebhookDelivery(
	ctx context.Context, req *connect.Request[signalboxv1.RedeliverWebhookDeliveryRequest],
) (*connect.Response[signalboxv1.RedeliverWebhookDeliveryResponse], error) {
	d, err := h.service.Redeliver(ctx, message.ProjectOf(req.Msg.GetProject()), req.Msg.GetId(), req.Msg.GetReason())
	return message.Reply(&signalboxv1.RedeliverWebhookDeliveryResponse{Delivery: deliveryMessage(d)}, err)
}

func webhookFilterOf(m *signalboxv1.WebhookFilter) webhook.Filter {
	f := webhook.Filter{Types: m.GetTypes()}
	if text := m.GetWith().GetJson(); text != "" {
		f.With = json.RawMessage(text)
	}
	return f
}

// The statuses of a webhook.
const (
	statusActive  = "active"
	statusFailing = "failing" // each attempt has failed for a while
	statusPaused  = "paused"
)

// WebhookStatuses returns all statuses of a webhook.
func WebhookStatuses() []string { return []string{statusActive, statusFailing, statusPaused} }

func webhookMessage(w webhook.Webhook) *signalboxv1.Webhook {
	status := statusActive
	switch {
	case w.Paused():
		status = statusPaused
	case !w.FailingSince.IsZero():
		status = statusFailing
	}
	return &signalboxv1.Webhook{
		Id: w.ID, Project: w.Project, Name: w.Name, Url: w.URL, Format: string(w.Format),
		Filter: &signalboxv1.WebhookFilter{Types: w.Filter.Types, With: message.JSON(w.Filter.With)},
		Status: status, PauseReason: w.PauseReason, PauseTime: message.Timestamp(w.PausedAt),
		FailingTime: message.Timestamp(w.FailingSince),
		LastError:   w.LastError, LastSuccessTime: message.Timestamp(w.SucceededAt), Pending: w.Pending,
		OldestPendingTime:        message.Timestamp(w.OldestPending),
		PreviousSecretExpireTime: message.Timestamp(w.PreviousUntil), Creator: w.Creator,
		CreateTime: message.Timestamp(w.CreatedAt),
		Updater:    w.Updater, UpdateTime: message.Timestamp(w.UpdatedAt),
	}
}

func deliveryMessage(d webhook.Delivery) *signalboxv1.WebhookDelivery {
	m := &signalboxv1.WebhookDelivery{
		Id: d.ID, Webhook: d.WebhookName, Position: d.Position, EventId: d.EventID, EventSource: d.EventSource,
		EventType: d.EventType,
		Status:    string(d.Status), NextTime: message.Timestamp(d.NextAt), Reason: d.Reason,
		Attempts: int32(d.Attempts), HttpStatus: int32(d.HTTPStatus), //nolint:gosec // both are small
		CreateTime: message.Timestamp(d.CreatedAt), UpdateTime: message.Timestamp(d.UpdatedAt), Event: message.JSON(d.Event),
	}
	for _, a := range d.History {
		m.History = append(m.History, &signalboxv1.WebhookAttempt{
			Time: message.Timestamp(a.Time), Duration: message.Duration(a.Duration),
			HttpStatus: int32(a.HTTPStatus), //nolint:gosec // a status
			Error:      a.Error, Response: a.Response,
		})
	}
	return m
}
