// Package legacy reads an older engine's database and copies its runs into this one.
//
//	report, err := legacy.Import(ctx, db, legacy.Options{DSN: dsn, Now: time.Now, Progress: os.Stderr})
//
// The source is only read. Its runs are read in pages by ID, and each page is written in one transaction of a few
// statements, so that memory use does not grow with the number of runs. A run that was imported before and has not
// changed in the source is not written again: an import that was interrupted, or is repeated, continues with new and
// changed runs.
//
// Open runs of an engine that no longer exists are settled: canceled, with an error that states the reason, their waits
// resolved and their steps closed. Runs that have ended, and all runs on Temporal, are copied unchanged;
// docs/migration.md lists the columns.
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

	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

const (
	// pageRuns is the number of runs that are read and written at a time.
	pageRuns = 500
	// lockName excludes concurrent imports.
	lockName = "legacy import"
	// progressEvery is the interval of progress lines.
	progressEvery = 2 * time.Second
	// mostTaken is the maximum number of listed IDs that belong to other runs.
	mostTaken = 5
)

// projectName is the pattern of project names.
var projectName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Options configure an import.
type Options struct {
	// DSN is the source: a Postgres URL or the path of a SQLite file.
	DSN string
	// Project receives all runs; empty: each run keeps its project, which is created if it does not exist.
	Project string
	// Namespace is prepended to the names of workflows without one.
	Namespace string
	// DryRun only reports what an import would do.
	DryRun bool
	Now    func() time.Time
	// Progress receives lines of text for the operator.
	Progress io.Writer
}

// Report is the result of an import or a dry run.
type Report struct {
	Runs, New, Changed, Unchanged int64
	// Canceled are the new and changed runs that were open on an engine that no longer exists; Waits are their open
	// waits.
	Canceled, Waits int64
	Steps           int64
	// Taken are runs with the ID of a run that was not imported; they were skipped.
	Taken    int64
	TakenIDs []string
	// Removed are imported runs that retention has deleted since.
	Removed  int64
	Projects []string // that were created
	Took     time.Duration
}

// Import copies new and changed runs.
func Import(ctx context.Context, target *sqldb.DB, o Options) (r Report, err error) {
	begun := o.Now()
	src, err := Open(ctx, o.DSN)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	i := &importer{src: src, target: target, o: o,
		translator: translator{src: src, project: o.Project, namespace: o.Namespace}}
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
		err = errors.New("another import is running on this database, or a server is reading migration.from at this " +
			"moment; try again in a moment")
	}
	i.report.Took = o.Now().Sub(begun)
	return i.report, err
}

type importer struct {
	src        *Source
	target     *sqldb.DB
	o          Options
	translator translator
	report     Report
	total      int64
	told       time.Time
}

// survey checks the source before anything is written: unknown statuses, and projects that cannot be created.
func (i *importer) survey(ctx context.Context) ([]string, error) {
	byStatus, err := i.src.Counts(ctx, "status")
	if err != nil {
		return nil, err
	}
	var violations []string
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		i.total += byStatus[status]
		if _, known := statusOf(status); !known {
			violations = append(violations, fmt.Sprintf("the status %q (rows: %d) is none of %s", status, byStatus[status],
				strings.Join(slices.Sorted(maps.Keys(statuses())), ", ")))
		}
	}
	projects := []string{i.o.Project}
	if i.o.Project == "" {
		byProject, err := i.src.Counts(ctx, i.src.Column(Runs, "project|tenant|tenant_id"))
		if err != nil {
			return nil, err
		}
		projects = slices.Sorted(maps.Keys(byProject))
	}
	for _, name := range projects {
		if !projectName.MatchString(name) {
			violations = append(violations, fmt.Sprintf("%q is not a project's name (lower-case letters, digits and hyphens, "+
				"at most 63); give --project", name))
		}
	}
	if len(violations) > 0 {
		return nil, fmt.Errorf("nothing was imported: %s", strings.Join(violations, "; "))
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
func (i *importer) copy(ctx context.Context, rows []Record) error {
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

// read converts a page of rows with their steps and waits to runs, and finds the existing rows for them.
func (i *importer) read(ctx context.Context, rows []Record) ([]imported, map[string]existingRow, error) {
	ids, names := make([]any, len(rows)), make([]string, len(rows))
	for n, r := range rows {
		ids[n], names[n] = r["id"], Text(r["id"])
	}
	there, err := i.existingRows(ctx, names)
	if err != nil {
		return nil, nil, err
	}
	var parts [3]map[string][]Record
	for n, table := range []string{Steps, Waits, Snapshots} {
		if parts[n], err = i.src.Of(ctx, table, ids); err != nil {
			return nil, nil, err
		}
	}
	now := i.o.Now()
	page := make([]imported, len(rows))
	for n, r := range rows {
		id := names[n]
		// A run that was settled before keeps that end time, whatever has changed in it since.
		page[n], err = i.translator.translate(
			legacyRun{row: r, steps: parts[0][id], waits: parts[1][id], snapshots: parts[2][id]},
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
	_, _ = fmt.Fprintf(i.o.Progress, "%d of %d runs read: %d new, %d changed, %d as they were\n", i.report.Runs, i.total,
		i.report.New, i.report.Changed, i.report.Unchanged)
}
