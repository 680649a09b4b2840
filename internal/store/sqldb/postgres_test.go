package sqldb_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

func TestNoServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	_, err = sqldb.Open(t.Context(),
		sqldb.Options{Driver: sqldb.Postgres, DSN: "postgres://ada:secret@" + address + "/runs"})
	requireUnavailable(t, err, address, `"runs"`, "does not answer", "check that it runs")
	require.NotContains(t, err.Error(), "secret")
}

// TestServerThatDoesNotAnswer connects to a server that accepts connections and sends nothing.
func TestServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	start := time.Now()
	_, err = sqldb.Open(t.Context(), sqldb.Options{
		Driver: sqldb.Postgres, DSN: "postgres://ada@" + l.Addr().String() + "/runs?connect_timeout=1&sslmode=disable",
	})
	requireUnavailable(t, err, l.Addr().String(), "does not answer")
	require.Less(t, time.Since(start), patience)
}

func TestPostgresErrorsStateTheCause(t *testing.T) {
	t.Parallel()
	dsn, err := url.Parse(storetest.Postgres(t))
	require.NoError(t, err)
	dsn.Path = "/signalbox_none"
	_, err = sqldb.Open(t.Context(), sqldb.Options{Driver: sqldb.Postgres, DSN: dsn.String()})
	requireUnavailable(t, err, "signalbox_none", "create it first")
}

// TestIdleTransactionsOfAFrozenProcessEnd: a process that is frozen in a transaction blocks others for no longer than
// twice the timeout of a call.
func TestIdleTransactionsOfAFrozenProcessEnd(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]string{time.Second: "10s", 20 * time.Second: "40s"} {
		db := open(t, sqldb.Options{Driver: sqldb.Postgres, DSN: storetest.Postgres(t), CallTimeout: timeout})
		var idle string
		require.NoError(t, db.Write(t.Context(), "read", func(ctx context.Context, c sqldb.Conn) error {
			return c.QueryRowContext(ctx, "SHOW idle_in_transaction_session_timeout").Scan(&idle)
		}))
		require.Equal(t, want, idle)
	}
}

// TestPlansAreInterpreted: with the statistics of new tables, the server would compile the plans of short queries.
func TestPlansAreInterpreted(t *testing.T) {
	t.Parallel()
	db := open(t, sqldb.Options{Driver: sqldb.Postgres, DSN: storetest.Postgres(t)})
	var compiled string
	require.NoError(t, db.Read(t.Context(), "read", func(ctx context.Context, c sqldb.Conn) error {
		return c.QueryRowContext(ctx, "SHOW jit").Scan(&compiled)
	}))
	require.Equal(t, "off", compiled)
}

// TestDeadlocksAreRetried has two transactions lock two rows in opposite order: Postgres aborts one of them, and it is
// retried.
func TestDeadlocksAreRetried(t *testing.T) {
	t.Parallel()
	db := open(t, sqldb.Options{Driver: sqldb.Postgres, DSN: storetest.Postgres(t)})
	require.NoError(t, exec(t, db, "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)"))
	require.NoError(t, exec(t, db, "INSERT INTO t VALUES (1, 0), (2, 0)"))
	var both, wg sync.WaitGroup
	both.Add(2)
	var attempts atomic.Int64
	errs := make([]error, 2)
	for i, order := range [][]int{{1, 2}, {2, 1}} {
		wg.Go(func() {
			met := sync.OnceFunc(func() { both.Done(); both.Wait() })
			errs[i] = db.Write(t.Context(), "add", func(ctx context.Context, c sqldb.Conn) error {
				attempts.Add(1)
				for _, id := range order {
					if _, err := c.ExecContext(ctx, "UPDATE t SET n = n + 1 WHERE id = $1", id); err != nil {
						return err
					}
					met()
				}
				return nil
			})
		})
	}
	wg.Wait()
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	require.Equal(t, int64(3), attempts.Load(), "one was given up")
	require.Equal(t, 4, count(t, db, "SELECT CAST(SUM(n) AS BIGINT) FROM t"))
}

// TestAwayAndBack freezes and cuts the connection to the database: calls fail in time, and work once it is restored.
func TestAwayAndBack(t *testing.T) {
	t.Parallel()
	dsn, err := url.Parse(storetest.Postgres(t))
	require.NoError(t, err)
	way := newProxy(t, dsn.Host)
	dsn.Host = way.Addr()
	db := open(t, sqldb.Options{Driver: sqldb.Postgres, DSN: dsn.String()})
	require.NoError(t, db.Ping(t.Context()))
	hasty := open(t, sqldb.Options{Driver: sqldb.Postgres, DSN: dsn.String(), CallTimeout: 500 * time.Millisecond})

	way.freeze()
	start := time.Now()
	requireUnavailable(t, hasty.Ping(t.Context()), "did not answer within 500ms")
	requireUnavailable(t, exec(t, hasty, "SELECT 1"))
	require.Less(t, time.Since(start), patience)
	way.unfreeze()
	require.NoError(t, db.Ping(t.Context()))
	require.Eventually(t, func() bool { return hasty.Ping(t.Context()) == nil }, patience, 10*time.Millisecond)

	way.cut()
	requireUnavailable(t, exec(t, db, "SELECT 1"), "does not answer")
	way.restore()
	require.NoError(t, exec(t, db, "SELECT 1"))
}

