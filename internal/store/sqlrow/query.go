package sqlrow

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// Where collects conditions and their arguments.
type Where struct {
	Conditions []string
	Args       []any
}

// Arg adds an argument and returns its placeholder.
func (w *Where) Arg(v any) string {
	w.Args = append(w.Args, v)
	return "$" + strconv.Itoa(len(w.Args))
}

// Is adds "column op value".
func (w *Where) Is(column, op string, v any) {
	w.Conditions = append(w.Conditions, column+" "+op+" "+w.Arg(v))
}

// IsText adds "column = value" unless the value is empty.
func (w *Where) IsText(column, v string) {
	if v != "" {
		w.Is(column, "=", v)
	}
}

// OneOf adds "column IN (values)" unless there are no values.
func OneOf[T any](w *Where, column string, values []T) {
	if len(values) == 0 {
		return
	}
	marks := make([]string, len(values))
	for i, v := range values {
		marks[i] = w.Arg(v)
	}
	w.Conditions = append(w.Conditions, column+" IN ("+strings.Join(marks, ", ")+")")
}

// String returns the WHERE clause with a space before it, or nothing.
func (w *Where) String() string {
	if len(w.Conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.Conditions, " AND ")
}

// Contains returns a LIKE pattern for text that contains part, with part's wildcards escaped by "!".
func Contains(part string) string {
	return "%" + strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(part) + "%"
}

// Limit ends a query. The number is part of the text, because planners choose better if it is constant.
func Limit(n int) string { return " LIMIT " + strconv.Itoa(n) }

// Scanner is a row, or the current one of many.
type Scanner interface{ Scan(dest ...any) error }

// ScanText scans a row of one text.
func ScanText(row Scanner) (text string, err error) {
	err = row.Scan(&text)
	return text, err
}

// ScanNumber scans a row of one integer.
func ScanNumber(row Scanner) (n int64, err error) {
	err = row.Scan(&n)
	return n, err
}

// Collect runs a query and scans each row.
func Collect[T any](
	ctx context.Context, c sqldb.Conn, query string, args []any, scan func(Scanner) (T, error),
) (list []T, err error) {
	rows, err := c.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// One runs a query for one row; missing is the error if there is none.
func One[T any](
	ctx context.Context, c sqldb.Conn, query string, args []any, scan func(Scanner) (T, error), missing func() error,
) (T, error) {
	v, err := scan(c.QueryRowContext(ctx, query, args...))
	if errors.Is(err, sql.ErrNoRows) {
		return v, missing()
	}
	return v, err
}

// Affected runs a statement and reports whether it changed a row.
func Affected(ctx context.Context, c sqldb.Conn, query string, args ...any) (bool, error) {
	res, err := c.ExecContext(ctx, query, args...)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// Exists reports whether a query has a row.
func Exists(ctx context.Context, c sqldb.Conn, query string, args ...any) (bool, error) {
	var found int
	err := c.QueryRowContext(ctx, query, args...).Scan(&found)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// Count runs a query that returns one number.
func Count(ctx context.Context, c sqldb.Conn, query string, args ...any) (n int64, err error) {
	err = c.QueryRowContext(ctx, query, args...).Scan(&n)
	return n, err
}
