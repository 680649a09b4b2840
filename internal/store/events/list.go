package events

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

func eventFields(e *event.Event) sqlrow.Fields {
	return sqlrow.Row(
		"project", &e.Project, "position", &e.Position, "id", &e.ID, "source", &e.Source, "type", &e.Type,
		"subject", &e.Subject, "occurred_at", sqlrow.TimeInto(&e.Time), "occurred_nanos", sqlrow.NanosInto(&e.Time),
		"data_content_type", &e.DataContentType, "data_schema", &e.DataSchema, "data_base64", &e.DataBase64,
		"received_at", sqlrow.TimeInto(&e.ReceivedAt), "actor", sqlrow.MendedInto(&e.Actor),
		"extensions", sqlrow.RawInto(&e.Extensions), "data", sqlrow.RawInto(&e.Data),
	)
}

// originalFields are read to match an event, and with traceparent to deliver it.
func originalFields(o *event.Original) sqlrow.Fields {
	return sqlrow.Row("original_key", sqlrow.TextInto(&o.KeyID), "original", &o.Sealed)
}

// outcome of an event: that of its range, which is the first one that does not end before it. Events that are not
// routed have none.
const outcome = `FROM routings r WHERE r.project = e.project AND r.last >= e.position ORDER BY r.last LIMIT 1`

const outcomeColumns = `COALESCE((SELECT r.status ` + outcome + `), 'pending'), COALESCE((SELECT r.reason ` + outcome +
	`), '')`

// selectEvent reads the outcome with the event; selectWhole reads what delivers it as well, and selectPending what
// matches it.
func selectEvent() string {
	return `SELECT ` + eventFields(&event.Event{}).Names("e.") + `, ` + outcomeColumns + ` FROM events e`
}

func selectWhole() string {
	return `SELECT ` + pendingColumns() + `, e.traceparent, ` + outcomeColumns + ` FROM events e`
}

func selectPending() string { return `SELECT ` + pendingColumns() + ` FROM events e` }

func pendingColumns() string {
	return append(eventFields(&event.Event{}), originalFields(&event.Original{})...).Names("e.")
}

func scanEvent(row sqlrow.Scanner) (e event.Event, err error) {
	err = row.Scan(append(eventFields(&e).Into(), &e.Status, &e.Reason)...)
	return e, err
}

func scanWhole(row sqlrow.Scanner) (event.Event, error) {
	return scanPendingAnd(row, func(e *event.Event) []any {
		return []any{sqlrow.TextInto(&e.Traceparent), &e.Status, &e.Reason}
	})
}

func scanPending(row sqlrow.Scanner) (event.Event, error) {
	return scanPendingAnd(row, func(*event.Event) []any { return nil })
}

func scanPendingAnd(row sqlrow.Scanner, more func(*event.Event) []any) (event.Event, error) {
	e, original := event.Event{Status: event.Pending}, event.Original{}
	err := row.Scan(append(append(eventFields(&e), originalFields(&original)...).Into(), more(&e)...)...)
	if original.KeyID != "" {
		e.Original = &original
	}
	return e, err
}

// GetEvent implements [event.Rows].
func (s *Intake) GetEvent(ctx context.Context, project string, position int64) (e event.Event, err error) {
	err = s.db.Read(ctx, "get event", func(ctx context.Context, c sqldb.Conn) (err error) {
		e, err = sqlrow.One(ctx, c, selectEvent()+` WHERE e.project = $1 AND e.position = $2`, []any{project, position},
			scanEvent,
			func() error { return NoEvent(ctx, c, project, position) })
		return err
	})
	return e, err
}

// EventsAt implements [event.Rows].
func (s *Intake) EventsAt(ctx context.Context, project string, positions []int64) (list []event.Event, err error) {
	err = s.db.Read(ctx, "get events", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = s.At(ctx, c, project, positions)
		return err
	})
	return list, err
}

// Positions implements [event.TimerStore].
func (s *Intake) Positions(ctx context.Context, project, source string, ids []string) (map[string]int64, error) {
	found := map[string]int64{}
	err := s.db.Read(ctx, "read events by ID", func(ctx context.Context, c sqldb.Conn) error {
		return sqlrow.In(ctx, s.db.Dialect(), ids, []any{project, source},
			func(ctx context.Context, marks string, args []any) error {
				_, err := sqlrow.Collect(ctx, c,
					`SELECT id, position FROM events WHERE project = $1 AND source = $2 AND id IN `+marks, args, func(row sqlrow.Scanner) (id string, err error) {
						var position int64
						err = row.Scan(&id, &position)
						found[id] = position
						return id, err
					})
				return err
			})
	})
	return found, err
}

