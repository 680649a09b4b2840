// Package ledger contains the parts that every change in the store shares: it checks the project, and adds the audit
// entry of the change in the same transaction.
//
// Package store reads the audit log.
package ledger

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// Fields are the columns of an entry but for its ID, which the database assigns.
func Fields(e *audit.Entry) sqlrow.Fields {
	return sqlrow.Row(
		"at", sqlrow.TimeInto(&e.Time), "actor_kind", &e.Actor.Kind, "actor_name", &e.Actor.Name, "action", &e.Action,
		"project", &e.Project, "subject", &e.Subject, "reason", &e.Reason, "detail", sqlrow.RawInto(&e.Detail),
	)
}

// Add writes e in the transaction of the change that it describes.
func Add(ctx context.Context, c sqldb.Conn, e audit.Entry) error {
	if err := sqlrow.Storable("reason", e.Reason); err != nil {
		return err
	}
	_, err := sqlrow.Insert(ctx, c, "audit", Fields(&e), "")
	return err
}

// AddOnce is [Add], unless there is an entry with the same action, subject and time: a caller may repeat it after a
// lost response.
func AddOnce(ctx context.Context, c sqldb.Conn, e audit.Entry) error {
	there, err := sqlrow.Exists(ctx, c,
		`SELECT 1 FROM audit WHERE project = $1 AND subject = $2 AND action = $3 AND at = $4 LIMIT 1`,
		e.Project, e.Subject, e.Action, e.Time.UnixMicro())
	if err != nil || there {
		return err
	}
	return Add(ctx, c, e)
}

// NeedProject returns [NoProject] unless the project exists. An empty name means all projects.
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

// NoProject returns the error for a project that does not exist.
func NoProject(name string) error { return apperror.NoProject(name) }
