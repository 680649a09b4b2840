// Package ledger is what every change in the store does beside its own rows: it makes sure of its project, and adds the audit
// entry that tells of it, in the same transaction.
//
// Reading the audit log is for package store.
package ledger

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Add writes e in the transaction of the change that it tells of.
func Add(ctx context.Context, c sqldb.Conn, e audit.Entry) error {
	if err := sqlrow.Storable("reason", e.Reason); err != nil {
		return err
	}
	_, err := c.ExecContext(ctx, `INSERT INTO audit (at, actor_kind, actor_name, action, project, subject, reason, detail)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		e.Time.UnixMicro(), e.Actor.Kind, e.Actor.Name, e.Action, e.Project, e.Subject, e.Reason, sqlrow.Raw(e.Detail))
	return err
}

// AddOnce is [Add], unless there is an entry of the same action, subject and moment: for who may have written it before and did not hear so.
func AddOnce(ctx context.Context, c sqldb.Conn, e audit.Entry) error {
	there, err := sqlrow.Exists(ctx, c, `SELECT 1 FROM audit WHERE project = $1 AND subject = $2 AND action = $3 AND at = $4 LIMIT 1`,
		e.Project, e.Subject, e.Action, e.Time.UnixMicro())
	if err != nil || there {
		return err
	}
	return Add(ctx, c, e)
}

// NeedProject returns [NoProject] unless the project is there. An empty name means all projects.
func NeedProject(ctx context.Context, c sqldb.Conn, name string) error {
	if name == "" {
		return nil
	}
	ok, err := sqlrow.Exists(ctx, c, `SELECT 1 FROM projects WHERE name = $1`, name)
	if err == nil && !ok {
		return NoProject(name)
	}
	return err
}

// NoProject is the fault of a project that does not exist.
func NoProject(name string) error { return fault.NoProject(name) }
