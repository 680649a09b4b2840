package events

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// ReadPartials adds the open sets of the triggers to a batch, with the events in them.
func (s *Interests) ReadPartials(ctx context.Context, c sqldb.Conn, project string, b *event.Batch) error {
	var workflows []string
	for _, t := range b.Triggers {
		if t.Spec.Mode == event.All {
			workflows = append(workflows, t.Workflow)
		}
	}
	var positions []int64
	err := sqlrow.In(ctx, s.db.Dialect(), workflows, []any{project},
		func(ctx context.Context, marks string, args []any) error {
			found, err := sqlrow.Collect(ctx, c,
				`SELECT `+sqlrow.Columns(partialFields)+` FROM partials WHERE project = $1 AND workflow IN `+marks,
				args, sqlrow.Scan(partialFields))
			for _, p := range found {
				positions = append(positions, p.Positions...)
			}
			b.Partials = append(b.Partials, found...)
			return err
		})
	if err != nil {
		return err
	}
	b.Earlier, err = s.events.Identities(ctx, c, project, slices.DeleteFunc(positions, func(p int64) bool {
		return p == 0
	}))
	return err
}

// WritePartials writes or removes open sets; those of triggers that no longer exist are omitted.
func (s *Interests) WritePartials(ctx context.Context, c sqldb.Conn, project string, list []event.Partial) error {
	if len(list) == 0 {
		return nil
	}
	var workflows []string
	for _, p := range list {
		workflows = append(workflows, p.Workflow)
	}
	there := map[string]bool{}
	err := sqlrow.In(ctx, s.db.Dialect(), sqlrow.Distinct(workflows), []any{project},
		func(ctx context.Context, marks string, args []any) error {
			found, err := sqlrow.Collect(ctx, c, `SELECT workflow FROM triggers WHERE project = $1 AND workflow IN `+marks+
				` ORDER BY workflow`+s.db.Dialect().ShareRows, args, sqlrow.ScanText)
			for _, name := range found {
				there[name] = true
			}
			return err
		})
	if err != nil {
		return err
	}
	// If one set is written several times, the last write counts.
	last := map[[2]string]event.Partial{}
	for _, p := range list {
		if there[p.Workflow] {
			last[[2]string{p.Workflow, hashOf(p.Key)}] = p
		}
	}
	var open []event.Partial
	for key, p := range last {
		if len(p.Positions) > 0 {
			open = append(open, p)
			continue
		}
		_, err := c.ExecContext(ctx, `DELETE FROM partials WHERE project = $1 AND workflow = $2 AND key_hash = $3`, project,
			key[0], key[1])
		if err != nil {
			return err
		}
	}
	_, err = sqlrow.InsertMany(ctx, c, s.db.Dialect(), "partials",
		sqlrow.Replace("project, workflow, key_hash", "positions"), open,
		func(p event.Partial) sqlrow.Fields {
			p.Project = project
			return append(partialFields(&p), sqlrow.Col("key_hash", hashOf(p.Key)))
		})
	return err
}

func partialFields(p *event.Partial) sqlrow.Fields {
	return sqlrow.Row(
		"project", &p.Project, "workflow", &p.Workflow, "key", &p.Key, "positions", sqlrow.JSONInto(&p.Positions),
	)
}

// hashOf replaces a partial's key in the index, which does not accept a text of that length.
func hashOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}
