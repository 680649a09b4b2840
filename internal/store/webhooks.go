package store

import (
	"bytes"
	"context"

	"github.com/signalbox-dev/signalbox/internal/store/events"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/webhook"
)

// Webhooks stores webhooks and their deliveries. It implements [webhook.Store] and [webhook.Queue], and is safe for
// concurrent use.
//
// A process that matches events locks the project's row of positions, and commits the deliveries with the new position:
// each event is matched once. A process that claims deliveries locks the webhook's row. Times are the database's own.
type Webhooks struct {
	db     *sqldb.DB
	events *events.Store
}

var (
	_ webhook.Store = (*Webhooks)(nil)
	_ webhook.Queue = (*Webhooks)(nil)
)

func webhookFields(w *webhook.Webhook) sqlrow.Fields {
	return sqlrow.Row(
		"id", &w.ID, "project", &w.Project, "name", &w.Name, "url", &w.URL, "format", &w.Format,
		"filter", sqlrow.JSONInto(&w.Filter), "sealed", &w.Sealed, "since", &w.Since,
		"paused_at", sqlrow.TimeInto(&w.PausedAt), "pause_reason", &w.PauseReason,
		"failing_since", sqlrow.TimeInto(&w.FailingSince), "last_error", &w.LastError,
		"succeeded_at", sqlrow.TimeInto(&w.SucceededAt), "previous_until", sqlrow.TimeInto(&w.PreviousUntil),
		"creator", &w.Creator, "updater", &w.Updater, "created_at", sqlrow.TimeInto(&w.CreatedAt),
		"updated_at", sqlrow.TimeInto(&w.UpdatedAt),
	)
}

func selectWebhooks() string { return `SELECT ` + sqlrow.Columns(webhookFields) + ` FROM webhooks w` }

// listedWebhook adds the unfinished deliveries.
func listedWebhook(w *webhook.Webhook) sqlrow.Fields {
	const pending = ` FROM webhook_deliveries d WHERE d.webhook = w.id AND d.status = 'pending')`
	return append(webhookFields(w), sqlrow.Col(`(SELECT COUNT(*)`+pending, &w.Pending),
		sqlrow.Col(`(SELECT MIN(d.created_at)`+pending, sqlrow.TimeInto(&w.OldestPending)))
}

// ListWebhooks implements [webhook.Store].
func (s *Webhooks) ListWebhooks(ctx context.Context, project string) (list []webhook.Webhook, err error) {
	err = s.db.Read(ctx, "list webhooks", func(ctx context.Context, c sqldb.Conn) error {
		list, err = sqlrow.Collect(ctx, c,
			`SELECT `+sqlrow.Columns(listedWebhook)+` FROM webhooks w WHERE w.project = $1 ORDER BY w.name`+
				sqlrow.Limit(webhook.MaxPerProject), []any{project}, sqlrow.Scan(listedWebhook))
		if err == nil && len(list) == 0 {
			return ledger.NeedProject(ctx, c, project)
		}
		return err
	})
	return list, err
}

