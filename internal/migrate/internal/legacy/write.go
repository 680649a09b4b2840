package legacy

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/runrow"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// existingRow is the existing row for a run's ID.
type existingRow struct {
	sequence    int64
	imported    bool
	fingerprint string
	settled     time.Time
	// removed reports that it was imported, and deleted by retention.
	removed bool
}

// makeProjects creates the projects that do not exist.
func (i *importer) makeProjects(ctx context.Context, names []string) error {
	for _, name := range names {
		err := i.target.Write(ctx, "make project", func(ctx context.Context, c sqldb.Conn) error {
			there, err := sqlrow.Exists(ctx, c, `SELECT 1 FROM projects WHERE name = $1`, name)
			if err != nil || there {
				return err
			}
			i.report.Projects = append(i.report.Projects, name)
			if i.o.DryRun {
				return nil
			}
			now := i.o.Now()
			if _, err := c.ExecContext(ctx, `INSERT INTO projects (name, description, created_at) VALUES ($1, $2, $3)`,
				name, "made by an import", now.UnixMicro()); err != nil {
				return err
			}
			return ledger.Add(ctx, c, audit.NewEntry(ctx, now, audit.ProjectCreate, name, name, "import"))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// write writes the new and changed runs of a page in one transaction.
func (i *importer) write(ctx context.Context, page []imported, there map[string]existingRow) error {
	var counted Report
	err := i.target.Write(ctx, "import runs", func(ctx context.Context, c sqldb.Conn) error {
		counted = Report{}
		list, changed := selectChanged(page, there, &counted)
		if i.o.DryRun || len(list) == 0 {
			return nil
		}
		if err := i.remove(ctx, c, changed); err != nil {
			return err
		}
		if err := i.insert(ctx, c, list); err != nil {
			return err
		}
		return i.writeAudit(ctx, c, list)
	})
	if err != nil {
		return err
	}
	r := &i.report
	r.New, r.Changed, r.Unchanged = r.New+counted.New, r.Changed+counted.Changed, r.Unchanged+counted.Unchanged
	r.Canceled, r.Waits, r.Steps, r.Taken = r.Canceled+counted.Canceled, r.Waits+counted.Waits, r.Steps+counted.Steps,
		r.Taken+counted.Taken
	r.Removed += counted.Removed
	r.TakenIDs = append(r.TakenIDs, counted.TakenIDs...)
	r.TakenIDs = r.TakenIDs[:min(len(r.TakenIDs), mostTaken)]
	return nil
}

// selectChanged returns the runs to write, and the IDs of those of them that replace an older form.
func selectChanged(page []imported, there map[string]existingRow, counted *Report) (list []imported, changed []string) {
	for _, r := range page {
		before, here := there[r.ID]
		switch {
		case before.removed:
			counted.Removed++
			continue
		case here && !before.imported:
			counted.Taken++
			counted.TakenIDs = append(counted.TakenIDs, r.ID)
			continue
		case here && before.fingerprint == r.fingerprint:
			counted.Unchanged++
			continue
		case here:
			counted.Changed++
			changed = append(changed, r.ID)
		default:
			counted.New++
		}
		r.Sequence = before.sequence + 1
		if r.open {
			counted.Canceled++
			counted.Waits += int64(r.waits)
		}
		counted.Steps += int64(len(r.steps))
		list = append(list, r)
	}
	return list, changed
}

// existingRows reads the existing rows for runs.
func (i *importer) existingRows(ctx context.Context, ids []string) (map[string]existingRow, error) {
	out := make(map[string]existingRow, len(ids))
	type found struct {
		id string
		existingRow
	}
	err := i.target.Read(ctx, "find imported runs", func(ctx context.Context, c sqldb.Conn) error {
		return sqlrow.In(ctx, i.target.Dialect(), ids, nil, func(ctx context.Context, marks string, args []any) error {
			list, err := sqlrow.Collect(ctx, c,
				`SELECT r.id, r.sequence, l.run_id IS NOT NULL, COALESCE(l.fingerprint, ''), l.settled_at
FROM runs r LEFT JOIN run_legacy l ON l.run_id = r.id
WHERE r.id IN `+marks, args, func(row sqlrow.Scanner) (f found, err error) {
					return f, row.Scan(&f.id, &f.sequence, &f.imported, &f.fingerprint, sqlrow.TimeInto(&f.settled))
				})
			if err != nil {
				return err
			}
			for _, f := range list {
				out[f.id] = f.existingRow
			}
			removed, err := sqlrow.Collect(ctx, c, `SELECT run_id FROM legacy_removed WHERE run_id IN `+marks, args,
				sqlrow.ScanText)
			for _, id := range removed {
				out[id] = existingRow{removed: true}
			}
			return err
		})
	})
	return out, err
}

func (i *importer) remove(ctx context.Context, c sqldb.Conn, ids []string) error {
	return sqlrow.In(ctx, i.target.Dialect(), ids, nil, func(ctx context.Context, marks string, args []any) error {
		for _, statement := range []string{
			`DELETE FROM steps WHERE run_id IN `, `DELETE FROM run_legacy WHERE run_id IN `, `DELETE FROM runs WHERE id IN `} {
			if _, err := c.ExecContext(ctx, statement+marks, args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// ownedStep is a step with its run.
type ownedStep struct {
	runID string
	run.Step
}

func (i *importer) insert(ctx context.Context, c sqldb.Conn, list []imported) error {
	d := i.target.Dialect()
	if _, err := sqlrow.InsertMany(ctx, c, d, "runs", "", list, imported.fields); err != nil {
		return err
	}
	var steps []ownedStep
	for _, r := range list {
		for _, s := range r.steps {
			s.Sequence = r.Sequence
			steps = append(steps, ownedStep{r.ID, s})
		}
	}
	if _, err := sqlrow.InsertMany(ctx, c, d, "steps", "", steps, func(s ownedStep) sqlrow.Fields {
		return append(runrow.StepFields(&s.Step), sqlrow.Col("run_id", s.runID))
	}); err != nil {
		return err
	}
	_, err := sqlrow.InsertMany(ctx, c, d, "run_legacy", "", list, func(r imported) sqlrow.Fields {
		if !r.open {
			r.settled = time.Time{}
		}
		return sqlrow.Row(
			"run_id", r.ID, "engine", sqlrow.MendedInto(&r.engine), "fingerprint", r.fingerprint,
			"settled_at", sqlrow.TimeInto(&r.settled), "original", sqlrow.RawInto(&r.original),
		)
	})
	return err
}

func (r imported) fields() sqlrow.Fields {
	return sqlrow.Row(
		"id", r.ID, "project", r.Project, "workflow", r.Workflow, "version", r.Version, "document_hash", "",
		"status", r.Status, "queued_reason", "", "waiting_kind", r.WaitingKind,
		"status_at", sqlrow.TimeInto(&r.StatusAt), "cancel_requested", false, "cancel_reason", "",
		"trigger_kind", r.Trigger, "actor", r.Actor, "created_at", sqlrow.TimeInto(&r.CreatedAt),
		"started_at", sqlrow.TimeInto(&r.StartedAt), "ended_at", sqlrow.TimeInto(&r.EndedAt),
		"steps_total", r.StepsTotal, "steps_done", r.StepsDone, "sequence", r.Sequence, "position", 0,
		"state_position", 0, "interpreter", 0, "execution_id", "", "error", sqlrow.JSONInto(&r.Error),
		"input", sqlrow.RawInto(&r.Input), "output", sqlrow.RawInto(&r.Output), "disclosed", true,
		"redacted", r.Redacted,
	)
}

// writeAudit writes one audit entry for each project of a page.
func (i *importer) writeAudit(ctx context.Context, c sqldb.Conn, list []imported) error {
	type counts struct {
		Runs     int `json:"runs"`
		Canceled int `json:"settled"`
	}
	byProject := map[string]*counts{}
	var order []string
	for _, r := range list {
		if byProject[r.Project] == nil {
			byProject[r.Project] = &counts{}
			order = append(order, r.Project)
		}
		byProject[r.Project].Runs++
		if r.open {
			byProject[r.Project].Canceled++
		}
	}
	for _, project := range order {
		e := audit.NewEntry(ctx, i.o.Now(), audit.RunImport, project, project, "")
		detail, err := json.Marshal(byProject[project])
		if err != nil {
			return fmt.Errorf("encode what was imported: %w", err)
		}
		e.Detail = detail
		if err := ledger.Add(ctx, c, e); err != nil {
			return err
		}
	}
	return nil
}
