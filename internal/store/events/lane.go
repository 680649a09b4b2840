package events

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// inLane selects the deliveries of lanes. The text equals the condition of the index.
const inLane = `status = 'pending' AND kind = 'wake'`

// byPosition is the order of a lane.
func byPosition(a, b stored) int {
	return cmp.Or(cmp.Compare(a.Position, b.Position), strings.Compare(a.ID, b.ID))
}

// firsts reads up to n deliveries from the front of each lane, each lane in its order.
func (s *Deliveries) firsts(ctx context.Context, c sqldb.Conn, lanes []string, n int) (map[string][]stored, error) {
	found := map[string][]stored{}
	for part := range sqlrow.Chunks(sqlrow.Distinct(lanes)) {
		args := make([]any, len(part))
		selects := make([]string, len(part))
		for i, lane := range part {
			selects[i] = `SELECT ` + sqlrow.Columns(deliveryFields) + ` FROM (` + selectDelivery() + ` WHERE run_id = ` +
				s.db.Dialect().Mark(i+1) + ` AND ` + inLane +
				` ORDER BY position, id` + sqlrow.Limit(n) + `) AS l`
			args[i] = lane
		}
		list, err := sqlrow.Collect(ctx, c, strings.Join(selects, ` UNION ALL `), args, sqlrow.Scan(deliveryFields))
		if err != nil {
			return nil, err
		}
		for _, d := range list {
			found[d.RunID] = append(found[d.RunID], d)
		}
	}
	for _, list := range found {
		slices.SortFunc(list, byPosition)
	}
	return found, nil
}

// orderLanes makes the first delivery of each lane the one with a due time, unless another one is being delivered: that
// one keeps its time until the outcome of the claim is recorded.
func (s *Deliveries) orderLanes(ctx context.Context, c sqldb.Conn, now int64, lanes []string) error {
	if len(lanes) == 0 {
		return nil
	}
	firsts, err := s.firsts(ctx, c, lanes, 1)
	if err != nil {
		return err
	}
	heads := map[string][]stored{}
	err = sqlrow.In(ctx, s.db.Dialect(), sqlrow.Distinct(lanes), nil,
		func(ctx context.Context, marks string, args []any) error {
			list, err := sqlrow.Collect(ctx, c, selectDelivery()+` WHERE `+inLane+` AND due_at IS NOT NULL AND run_id IN `+marks,
				args, sqlrow.Scan(deliveryFields))
			for _, d := range list {
				heads[d.RunID] = append(heads[d.RunID], d)
			}
			return err
		})
	if err != nil {
		return err
	}
	var changes []timed
	for lane, list := range firsts {
		first := list[0]
		busy := slices.ContainsFunc(heads[lane], func(d stored) bool { return d.claimed(now) })
		for _, d := range heads[lane] {
			if stays := d.claimed(now) || !busy && d.ID == first.ID; !stays {
				changes = append(changes, timed{d.ID, 0})
			}
		}
		if !busy && !first.due() {
			at := now
			if first.claimed(now) {
				at = first.claimedUntil.UnixMicro()
			}
			changes = append(changes, timed{first.ID, at})
		}
	}
	return s.setDueTimes(ctx, c, changes)
}

// timed is a delivery and its due time in microseconds; 0 for none.
type timed struct {
	id string
	at int64
}

// setDueTimes writes the due times of deliveries.
func (s *Deliveries) setDueTimes(ctx context.Context, c sqldb.Conn, list []timed) error {
	return sqlrow.UpdateMany(ctx, c, s.db.Dialect(), "deliveries", 1, list, func(t timed) sqlrow.Fields {
		return sqlrow.Row("id", t.id, "due_at", sql.NullInt64{Int64: t.at, Valid: t.at != 0})
	})
}
