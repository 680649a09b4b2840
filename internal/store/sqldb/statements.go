package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
)

const (
	// keptStatements is the number of prepared statements that a connection to SQLite caches; the store regularly uses
	// fewer texts than that.
	keptStatements = 256
	// keptText is the maximum length in bytes of a cached statement: bulk statements have as many texts as there are
	// numbers of rows.
	keptText = 16 << 10
)

// cachingConnector makes connections to SQLite that cache their prepared statements. To parse and plan a statement
// takes SQLite longer than to run most of the store's statements.
type cachingConnector struct{ driver.Connector }

// session is the set of methods of a connection to SQLite that database/sql uses.
type session interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// Connect implements [driver.Connector].
func (p cachingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	s, ok := c.(session)
	if !ok {
		return nil, errors.Join(errors.New("the driver of SQLite lacks a method that the store needs"), c.Close())
	}
	return &cachingConn{session: s, idle: map[string]*prepared{}}, nil
}

// cachingConn is a connection with a cache of prepared statements. As any [driver.Conn], it is used by one goroutine at
// a time.
type cachingConn struct {
	session

	// idle are the statements that are not in use, by their text. A statement in use is not among them, so that a query
	// within the rows of the same query has a statement of its own.
	idle map[string]*prepared
	uses uint64
}

// statement is the set of methods of a prepared statement of SQLite.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type prepared struct {
	statement

	used uint64 // the connection's count of uses at its last use
}

// ExecContext implements [driver.ExecerContext].
func (k *cachingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if !cacheable(query) {
		return k.session.ExecContext(ctx, query, args)
	}
	p, err := k.take(ctx, query)
	if err != nil {
		return nil, err
	}
	result, err := p.ExecContext(ctx, args)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return result, k.putBack(query, p)
}

// QueryContext implements [driver.QueryerContext].
func (k *cachingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if !cacheable(query) {
		return k.session.QueryContext(ctx, query, args)
	}
	p, err := k.take(ctx, query)
	if err != nil {
		return nil, err
	}
	found, err := p.QueryContext(ctx, args)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return &cachedRows{Rows: found, k: k, query: query, p: p}, nil
}

// Close implements [driver.Conn].
func (k *cachingConn) Close() error {
	var err error
	for _, p := range k.idle {
		err = errors.Join(err, p.Close())
	}
	return errors.Join(err, k.session.Close())
}

// cacheable reports whether a statement may run repeatedly: it is not a script, and does not change the schema.
func cacheable(query string) bool {
	if len(query) > keptText {
		return false
	}
	verb, _, _ := strings.Cut(strings.TrimSpace(query), " ")
	switch strings.ToUpper(strings.TrimSpace(verb)) {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "WITH":
		return !strings.Contains(query, ";")
	}
	return false
}

// take returns a statement that is not in use.
func (k *cachingConn) take(ctx context.Context, query string) (*prepared, error) {
	if p := k.idle[query]; p != nil {
		delete(k.idle, query)
		return p, nil
	}
	made, err := k.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s, ok := made.(statement)
	if !ok {
		return nil, errors.Join(errors.New("a statement of the driver of SQLite lacks a method that the store needs"),
			made.Close())
	}
	return &prepared{statement: s}, nil
}

// putBack caches a statement that ran to its end. If there are too many, it replaces the least recently used one.
func (k *cachingConn) putBack(query string, p *prepared) error {
	if k.idle[query] != nil { // it ran within the rows of the same query
		return p.Close()
	}
	k.uses++
	p.used = k.uses
	k.idle[query] = p
	if len(k.idle) <= keptStatements {
		return nil
	}
	oldest := query
	for text, other := range k.idle {
		if other.used < k.idle[oldest].used {
			oldest = text
		}
	}
	dropped := k.idle[oldest]
	delete(k.idle, oldest)
	return dropped.Close()
}

// cachedRows are rows that return their statement to the cache when they are closed.
type cachedRows struct {
	driver.Rows

	k     *cachingConn
	query string
	p     *prepared
}

// Close implements [driver.Rows]. database/sql calls it once.
func (r *cachedRows) Close() error {
	if err := r.Rows.Close(); err != nil {
		return errors.Join(err, r.p.Close())
	}
	return r.k.putBack(r.query, r.p)
}
