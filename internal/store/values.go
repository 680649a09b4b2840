package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// micros is how a time is kept; the zero time is NULL.
func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// kept is the time that comes back for t.
func kept(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMicro(t.UnixMicro()).UTC()
}

// timeInto scans what [micros] wrote.
type timeInto struct{ to *time.Time }

// Scan implements [sql.Scanner].
func (t timeInto) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*t.to = time.Time{}
	case int64:
		*t.to = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("a time is kept as %T", src)
	}
	return nil
}

// rawText is how JSON is kept: as the text that was given; nil is NULL.
func rawText(raw json.RawMessage) any {
	if raw == nil {
		return nil
	}
	return string(raw)
}

// rawInto scans what [rawText] wrote.
type rawInto struct{ to *json.RawMessage }

// Scan implements [sql.Scanner].
func (r rawInto) Scan(src any) error {
	text, ok, err := textOf(src)
	if err != nil || !ok {
		*r.to = nil
		return err
	}
	*r.to = json.RawMessage(text)
	return nil
}

// asJSON keeps a value as JSON; a nil pointer or empty slice is NULL.
func asJSON[T any](v T, empty bool) (any, error) {
	if empty {
		return nil, nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return string(b), nil
}

// jsonInto scans what [asJSON] wrote.
type jsonInto[T any] struct{ to *T }

// Scan implements [sql.Scanner].
func (j jsonInto[T]) Scan(src any) error {
	var v T
	text, ok, err := textOf(src)
	if err == nil && ok {
		err = json.Unmarshal([]byte(text), &v)
	}
	*j.to = v
	return err
}

func textOf(src any) (text string, ok bool, err error) {
	switch v := src.(type) {
	case nil:
		return "", false, nil
	case string:
		return v, true, nil
	case []byte:
		return string(v), true, nil
	default:
		return "", false, fmt.Errorf("text is kept as %T", src)
	}
}

// storable refuses what Postgres cannot keep in text, so that both databases refuse the same.
func storable(field, text string) error {
	if at := strings.IndexByte(text, 0); at >= 0 {
		return fault.New(fault.Invalid, fault.InvalidArgument,
			"%s holds a NUL character at byte %d: remove it", field, at).WithField(field, "holds a NUL character")
	}
	if !utf8.ValidString(text) {
		return fault.New(fault.Invalid, fault.InvalidArgument,
			"%s is not valid UTF-8: save it in that encoding", field).WithField(field, "is not valid UTF-8")
	}
	return nil
}

// mended makes any text storable. What Temporal has accepted must get its row: one odd character may not hold up the
// projection of every run in the batch.
func mended(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// mendedRaw is [rawText] for text that must be storable.
func mendedRaw(raw json.RawMessage) any {
	if raw == nil {
		return nil
	}
	return mended(string(raw))
}

// where collects conditions and their arguments.
type where struct {
	conditions []string
	args       []any
}

// arg adds an argument and returns its placeholder.
func (w *where) arg(v any) string {
	w.args = append(w.args, v)
	return "$" + strconv.Itoa(len(w.args))
}

// is adds "column op value".
func (w *where) is(column, op string, v any) {
	w.conditions = append(w.conditions, column+" "+op+" "+w.arg(v))
}

// isText adds "column = value" unless the value is empty.
func (w *where) isText(column, v string) {
	if v != "" {
		w.is(column, "=", v)
	}
}

// String returns the WHERE clause with a space before it, or nothing.
func (w *where) String() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conditions, " AND ")
}

// contains is a LIKE pattern for text that holds part, whose own wildcards mean themselves ("!" escapes).
func contains(part string) string {
	return "%" + strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(part) + "%"
}

// limited ends a query. The number is part of the text, because planners choose better when they know it.
func limited(n int) string { return " LIMIT " + strconv.Itoa(n) }

// scanner is a row, or the current one of many.
type scanner interface{ Scan(dest ...any) error }

// collect runs a query and scans each row.
func collect[T any](
	ctx context.Context, c sqldb.Conn, query string, args []any, scan func(scanner) (T, error),
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

// one runs a query for one row; missing is the error when there is none.
func one[T any](
	ctx context.Context, c sqldb.Conn, query string, args []any, scan func(scanner) (T, error), missing func() error,
) (T, error) {
	v, err := scan(c.QueryRowContext(ctx, query, args...))
	if errors.Is(err, sql.ErrNoRows) {
		return v, missing()
	}
	return v, err
}

// affected runs a statement and tells whether it changed a row.
func affected(ctx context.Context, c sqldb.Conn, query string, args ...any) (bool, error) {
	res, err := c.ExecContext(ctx, query, args...)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// exists tells whether a query has a row.
func exists(ctx context.Context, c sqldb.Conn, query string, args ...any) (bool, error) {
	var found int
	err := c.QueryRowContext(ctx, query, args...).Scan(&found)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
