package events

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// anyDue reports for a dispatcher's row d whether one of its deliveries is due.
const anyDue = `EXISTS (SELECT 1 FROM deliveries x WHERE x.project = d.project AND x.due_at <= `

// ParkedDue implements [event.Rows].
func (s *Deliveries) ParkedDue(ctx context.Context, limit int) (list []inbox.Name, err error) {
	err = s.db.Read(ctx, "find dispatchers asleep", func(ctx context.Context, c sqldb.Conn) (err error) {
		list, err = sqlrow.Collect(ctx, c,
			`SELECT d.project, d.task_queue FROM inboxes i JOIN dispatchers d ON d.project = i.project
WHERE i.parked AND (i.head > d.routed OR `+anyDue+s.db.Dialect().Now+`)) ORDER BY d.project`+sqlrow.Limit(limit), nil,
			func(row sqlrow.Scanner) (n inbox.Name, err error) {
				err = row.Scan(&n.Project, &n.TaskQueue)
				return n, err
			})
		return err
	})
	return list, err
}

// oldestMost limits how many of the project's next deliveries are read to find the one that has waited for longest.
const oldestMost = 10_000

// waitingSince are the times of a project's oldest events: the first one that is not routed, the delivery that is due
// for longest, and the event of the oldest delivery that is neither done nor dead. Those of a lane follow its first
// one, so that they are no older.
func waitingSince(project, routed string) string {
	return `(SELECT e.received_at FROM events e WHERE e.project = ` + project + ` AND e.position = COALESCE(` + routed +
		`, 0) + 1),
(SELECT MIN(x.due_at) FROM deliveries x WHERE x.project = ` + project + ` AND x.due_at IS NOT NULL),
(SELECT e.received_at FROM events e WHERE e.project = ` + project + ` AND e.position = (SELECT MIN(o.position) FROM (
SELECT x.position FROM deliveries x WHERE x.project = ` + project + ` AND x.due_at IS NOT NULL
ORDER BY x.due_at, x.position` + sqlrow.Limit(oldestMost) + `) o))`
}

func selectProgress() string {
	return `SELECT i.project, COALESCE(d.task_queue, ''), COALESCE(d.epoch, 0), COALESCE(d.holder, ''), i.head,
		COALESCE(d.routed, 0),
COALESCE(d.pending, 0), i.parked, d.progressed_at,
` + waitingSince("i.project", "d.routed") + `
FROM inboxes i LEFT JOIN dispatchers d ON d.project = i.project`
}

// progress is a row with the times from which its ages are computed.
type progress struct {
	inbox.Progress

	// progressed, and those of [waitingSince], are times; zero where there are none.
	progressed, received, due, oldest time.Time
}

func scanProgress(row sqlrow.Scanner) (p progress, err error) {
	err = row.Scan(&p.Name.Project, &p.Name.TaskQueue, &p.Owner.Epoch, &p.Owner.Holder, &p.Head, &p.Routed, &p.Pending,
		&p.Parked,
		sqlrow.TimeInto(&p.progressed), sqlrow.TimeInto(&p.received), sqlrow.TimeInto(&p.due), sqlrow.TimeInto(&p.oldest))
	return p, err
}

// at returns the progress at a time.
func (p progress) at(now time.Time) inbox.Progress {
	p.SinceProgress = -1
	if !p.progressed.IsZero() {
		p.SinceProgress = max(0, now.Sub(p.progressed))
	}
	for _, since := range []time.Time{p.received, p.due} {
		if !since.IsZero() && !since.After(now) {
			p.Due = true
			p.Lag = max(p.Lag, now.Sub(since))
		}
	}
	for _, since := range []time.Time{p.received, p.oldest} {
		if !since.IsZero() {
			p.Oldest = max(p.Oldest, now.Sub(since))
		}
	}
	p.Oldest = max(p.Oldest, p.Lag) // retention may have deleted the event
	p.Due = p.Due || p.Head > p.Routed
	p.Pending += max(0, p.Head-p.Routed)
	return p.Progress
}

// named is the number of rows that are read by name: if there are more, all rows are read, which takes a fraction of
// the time.
const named = 500

// Progress implements [event.Rows]. A name without a dispatcher is returned if there are events for it.
func (s *Deliveries) Progress(ctx context.Context, names []inbox.Name) (list []inbox.Progress, err error) {
	queues := make(map[string]string, len(names))
	projects := make([]string, len(names))
	for i, n := range names {
		queues[n.Project], projects[i] = n.TaskQueue, n.Project
	}
	err = s.db.Read(ctx, "read progress", func(ctx context.Context, c sqldb.Conn) error {
		list = nil
		var now time.Time
		if err := c.QueryRowContext(ctx, `SELECT `+s.db.Dialect().Now).Scan(sqlrow.TimeInto(&now)); err != nil {
			return err
		}
		add := func(found []progress) {
			for _, p := range found {
				if p.Name.TaskQueue == "" {
					p.Name.TaskQueue = queues[p.Name.Project]
				}
				if p.Name.TaskQueue != "" && (len(names) == 0 || p.Name.TaskQueue == queues[p.Name.Project]) {
					list = append(list, p.at(now))
				}
			}
		}
		if len(names) == 0 || len(names) > named {
			found, err := sqlrow.Collect(ctx, c, selectProgress()+` ORDER BY i.project`, nil, scanProgress)
			add(found)
			return err
		}
		return sqlrow.In(ctx, s.db.Dialect(), sqlrow.Distinct(projects), nil,
			func(ctx context.Context, marks string, args []any) error {
				found, err := sqlrow.Collect(ctx, c, selectProgress()+` WHERE i.project IN `+marks+` ORDER BY i.project`, args,
					scanProgress)
				add(found)
				return err
			})
	})
	return list, err
}

// The maximum time between the time in a row and its commit for which News does not miss it. Callers ignore a head that
// they know, whereas a due delivery is reported to them each time.
const (
	lateHeads = 5 * time.Second
	lateDue   = 100 * time.Millisecond
)

// News implements [event.Rows]. The mark is the database's time.
func (s *Deliveries) News(ctx context.Context, mark int64) (list []event.News, next int64, err error) {
	err = s.db.Read(ctx, "read new events", func(ctx context.Context, c sqldb.Conn) error {
		if err := c.QueryRowContext(ctx, `SELECT `+s.db.Dialect().Now).Scan(&next); err != nil || mark == 0 {
			return err
		}
		// A delivery that was claimed is due later, so it is not returned again.
		list, err = sqlrow.Collect(ctx, c,
			`SELECT i.project, i.head, i.project IN (SELECT x.project FROM deliveries x WHERE x.due_at > $1 AND x.due_at <= $2)
FROM inboxes i WHERE i.received_at > $3
UNION SELECT i.project, i.head, TRUE FROM inboxes i
WHERE i.project IN (SELECT x.project FROM deliveries x WHERE x.due_at > $1 AND x.due_at <= $2)
ORDER BY 1`, []any{mark - lateDue.Microseconds(), next, mark - lateHeads.Microseconds()}, func(row sqlrow.Scanner) (n event.News, err error) {
				err = row.Scan(&n.Project, &n.Head, &n.Due)
				return n, err
			})
		return err
	})
	if err != nil {
		return nil, mark, err
	}
	return list, next, nil
}
