package store

import (
	"context"
	"strconv"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// audit deletes entries in the order of their IDs, which is that of their times up to the clock differences of
// processes: it ends with the first page from which nothing is deleted. The newest entries that a count limit keeps do
// not include entries of deletions: otherwise each pass would delete an older entry to make room for its own.
func (s *retentionRows) audit(ctx context.Context, p *retentionPage) error {
	end := int64(0)
	if p.at.End != nil {
		end = p.at.End.At
	} else if p.cut.Keep > 0 {
		var err error
		end, err = p.first(ctx, `SELECT id FROM audit WHERE project = $1 AND action <> $2 ORDER BY id DESC LIMIT 1 OFFSET `+
			strconv.Itoa(p.cut.Keep),
			p.cut.Project, audit.RetentionDelete)
		if err != nil {
			return err
		}
	}
	ids, err := p.numbers(ctx, `SELECT id FROM audit WHERE project = $1 AND id > $2 ORDER BY id`+sqlrow.Limit(p.limit),
		p.cut.Project, p.at.After.At)
	if err != nil || len(ids) == 0 {
		return err
	}
	last := ids[len(ids)-1]
	n, err := p.remove(ctx, "audit",
		`DELETE FROM audit WHERE project = $1 AND id > $2 AND id <= $3 AND (at < $4 OR id <= $5)`,
		p.cut.Project, p.at.After.At, last, p.before(), end)
	if n > 0 && len(ids) == p.limit {
		p.next = &retentionCursor{After: indexRow{At: last}, End: &indexRow{At: end}}
	}
	return err
}

// owners deletes from the history of owners in one step, because it is short.
func (s *retentionRows) owners(ctx context.Context, p *retentionPage) error {
	newest := `SELECT o.epoch FROM owner_changes o WHERE o.project = owner_changes.project
		AND o.task_queue = owner_changes.task_queue
ORDER BY o.epoch DESC LIMIT 1`
	conditions := []string{`at < $2 AND epoch < (` + newest + `)`}
	if p.cut.Keep > 0 {
		conditions = append(conditions, `epoch <= (`+newest+` OFFSET `+strconv.Itoa(p.cut.Keep)+`)`)
	}
	for _, condition := range conditions {
		// Each condition uses all arguments, as both databases require.
		if _, err := p.remove(ctx, "owner_changes",
			`DELETE FROM owner_changes WHERE project = $1 AND (`+condition+`) AND CAST($2 AS BIGINT) IS NOT NULL`,
			p.cut.Project, p.before()); err != nil {
			return err
		}
	}
	return nil
}

// itemsPerBatch is the number of items that a page may read per batch.
const itemsPerBatch = 10

// batches deletes batches that have ended, after their items, of which there may be more than fit in one page.
func (s *retentionRows) batches(ctx context.Context, p *retentionPage) error {
	end := ""
	if p.cut.Keep > 0 {
		list, err := sqlrow.Collect(ctx, p.c,
			`SELECT id FROM batches WHERE project = $1 ORDER BY id DESC LIMIT 1 OFFSET `+strconv.Itoa(p.cut.Keep),
			[]any{p.cut.Project}, sqlrow.ScanText)
		if err != nil {
			return err
		}
		if len(list) > 0 {
			end = list[0]
		}
	}
	ids, err := sqlrow.Collect(ctx, p.c,
		`SELECT id FROM batches WHERE project = $1 AND id > $2 AND ended_at IS NOT NULL AND (ended_at < $3 OR id <= $4)
ORDER BY id`+sqlrow.Limit(p.limit)+s.db.Dialect().LockRows, []any{p.cut.Project, p.at.After.ID, p.before(), end}, sqlrow.ScanText)
	if err != nil {
		return err
	}
	budget, after := int64(p.limit*itemsPerBatch), p.at.After.ID
	for _, id := range ids {
		n, err := p.remove(ctx, "batch_items", `DELETE FROM batch_items WHERE batch = $1 AND number <= (
SELECT MAX(number) FROM (SELECT number FROM batch_items WHERE batch = $1 ORDER BY number
LIMIT `+strconv.FormatInt(budget, 10)+`) AS s)`, id)
		if err != nil {
			return err
		}
		if budget -= n; budget <= 0 {
			p.next = &retentionCursor{After: indexRow{ID: after}}
			return nil
		}
		if _, err := p.remove(ctx, "batches", `DELETE FROM batches WHERE id = $1`, id); err != nil {
			return err
		}
		after = id
	}
	if len(ids) == p.limit {
		p.next = &retentionCursor{After: indexRow{ID: after}}
	}
	return nil
}