// NoEvent returns the error for an event that does not exist, or for its project.
func NoEvent(ctx context.Context, c sqldb.Conn, project string, position int64) error {
	if err := ledger.NeedProject(ctx, c, project); err != nil {
		return err
	}
	return apperror.New(apperror.NotFound, apperror.EventNotFound,
		"event \"%d\" does not exist in project %q: `signalbox event list` shows those that do", position, project)
}

// ListEvents implements [event.Rows].
func (s *Intake) ListEvents(ctx context.Context, f event.ListFilter) (list []event.Event, err error) {
	err = s.db.Read(ctx, "list events", func(ctx context.Context, c sqldb.Conn) (err error) {
		query, args, err := queryOf(ctx, c, f)
		if err != nil {
			return err
		}
		list, err = sqlrow.Collect(ctx, c, query, args, scanEvent)
		if err == nil && len(list) == 0 {
			err = ledger.NeedProject(ctx, c, f.Project)
		}
		return err
	})
	return list, err
}

func queryOf(ctx context.Context, c sqldb.Conn, f event.ListFilter) (string, []any, error) {
	if f.RunID == "" {
		query, args := listQuery(f)
		return query, args, nil
	}
	set, err := setOf(ctx, c, f.Project, f.RunID)
	query, args := RunQuery(f, set)
	return query, args, err
}

// listQuery reads each status from its own index ranges, already sorted and no further than the page, and merges them.
func listQuery(f event.ListFilter) (string, []any) {
	var w sqlrow.Where
	conditions(&w, f)
	page := sqlrow.Limit(f.Limit)
	if len(f.Statuses) == 0 {
		return selectEvent() + w.String() + ` ORDER BY ` + order(f) + page, w.Args
	}
	parts := make([]string, len(f.Statuses))
	for i, status := range f.Statuses {
		// Arguments are shared by the parts; the first is the project.
		part := sqlrow.Where{Conditions: append([]string{}, w.Conditions...), Args: w.Args}
		from, by := `events e`, order(f)
		if status == event.Pending {
			part.Conditions = append(part.Conditions,
				"e.position > COALESCE((SELECT routed FROM dispatchers WHERE project = $1), 0)")
		} else {
			from, by = `routings r CROSS JOIN events e`, `r.last DESC, e.position DESC`
			// A cross join, because SQLite joins its tables in this order.
			part.Conditions = append(part.Conditions, "r.project = $1", "e.position BETWEEN r.first AND r.last")
			part.Is("r.status", "=", status)
			if f.Before > 0 {
				part.Is("r.first", "<", f.Before)
			}
		}
		w.Args = part.Args
		parts[i] = `SELECT hit FROM (SELECT e.position AS hit FROM ` + from + part.String() + ` ORDER BY ` + by + page +
			`) AS s`
	}
	return selectEvent() + ` WHERE e.project = $1 AND e.position IN (` + strings.Join(parts, ` UNION ALL `) +
		`) ORDER BY e.position DESC` + page, w.Args
}

// RunQuery reads the positions of the events with a delivery to a run, then the events of the page. The expression in
// the order prevents databases from scanning the project's events. set are further positions: those of the events of
// the delivery that started the run.
func RunQuery(f event.ListFilter, set []int64) (string, []any) {
	var w sqlrow.Where
	conditions(&w, f)
	positions := []string{`SELECT d.position FROM deliveries d WHERE d.run_id = ` + w.Arg(f.RunID) + ` AND d.project = $1`}
	for _, position := range set {
		positions = append(positions, `SELECT `+strconv.FormatInt(position, 10))
	}
	w.Conditions = append(w.Conditions, `e.position IN (`+strings.Join(positions, ` UNION ALL `)+`)`)
	sqlrow.OneOf(&w, `COALESCE((SELECT r.status `+outcome+`), 'pending')`, f.Statuses)
	page := sqlrow.Limit(f.Limit)
	return selectEvent() + ` WHERE e.project = $1
		AND e.position IN (SELECT hit FROM (SELECT e.position AS hit FROM events e` + w.String() +
		` ORDER BY e.position + 0 DESC` + page + `) AS h) ORDER BY e.position DESC` + page, w.Args
}

// setOf returns the positions of the events of the delivery that started a run: it is the first one of the run.
func setOf(ctx context.Context, c sqldb.Conn, project, runID string) ([]int64, error) {
	first, err := sqlrow.Collect(ctx, c,
		selectDelivery()+` WHERE run_id = $1 AND project = $2 ORDER BY position, id LIMIT 1`, []any{runID, project},
		sqlrow.Scan(deliveryFields))
	if err != nil || len(first) == 0 || first[0].Kind != event.Start {
		return nil, err
	}
	return first[0].Positions, nil
}

