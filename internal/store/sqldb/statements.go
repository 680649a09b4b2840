package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
)

const (
	// keptStatements is how many prepared statements a connection to SQLite keeps; the store has fewer texts than that in regular use.
	keptStatements = 256
	// keptText is the length in bytes of the longest statement that is kept: bulk statements come in as many texts as there are numbers of rows.
	keptText = 16 << 10
)

// preparing makes connections to SQLite that keep their prepared statements. To parse and plan a statement takes SQLite longer than to run
// most of those that the store has.
type preparing struct{ driver.Connector }

// session is what database/sql uses of a connection to SQLite.
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
func (p preparing) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	s, ok := c.(session)
	if !ok {
		return nil, errors.Join(errors.New("the driver of SQLite lacks a method that the store needs"), c.Close())
	}
	return &keeper{session: s, idle: map[string]*prepared{}}, nil
}

// keeper is a connection that keeps its prepared statements. As any [driver.Conn], it is used by one goroutine at a time.
type keeper struct {
	session

	// idle are the statements that are not being run, by their text. One that is being run is not among them, so a query within
	// the rows of the same query has a statement of its own.
	idle map[string]*prepared
	uses uint64
}

// statement is what a prepared statement of SQLite can do.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type prepared struct {
	statement

	used uint64 // the keeper's count of uses at the last one
}

// ExecContext implements [driver.ExecerContext].
func (k *keeper) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if !worthKeeping(query) {
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
	return result, k.giveBack(query, p)
}

// QueryContext implements [driver.QueryerContext].
func (k *keeper) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if !worthKeeping(query) {
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
	return &keptRows{Rows: found, k: k, query: query, p: p}, nil
}

// Close implements [driver.Conn].
func (k *keeper) Close() error {
	var err error
	for _, p := range k.idle {
		err = errors.Join(err, p.Close())
	}
	return errors.Join(err, k.session.Close())
}

// worthKeeping reports whether a statement is one of those that run again and again: no script, and none that changes the schema.
func worthKeeping(query string) bool {
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

// take returns a statement that nothing else runs.
func (k *keeper) take(ctx context.Context, query string) (*prepared, error) {
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
		return nil, errors.Join(errors.New("a statement of the driver of SQLite lacks a method that the store needs"), made.Close())
	}
	return &prepared{statement: s}, nil
}

// giveBack keeps a statement that ran to its end, in place of the one that was not used for longest where there are too many.
func (k *keeper) giveBack(query string, p *prepared) error {
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

// keptRows are the rows of a statement that is kept when they are closed.
type keptRows struct {
	driver.Rows

	k     *keeper
	query string
	p     *prepared
}

// Close implements [driver.Rows]. database/sql calls it once.
func (r *keptRows) Close() error {
	if err := r.Rows.Close(); err != nil {
		return errors.Join(err, r.p.Close())
	}
	return r.k.giveBack(r.query, r.p)
}
