package events

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// stored is a delivery with the columns that are internal to the store.
type stored struct {
	event.Delivery

	// claimedUntil is the end of the last claim; zero once the outcome of the claim is recorded.
	claimedUntil time.Time
}

// due reports whether it has a due time.
func (d stored) due() bool { return !d.NextAt.IsZero() }

// claimed reports whether an owner may be delivering it.
func (d stored) claimed(now int64) bool {
	return !d.claimedUntil.IsZero() && d.claimedUntil.UnixMicro() > now
}

// wakes reports whether it is part of a lane.
func (d stored) wakes() bool { return d.Kind == event.Wake }

func deliveryFields(d *stored) sqlrow.Fields {
	return sqlrow.Row(
		"project", &d.Project, "id", &d.ID, "position", &d.Position, "kind", &d.Kind, "status", &d.Status,
		"due_at", sqlrow.TimeInto(&d.NextAt), "attempts", &d.Attempts, "workflow", &d.Workflow, "version", &d.Version,
		"run_id", &d.RunID, "listener", &d.Listener, "created_at", sqlrow.TimeInto(&d.CreatedAt),
		"updated_at", sqlrow.TimeInto(&d.UpdatedAt), "reason", sqlrow.MendedInto(&d.Reason),
		"positions", sqlrow.JSONInto(&d.Positions), "claimed_until", sqlrow.TimeInto(&d.claimedUntil),
	)
}

func selectDelivery() string { return `SELECT ` + sqlrow.Columns(deliveryFields) + ` FROM deliveries` }

// ListDeliveries implements [event.Rows].
func (s *Deliveries) ListDeliveries(ctx context.Context, project string,
	position int64) (list []event.Delivery, err error) {
	err = s.db.Read(ctx, "list deliveries", func(ctx context.Context, c sqldb.Conn) error {
		found, err := deliveriesOf(ctx, c, project, position)
		list = plain(found)
		return err
	})
	return list, err
}

// FindDeliveries implements [event.Rows].
func (s *Deliveries) FindDeliveries(ctx context.Context, project string,
	ids []string) (list []event.Delivery, err error) {
	err = s.db.Read(ctx, "find deliveries", func(ctx context.Context, c sqldb.Conn) error {
		found, err := s.deliveries(ctx, c, sqlrow.Distinct(ids))
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(plain(found), func(d event.Delivery) bool { return d.Project != project })
		return s.readEvents(ctx, c, project, list)
	})
	return list, err
}

// ListRunDeliveries implements [event.Rows].
func (s *Deliveries) ListRunDeliveries(
	ctx context.Context, project, runID string, after *event.DeliveryCursor, limit int,
) (list []event.Delivery, err error) {
	var w sqlrow.Where
	w.IsText("project", project)
	w.IsText("run_id", runID)
	if after != nil {
		w.Conditions = append(w.Conditions, "(position, id) > ("+w.Arg(after.Position)+", "+w.Arg(after.ID)+")")
	}
	err = s.db.Read(ctx, "list a run's deliveries", func(ctx context.Context, c sqldb.Conn) error {
		found, err := sqlrow.Collect(ctx, c, selectDelivery()+w.String()+` ORDER BY position, id`+sqlrow.Limit(limit), w.Args,
			sqlrow.Scan(deliveryFields))
		list = plain(found)
		return err
	})
	return list, err
}

func plain(list []stored) []event.Delivery {
	var plain []event.Delivery
	for _, d := range list {
		plain = append(plain, d.Delivery)
	}
	return plain
}

// deliveriesOf reads the deliveries that contain an event, in order of position and ID.
func deliveriesOf(ctx context.Context, c sqldb.Conn, project string, position int64) ([]stored, error) {
	list, err := sqlrow.Collect(ctx, c, selectDelivery()+` WHERE id IN (
SELECT id FROM deliveries WHERE project = $1 AND position = $2 UNION ALL SELECT delivery FROM delivery_events
WHERE project = $1 AND position = $2
) ORDER BY position, id`, []any{project, position}, sqlrow.Scan(deliveryFields))
	if err != nil || len(list) > 0 {
		return list, err
	}
	there, err := sqlrow.Exists(ctx, c, `SELECT 1 FROM events WHERE project = $1 AND position = $2`, project, position)
	if err == nil && !there {
		return nil, NoEvent(ctx, c, project, position)
	}
	return nil, err
}

// Redeliver implements [event.Rows].
func (s *Deliveries) Redeliver(
	ctx context.Context, project string, position int64, ids []string, at time.Time, e audit.Entry,
) (changed []event.Delivery, err error) {
	if err := s.events.active(ctx, project); err != nil {
		return nil, err
	}
	err = s.db.Write(ctx, "redeliver event", func(ctx context.Context, c sqldb.Conn) error {
		r := redelivery{store: s, project: project, at: at}
		// This blocks the claims of the project; a project without a dispatcher has no deliveries.
		locked, err := sqlrow.Collect(ctx, c,
			`SELECT `+s.db.Dialect().Now+` FROM dispatchers WHERE project = $1`+s.db.Dialect().LockRows,
			[]any{project}, sqlrow.ScanNumber)
		if err != nil {
			return err
		}
		list, err := deliveriesOf(ctx, c, project, position)
		if err != nil {
			return err
		}
		if list, err = selectIDs(list, ids, project, position); err != nil || len(locked) == 0 {
			return err
		}
		r.now = locked[0]
		if err := r.change(ctx, c, list); err != nil || len(r.changed) == 0 {
			return err
		}
		after, err := s.deliveries(ctx, c, r.changed)
		if err != nil {
			return err
		}
		changed = plain(after)
		return ledger.Add(ctx, c, e)
	})
	if err != nil {
		return nil, err
	}
	return changed, nil
}

