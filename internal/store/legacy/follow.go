package legacy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/cutover"
	"github.com/signalbox-dev/signalbox/internal/store/legacy/source"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

const (
	// turnPages is how many pages of the round one pass reads.
	turnPages = 10
	// lateCommit is how long a row of the source may take from the time that it tells of itself until others see it. What takes longer is
	// found by the round.
	lateCommit = 2 * time.Minute
)

// Follower copies what old processes still write into a source.
//
// Each pass reads the runs whose times are behind a mark: created_at, and updated_at where the source has it. The mark is the newest
// value of some minutes ago, as transactions may take their time. Beside them it reads the next few thousand of all runs in the order of
// their IDs, round and round: that finds what no time tells of. How far both have come is kept beside the runs.
type Follower struct {
	target *sqldb.DB
	o      Options
	// made are the projects that are known to be there.
	made map[string]bool
}

// NewFollower returns a follower. It reads nothing before its first pass.
func NewFollower(target *sqldb.DB, o Options) *Follower {
	return &Follower{target: target, o: o, made: map[string]bool{}}
}

// Pass implements [cutover.Source].
func (f *Follower) Pass(ctx context.Context) (p cutover.Pass, err error) {
	ran, err := f.target.Exclusive(ctx, lockName, func(ctx context.Context) (err error) {
		src, err := source.Open(ctx, f.o.Driver, f.o.DSN)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, src.Close()) }()
		l := look{f: f, odd: map[string]bool{}, importer: &importer{
			src: src, target: f.target, o: f.o, translator: translator{src: src, project: f.o.Project, namespace: f.o.Namespace},
		}}
		err = l.run(ctx)
		r := l.importer.report
		p = l.pass
		p.New, p.Changed, p.Settled = r.New, r.Changed, r.Settled
		return err
	})
	p.Busy = err == nil && !ran
	return p, err
}

// look is one pass.
type look struct {
	f        *Follower
	importer *importer
	pass     cutover.Pass
	// odd are the runs that were left out.
	odd map[string]bool
}

func (l *look) run(ctx context.Context) error {
	at, err := l.f.progress(ctx, l.importer.src.Name)
	if err != nil {
		return err
	}
	begun := at.known
	if now := l.f.o.Now(); !begun || now.Sub(at.notedAt) >= lateCommit {
		newest, err := l.importer.src.Newest(ctx)
		if err != nil {
			return err
		}
		at.turn(newest, now)
	}
	if begun {
		if err := l.news(ctx, at.marks); err != nil {
			return err
		}
	}
	err = l.walk(ctx, &at)
	l.pass.First = at.rounds == 0
	return err
}

// news copies what the marks tell of.
func (l *look) news(ctx context.Context, marks source.Values) error {
	if len(marks) == 0 {
		return nil
	}
	for after := any(nil); ; {
		rows, err := l.importer.src.News(ctx, marks, after, pageRuns)
		if err != nil || len(rows) == 0 {
			return err
		}
		after = rows[len(rows)-1]["id"]
		if err := l.copy(ctx, rows); err != nil || len(rows) < pageRuns {
			return err
		}
	}
}

// walk goes on with the round.
func (l *look) walk(ctx context.Context, at *progress) error {
	for range turnPages {
		rows, err := l.importer.src.Page(ctx, at.walked, pageRuns)
		if err != nil {
			return err
		}
		if err := l.copy(ctx, rows); err != nil {
			return err
		}
		last := len(rows) < pageRuns
		if last {
			at.walked = nil
			at.rounds++
		} else {
			at.walked = rows[len(rows)-1]["id"]
		}
		if err := l.f.keep(ctx, l.importer.src.Name, *at); err != nil || last {
			return err
		}
	}
	return nil
}

// copy copies those of the rows that can be imported, and makes their projects.
func (l *look) copy(ctx context.Context, rows []source.Record) error {
	fit := make([]source.Record, 0, len(rows))
	var missing []string
	for _, r := range rows {
		project := l.importer.translator.projectOf(r)
		if why := unfit(r, project); why != "" {
			if id := source.Text(r["id"]); !l.odd[id] {
				l.odd[id] = true
				l.pass.LeaveOut(why)
			}
			continue
		}
		fit = append(fit, r)
		if !l.f.made[project] {
			l.f.made[project] = true
			missing = append(missing, project)
		}
	}
	if err := l.importer.makeProjects(ctx, missing); err != nil {
		clear(l.f.made)
		return err
	}
	if len(fit) == 0 {
		return nil
	}
	return l.importer.copy(ctx, fit)
}

// unfit is why a row cannot be imported; empty where it can.
func unfit(r source.Record, project string) string {
	id := source.Text(r["id"])
	if _, known := statusOf(source.Text(r["status"])); !known {
		return fmt.Sprintf("the run %q has the status %q, which is none of those that can be imported", id, source.Text(r["status"]))
	}
	if !projectName.MatchString(project) {
		return fmt.Sprintf("the run %q is of %q, which is not a project's name; set migration.project", id, project)
	}
	return ""
}
