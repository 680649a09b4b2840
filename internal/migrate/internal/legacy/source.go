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

	"github.com/signalbox-dev/signalbox/internal/config"
)

// The tables of a legacy database.
const (
	Runs      = "workflow_runs"
	Steps     = "workflow_run_steps"
	Waits     = "workflow_run_waits"
	Snapshots = "workflow_run_snapshots"
)

// needed lists the required columns of each table; of names with | between them, one is required.
func needed() map[string][]string {
	return map[string][]string{
		Runs: {"id", "project|tenant|tenant_id", "workflow|workflow_name", "engine", "status", "created_at",
			"completed_at|finished_at|ended_at"},
		Steps:     {"id", "run_id", "name|task|step_name", "status"},
		Waits:     {"id", "run_id", "kind", "status", "resolved_at"},
		Snapshots: {"id", "run_id"},
	}
}

// Source is an older engine's database with its four tables, opened for reading only. Columns may have one of several
// names.
//
//	src, err := legacy.Open(ctx, dsn)
//	rows, err := src.Page(ctx, nil, 500)
//	steps, err := src.Of(ctx, legacy.Steps, ids)
type Source struct {
	db   *sql.DB
	mark func(int) string
	// Name is its location, without credentials.
	Name string
	// columns of each table, by their names in this database.
	columns map[string][]string
}

// Record is a row of a legacy table, by column.
type Record map[string]any

// Open opens a legacy database and checks that it has the tables and columns.
func Open(ctx context.Context, location string) (*Source, error) {
	s := &Source{columns: map[string][]string{}}
	var err error
	if config.IsPostgresDSN(location) {
		err = s.openPostgres(location)
	} else {
		err = s.openSQLite(location)
	}
	if err != nil {
		return nil, err
	}
	if err := s.db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the legacy database %s: %w", s.Name, err), s.db.Close())
	}
	if err := s.check(ctx); err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	return s, nil
}

func (s *Source) openPostgres(location string) error {
	cfg, err := pgx.ParseConfig(location)
	if err != nil {
		return fmt.Errorf("open the legacy database: %w", err) // the driver omits the password
	}
	cfg.RuntimeParams["default_transaction_read_only"] = "on"
	cfg.RuntimeParams["timezone"] = "UTC"
	cfg.RuntimeParams["application_name"] = "signalbox migrate import"
	s.db, s.mark, s.Name = stdlib.OpenDB(*cfg), func(n int) string {
		return fmt.Sprintf("$%d", n)
	}, fmt.Sprintf("%s/%s", cfg.Host, cfg.Database)
	return nil
}

func (s *Source) openSQLite(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open the legacy database %q: there is no such file", path)
	}
	uri := url.URL{Scheme: "file", OmitHost: true, Path: path,
		RawQuery: "mode=ro&_query_only=1&_pragma=busy_timeout(4000)"}
	connector, err := sqlite.NewConnector(uri.String())
	if err != nil {
		return fmt.Errorf("open the legacy database %q: %w", path, err)
	}
	s.db, s.mark, s.Name = sql.OpenDB(connector), func(int) string { return "?" }, path
	return nil
}

// Close closes the database.
func (s *Source) Close() error { return s.db.Close() }

// check reports all missing tables and columns at once.
func (s *Source) check(ctx context.Context) error {
	var missing []string
	for _, table := range slices.Sorted(maps.Keys(needed())) {
		rows, err := s.db.QueryContext(ctx,
			"SELECT * FROM "+table+" WHERE 1 = 0") //nolint:gosec,unqueryvet // one of our own names; every column
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
			if s.Column(table, names) == "" {
				missing = append(missing,
					fmt.Sprintf("the table %s has no column %s", table, strings.ReplaceAll(names, "|", " or ")))
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the legacy database %s is not what can be imported: %s; docs/migration.md has what it must be "+
			"like", s.Name, strings.Join(missing, "; "))
	}
	return nil
}

// Column returns the name that a table uses for one of the columns; empty if it has none of them.
func (s *Source) Column(table, names string) string {
	for name := range strings.SplitSeq(names, "|") {
		if slices.Contains(s.columns[table], name) {
			return name
		}
	}
	return ""
}

