// Package legacy copies the runs of an older engine's database into ours: `signalbox migrate import`.
//
//	report, err := legacy.Import(ctx, db, legacy.Options{Driver: driver, DSN: dsn, Now: time.Now, Progress: os.Stderr})
//
// The source is only read. Its runs are read in pages by their IDs, and each page is written in one transaction of a few statements, so
// that memory does not grow with the number of runs. A run that is there already, and has not changed in the source, is left as it is: an
// import that was interrupted, or is repeated, goes on with what is new or has changed.
//
// Runs of an engine that is gone, which were open, are settled: canceled, with an error that says so, their waits resolved and their steps
// closed. Runs that have ended, and all of Temporal's, are copied as they are; docs/migration.md has the columns.
package legacy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/store/legacy/source"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

const (
	// pageRuns is how many runs are read and written at a time.
	pageRuns = 500
	// lockName keeps two imports apart.
	lockName = "legacy import"
	// progressEvery is how often progress is told.
	progressEvery = 2 * time.Second
	// mostTaken is how many IDs are named that belong to other runs.
	mostTaken = 5
)

// projectName is what a project may be called.
var projectName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Options say what to import.
type Options struct {
	// Driver and DSN are the source's.
	Driver sqldb.Driver
	DSN    string
	// Project takes all runs; empty: each run goes to the project it was in, which is made where it is missing.
	Project string
	// Namespace is put before the names of workflows that have none.
	Namespace string
	// DryRun only tells what would be done.
	DryRun bool
	Now    func() time.Time
	// Progress gets lines for people.
	Progress io.Writer
}

// Report is what was done, or would be.
type Report struct {
	Runs, New, Changed, Unchanged int64
	// Settled are the runs that were open on an engine that is gone, of the new and changed ones; Waits their open waits.
	Settled, Waits int64
	Steps          int64
	// Taken are runs whose ID belongs to a run that was not imported; they were left out.
	Taken    int64
	TakenIDs []string
	// Removed are runs that were imported and then deleted because they are not to be kept.
	Removed  int64
	Projects []string // that were made
	Took     time.Duration
}

// Import copies what is new or has changed.
func Import(ctx context.Context, target *sqldb.DB, o Options) (r Report, err error) {
	begun := o.Now()
	src, err := source.Open(ctx, o.Driver, o.DSN)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	i := &importer{src: src, target: target, o: o, translator: translator{src: src, project: o.Project, namespace: o.Namespace}}
	projects, err := i.survey(ctx)
	if err != nil {
		return r, err
	}
	ran, err := target.Exclusive(ctx, lockName, func(ctx context.Context) error {
		if err := i.makeProjects(ctx, projects); err != nil {
			return err
		}
		return i.copyAll(ctx)
	})
	if err == nil && !ran {
		err = errors.New("another import is running on this database, or a server just looks at what migration.from names; try again in a moment")
	}
	i.report.Took = o.Now().Sub(begun)
	return i.report, err
}

type importer struct {
	src        *source.Source
	target     *sqldb.DB
	o          Options
	translator translator
	report     Report
	total      int64
	told       time.Time
}

// survey looks at what there is before anything is written: statuses that mean nothing, and projects that cannot be made.
func (i *importer) survey(ctx context.Context) ([]string, error) {
	byStatus, err := i.src.Counts(ctx, "status")
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		i.total += byStatus[status]
		if _, known := statusOf(status); !known {
			problems = append(problems, fmt.Sprintf("the status %q (rows: %d) is none of %s", status, byStatus[status],
				strings.Join(slices.Sorted(maps.Keys(statuses())), ", ")))
		}
	}
	projects := []string{i.o.Project}
	if i.o.Project == "" {
		byProject, err := i.src.Counts(ctx, i.src.Column(source.Runs, "project|tenant|tenant_id"))
		if err != nil {
			return nil, err
		}
		projects = slices.Sorted(maps.Keys(byProject))
	}
	for _, name := range projects {
		if !projectName.MatchString(name) {
			problems = append(problems, fmt.Sprintf("%q is not a project's name (lower-case letters, digits and hyphens, at most 63); give --project", name))
		}
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("nothing was imported: %s", strings.Join(problems, "; "))
	}
	if i.total == 0 {
		return nil, nil
	}
	return projects, nil
}

func (i *importer) copyAll(ctx context.Context) error {
	var after any
	for {
		rows, err := i.src.Page(ctx, after, pageRuns)
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			after = rows[len(rows)-1]["id"]
			if err := i.copy(ctx, rows); err != nil {
				return err
			}
		}
		last := len(rows) < pageRuns
		if i.progress(last); last {
			return nil
		}
	}
}

// copy copies a page of rows.
func (i *importer) copy(ctx context.Context, rows []source.Record) error {
	page, there, err := i.read(ctx, rows)
	if err != nil {
		return err
	}
	if err := i.write(ctx, page, there); err != nil {
		return err
	}
	i.report.Runs += int64(len(rows))
	return nil
}

// read makes runs of a page of rows and what belongs to them, and finds what is here of them.
func (i *importer) read(ctx context.Context, rows []source.Record) ([]imported, map[string]standing, error) {
	ids, names := make([]any, len(rows)), make([]string, len(rows))
	for n, r := range rows {
		ids[n], names[n] = r["id"], source.Text(r["id"])
	}
	there, err := i.standings(ctx, names)
	if err != nil {
		return nil, nil, err
	}
	var parts [3]map[string][]source.Record
	for n, table := range []string{source.Steps, source.Waits, source.Snapshots} {
		if parts[n], err = i.src.Of(ctx, table, ids); err != nil {
			return nil, nil, err
		}
	}
	now := i.o.Now()
	page := make([]imported, len(rows))
	for n, r := range rows {
		id := names[n]
		// What was settled before ended then, whatever has changed in it since.
		page[n], err = i.translator.translate(legacyRun{row: r, steps: parts[0][id], waits: parts[1][id], snapshots: parts[2][id]},
			firstTime(there[id].settled, now))
		if err != nil {
			return nil, nil, err
		}
	}
	return page, there, nil
}

func (i *importer) progress(last bool) {
	if i.o.Progress == nil || !last && i.o.Now().Sub(i.told) < progressEvery {
		return
	}
	i.told = i.o.Now()
	_, _ = fmt.Fprintf(i.o.Progress, "%d of %d runs read: %d new, %d changed, %d as they were\n", i.report.Runs, i.total, i.report.New, i.report.Changed, i.report.Unchanged)
}
