package events

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/sealed"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Unrouted implements [event.Rows]. The events are read before the subscriptions: a subscription that was committed
// before an event was accepted is therefore included.
func (s *Deliveries) Unrouted(ctx context.Context, project string, limit int) (b event.Batch, err error) {
	err = s.db.Read(ctx, "read events to match", func(ctx context.Context, c sqldb.Conn) (err error) {
		b = event.Batch{}
		b.Events, err = s.events.Behind(ctx, c, project, limit)
		if err != nil || len(b.Events) == 0 {
			return err
		}
		// The empty type stands for any type.
		types := []string{""}
		for _, e := range b.Events {
			types = append(types, e.Type)
		}
		types = sqlrow.Distinct(types)
		if b.Triggers, err = s.subscriptions.Triggers(ctx, c, project, types); err != nil {
			return err
		}
		if b.Shapes, b.Listeners, err = s.subscriptions.Waiting(ctx, c, project, types); err != nil {
			return err
		}
		return s.subscriptions.ReadPartials(ctx, c, project, &b)
	})
	return b, err
}

// CommitRouting implements [sealed.EventStore].
func (s *Deliveries) CommitRouting(ctx context.Context, project string, owner inbox.Owner,
	given []sealed.Sealed[event.Routing]) error {
	routings := sealed.Values(given)
	if len(routings) == 0 {
		return nil
	}
	return s.db.Write(ctx, "commit routing", func(ctx context.Context, c sqldb.Conn) error {
		t, err := s.lockOwned(ctx, c, project, owner)
		if err != nil {
			return err
		}
		var deliveries []event.Delivery
		var partials []event.Partial
		for i, r := range routings {
			if r.Position != t.routed+int64(i)+1 {
				return fmt.Errorf("position %d does not follow the routed position %d: %w", r.Position, t.routed+int64(i),
					event.ErrRouted)
			}
			deliveries = append(deliveries, r.Deliveries...)
			partials = append(partials, r.Partials...)
		}
		t.routed += int64(len(routings))
		outcomes, err := s.withEarlier(ctx, c, project, routings)
		if err != nil {
			return err
		}
		if err := s.insertRanges(ctx, c, project, outcomeRanges(outcomes)); err != nil {
			return err
		}
		if err := s.insertDeliveries(ctx, c, &t, deliveries); err != nil {
			return err
		}
		if err := s.subscriptions.WritePartials(ctx, c, project, partials); err != nil {
			return err
		}
		return t.save(ctx, c)
	})
}

// withEarlier returns the routings with the outcome routed for events that a listener has taken before they were
// routed.
func (s *Deliveries) withEarlier(ctx context.Context, c sqldb.Conn, project string,
	routings []event.Routing) ([]event.Routing, error) {
	if !slices.ContainsFunc(routings, func(r event.Routing) bool { return r.Status == event.Unmatched }) {
		return routings, nil
	}
	taken, err := sqlrow.Collect(ctx, c,
		`SELECT DISTINCT position FROM deliveries WHERE project = $1 AND position BETWEEN $2 AND $3`,
		[]any{project, routings[0].Position, routings[len(routings)-1].Position},
		func(row sqlrow.Scanner) (position int64, err error) {
			err = row.Scan(&position)
			return position, err
		})
	if err != nil || len(taken) == 0 {
		return routings, err
	}
	routings = slices.Clone(routings)
	for i, r := range routings {
		if r.Status == event.Unmatched && slices.Contains(taken, r.Position) {
			routings[i].Status, routings[i].Reason = event.Routed, ""
		}
	}
	return routings, nil
}

// insertRanges adds rows of routings.
func (s *Deliveries) insertRanges(ctx context.Context, c sqldb.Conn, project string, list []outcomeRange) error {
	_, err := sqlrow.InsertMany(ctx, c, s.db.Dialect(), "routings", "", list, func(v outcomeRange) sqlrow.Fields {
		return sqlrow.Row(
			"project", project, "last", v.last, "first", v.first, "status", v.status, "reason", v.reason,
		)
	})
	return err
}

// outcomeRange is a row of routings: a range of events with one outcome.
type outcomeRange struct {
	first, last int64
	status      event.Status
	reason      string
}

func outcomeRanges(routings []event.Routing) (list []outcomeRange) {
	for _, r := range routings {
		v := outcomeRange{r.Position, r.Position, r.Status, sqlrow.Mended(r.Reason)}
		if n := len(list); n > 0 && list[n-1].status == v.status && list[n-1].reason == v.reason {
			list[n-1].last = v.last
			continue
		}
		list = append(list, v)
	}
	return list
}

// insertDeliveries adds deliveries, each due at once except those behind an earlier one in their lane.
func (s *Deliveries) insertDeliveries(ctx context.Context, c sqldb.Conn, t *dispatcherRow,
	list []event.Delivery) error {
	if len(list) == 0 {
		return nil
	}
	var lanes []string
	for _, d := range list {
		if d.Kind == event.Wake {
			lanes = append(lanes, d.RunID)
		}
	}
	fronts, err := s.firsts(ctx, c, lanes, 1)
	if err != nil {
		return err
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b event.Delivery) int {
		return byPosition(stored{Delivery: a}, stored{Delivery: b})
	})
	taken := map[string]bool{}
	for i, d := range list {
		list[i].NextAt = time.UnixMicro(t.now)
		if d.Kind == event.Wake {
			if taken[d.RunID] || len(fronts[d.RunID]) > 0 {
				list[i].NextAt = time.Time{}
			}
			taken[d.RunID] = true
		}
	}
	added, err := sqlrow.InsertMany(ctx, c, s.db.Dialect(), "deliveries", ` ON CONFLICT (id) DO NOTHING`, list,
		func(d event.Delivery) sqlrow.Fields {
			d.Project, d.Status, d.Attempts, d.CreatedAt, d.UpdatedAt = t.project, event.DeliveryPending, 0,
				time.UnixMicro(t.now), time.UnixMicro(t.now)
			return append(deliveryFields(&stored{Delivery: d}), sqlrow.Col("claimed_by", 0))
		})
	if err != nil {
		return err
	}
	t.pending += added
	if added < int64(len(list)) {
		// Some existed already, perhaps one that others are to wait behind.
		if err := s.orderLanes(ctx, c, t.now, lanes); err != nil {
			return err
		}
	}
	return s.insertParts(ctx, c, t.project, list)
}

// insertParts stores the events of deliveries in addition to the one that they name.
func (s *Deliveries) insertParts(ctx context.Context, c sqldb.Conn, project string, list []event.Delivery) error {
	type part struct {
		position int64
		delivery string
	}
	var parts []part
	for _, d := range list {
		for _, p := range d.Positions {
			if p != d.Position {
				parts = append(parts, part{p, d.ID})
			}
		}
	}
	_, err := sqlrow.InsertMany(ctx, c, s.db.Dialect(), "delivery_events",
		` ON CONFLICT (project, position, delivery) DO NOTHING`, parts,
		func(p part) sqlrow.Fields {
			return sqlrow.Row("project", project, "position", p.position, "delivery", p.delivery)
		})
	return err
}
