package legacy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

const (
	// turnPages is the number of pages of all runs that one pass reads.
	turnPages = 10
	// lateCommit is the maximum time between the time in a row of the source and its commit. A row that takes longer is
	// found when all runs are read.
	lateCommit = 2 * time.Minute
)

// Follower copies the changes that old processes still write to a source.
//
// Each pass reads the runs that changed after a mark: by created_at, and by updated_at if the source has it. The mark
// is the newest value of some minutes ago, because transactions may commit late. Each pass also reads the next few
// thousand of all runs in the order of their IDs, and starts again after the last: that finds changes without a new
// time. The progress of both is stored with the runs.
type Follower struct {
	target *sqldb.DB
	o      Options
	// made are the projects that are known to exist.
	made map[string]bool
}

// NewFollower returns a follower. It reads nothing before its first pass.
func NewFollower(target *sqldb.DB, o Options) *Follower {
	return &Follower{target: target, o: o, made: map[string]bool{}}
}

// Pass copies what is new or changed, or the next part of it, and cancels what cannot continue. Changes before an error
// are kept.
func (f *Follower) Pass(ctx context.Context) (p Pass, err error) {
	ran, err := f.target.Exclusive(ctx, lockName, func(ctx context.Context) (err error) {
		src, err := Open(ctx, f.o.DSN)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, src.Close()) }()
		l := pass{f: f, odd: map[string]bool{}, importer: &importer{
			src: src, target: f.target, o: f.o, translator: translator{src: src, project: f.o.Project, namespace: f.o.Namespace},
		}}
		err = l.run(ctx)
		r := l.importer.report
		p = l.pass
		p.New, p.Changed, p.Canceled = r.New, r.Changed, r.Canceled
		return err
	})
	p.Busy = err == nil && !ran
	return p, err
}

// Pass is the result of one pass.
type Pass struct {
	// New and Changed count the copied runs; Canceled counts those of them that were open on an engine that is gone, and
	// were canceled.
	New, Changed, Canceled int64
	// LeftOut counts the runs that cannot be imported; Why is the reason of the first.
	LeftOut int64
	Why     string
	// First: the source has not been read completely yet. Busy: an import was in progress and nothing was done.
	First, Busy bool
}

// LeaveOut counts a run that cannot be imported.
func (p *Pass) LeaveOut(why string) {
	if p.LeftOut++; p.LeftOut == 1 {
		p.Why = why
	}
}

// pass is the state of one pass.
type pass struct {
	f        *Follower
	importer *importer
	pass     Pass
	// odd are the runs that were skipped.
	odd map[string]bool
}

func (l *pass) run(ctx context.Context) error {
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
		at.advanceMarks(newest, now)
	}
	if begun {
		if err := l.copyNews(ctx, at.marks); err != nil {
			return err
		}
	}
	err = l.copyNextPages(ctx, &at)
	l.pass.First = at.rounds == 0
	return err
}

// copyNews copies the runs that changed after the marks.
func (l *pass) copyNews(ctx context.Context, marks Values) error {
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

// copyNextPages copies the next pages of all runs.
func (l *pass) copyNextPages(ctx context.Context, at *progress) error {
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

// copy copies the rows that can be imported, and creates their projects.
func (l *pass) copy(ctx context.Context, rows []Record) error {
	fit := make([]Record, 0, len(rows))
	var missing []string
	for _, r := range rows {
		project := l.importer.translator.projectOf(r)
		if why := rejectReason(r, project); why != "" {
			if id := Text(r["id"]); !l.odd[id] {
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

// rejectReason returns the reason why a row cannot be imported; empty if it can.
func rejectReason(r Record, project string) string {
	id := Text(r["id"])
	if _, known := statusOf(Text(r["status"])); !known {
		return fmt.Sprintf("the run %q has the status %q, which is none of those that can be imported", id, Text(r["status"]))
	}
	if !projectName.MatchString(project) {
		return fmt.Sprintf("the run %q is of %q, which is not a project's name; set migration.project", id, project)
	}
	return ""
}