// proxy is a TCP proxy that can be frozen and cut.
type proxy struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup

	mu     sync.Mutex
	moving *sync.Cond
	frozen bool
	broken bool
	conns  []net.Conn
}

func newProxy(t *testing.T, target string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &proxy{listener: l, target: target}
	w.moving = sync.NewCond(&w.mu)
	w.wg.Go(w.accept)
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		w.unfreeze()
		w.cut()
		w.wg.Wait()
	})
	return w
}

func (w *proxy) Addr() string { return w.listener.Addr().String() }

func (w *proxy) accept() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.target)
		w.mu.Lock()
		if err != nil || w.broken {
			w.mu.Unlock()
			_ = near.Close()
			if far != nil {
				_ = far.Close()
			}
			continue
		}
		w.conns = append(w.conns, near, far)
		w.mu.Unlock()
		w.wg.Go(func() { w.pass(near, far) })
		w.wg.Go(func() { w.pass(far, near) })
	}
}

func (w *proxy) pass(from, to net.Conn) {
	buffer := make([]byte, 32*1024)
	for {
		n, err := from.Read(buffer)
		w.mu.Lock()
		for w.frozen {
			w.moving.Wait()
		}
		w.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	_, _ = from.Close(), to.Close()
}

func (w *proxy) freeze() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frozen = true
}

func (w *proxy) unfreeze() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frozen = false
	w.moving.Broadcast()
}

func (w *proxy) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = true
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
}

func (w *proxy) restore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = false
}

// TestLockEndsWithItsConnection loses the connection that holds a lock: the context of the work ends, and other work
// may begin.
func TestLockEndsWithItsConnection(t *testing.T) { //nolint:tparallel // the subtests share one way to the server
	t.Parallel()
	dsn, err := url.Parse(storetest.Postgres(t))
	require.NoError(t, err)
	other := open(t, sqldb.Options{Driver: sqldb.Postgres, DSN: dsn.String()})
	way := newProxy(t, dsn.Host)
	dsn.Host = way.Addr()
	db := open(t, sqldb.Options{Driver: sqldb.Postgres, DSN: dsn.String(), MaxConns: 1})
	kill := func(*testing.T) {
		require.NoError(t, exec(t, other, `SELECT pg_terminate_backend(pid) FROM pg_locks
			WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`))
	}
	for name, lose := range map[string]func(t *testing.T){
		"killed by the server": kill,
		"cut":                  func(*testing.T) { way.cut(); way.restore() },
		"frozen":               func(t *testing.T) { way.freeze(); t.Cleanup(way.unfreeze) },
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			ran, err := db.Exclusive(t.Context(), "queue", func(ctx context.Context) error {
				lose(t)
				<-ctx.Done()
				return ctx.Err()
			})
			require.True(t, ran)
			requireUnavailable(t, err, "queue", "was lost")
			require.Less(t, time.Since(start), patience)
		})
		kill(t) // A frozen connection holds the lock until the server detects it.
		require.Eventually(t, func() bool {
			ran, err := other.Exclusive(t.Context(), "queue", func(context.Context) error { return nil })
			return err == nil && ran
		}, patience, 10*time.Millisecond, name)
	}
}

func TestLockWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	dsn, err := url.Parse(storetest.Postgres(t))
	require.NoError(t, err)
	way := newProxy(t, dsn.Host)
	dsn.Host = way.Addr()
	db := open(t, sqldb.Options{Driver: sqldb.Postgres, DSN: dsn.String()})
	way.cut()
	ran, err := db.Exclusive(t.Context(), "queue", func(context.Context) error { return nil })
	require.False(t, ran)
	requireUnavailable(t, err, "take the lock queue", "does not answer")
}

// TestLocksShareAConnection asks for locks again and again: the server gets no connection for each, and one that was
// lost is replaced.
func TestLocksShareAConnection(t *testing.T) {
	t.Parallel()
	dsn := storetest.Postgres(t)
	holder := open(t, sqldb.Options{Driver: sqldb.Postgres, DSN: dsn})
	db := open(t, sqldb.Options{Driver: sqldb.Postgres, DSN: dsn})
	backend := func() (pid int) {
		require.NoError(t, holder.Read(t.Context(), "read", func(ctx context.Context, c sqldb.Conn) error {
			return c.QueryRowContext(ctx,
				`SELECT max(pid) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle'
				AND (query LIKE '%pg_try_advisory_lock%' OR query LIKE '%pg_advisory_unlock%') HAVING count(*) = 1`).Scan(&pid)
		}))
		return pid
	}
	try := func(name string, want bool) {
		t.Helper()
		ran, err := db.Exclusive(t.Context(), name, func(context.Context) error { return nil })
		require.NoError(t, err)
		require.Equal(t, want, ran)
	}
	try("queue", true)
	first := backend()
	for range 3 {
		try("queue", true)
		try("batches", true)
	}
	require.Equal(t, first, backend())
	require.NoError(t, exec(t, holder, fmt.Sprintf("SELECT pg_terminate_backend(%d)", first)))
	try("queue", true)
	require.NotEqual(t, first, backend())

	ran, err := holder.Exclusive(t.Context(), "queue", func(context.Context) error {
		try("queue", false)
		try("batches", true)
		return nil
	})
	require.NoError(t, err)
	require.True(t, ran)
	try("queue", true)
}