// ReplaceSealed implements [webhook.Store].
func (s *Webhooks) ReplaceSealed(ctx context.Context,
	replace func(webhook.Webhook) ([]byte, error)) (replaced int, err error) {
	var list []webhook.Webhook
	err = s.db.Read(ctx, "read sealed parts of webhooks", func(ctx context.Context, c sqldb.Conn) error {
		list, err = sqlrow.Collect(ctx, c, selectWebhooks()+` ORDER BY w.id`, nil, sqlrow.Scan(webhookFields))
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, w := range list {
		sealed, err := replace(w)
		if err != nil {
			return replaced, err
		}
		if bytes.Equal(sealed, w.Sealed) {
			continue
		}
		err = s.db.Exec(ctx, "replace the sealed part of a webhook", func(ctx context.Context, c sqldb.Conn) error {
			_, err := c.ExecContext(ctx, `UPDATE webhooks SET sealed = $1 WHERE id = $2 AND sealed = $3`, sealed, w.ID, w.Sealed)
			return err
		})
		if err != nil {
			return replaced, err
		}
		replaced++
	}
	return replaced, nil
}

// ChangeWebhook implements [webhook.Store]. It locks the position of the project, so that changes and matching follow
// each other.
func (s *Webhooks) ChangeWebhook(ctx context.Context, project string,
	change func([]webhook.Webhook) (webhook.Change, error)) error {
	return s.db.Write(ctx, "change webhook", func(ctx context.Context, c sqldb.Conn) error {
		if err := s.lockPosition(ctx, c, project); err != nil {
			return err
		}
		list, err := sqlrow.Collect(ctx, c, selectWebhooks()+` WHERE w.project = $1 ORDER BY w.name`+s.db.Dialect().LockRows,
			[]any{project}, sqlrow.Scan(webhookFields))
		if err != nil {
			return err
		}
		done, err := change(list)
		if err != nil {
			return err
		}
		if err := s.write(ctx, c, done); err != nil {
			return err
		}
		return ledger.Add(ctx, c, done.Entry)
	})
}

// lockPosition locks the row of a project until the transaction ends, and creates it where there is none.
func (s *Webhooks) lockPosition(ctx context.Context, c sqldb.Conn, project string) error {
	if err := ledger.NeedProject(ctx, c, project); err != nil {
		return err
	}
	if _, err := c.ExecContext(ctx,
		`INSERT INTO webhook_positions (project, position) VALUES ($1, 0)
			ON CONFLICT (project) DO NOTHING`, project); err != nil {
		return err
	}
	_, err := sqlrow.Collect(ctx, c, `SELECT position FROM webhook_positions WHERE project = $1`+s.db.Dialect().LockRows,
		[]any{project}, sqlrow.ScanNumber)
	return err
}

func (s *Webhooks) write(ctx context.Context, c sqldb.Conn, done webhook.Change) error {
	if done.To == nil {
		for _, statement := range []string{
			`DELETE FROM webhook_deliveries WHERE webhook = $1`, `DELETE FROM webhooks WHERE id = $1`} {
			if _, err := c.ExecContext(ctx, statement, done.ID); err != nil {
				return err
			}
		}
		return nil
	}
	w := *done.To
	if done.Head {
		head, err := s.events.Position(ctx, c, w.Project)
		if err != nil {
			return err
		}
		w.Since = head
	}
	if err := saveWebhook(ctx, c, w); err != nil {
		return err
	}
	switch {
	case done.Stop:
		return stopWebhook(ctx, c, w.ID)
	case done.Resume:
		_, err := c.ExecContext(ctx,
			`UPDATE webhook_deliveries SET due_at = `+s.db.Dialect().Now+`, retry_from = `+s.db.Dialect().Now+`, failures = 0
WHERE webhook = $1 AND status = 'pending' AND due_at IS NULL`, w.ID)
		return err
	}
	return nil
}

// stopWebhook takes the due times from the unfinished deliveries of a webhook.
func stopWebhook(ctx context.Context, c sqldb.Conn, id string) error {
	_, err := c.ExecContext(ctx, `UPDATE webhook_deliveries SET due_at = NULL WHERE webhook = $1 AND due_at IS NOT NULL`,
		id)
	return err
}

func saveWebhook(ctx context.Context, c sqldb.Conn, w webhook.Webhook) error {
	if err := sqlrow.Storable("reason", w.PauseReason); err != nil {
		return err
	}
	_, err := sqlrow.Insert(ctx, c, "webhooks", append(webhookFields(&w), sqlrow.Col("disabled", false)),
		sqlrow.Replace("id", "url", "filter", "sealed", "since", "paused_at", "pause_reason", "failing_since",
			"previous_until", "updater", "updated_at")+
			`, disabled = webhooks.disabled AND excluded.paused_at IS NOT NULL`)
	return err
}
