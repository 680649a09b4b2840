package sqldb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	defaultConns       = 16
	connectTimeout     = 3 * time.Second
	connMaxIdle        = 5 * time.Minute
	connMaxLife        = time.Hour
	statementCacheSize = 256
	// minIdle is the minimum timeout after which the server ends an idle transaction.
	minIdle = 10 * time.Second
)

// openPostgres opens one pool. Connections are renewed each hour, so that the pool follows a failover or a resize of
// the cluster.
func (d *DB) openPostgres(o Options) error {
	cfg, err := pgx.ParseConfig(o.DSN)
	if err != nil {
		// The driver's error omits the password.
		return fmt.Errorf("open store: postgres dsn: %w", err)
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectTimeout
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "signalbox"
	}
	// goose's own table has times without a zone.
	cfg.RuntimeParams["timezone"] = "UTC"
	cfg.StatementCacheCapacity = statementCacheSize
	d.dialect = postgresDialect()
	d.location = location{server: serverName(cfg), database: cfg.Database}
	conns := o.MaxConns
	if conns <= 0 {
		conns = defaultConns
	}
	d.write = stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(d.setUp))
	d.write.SetMaxOpenConns(conns)
	d.write.SetMaxIdleConns(conns)
	d.write.SetConnMaxIdleTime(connMaxIdle)
	d.write.SetConnMaxLifetime(connMaxLife)
	d.read = d.write
	d.spare = make(chan lockConn, 1)
	d.dial = func(ctx context.Context) (*pgx.Conn, error) { return dialForLock(ctx, cfg) }
	return nil
}

// setUp makes the server end transactions that are idle for longer than any of the store's may take: those of a frozen
// process, which would otherwise keep their rows locked. It also makes the server interpret its plans: where tables were
// never analyzed, their estimated costs are so high that the server compiles them, which takes 0.3 s of a processor for
// queries that take less than a millisecond.
func (d *DB) setUp(ctx context.Context, c *pgx.Conn) error {
	idle := max(2*d.timeout, minIdle) //nolint:mnd // twice the timeout of a call
	_, err := c.Exec(ctx, fmt.Sprintf(`SET idle_in_transaction_session_timeout = %d; SET jit = off`, idle.Milliseconds()))
	return err
}

// dialForLock opens a connection that holds a lock. If this machine is lost, the server detects it within half a
// minute, and holds the lock for that long.
func dialForLock(ctx context.Context, cfg *pgx.ConnConfig) (*pgx.Conn, error) {
	c, err := pgx.ConnectConfig(ctx, cfg.Copy())
	if err != nil {
		return nil, err
	}
	if _, err := c.Exec(ctx, `SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5;
		SET tcp_keepalives_count = 3`); err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	return c, nil
}

func serverName(cfg *pgx.ConnConfig) string {
	if strings.HasPrefix(cfg.Host, "/") {
		return cfg.Host
	}
	return net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port)))
}
