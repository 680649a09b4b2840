// Package activity records when something last happened in each project, parks the projects in which nothing happens,
// and wakes them. Servers serve the projects that are not parked.
//
//	projects := activity.New(db, 15*time.Second)
//	err := projects.Record(ctx, "shop")                // before the row of a run or of an event is inserted
//	names, err := projects.Served(ctx)
//	changed, err := projects.Review(ctx, 10*time.Minute) // by one process at a time, periodically
//
// # Why nothing is lost
//
// A project is parked only if its last activity is older than the idle time, and it has neither an open run nor an
// event that is not delivered. Record writes the time before the work itself is inserted, in a statement of its own, so
// a project that gets work cannot be parked within the idle time, and one that was parked is served again. All times
// are those of the database's clock. If a process writes work without Record, or later than the idle time after it, Review
// finds the work and wakes the project.
package activity

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// hasWork is whether the project of a row of projects has an open run, or an event that is not delivered.
const hasWork = `(EXISTS (SELECT 1 FROM runs r WHERE r.project = projects.name AND r.status IN ('queued', 'running', 'waiting'))
OR EXISTS (SELECT 1 FROM inboxes i LEFT JOIN dispatchers d ON d.project = i.project
WHERE i.project = projects.name AND (i.head > COALESCE(d.routed, 0) OR d.pending > 0))
OR EXISTS (SELECT 1 FROM event_outbox o WHERE o.project = projects.name))`

// Projects are the activity of projects. It is safe for concurrent use, also by several processes on one Postgres.
type Projects struct {
	db    *sqldb.DB
	every time.Duration

	mu       sync.Mutex
	recorded map[string]time.Time
	onActive func()
}

// New returns the activity of the projects of a database. It records a project at most once per interval, which must be
// shorter than the idle time by much.
func New(db *sqldb.DB, every time.Duration) *Projects {
	return &Projects{db: db, every: every, recorded: map[string]time.Time{}}
}

// OnActive calls f after each recorded activity: a project that was parked may have to be served. f must not block.
func (p *Projects) OnActive(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onActive = f
}

// Record records that something happens in a project. It is called before the work is inserted. A project that does not
// exist is no error.
func (p *Projects) Record(ctx context.Context, name string) error {
	now := time.Now()
	p.mu.Lock()
	last, known := p.recorded[name]
	active := p.onActive
	p.mu.Unlock()
	if known && now.Sub(last) < p.every {
		return nil
	}
	exists := false
	err := p.db.Exec(ctx, "record activity", func(ctx context.Context, c sqldb.Conn) (err error) {
		exists, err = sqlrow.Affected(ctx, c,
			`UPDATE projects SET active_at = `+p.db.Dialect().Now+`, parked_at = NULL WHERE name = $1`, name)
		return err
	})
	if err != nil || !exists {
		return err
	}
	p.mu.Lock()
	p.recorded[name] = now
	p.mu.Unlock()
	if active != nil {
		active()
	}
	return nil
}

// Served returns the names of the projects that are not parked, sorted.
func (p *Projects) Served(ctx context.Context) (names []string, err error) {
	err = p.db.Read(ctx, "list served projects", func(ctx context.Context, c sqldb.Conn) (err error) {
		names, err = sqlrow.Collect(ctx, c, `SELECT name FROM projects WHERE parked_at IS NULL ORDER BY name`, nil,
			sqlrow.ScanText)
		return err
	})
	return names, err
}

// Review wakes the parked projects that have work, and parks those in which nothing has happened for the idle time. An
// idle time of 0 wakes all and parks none.
func (p *Projects) Review(ctx context.Context, idle time.Duration) (changed project.Review, err error) {
	now := p.db.Dialect().Now
	names := func(ctx context.Context, statement string, args ...any) (list []string, err error) {
		err = p.db.Write(ctx, "review projects", func(ctx context.Context, c sqldb.Conn) (err error) {
			list, err = sqlrow.Collect(ctx, c, statement, args, sqlrow.ScanText)
			return err
		})
		return list, err
	}
	if idle == 0 {
		changed.Woken, err = names(ctx, `UPDATE projects SET parked_at = NULL WHERE parked_at IS NOT NULL RETURNING name`)
		return changed, err
	}
	// The time of a project with work is written, too: the idle time begins when its work ends.
	_, err = names(ctx, `UPDATE projects SET active_at = `+now+` WHERE parked_at IS NULL AND active_at < `+now+` - $1 AND `+
		hasWork+` RETURNING name`, idle.Microseconds()/2)
	if err != nil {
		return changed, err
	}
	changed.Woken, err = names(ctx, `UPDATE projects SET active_at = `+now+`, parked_at = NULL
WHERE parked_at IS NOT NULL AND `+hasWork+` RETURNING name`)
	if err != nil {
		return changed, err
	}
	changed.Parked, err = names(ctx, `UPDATE projects SET parked_at = `+now+` WHERE parked_at IS NULL AND active_at < `+now+
		` - $1 AND created_at < `+now+` - $1 AND NOT `+hasWork+` RETURNING name`, idle.Microseconds())
	return changed, err
}