// selectIDs returns the deliveries with these IDs, each of which must exist; all if no IDs are given.
func selectIDs(list []stored, ids []string, project string, position int64) ([]stored, error) {
	if len(ids) == 0 {
		return list, nil
	}
	for _, id := range ids {
		if !slices.ContainsFunc(list, func(d stored) bool { return d.ID == id }) {
			return nil, apperror.New(apperror.NotFound, apperror.DeliveryNotFound,
				"event %d of project %q has no delivery %q: `signalbox event show` lists its deliveries", position, project, id)
		}
	}
	return slices.DeleteFunc(list, func(d stored) bool { return !slices.Contains(ids, d.ID) }), nil
}

// redelivery makes deliveries due.
type redelivery struct {
	store   *Deliveries
	project string
	at      time.Time
	now     int64
	// changed are the IDs of the changed deliveries.
	changed []string
}

// newest is the version that a delivery starts if it was given up: a defect of one version, such as its schema, can
// only be corrected in another. A run that an earlier attempt started nevertheless keeps its version.
const newest = `CASE WHEN kind = 'start' AND status = 'dead'
	AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = deliveries.run_id)
THEN COALESCE((SELECT t.version FROM triggers t WHERE t.project = deliveries.project
AND t.workflow = deliveries.workflow AND t.spec IS NOT NULL), version) ELSE version END`

func (r *redelivery) change(ctx context.Context, c sqldb.Conn, list []stored) error {
	passed, err := r.passed(ctx, c, list)
	if err != nil {
		return err
	}
	var revived, hurried, lanes []string
	for _, d := range list {
		switch {
		case d.Status == event.DeliveryDead && d.wakes() && passed[d.Listener]:
			continue
		case d.Status == event.DeliveryDead:
			revived = append(revived, d.ID)
		case d.Status == event.DeliveryPending && !d.claimed(r.now) && d.due():
			hurried = append(hurried, d.ID)
		default:
			continue
		}
		if d.wakes() {
			lanes = append(lanes, d.RunID)
		}
	}
	r.changed = slices.Concat(revived, hurried)
	err = sqlrow.In(ctx, r.store.db.Dialect(), r.changed, []any{r.now, r.at.UnixMicro()},
		func(ctx context.Context, marks string, args []any) error {
			_, err := c.ExecContext(ctx,
				`UPDATE deliveries SET status = 'pending', due_at = $1, claimed_until = NULL, reason = '', updated_at = $2,
					version = `+newest+`
WHERE id IN `+marks, args...)
			return err
		})
	if err != nil {
		return err
	}
	if len(revived) > 0 {
		_, err := c.ExecContext(ctx, `UPDATE dispatchers SET pending = pending + $2 WHERE project = $1`, r.project,
			len(revived))
		if err != nil {
			return err
		}
	}
	return r.store.orderLanes(ctx, c, r.now, lanes)
}

// passed returns the listeners of dead deliveries that have a later delivery, or may receive one at this moment. Their
// runs ignore events with lower positions, so that a redelivery would count as done although it was not consumed.
func (r *redelivery) passed(ctx context.Context, c sqldb.Conn, list []stored) (map[string]bool, error) {
	var listeners []string
	var position int64
	for _, d := range list {
		if d.Status == event.DeliveryDead && d.wakes() {
			// All wakes of an event are at its position.
			listeners, position = append(listeners, d.Listener), d.Position
		}
	}
	passed := map[string]bool{}
	err := sqlrow.In(ctx, r.store.db.Dialect(), sqlrow.Distinct(listeners), []any{r.project, position},
		func(ctx context.Context, marks string, args []any) error {
			found, err := sqlrow.Collect(ctx, c,
				`SELECT DISTINCT listener FROM deliveries WHERE project = $1 AND position > $2 AND kind = 'wake'
AND (status = 'done' OR claimed_until IS NOT NULL) AND listener IN `+marks, args, sqlrow.ScanText)
			for _, l := range found {
				passed[l] = true
			}
			return err
		})
	return passed, err
}

// deliveries reads deliveries by their IDs, in order of position and ID.
func (s *Deliveries) deliveries(ctx context.Context, c sqldb.Conn, ids []string) (list []stored, err error) {
	err = sqlrow.In(ctx, s.db.Dialect(), ids, nil, func(ctx context.Context, marks string, args []any) error {
		found, err := sqlrow.Collect(ctx, c, selectDelivery()+` WHERE id IN `+marks, args, sqlrow.Scan(deliveryFields))
		list = append(list, found...)
		return err
	})
	slices.SortFunc(list, byPosition)
	return list, err
}
