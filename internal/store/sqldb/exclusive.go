package sqldb

import (
	"context"
	"errors"
	"hash/fnv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/signalbox-dev/signalbox/internal/fault"
)

const (
	// lockCheckEvery is how often the connection that holds a lock is proven to live; one that was closed shows at once.
	lockCheckEvery = 2 * time.Second
	// lockCheckTimeout is how long that proof may take.
	lockCheckTimeout = 3 * time.Second
)

// errLockLost is why the context of exclusive work ended before its time.
var errLockLost = errors.New("the connection that held the lock was lost")

// keys are the locks that this process holds where the database belongs to one process.
type keys struct {
	mu   sync.Mutex
	held map[string]struct{}
}

func (k *keys) take(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, held := k.held[name]; held {
		return false
	}
	if k.held == nil {
		k.held = map[string]struct{}{}
	}
	k.held[name] = struct{}{}
	return true
}

func (k *keys) give(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.held, name)
}

// Exclusive runs work while nobody else who uses this database runs work of the same name. When somebody does, it returns false
// at once. The context that work gets ends when the lock is lost, which is when another one may begin; no deadline of the
// store's is on it.
//
// In Postgres it is a session's advisory lock on a connection of its own, so that it neither waits for the pool nor
// keeps a connection from it, and a process that dies lets go of it. A SQLite file belongs to one process, where a set
// of names does.
func (d *DB) Exclusive(ctx context.Context, name string, work func(context.Context) error) (ran bool, err error) {
	if d.dial == nil {
		if !d.keys.take(name) {
			return false, nil
		}
		defer d.keys.give(name)
		return true, work(ctx)
	}
	var c *pgx.Conn
	taken := false
	err = d.call(ctx, "take the lock "+name, func(ctx context.Context) (err error) {
		if c, err = d.dial(ctx); err != nil {
			return err
		}
		return c.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, lockKey(name)).Scan(&taken)
	})
	if c == nil {
		return false, err
	}
	defer func() { d.letGo(ctx, c, name, taken) }()
	if err != nil || !taken {
		return false, err
	}
	held, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	var watch sync.WaitGroup
	watch.Go(func() { watchLock(held, c, lose) })
	err = work(held)
	lost := errors.Is(context.Cause(held), errLockLost)
	lose(nil)
	watch.Wait()
	if err != nil && lost {
		return true, fault.New(fault.Unavailable, fault.StoreUnavailable, "%s: store %s: %s", name, d.place, errLockLost).
			WithCause(err).WithRetry(retryAfter)
	}
	return true, err
}

// Alone keeps other transactions that call it with the same name waiting until the transaction of c ends, so that what it
// reads of others stays true. It is the first thing in a transaction. SQLite has one writer at a time anyway.
func (d *DB) Alone(ctx context.Context, c Conn, name string) error {
	if d.dial == nil {
		return nil
	}
	_, err := c.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`, lockKey("transaction "+name))
	return err
}

// letGo ends the lock before the connection, whose end the server notices in its own time.
func (d *DB) letGo(ctx context.Context, c *pgx.Conn, name string, taken bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockCheckTimeout)
	defer cancel()
	if taken && !c.IsClosed() {
		// The server lets go of it with the connection when this does not arrive.
		_, _ = c.Exec(ctx, `SELECT pg_advisory_unlock($1)`, lockKey(name))
	}
	_ = c.Close(ctx)
}

// watchLock calls lose when the connection that holds the lock ends, or no longer answers.
func watchLock(ctx context.Context, c *pgx.Conn, lose context.CancelCauseFunc) {
	for ctx.Err() == nil {
		// Nobody notifies: this waits for the connection's end.
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

// lockKey is a name as the number that Postgres locks by.
func lockKey(name string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("signalbox " + name))
	return int64(h.Sum64()) //nolint:gosec // any number will do
}