// Page returns the next runs in the order of their IDs.
func (s *Source) Page(ctx context.Context, after any, limit int) ([]Record, error) {
	condition, args := "", []any(nil)
	if after != nil {
		condition, args = " WHERE id > "+s.mark(1), []any{after}
	}
	return s.query(ctx, fmt.Sprintf("SELECT * FROM %s%s ORDER BY id LIMIT %d", Runs, condition, limit), //nolint:unqueryvet // every column is kept
		args)
}

// News returns, in pages as Page does, the runs with times at or after the marks, by column. There must be at
// least one mark.
func (s *Source) News(ctx context.Context, marks map[string]any, after any, limit int) ([]Record, error) {
	var (
		conditions []string
		args       []any
	)
	for _, column := range slices.Sorted(maps.Keys(marks)) {
		if marks[column] == nil { // there was no value yet
			conditions = append(conditions, column+" IS NOT NULL")
			continue
		}
		args = append(args, marks[column])
		conditions = append(conditions, column+" >= "+s.mark(len(args)))
	}
	condition := "(" + strings.Join(conditions, " OR ") + ")"
	if after != nil {
		args = append(args, after)
		condition += " AND id > " + s.mark(len(args))
	}
	return s.query(ctx, fmt.Sprintf("SELECT * FROM %s WHERE %s ORDER BY id LIMIT %d", Runs, condition, limit), //nolint:unqueryvet // every column is kept
		args)
}

// Newest returns the latest values of the time columns that show new and changed runs; nil if a column has none.
func (s *Source) Newest(ctx context.Context) (map[string]any, error) {
	out := map[string]any{}
	for _, names := range []string{"created_at", "updated_at|modified_at"} {
		column := s.Column(Runs, names)
		if column == "" {
			continue
		}
		list, err := s.query(ctx, "SELECT MAX("+column+") AS newest FROM "+Runs, nil)
		if err != nil {
			return nil, err
		}
		out[column] = nil
		if len(list) > 0 {
			out[column] = list[0]["newest"]
		}
	}
	return out, nil
}

// Of returns the rows of a table that belong to the runs, by run.
func (s *Source) Of(ctx context.Context, table string, ids []any) (map[string][]Record, error) {
	marks := make([]string, len(ids))
	for i := range ids {
		marks[i] = s.mark(i + 1)
	}
	list, err := s.query(ctx,
		"SELECT * FROM "+table+" WHERE run_id IN ("+strings.Join(marks, ", ")+ //nolint:unqueryvet // every column is kept
			") ORDER BY run_id, id", ids)
	if err != nil {
		return nil, err
	}
	out := make(map[string][]Record, len(ids))
	for _, r := range list {
		id := Text(r["run_id"])
		out[id] = append(out[id], r)
	}
	return out, nil
}

// Counts returns the number of runs for each value of a column; NULL is the empty text.
func (s *Source) Counts(ctx context.Context, column string) (map[string]int64, error) {
	list, err := s.query(ctx, "SELECT "+column+" AS value, COUNT(*) AS runs FROM "+Runs+" GROUP BY "+column, nil)
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for _, r := range list {
		n, _ := r["runs"].(int64)
		out[Text(r["value"])] += n
	}
	return out, nil
}

func (s *Source) query(ctx context.Context, query string, args []any) (list []Record, err error) {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read the legacy database %s: %w", s.Name, err)
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
			return nil, fmt.Errorf("read the legacy database %s: %w", s.Name, err)
		}
		r := make(Record, len(types))
		for i, t := range types {
			r[t.Name()] = plain(values[i], strings.HasPrefix(t.DatabaseTypeName(), "JSON"))
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

// plain converts a column's value to one that has a JSON form. Text of a JSON column is returned as JSON.
func plain(v any, isJSON bool) any {
	if b, ok := v.([]byte); ok {
		v = string(b)
	}
	if text, ok := v.(string); ok && isJSON && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return v
}
