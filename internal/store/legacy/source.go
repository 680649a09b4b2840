package legacy

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"

	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// The tables of a legacy database.
const (
	runsTable      = "workflow_runs"
	stepsTable     = "workflow_run_steps"
	waitsTable     = "workflow_run_waits"
	snapshotsTable = "workflow_run_snapshots"
)

// needed are the columns that each table must have; of names with | between them, one.
func needed() map[string][]string {
	return map[string][]string{
		runsTable:      {"id", "project|tenant|tenant_id", "workflow|workflow_name", "engine", "status", "created_at", "completed_at|finished_at|ended_at"},
		stepsTable:     {"id", "run_id", "name|task|step_name", "status"},
		waitsTable:     {"id", "run_id", "kind", "status", "resolved_at"},
		snapshotsTable: {"id", "run_id"},
	}
}

// source is a legacy database, opened to be read. Nothing is ever written to it.
type source struct {
	db   *sql.DB
	mark func(int) string
	name string
	// columns of each table, as they are called there.
	columns map[string][]string
}

// record is a row of a legacy table, by column.
type record map[string]any

// openSource opens a legacy database and checks that it has the tables and columns.
func openSource(ctx context.Context, driver sqldb.Driver, dsn string) (*source, error) {
	s := &source{columns: map[string][]string{}}
	var err error
	if driver == sqldb.Postgres {
		err = s.openPostgres(dsn)
	} else {
		err = s.openSQLite(dsn)
	}
	if err != nil {
		return nil, err
	}
	if err := s.db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the legacy database %s: %w", s.name, err), s.db.Close())
	}
	if err := s.check(ctx); err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	return s, nil
}

func (s *source) openPostgres(dsn string) error {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return fmt.Errorf("open the legacy database: %w", err) // the driver leaves the password out
	}
	cfg.RuntimeParams["default_transaction_read_only"] = "on"
	cfg.RuntimeParams["timezone"] = "UTC"
	cfg.RuntimeParams["application_name"] = "signalbox migrate import"
	s.db, s.mark, s.name = stdlib.OpenDB(*cfg), func(n int) string { return fmt.Sprintf("$%d", n) }, fmt.Sprintf("%s/%s", cfg.Host, cfg.Database)
	return nil
}

func (s *source) openSQLite(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open the legacy database %q: there is no such file", path)
	}
	uri := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "mode=ro&_query_only=1&_pragma=busy_timeout(4000)"}
	connector, err := sqlite.NewConnector(uri.String())
	if err != nil {
		return fmt.Errorf("open the legacy database %q: %w", path, err)
	}
	s.db, s.mark, s.name = sql.OpenDB(connector), func(int) string { return "?" }, path
	return nil
}

// check reports all tables and columns that are missing, at once.
func (s *source) check(ctx context.Context) error {
	var missing []string
	for _, table := range slices.Sorted(maps.Keys(needed())) {
		rows, err := s.db.QueryContext(ctx, "SELECT * FROM "+table+" WHERE 1 = 0") //nolint:gosec,unqueryvet // one of our own names; every column
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			missing = append(missing, fmt.Sprintf("the table %s cannot be read (%v)", table, err))
			continue
		}
		s.columns[table], err = rows.Columns()
		if err = errors.Join(err, rows.Err(), rows.Close()); err != nil { //nolint:sqlclosecheck // one of several
			return fmt.Errorf("read the columns of %s: %w", table, err)
		}
		for _, names := range needed()[table] {
			if s.column(table, names) == "" {
				missing = append(missing, fmt.Sprintf("the table %s has no column %s", table, strings.ReplaceAll(names, "|", " or ")))
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the legacy database %s is not what can be imported: %s; docs/migration.md has what it must be like", s.name, strings.Join(missing, "; "))
	}
	return nil
}

// column is the name under which a table has one of the columns; empty: under none.
func (s *source) column(table, names string) string {
	for name := range strings.SplitSeq(names, "|") {
		if slices.Contains(s.columns[table], name) {
			return name
		}
	}
	return ""
}

// page returns the next runs in the order of their IDs.
func (s *source) page(ctx context.Context, after any, limit int) ([]record, error) {
	condition, args := "", []any(nil)
	if after != nil {
		condition, args = " WHERE id > "+s.mark(1), []any{after}
	}
	return s.query(ctx, fmt.Sprintf("SELECT * FROM %s%s ORDER BY id LIMIT %d", runsTable, condition, limit), args) //nolint:unqueryvet // every column is kept
}

// of returns the rows of a table that belong to the runs, by run.
func (s *source) of(ctx context.Context, table string, ids []any) (map[string][]record, error) {
	marks := make([]string, len(ids))
	for i := range ids {
		marks[i] = s.mark(i + 1)
	}
	list, err := s.query(ctx, "SELECT * FROM "+table+" WHERE run_id IN ("+strings.Join(marks, ", ")+") ORDER BY run_id, id", ids) //nolint:unqueryvet // every column is kept
	if err != nil {
		return nil, err
	}
	out := make(map[string][]record, len(ids))
	for _, r := range list {
		id := textOf(r["run_id"])
		out[id] = append(out[id], r)
	}
	return out, nil
}

// counts returns how many runs there are for each value of a column; NULL is the empty text.
func (s *source) counts(ctx context.Context, column string) (map[string]int64, error) {
	list, err := s.query(ctx, "SELECT "+column+" AS value, COUNT(*) AS runs FROM "+runsTable+" GROUP BY "+column, nil)
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for _, r := range list {
		n, _ := r["runs"].(int64)
		out[textOf(r["value"])] += n
	}
	return out, nil
}

func (s *source) query(ctx context.Context, query string, args []any) (list []record, err error) {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read the legacy database %s: %w", s.name, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		values := make([]any, len(types))
		into := make([]any, len(types))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, fmt.Errorf("read the legacy database %s: %w", s.name, err)
		}
		r := make(record, len(types))
		for i, t := range types {
			r[t.Name()] = plain(values[i], strings.HasPrefix(t.DatabaseTypeName(), "JSON"))
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

// plain makes a column's value one that has a JSON form. Text that is JSON by its column's type stays what it is.
func plain(v any, isJSON bool) any {
	if b, ok := v.([]byte); ok {
		v = string(b)
	}
	if text, ok := v.(string); ok && isJSON && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return v
}
