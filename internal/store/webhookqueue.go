package store

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/webhook"
)

const (
	// maxProjects is how many projects with events to match are returned at a time.
	maxProjects = 500
	// maxMatched is how many events are read whole in one transaction, to bound memory.
	maxMatched = 100
	// dueCondition selects due deliveries, by the time as the second argument.
	dueCondition = ` AND d.due_at <= $2`
	// succeededEvery is how often a success is written to the row of a webhook, so that fast deliveries do not wait for
	// each other.
	succeededEvery = 10 * time.Second
)

// Unmatched implements [webhook.Queue].
func (s *Webhooks) Unmatched(ctx context.Context) (projects []string, err error) {
	err = s.db.Read(ctx, "find events for webhooks", func(ctx context.Context, c sqldb.Conn) error {
		projects, err = sqlrow.Collect(ctx, c,
			`SELECT p.project FROM webhook_positions p JOIN inboxes i ON i.project = p.project
WHERE i.head > p.position AND EXISTS (SELECT 1 FROM webhooks w WHERE w.project = p.project AND w.paused_at IS NULL
AND i.head > w.since)
ORDER BY p.project`+sqlrow.Limit(maxProjects), nil, sqlrow.ScanText)
		return err
	})
	return projects, err
}

// Receiving returns the projects with an active webhook whose types match one of those given.
func (s *Webhooks) Receiving(ctx context.Context, types ...string) (projects []string, err error) {
	err = s.db.Read(ctx, "find receivers of events", func(ctx context.Context, c sqldb.Conn) error {
		hooks, err := sqlrow.Collect(ctx, c, selectWebhooks()+` WHERE w.paused_at IS NULL ORDER BY w.project, w.id`, nil,
			sqlrow.Scan(webhookFields))
		projects = nil
		for _, w := range hooks {
			m := webhook.NewMatcher([]webhook.Webhook{w})
			if !slices.Contains(projects, w.Project) && slices.ContainsFunc(types, m.Wants) {
				projects = append(projects, w.Project)
			}
		}
		return err
	})
	return projects, err
}

// webhookHead is what an event is selected by before it is read whole.
type webhookHead struct {
	position int64
	typ      string
}

// Match implements [webhook.Queue].
func (s *Webhooks) Match(
	ctx context.Context, project string, limit int, matcher func([]webhook.Webhook) *webhook.Matcher,
) (made int, more bool, err error) {
	err = s.db.Write(ctx, "match webhooks", func(ctx context.Context, c sqldb.Conn) error {
		made, more = 0, false
		if err := s.lockPosition(ctx, c, project); err != nil {
			return err
		}
		hooks, err := sqlrow.Collect(ctx, c, selectWebhooks()+` WHERE w.project = $1 AND w.paused_at IS NULL ORDER BY w.id`,
			[]any{project}, sqlrow.Scan(webhookFields))
		if err != nil || len(hooks) == 0 {
			return err
		}
		// The head is read before the events: events up to it that are not found were deleted.
		var position, newest int64
		err = c.QueryRowContext(ctx,
			`SELECT p.position, i.head FROM webhook_positions p JOIN inboxes i ON i.project = p.project
				WHERE p.project = $1`, project).
			Scan(&position, &newest)
		if err != nil {
			return err
		}
		// Events that no active webhook may receive are not read, however many came while there was none.
		from := max(position, firstPosition(hooks))
		heads, err := sqlrow.Collect(ctx, c,
			`SELECT position, type FROM events WHERE project = $1 AND position > $2 ORDER BY position`+sqlrow.Limit(limit),
			[]any{project, from}, func(row sqlrow.Scanner) (h webhookHead, err error) { return h, row.Scan(&h.position, &h.typ) })
		if err != nil {
			return err
		}
		m := matcher(hooks)
		last, wanted := newest, []int64(nil)
		if len(heads) > 0 {
			last = heads[len(heads)-1].position
		}
		for _, h := range heads {
			if m.Wants(h.typ) {
				if len(wanted) == maxMatched {
					last = h.position - 1
					break
				}
				wanted = append(wanted, h.position)
			}
		}
		more = len(heads) == limit || len(wanted) == maxMatched
		if made, err = s.deliver(ctx, c, project, m, wanted); err != nil {
			return err
		}
		_, err = c.ExecContext(ctx, `UPDATE webhook_positions SET position = $2 WHERE project = $1`, project, last)
		return err
	})
	return made, more, err
}

