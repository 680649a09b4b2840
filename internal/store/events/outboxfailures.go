package events

import (
	"context"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/outbox"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
	"github.com/signalbox-dev/signalbox/internal/webhook"
)

// ReportRuns writes the events that report the failures among runs that have ended, in the transaction that ends them. The
// runs are as stored.
func ReportRuns(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, ended []run.Run) error {
	failed := slices.DeleteFunc(slices.Clone(ended), func(r run.Run) bool { return outbox.TypeOf(r.Status) == "" })
	if len(failed) == 0 {
		return nil
	}
	wanted, err := interested(ctx, c, d, failed, func(r run.Run) (string, string) {
		return r.Project, outbox.TypeOf(r.Status)
	})
	if err != nil || len(wanted) == 0 {
		return err
	}
	if err := readOrigins(ctx, c, d, wanted); err != nil {
		return err
	}
	list := make([]event.Event, len(wanted))
	for i, r := range wanted {
		list[i] = outbox.OfRun(r)
	}
	return addToOutbox(ctx, c, d, list)
}

// readOrigins sets what started the runs.
func readOrigins(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, runs []run.Run) error {
	ids := make([]string, len(runs))
	for i, r := range runs {
		ids[i] = r.ID
	}
	return sqlrow.In(ctx, d, ids, nil, func(ctx context.Context, marks string, args []any) error {
		_, err := sqlrow.Collect(ctx, c, `SELECT run_id, parent, after_failure FROM run_links WHERE run_id IN `+marks, args,
			func(row sqlrow.Scanner) (r run.Run, err error) {
				if err = row.Scan(&r.ID, &r.Parent.RunID, &r.AfterFailure); err != nil {
					return r, err
				}
				for i := range runs {
					if runs[i].ID == r.ID {
						runs[i].Parent.RunID, runs[i].AfterFailure = r.Parent.RunID, r.AfterFailure
					}
				}
				return r, nil
			})
		return err
	})
}

// reportDead writes the events that report that deliveries became dead, in the transaction that writes that. read
// sets the events of deliveries.
func reportDead(
	ctx context.Context, c sqldb.Conn, d sqldb.Dialect, dead []event.Delivery,
	read func(ctx context.Context, list []event.Delivery) error,
) error {
	if len(dead) == 0 {
		return nil
	}
	wanted, err := interested(ctx, c, d, dead, func(d event.Delivery) (string, string) {
		return d.Project, event.DeliveryDeadLettered
	})
	if err != nil || len(wanted) == 0 {
		return err
	}
	if err := read(ctx, wanted); err != nil {
		return err
	}
	list := make([]event.Event, len(wanted))
	for i, of := range wanted {
		list[i] = outbox.OfDelivery(of)
	}
	return addToOutbox(ctx, c, d, list)
}

// outboxInterest is a filter of a project that may receive events.
type outboxInterest struct {
	project string
	filter  webhook.Filter
}

// interested returns the items whose event an active webhook, a trigger or a listener of their project may receive. of
// returns the project and the type of an item's event.
func interested[T any](ctx context.Context, c sqldb.Conn, d sqldb.Dialect, items []T,
	of func(T) (project, typ string)) (wanted []T, err error) {
	var projects, types []string
	for _, item := range items {
		project, typ := of(item)
		projects, types = append(projects, project), append(types, typ)
	}
	var found []outboxInterest
	err = sqlrow.In(ctx, d, sqlrow.Distinct(projects), nil, func(ctx context.Context, marks string, args []any) error {
		list, err := sqlrow.Collect(ctx, c, interestsQuery(sqlrow.Distinct(types), marks), args,
			func(row sqlrow.Scanner) (i outboxInterest, err error) {
				return i, row.Scan(&i.project, sqlrow.JSONInto(&i.filter))
			})
		found = append(found, list...)
		return err
	})
	for _, item := range items {
		project, typ := of(item)
		if slices.ContainsFunc(found, func(i outboxInterest) bool { return i.project == project && i.filter.MatchesType(typ) }) {
			wanted = append(wanted, item)
		}
	}
	return wanted, err
}

// interestsQuery returns the query of the filters of active webhooks, and of one filter for each type that a trigger or
// a listener names.
func interestsQuery(types []string, projects string) string {
	var query strings.Builder
	query.WriteString(`WITH p AS (SELECT name FROM projects WHERE name IN ` + projects + `)
SELECT w.project, w.filter FROM p JOIN webhooks w ON w.project = p.name AND w.paused_at IS NULL`)
	for _, typ := range types { // constants of package event
		query.WriteString(` UNION ALL SELECT p.name, '{"types":["` + typ + `"]}' FROM p
WHERE EXISTS (SELECT 1 FROM trigger_types t WHERE t.project = p.name AND t.type = '` + typ + `')
OR EXISTS (SELECT 1 FROM listener_types l WHERE l.project = p.name AND l.type = '` + typ + `')`)
	}
	return query.String()
}

// ReportBatch writes the event that reports the end of a batch, in the transaction that writes that end.
func ReportBatch(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, b batch.Batch) error {
	wanted, err := interested(ctx, c, d, []batch.Batch{b}, func(b batch.Batch) (string, string) {
		return b.Project, event.BatchEnded
	})
	if err != nil || len(wanted) == 0 {
		return err
	}
	return addToOutbox(ctx, c, d, []event.Event{outbox.OfBatch(b)})
}
