package events

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// maxBehind is the maximum number of deliveries of one lane that are claimed with its first.
const maxBehind = 64

// Due implements [event.Rows].
func (s *Deliveries) Due(
	ctx context.Context, project string, owner inbox.Owner, limit int, visible time.Duration,
) (list []event.Delivery, err error) {
	err = s.db.Write(ctx, "claim deliveries", func(ctx context.Context, c sqldb.Conn) error {
		t, err := s.lockOwned(ctx, c, project, owner)
		if err != nil {
			return err
		}
		claimed, err := s.claim(ctx, c, t, limit, t.now+visible.Microseconds())
		if err != nil {
			return err
		}
		for i := range claimed {
			claimed[i].Attempts++
		}
		list = plain(claimed)
		if err := s.readEvents(ctx, c, project, list); err != nil {
			return err
		}
		return t.save(ctx, c)
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// claim claims the deliveries that are due longest, and those behind them in their lanes.
func (s *Deliveries) claim(ctx context.Context, c sqldb.Conn, t dispatcherRow, limit int,
	until int64) ([]stored, error) {
	claimed, err := sqlrow.Collect(ctx, c,
		selectDelivery()+` WHERE project = $1 AND due_at <= $2 ORDER BY due_at, position`+sqlrow.Limit(limit),
		[]any{t.project, t.now}, sqlrow.Scan(deliveryFields))
	if err != nil || len(claimed) == 0 {
		return nil, err
	}
	behind, err := s.behind(ctx, c, t, claimed, limit)
	if err != nil {
		return nil, err
	}
	claimed = append(claimed, behind...)
	slices.SortFunc(claimed, byPosition)
	ids := make([]string, len(claimed))
	for i, d := range claimed {
		ids[i] = d.ID
	}
	err = sqlrow.In(ctx, s.db.Dialect(), ids, []any{until, t.epoch},
		func(ctx context.Context, marks string, args []any) error {
			_, err := c.ExecContext(ctx, `UPDATE deliveries SET claimed_until = $1, claimed_by = $2, attempts = attempts + 1,
due_at = CASE WHEN due_at IS NULL THEN NULL ELSE CAST($1 AS BIGINT) END WHERE id IN `+marks, args...)
			return err
		})
	return claimed, err
}

// behind reads the deliveries that follow the first ones of their lanes, so that a run with many pending events does
// not need one claim per event.
func (s *Deliveries) behind(ctx context.Context, c sqldb.Conn, t dispatcherRow, heads []stored,
	limit int) (behind []stored, err error) {
	var lanes []string
	for _, d := range heads {
		if d.wakes() {
			lanes = append(lanes, d.RunID)
		}
	}
	if len(lanes) == 0 {
		return nil, nil
	}
	room := limit - len(heads)
	fronts, err := s.firsts(ctx, c, lanes, min(maxBehind, room/len(lanes)+1)+1)
	for _, lane := range sqlrow.Distinct(lanes) {
		for _, d := range fronts[lane] {
			if slices.ContainsFunc(heads, func(h stored) bool { return h.ID == d.ID }) {
				continue
			}
			if d.due() || d.claimed(t.now) || len(behind) >= room {
				break
			}
			behind = append(behind, d)
		}
	}
	return behind, err
}

// readEvents reads the events of deliveries.
func (s *Deliveries) readEvents(ctx context.Context, c sqldb.Conn, project string, list []event.Delivery) error {
	var positions []int64
	for _, d := range list {
		positions = append(positions, d.Positions...)
	}
	events, err := s.events.At(ctx, c, project, positions)
	if err != nil {
		return err
	}
	byPosition := make(map[int64]event.Event, len(events))
	for _, e := range events {
		byPosition[e.Position] = e
	}
	for i := range list {
		for _, p := range list[i].Positions {
			list[i].Events = append(list[i].Events, byPosition[p])
		}
	}
	return nil
}

// RecordOutcomes implements [sealed.EventStore]. Deliveries that are not pending, or do not exist, are not changed.
func (s *Deliveries) RecordOutcomes(ctx context.Context, project string, owner inbox.Owner,
	outcomes []sealed.Sealed[inbox.DeliveryOutcome]) error {
	return s.db.Write(ctx, "record outcomes of deliveries", func(ctx context.Context, c sqldb.Conn) error {
		t, err := s.lockOwned(ctx, c, project, owner)
		if err != nil {
			return err
		}
		if err := s.writeResults(ctx, c, &t, sealed.Values(outcomes)); err != nil {
			return err
		}
		return t.save(ctx, c)
	})
}

// deliveryResult is a delivery with its result.
type deliveryResult struct {
	stored

	outcome inbox.Outcome
}

func (s *Deliveries) writeResults(ctx context.Context, c sqldb.Conn, t *dispatcherRow,
	outcomes []inbox.DeliveryOutcome) error {
	byID := make(map[string]inbox.Outcome, len(outcomes))
	ids := make([]string, 0, len(outcomes))
	for _, v := range outcomes {
		byID[v.ID] = v.Outcome
		ids = append(ids, v.ID)
	}
	found, err := s.deliveries(ctx, c, sqlrow.Distinct(ids))
	if err != nil {
		return err
	}
	var list []deliveryResult
	var lanes, delayed []string
	for _, d := range found {
		if d.Status != event.DeliveryPending || d.Project != t.project {
			continue
		}
		v := deliveryResult{d, byID[d.ID]}
		list = append(list, v)
		again := v.outcome.Result == inbox.Retry || v.outcome.Result == inbox.Released
		if !again {
			t.pending--
		}
		if d.wakes() {
			lanes = append(lanes, d.RunID)
			if again {
				delayed = append(delayed, d.RunID)
			}
		}
	}
	err = sqlrow.UpdateMany(ctx, c, s.db.Dialect(), "deliveries", 1, list,
		func(v deliveryResult) sqlrow.Fields { return v.fields(t.now) })
	if err != nil {
		return err
	}
	if err := s.release(ctx, c, sqlrow.Distinct(delayed)); err != nil {
		return err
	}
	err = reportDead(ctx, c, s.db.Dialect(), deadOf(list, t.now),
		func(ctx context.Context, dead []event.Delivery) error {
			return s.readEvents(ctx, c, t.project, dead)
		})
	if err != nil {
		return err
	}
	return s.orderLanes(ctx, c, t.now, lanes)
}

// deadOf returns the deliveries that are not attempted any more, as they are stored.
func deadOf(list []deliveryResult, now int64) (dead []event.Delivery) {
	for _, v := range list {
		if v.outcome.Result == inbox.Dead {
			v.Reason, v.UpdatedAt = sqlrow.Mended(v.outcome.Reason), time.UnixMicro(now)
			dead = append(dead, v.Delivery)
		}
	}
	return dead
}

func (v deliveryResult) fields(now int64) sqlrow.Fields {
	status, due := event.DeliveryDone, sql.NullInt64{}
	attempts, reason := v.Attempts, v.outcome.Reason
	switch v.outcome.Result {
	case inbox.Done:
	case inbox.Retry:
		status, due = event.DeliveryPending, sql.NullInt64{Int64: now + v.outcome.After.Microseconds(), Valid: true}
	case inbox.Released:
		status, due, attempts, reason = event.DeliveryPending, sql.NullInt64{Int64: now, Valid: true}, max(attempts-1, 0),
			v.Reason
	case inbox.Dead:
		status = event.DeliveryDead
	}
	return sqlrow.Row(
		"id", v.ID, "status", status, "due_at", due, "claimed_until", sql.NullInt64{}, "attempts", attempts,
		"reason", sqlrow.Mended(reason), "updated_at", now,
	)
}

// release returns the deliveries that were claimed behind one that must be retried: they cannot be delivered before it,
// and were not attempted.
func (s *Deliveries) release(ctx context.Context, c sqldb.Conn, lanes []string) error {
	return sqlrow.In(ctx, s.db.Dialect(), lanes, nil, func(ctx context.Context, marks string, args []any) error {
		_, err := c.ExecContext(ctx, `UPDATE deliveries SET claimed_until = NULL, attempts = attempts - 1 WHERE `+inLane+
			` AND claimed_until IS NOT NULL AND due_at IS NULL AND run_id IN `+marks, args...)
		return err
	})
}