// firstPosition returns the lowest position after which a webhook gets events.
func firstPosition(hooks []webhook.Webhook) int64 {
	lowest := hooks[0].Since
	for _, w := range hooks {
		lowest = min(lowest, w.Since)
	}
	return lowest
}

// deliver writes the deliveries of events.
func (s *Webhooks) deliver(ctx context.Context, c sqldb.Conn, project string, m *webhook.Matcher,
	positions []int64) (int, error) {
	if len(positions) == 0 {
		return 0, nil
	}
	events, err := s.events.At(ctx, c, project, positions)
	if err != nil {
		return 0, err
	}
	var list []webhook.Delivery
	for _, e := range events {
		list = append(list, m.Match(e)...)
	}
	now, err := s.now(ctx, c)
	if err != nil {
		return 0, err
	}
	added, err := s.insert(ctx, c, now, list)
	return int(added), err
}

// Waiting implements [webhook.Queue].
func (s *Webhooks) Waiting(ctx context.Context, limit int) (ids []string, err error) {
	err = s.db.Read(ctx, "find due webhooks", func(ctx context.Context, c sqldb.Conn) error {
		ids, err = sqlrow.Collect(ctx, c, `SELECT id FROM (SELECT w.id, (SELECT MIN(d.due_at) FROM webhook_deliveries d
WHERE d.webhook = w.id AND d.due_at IS NOT NULL) AS due FROM webhooks w WHERE w.paused_at IS NULL) AS active
WHERE due <= `+s.db.Dialect().Now+` ORDER BY due, id`+sqlrow.Limit(limit), nil, sqlrow.ScanText)
		return err
	})
	return ids, err
}

// Claim implements [webhook.Queue].
func (s *Webhooks) Claim(ctx context.Context, id string, most int,
	lease time.Duration) (claims []webhook.Claim, err error) {
	err = s.db.Write(ctx, "claim webhook deliveries", func(ctx context.Context, c sqldb.Conn) error {
		claims = nil
		now, err := s.now(ctx, c)
		if err != nil {
			return err
		}
		claims, err = s.claim(ctx, c, now, id, dueCondition, []any{id, now}, most, lease)
		return err
	})
	return claims, err
}

// claim claims deliveries of a webhook that match a condition, with its row locked, so that the claims of all processes
// are counted.
func (s *Webhooks) claim(
	ctx context.Context, c sqldb.Conn, now int64, id, condition string, args []any, most int, lease time.Duration,
) ([]webhook.Claim, error) {
	hooks, err := sqlrow.Collect(ctx, c,
		selectWebhooks()+` WHERE w.id = $1 AND w.paused_at IS NULL`+s.db.Dialect().LockRows, []any{id}, sqlrow.Scan(webhookFields))
	if err != nil || len(hooks) == 0 {
		return nil, err
	}
	w := hooks[0]
	if !w.FailingSince.IsZero() {
		most = 1
	}
	busy, err := sqlrow.Collect(ctx, c,
		`SELECT COUNT(*) FROM webhook_deliveries d WHERE d.webhook = $1 AND d.claimed_until > $2`, []any{id, now},
		sqlrow.ScanNumber)
	if err != nil {
		return nil, err
	}
	if most -= int(busy[0]); most <= 0 && condition == dueCondition {
		return nil, nil
	}
	list, err := sqlrow.Collect(ctx, c,
		selectWholeDeliveries()+` WHERE d.webhook = $1`+condition+` ORDER BY d.due_at, d.id`+
			sqlrow.Limit(max(most, 1)), args, sqlrow.Scan(wholeDeliveryFields))
	if err != nil {
		return nil, err
	}
	claims := make([]webhook.Claim, len(list))
	for i, d := range list {
		d.Attempts++
		claims[i] = webhook.Claim{Webhook: w, Delivery: d, Token: rand.Text()}
		_, err := c.ExecContext(ctx,
			`UPDATE webhook_deliveries SET due_at = $2, claimed_until = $2, claim = $3, attempts = $4 WHERE id = $1`,
			d.ID, now+lease.Microseconds(), claims[i].Token, d.Attempts)
		if err != nil {
			return nil, err
		}
	}
	return claims, nil
}

