package store

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/webhook"
)

func webhookDeliveryFields(d *webhook.Delivery) sqlrow.Fields {
	return sqlrow.Row(
		"id", &d.ID, "project", &d.Project, "webhook", &d.Webhook, "position", &d.Position, "status", &d.Status,
		"due_at", sqlrow.TimeInto(&d.NextAt), "attempts", &d.Attempts, "retry_from", sqlrow.TimeInto(&d.RetryFrom),
		"failures", &d.Failures, "http_status", &d.HTTPStatus, "created_at", sqlrow.TimeInto(&d.CreatedAt),
		"updated_at", sqlrow.TimeInto(&d.UpdatedAt), "event_id", &d.EventID, "event_source", &d.EventSource,
		"event_type", &d.EventType, "reason", &d.Reason,
	)
}

func selectDeliveries() string {
	return `SELECT ` + sqlrow.Columns(webhookDeliveryFields) + ` FROM webhook_deliveries d`
}

func wholeDeliveryFields(d *webhook.Delivery) sqlrow.Fields {
	return append(webhookDeliveryFields(d), sqlrow.Col("history", sqlrow.JSONInto(&d.History)),
		sqlrow.Col("event", sqlrow.RawInto(&d.Event)))
}

func selectWholeDeliveries() string {
	return `SELECT ` + sqlrow.Columns(wholeDeliveryFields) + ` FROM webhook_deliveries d`
}

// insert adds deliveries that do not exist, due at once. It returns how many it added.
func (s *Webhooks) insert(ctx context.Context, c sqldb.Conn, now int64, list []webhook.Delivery) (int64, error) {
	at := time.UnixMicro(now)
	return sqlrow.InsertMany(ctx, c, s.db.Dialect(), "webhook_deliveries", ` ON CONFLICT (id) DO NOTHING`, list,
		func(d webhook.Delivery) sqlrow.Fields {
			fresh := webhook.Delivery{
				ID: d.ID, Project: d.Project, Webhook: d.Webhook, Position: d.Position, Status: webhook.Pending, NextAt: at,
				RetryFrom: at, CreatedAt: at, UpdatedAt: at,
				EventID: d.EventID, EventSource: d.EventSource, EventType: d.EventType, Event: d.Event,
			}
			return append(webhookDeliveryFields(&fresh), sqlrow.Col("claim", ""),
				sqlrow.Col("event", sqlrow.RawInto(&fresh.Event)))
		})
}

// InsertTest implements [webhook.Store].
func (s *Webhooks) InsertTest(ctx context.Context, d webhook.Delivery, lease time.Duration,
	e audit.Entry) (claim webhook.Claim, err error) {
	err = s.db.Write(ctx, "insert test delivery", func(ctx context.Context, c sqldb.Conn) error {
		now, err := s.now(ctx, c)
		if err != nil {
			return err
		}
		if _, err := s.insert(ctx, c, now, []webhook.Delivery{d}); err != nil {
			return err
		}
		if err := ledger.Add(ctx, c, e); err != nil {
			return err
		}
		claims, err := s.claim(ctx, c, now, d.Webhook, ` AND d.id = $2`, []any{d.Webhook, d.ID}, 1, lease)
		if err == nil && len(claims) == 1 {
			claim = claims[0]
		}
		return err
	})
	return claim, err
}

// now returns the database's time in microseconds.
func (s *Webhooks) now(ctx context.Context, c sqldb.Conn) (now int64, err error) {
	err = c.QueryRowContext(ctx, `SELECT `+s.db.Dialect().Now).Scan(&now)
	return now, err
}

// ListDeliveries implements [webhook.Store]. Each status has index ranges of its own, which are merged.
func (s *Webhooks) ListDeliveries(ctx context.Context, f webhook.DeliveryFilter) (list []webhook.Delivery, err error) {
	var w sqlrow.Where
	w.Is("d.webhook", "=", f.Webhook)
	if f.After != nil {
		w.Conditions = append(w.Conditions,
			"(d.created_at, d.id) < ("+w.Arg(f.After.At.UnixMicro())+", "+w.Arg(f.After.ID)+")")
	}
	sqlrow.OneOf(&w, "d.status", f.Statuses)
	err = s.db.Read(ctx, "list webhook deliveries", func(ctx context.Context, c sqldb.Conn) error {
		list, err = sqlrow.Collect(ctx, c,
			selectDeliveries()+w.String()+` ORDER BY d.created_at DESC, d.id DESC`+
				sqlrow.Limit(f.Limit), w.Args, sqlrow.Scan(webhookDeliveryFields))
		return err
	})
	return list, err
}

// GetDelivery implements [webhook.Store].
func (s *Webhooks) GetDelivery(ctx context.Context, project, id string) (d webhook.Delivery, err error) {
	err = s.db.Read(ctx, "get webhook delivery", func(ctx context.Context, c sqldb.Conn) error {
		d, err = sqlrow.One(ctx, c, selectWholeDeliveries()+` WHERE d.id = $1 AND d.project = $2`, []any{id, project},
			sqlrow.Scan(wholeDeliveryFields), func() error {
				return missingDelivery(ctx, c, project, id)
			})
		if err != nil {
			return err
		}
		d.WebhookName, err = sqlrow.One(ctx, c, `SELECT name FROM webhooks WHERE id = $1`, []any{d.Webhook}, sqlrow.ScanText,
			func() error {
				return missingDelivery(ctx, c, project, id)
			})
		return err
	})
	return d, err
}

func missingDelivery(ctx context.Context, c sqldb.Conn, project, id string) error {
	if err := ledger.NeedProject(ctx, c, project); err != nil {
		return err
	}
	return webhook.NoDelivery(project, id)
}

// Redeliver implements [webhook.Store].
func (s *Webhooks) Redeliver(ctx context.Context, project, id string, e audit.Entry) error {
	return s.db.Write(ctx, "redeliver to webhook", func(ctx context.Context, c sqldb.Conn) error {
		now := s.db.Dialect().Now
		changed, err := sqlrow.Affected(ctx, c,
			`UPDATE webhook_deliveries SET status = 'pending', retry_from = `+now+`, failures = 0, updated_at = `+now+`,
due_at = CASE WHEN EXISTS (SELECT 1 FROM webhooks w WHERE w.id = webhook_deliveries.webhook
AND w.paused_at IS NOT NULL) THEN NULL ELSE `+now+` END
WHERE id = $1 AND project = $2 AND (claimed_until IS NULL OR claimed_until <= `+now+`)`, id, project)
		if err != nil {
			return err
		}
		if changed {
			return ledger.Add(ctx, c, e)
		}
		there, err := sqlrow.Exists(ctx, c, `SELECT 1 FROM webhook_deliveries WHERE id = $1 AND project = $2`, id, project)
		if err == nil && !there {
			err = missingDelivery(ctx, c, project, id)
		}
		return err
	})
}

// DeleteDeliveries deletes up to limit finished deliveries that were last changed before the given time, and returns
// how many.
func (s *Webhooks) DeleteDeliveries(ctx context.Context, before time.Time, limit int) (deleted int64, err error) {
	err = s.db.Exec(ctx, "delete webhook deliveries", func(ctx context.Context, c sqldb.Conn) error {
		result, err := c.ExecContext(ctx, `DELETE FROM webhook_deliveries WHERE id IN (
SELECT id FROM webhook_deliveries WHERE status <> 'pending' AND updated_at < $1`+sqlrow.Limit(limit)+`)
AND status <> 'pending'`, before.UnixMicro())
		if err != nil {
			return err
		}
		deleted, err = result.RowsAffected()
		return err
	})
	return deleted, err
}
