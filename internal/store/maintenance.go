package store

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/maintenance"
	"github.com/signalbox-dev/signalbox/internal/store/ledger"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

const selectMaintenance = `SELECT active, reason, actor, since FROM maintenance WHERE id = 1`

func scanMaintenance(row sqlrow.Scanner) (m maintenance.State, err error) {
	return m, row.Scan(&m.On, &m.Reason, &m.Actor, sqlrow.TimeInto(&m.Since))
}

// Maintenance implements [maintenance.Store].
func (s *Store) Maintenance(ctx context.Context) (state maintenance.State, err error) {
	err = s.db.Read(ctx, "read the maintenance mode", func(ctx context.Context, c sqldb.Conn) (err error) {
		state, err = scanMaintenance(c.QueryRowContext(ctx, selectMaintenance))
		return err
	})
	return state, err
}

// ChangeMaintenance implements [maintenance.Store].
func (s *Store) ChangeMaintenance(ctx context.Context,
	change func(now maintenance.State) (maintenance.State, *audit.Entry)) error {
	return s.db.Write(ctx, "change the maintenance mode", func(ctx context.Context, c sqldb.Conn) error {
		now, err := scanMaintenance(c.QueryRowContext(ctx, selectMaintenance+s.db.Dialect().LockRows))
		if err != nil {
			return err
		}
		to, entry := change(now)
		if entry == nil {
			return nil
		}
		if _, err := c.ExecContext(ctx,
			`UPDATE maintenance SET active = $1, reason = $2, actor = $3, since = $4 WHERE id = 1`,
			to.On, to.Reason, to.Actor, sqlrow.Micros(to.Since)); err != nil {
			return err
		}
		return ledger.Add(ctx, c, *entry)
	})
}