// Finish implements [webhook.Queue].
func (s *Webhooks) Finish(ctx context.Context, claim webhook.Claim, o webhook.Outcome) (finished bool, err error) {
	d := claim.Delivery
	history := append(slices.Clone(d.History), o.Attempt)
	history = history[max(0, len(history)-webhook.MaxHistory):]
	attempts, err := sqlrow.AsJSON(history, false)
	if err != nil {
		return false, err
	}
	failures := d.Failures + 1
	if o.Status == webhook.Delivered {
		failures = 0
	}
	err = s.db.Write(ctx, "finish webhook delivery", func(ctx context.Context, c sqldb.Conn) error {
		// The row of the webhook is locked first, as by Claim and ChangeWebhook.
		hooks, err := sqlrow.Collect(ctx, c, selectWebhooks()+` WHERE w.id = $1`+s.db.Dialect().LockRows,
			[]any{claim.Webhook.ID}, sqlrow.Scan(webhookFields))
		if err != nil || len(hooks) == 0 {
			return err // deleted with its deliveries
		}
		now, err := s.now(ctx, c)
		if err != nil {
			return err
		}
		due := any(nil)
		if o.Status == webhook.Pending && !hooks[0].Paused() {
			due = now + o.Retry.Microseconds()
		}
		finished, err = sqlrow.Affected(ctx, c,
			`UPDATE webhook_deliveries SET status = $3, due_at = $4, claimed_until = NULL, claim = '', failures = $5,
http_status = $6, reason = $7, history = $8, updated_at = $9 WHERE id = $1 AND claim = $2`,
			d.ID, claim.Token, o.Status, due, failures, o.Attempt.HTTPStatus, sqlrow.Mended(o.Attempt.Error), attempts, now)
		if err != nil || !finished {
			return err
		}
		return s.note(ctx, c, now, hooks[0], o)
	})
	return finished, err
}

// note writes what the outcome of an attempt changes in its webhook.
func (s *Webhooks) note(ctx context.Context, c sqldb.Conn, now int64, w webhook.Webhook, o webhook.Outcome) error {
	if o.Attempt.Error == "" {
		if w.FailingSince.IsZero() && now-w.SucceededAt.UnixMicro() < succeededEvery.Microseconds() {
			return nil
		}
		_, err := c.ExecContext(ctx,
			`UPDATE webhooks SET failing_since = NULL, last_error = '', succeeded_at = $2 WHERE id = $1`, w.ID, now)
		return err
	}
	if _, err := c.ExecContext(ctx,
		`UPDATE webhooks SET failing_since = COALESCE(failing_since, $2), last_error = $3 WHERE id = $1`,
		w.ID, now, sqlrow.Mended(o.Attempt.Error)); err != nil || o.Pause == "" || w.Paused() {
		return err
	}
	if _, err := c.ExecContext(ctx, `UPDATE webhooks SET paused_at = $2, pause_reason = $3, disabled = TRUE WHERE id = $1`,
		w.ID, now, sqlrow.Mended(o.Pause)); err != nil {
		return err
	}
	if err := stopWebhook(ctx, c, w.ID); err != nil || o.Entry == nil {
		return err
	}
	return ledger.Add(ctx, c, *o.Entry)
}

// Backlogs implements [webhook.Queue].
func (s *Webhooks) Backlogs(ctx context.Context) (list []webhook.Backlog, err error) {
	err = s.db.Read(ctx, "read backlogs of webhooks", func(ctx context.Context, c sqldb.Conn) error {
		now, err := s.now(ctx, c)
		if err != nil {
			return err
		}
		list, err = sqlrow.Collect(ctx, c, `SELECT w.project,
SUM(CASE WHEN w.paused_at IS NULL THEN (SELECT COUNT(*) FROM webhook_deliveries d WHERE d.webhook = w.id
AND d.status = 'pending') ELSE 0 END),
MIN(CASE WHEN w.paused_at IS NULL THEN (SELECT MIN(d.created_at) FROM webhook_deliveries d WHERE d.webhook = w.id
AND d.status = 'pending') END),
SUM(CASE WHEN w.paused_at IS NULL AND w.failing_since IS NOT NULL THEN 1 ELSE 0 END),
SUM(CASE WHEN w.disabled THEN 1 ELSE 0 END)
FROM webhooks w GROUP BY w.project ORDER BY w.project`, nil, func(row sqlrow.Scanner) (b webhook.Backlog, err error) {
			var oldest time.Time
			err = row.Scan(&b.Project, &b.Pending, sqlrow.TimeInto(&oldest), &b.Failing, &b.Paused)
			if !oldest.IsZero() {
				b.Oldest = time.Duration(max(now-oldest.UnixMicro(), 0)) * time.Microsecond
			}
			return b, err
		})
		return err
	})
	return list, err
}
