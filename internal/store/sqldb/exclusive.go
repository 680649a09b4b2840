package sqldb

import (
	"context"
	"errors"
	"hash/fnv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

const (
	// lockCheckEvery is the interval of checks of the connection that holds a lock; a closed connection is detected at
	// once.
	lockCheckEvery = 2 * time.Second
	// lockCheckTimeout is the timeout of such a check.
	lockCheckTimeout = 3 * time.Second
	// lockConnLife is how long a connection is used again for locks, so that they follow a failover of the cluster.
	lockConnLife = time.Minute
)

// errLockLost is the reason why the context of exclusive work ended early.
var errLockLost = errors.New("the connection that held the lock was lost")

// Exclusive runs work while no other user of this database runs work of the same name. If one does, it returns false at
// once. The context passed to work ends when the lock is lost, which is when another process may begin; the store's
// timeouts do not apply to it.
//
// In Postgres it is a session-level advisory lock on a connection of its own, so that it neither waits for the pool nor
// uses one of its connections, and the lock ends with the process. One such connection without a lock is kept for the
// next call: a process tries every few seconds to take over from those that hold the locks. A SQLite file belongs to
// one process, which uses a set of names.
func (d *DB) Exclusive(ctx context.Context, name string, work func(context.Context) error) (ran bool, err error) {
	if d.dial == nil {
		if _, held := d.held.LoadOrStore(name, nil); held {
			return false, nil
		}
		defer d.held.Delete(name)
		return true, work(ctx)
	}
	var c lockConn
	taken := false
	err = d.call(ctx, OpLock, "take the lock "+name, func(ctx context.Context) (err error) {
		c, taken, err = d.tryLock(ctx, name)
		return err
	})
	if err != nil {
		return false, err
	}
	defer func() { d.unlock(ctx, c, name, taken) }()
	if !taken {
		return false, nil
	}
	held, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	var watch sync.WaitGroup
	watch.Go(func() { watchLock(held, c.Conn, lose) })
	err = work(held)
	lost := errors.Is(context.Cause(held), errLockLost)
	lose(nil)
	watch.Wait()
	if err != nil && lost {
		return true, apperror.New(apperror.Unavailable, apperror.StoreUnavailable, "%s: the store: %s", name, errLockLost).
			WithDetail("store %s", d.location).WithCause(err).WithRetry(retryAfter)
	}
	return true, err
}

// Serialize makes other transactions that call it with the same name wait until the transaction of c ends, so that the
// state that c reads does not change. It must be the first call in a transaction. SQLite has one writer at a time
// anyway.
func (d *DB) Serialize(ctx context.Context, c Conn, name string) error {
	if d.dial == nil {
		return nil
	}
	_, err := c.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`, lockKey("transaction "+name))
	return err
}

// lockConn is a connection for locks.
type lockConn struct {
	*pgx.Conn

	until time.Time // from then on it is not used for another lock
}

// tryLock takes a lock unless another connection has it, and returns the connection that asked.
func (d *DB) tryLock(ctx context.Context, name string) (c lockConn, taken bool, err error) {
	select {
	case c = <-d.spare:
		if time.Now().Before(c.until) {
			bounded, cancel := context.WithTimeout(ctx, lockCheckTimeout)
			taken, err = askForLock(bounded, c, name)
			cancel()
			if err == nil {
				return c, taken, nil
			}
		}
		_ = c.Close(ctx) // it may have been lost since
	default:
	}
	c.until = time.Now().Add(lockConnLife)
	if c.Conn, err = d.dial(ctx); err != nil {
		return lockConn{}, false, err
	}
	if taken, err = askForLock(ctx, c, name); err != nil {
		_ = c.Close(ctx) // which ends the lock if the answer was lost
		return lockConn{}, false, err
	}
	return c, taken, nil
}

func askForLock(ctx context.Context, c lockConn, name string) (taken bool, err error) {
	err = c.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, lockKey(name)).Scan(&taken)
	return taken, err
}

// unlock releases the lock before it closes the connection or keeps it, because the server may detect a close later.
func (d *DB) unlock(ctx context.Context, c lockConn, name string, taken bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockCheckTimeout)
	defer cancel()
	if taken && !c.IsClosed() {
		if _, err := c.Exec(ctx, `SELECT pg_advisory_unlock($1)`, lockKey(name)); err != nil {
			_ = c.Close(ctx) // the server releases the lock with the connection
		}
	}
	if c.IsClosed() {
		return
	}
	select {
	case d.spare <- c:
	default:
		_ = c.Close(ctx)
	}
}

// closeSpare closes the connection that is kept for locks.
func (d *DB) closeSpare() {
	select {
	case c := <-d.spare:
		_ = c.PgConn().Conn().Close() // it has no lock and no transaction that the server would have to end
	default:
	}
}

// watchLock calls lose when the connection that holds the lock ends, or no longer answers.
func watchLock(ctx context.Context, c *pgx.Conn, lose context.CancelCauseFunc) {
	for ctx.Err() == nil {
		// There are no notifications: this waits for the end of the connection.
		wait, cancel := context.WithTimeout(ctx, lockCheckEvery)
		_, _ = c.WaitForNotification(wait)
		cancel()
		if ctx.Err() != nil {
			return
		}
		probe, cancel := context.WithTimeout(ctx, lockCheckTimeout)
		err := c.Ping(probe)
		cancel()
		if err != nil {
			lose(errLockLost)
			return
		}
	}
}

// lockKey converts a name to the number that identifies the lock in Postgres.
func lockKey(name string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("signalbox " + name))
	return int64(h.Sum64()) //nolint:gosec // any number is valid
}
