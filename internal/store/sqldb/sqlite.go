package sqldb

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
)

const defaultReaders = 4

// openSQLite opens two pools on the file: one connection that writes, because SQLite has one writer at a time and a
// queue in Go is fair and can be cancelled, while SQLite's busy handler is neither; and several that read concurrently
// (WAL).
//
// synchronous=NORMAL: with WAL a commit then survives the death of the process. A power failure may lose the last
// commits but never corrupts the file. That is enough here: the history of a run is in Temporal, from which rows are
// rebuilt.
func (d *DB) openSQLite(o Options) error {
	path, extra, _ := strings.Cut(o.DSN, "?")
	if path == "" || strings.HasPrefix(path, ":memory:") || strings.HasPrefix(path, "file:") {
		return fmt.Errorf("open store: sqlite needs the path of a file as its dsn, not %q; "+
			"use a temporary folder for data that need not stay", o.DSN)
	}
	params, err := url.ParseQuery(extra)
	if err != nil {
		return fmt.Errorf("open store: parameters of the dsn %q: %w", o.DSN, err)
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("open store %q: %w", o.DSN, err)
	}
	if err := touchPrivate(path); err != nil {
		return err
	}
	d.dialect = sqliteDialect()
	d.location = location{file: path}
	params.Add("_pragma", "busy_timeout(4000)")
	params.Add("_pragma", "journal_mode(WAL)")
	params.Add("_pragma", "synchronous(NORMAL)")
	params.Add("_pragma", "foreign_keys(1)")
	params.Add("_pragma", "journal_size_limit(67108864)")
	params.Set("_txlock", "immediate")
	if d.write, err = sqlitePool(path, params, 1); err != nil {
		return err
	}
	params.Set("_query_only", "1")
	readers := o.MaxConns
	if readers <= 0 {
		readers = defaultReaders
	}
	d.read, err = sqlitePool(path, params, readers)
	return err
}

func sqlitePool(path string, params url.Values, conns int) (*sql.DB, error) {
	uri := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: params.Encode()}
	connector, err := sqlite.NewConnector(uri.String())
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w", path, err)
	}
	pool := sql.OpenDB(cachingConnector{connector})
	pool.SetMaxOpenConns(conns)
	pool.SetMaxIdleConns(conns)
	return pool, nil
}

// touchPrivate creates the file if it does not exist, readable by its owner only (it contains inputs and outputs), and
// checks whether it can be written: SQLite itself would report that later and with less detail. The files that SQLite
// creates next to it get the same mode.
func touchPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		if err := f.Close(); err != nil {
			return fmt.Errorf("open store %q: %w", path, err)
		}
		return nil
	}
	hint := "check the path and the disk"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		hint = fmt.Sprintf("make the folder %q first", filepath.Dir(path))
	case errors.Is(err, fs.ErrPermission):
		hint = fmt.Sprintf("give this user the right to write the file and its folder %q", filepath.Dir(path))
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return fmt.Errorf("open store %q: %w: %s", path, err, hint)
}