// order is that of the positions. A filter by ID selects few events; the expression prevents SQLite from scanning the
// positions instead of looking the ID up.
func order(f event.ListFilter) string {
	if f.ID != "" {
		return `e.position + 0 DESC`
	}
	return `e.position DESC`
}

// beyond is a position above that of any event.
const beyond = "9223372036854775807"

func conditions(w *sqlrow.Where, f event.ListFilter) {
	w.Is("e.project", "=", f.Project)
	w.IsText("e.type", f.Type)
	w.IsText("e.source", f.Source)
	w.IsText("e.id", f.ID)
	if f.Before > 0 {
		w.Is("e.position", "<", f.Before)
	}
	// Times never decrease with positions, so a time range is a range of positions, which every index is sorted by.
	from := func(at int64) string {
		return "COALESCE((SELECT position FROM events WHERE project = $1 AND received_at >= " + w.Arg(at) +
			" ORDER BY received_at, position LIMIT 1), " + beyond + ")"
	}
	if !f.Since.IsZero() {
		w.Conditions = append(w.Conditions, "e.position >= "+from(f.Since.UnixMicro()))
	}
	if !f.Until.IsZero() {
		w.Conditions = append(w.Conditions, "e.position < "+from(f.Until.UnixMicro()))
	}
	if f.Dead {
		w.Conditions = append(w.Conditions,
			"e.position IN (SELECT d.position FROM deliveries d WHERE d.project = $1 AND d.status = 'dead')")
	}
	if f.Retrying {
		// A claim counts as an attempt.
		w.Conditions = append(w.Conditions,
			`e.position IN (SELECT d.position FROM deliveries d WHERE d.project = $1 AND d.due_at IS NOT NULL
AND (d.attempts > 1 OR d.attempts = 1 AND d.claimed_until IS NULL))`)
	}
}

// Behind reads up to limit events with their originals after the position up to which the project's events are routed,
// in order.
func (s *Intake) Behind(ctx context.Context, c sqldb.Conn, project string, limit int) ([]event.Event, error) {
	return sqlrow.Collect(ctx, c, selectPending()+` WHERE e.project = $1 AND
e.position > COALESCE((SELECT routed FROM dispatchers WHERE project = $1), 0) ORDER BY e.position`+sqlrow.Limit(limit),
		[]any{project}, scanPending)
}

// Identities reads the identifying columns of events, by position, in order: none of the columns that may be large.
func (s *Intake) Identities(ctx context.Context, c sqldb.Conn, project string,
	positions []int64) (list []event.Event, err error) {
	for part := range sqlrow.Chunks(slices.Compact(slices.Sorted(slices.Values(positions)))) {
		args := []any{project}
		for _, p := range part {
			args = append(args, p)
		}
		found, err := sqlrow.Collect(ctx, c, `SELECT position, id, source FROM events WHERE project = $1 AND position IN `+
			sqlrow.Tuples(s.db.Dialect(), 1, 1, len(part))+
			` ORDER BY position`, args, func(row sqlrow.Scanner) (e event.Event, err error) {
			e.Project = project
			err = row.Scan(&e.Position, &e.ID, &e.Source)
			return e, err
		})
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
}

// denseEnough is the number of events that are read per requested one before a lookup of each is cheaper.
const denseEnough = 4

// At reads events with their originals by position, in order. Mostly their positions are close together.
func (s *Intake) At(ctx context.Context, c sqldb.Conn, project string,
	positions []int64) (list []event.Event, err error) {
	positions = slices.Compact(slices.Sorted(slices.Values(positions)))
	if n := len(positions); n > 0 && positions[n-1]-positions[0] < int64(denseEnough*n) {
		list, err = sqlrow.Collect(ctx, c,
			selectWhole()+` WHERE e.project = $1 AND e.position BETWEEN $2 AND $3 ORDER BY e.position`,
			[]any{project, positions[0], positions[n-1]}, scanWhole)
		return slices.DeleteFunc(list, func(e event.Event) bool {
			_, wanted := slices.BinarySearch(positions, e.Position)
			return !wanted
		}), err
	}
	for part := range sqlrow.Chunks(positions) {
		args := []any{project}
		for _, p := range part {
			args = append(args, p)
		}
		found, err := sqlrow.Collect(ctx, c, selectWhole()+` WHERE e.project = $1 AND e.position IN `+
			sqlrow.Tuples(s.db.Dialect(), 1, 1, len(part))+` ORDER BY e.position`, args, scanWhole)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
}
