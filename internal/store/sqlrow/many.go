package sqlrow

import (
	"context"
	"iter"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

const (
	// maxBits is the number of lengths that the parts of a list may have.
	maxBits = 8
	// maxRows is the maximum number of rows that one statement reads or writes.
	maxRows = 1 << (maxBits - 1)
)

// Chunks splits a list into parts with lengths that are powers of two: statements for many rows then have few different
// texts, and the databases' caches of prepared statements hold them all.
func Chunks[T any](list []T) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for len(list) > 0 {
			n := min(maxRows, 1<<(bits.Len(uint(len(list)))-1))
			if !yield(list[:n]) {
				return
			}
			list = list[n:]
		}
	}
}

// Tuples returns rows of placeholders, "($1, $2), ($3, $4)", counted from before+1.
func Tuples(d sqldb.Dialect, before, rows, columns int) string {
	var b strings.Builder
	tuples(&b, d.Mark, before, rows, columns)
	return b.String()
}

func tuples(b *strings.Builder, mark func(n int) string, before, rows, columns int) {
	for r := range rows {
		if r > 0 {
			b.WriteString(", ")
		}
		for i := range columns {
			b.WriteString([]string{"(", ", "}[min(i, 1)])
			b.WriteString(mark(before + r*columns + i + 1))
		}
		b.WriteByte(')')
	}
}

// Statement is a statement on many rows. Its text for each number of rows is built once: the columns are those of the
// first row that it gets, so that all rows must have the same ones. It is safe for concurrent use.
type Statement[T any] struct {
	row   func(T) Fields
	text  func(columns Fields, rows int) (string, error)
	texts [maxBits]atomic.Pointer[string] // by the logarithm of the number of rows
}

// NewStatement returns a statement; text builds its text. Its arguments are those of all rows.
func NewStatement[T any](row func(T) Fields, text func(columns Fields, rows int) (string, error)) *Statement[T] {
	return &Statement[T]{row: row, text: text}
}

// InsertStatement returns the statement that adds rows to a table; rest returns what follows the values.
func InsertStatement[T any](d sqldb.Dialect, table string, row func(T) Fields,
	rest func(columns Fields) string) *Statement[T] {
	return NewStatement(row, func(columns Fields, rows int) (string, error) {
		return "INSERT INTO " + table + " (" + columns.Names("") + ") VALUES " + Tuples(d, 0, rows, len(columns)) +
			rest(columns), nil
	})
}

// UpdateStatement returns the statement that updates rows, each with its own values. The first columns are the keys.
func UpdateStatement[T any](d sqldb.Dialect, table string, keys int, row func(T) Fields) *Statement[T] {
	return NewStatement(row, func(columns Fields, rows int) (string, error) {
		values, err := Values(d, columns, rows)
		if err != nil {
			return "", err
		}
		var sets, match []string
		for i, c := range columns {
			if i < keys {
				match = append(match, table+"."+c.Name+" = v."+c.Name)
			} else {
				sets = append(sets, c.Name+" = v."+c.Name)
			}
		}
		return "WITH v (" + columns.Names("") + ") AS (" + values + ") UPDATE " + table + " SET " +
			strings.Join(sets, ", ") + " FROM v WHERE " + strings.Join(match, " AND "), nil
	})
}

// Values returns a table of rows of placeholders with types, counted from 1. Only the first row has the types: the
// others follow it.
func Values(d sqldb.Dialect, columns Fields, rows int) (string, error) {
	var b strings.Builder
	b.WriteString("VALUES ")
	for i, c := range columns {
		kind, err := c.kind()
		if err != nil {
			return "", err
		}
		b.WriteString([]string{"(", ", "}[min(i, 1)] + "CAST(" + d.Mark(i+1) + " AS " + kind + ")")
	}
	b.WriteByte(')')
	if rows > 1 {
		b.WriteString(", ")
		tuples(&b, d.Mark, len(columns), rows-1, len(columns))
	}
	return b.String(), nil
}

// bind returns the text and the arguments for a part of a list.
func (s *Statement[T]) bind(part []T) (query string, args []any, err error) {
	var columns Fields
	for i, v := range part {
		fields := s.row(v)
		if i == 0 {
			columns, args = fields, make([]any, 0, len(part)*len(fields))
		}
		if args, err = fields.appendArgs(args); err != nil {
			return "", nil, err
		}
	}
	made := &s.texts[bits.Len(uint(len(part)))-1]
	if text := made.Load(); text != nil {
		return *text, args, nil
	}
	if query, err = s.text(columns, len(part)); err == nil {
		made.Store(&query)
	}
	return query, args, err
}

// Exec runs the statement for a list. It returns how many rows were added or changed.
func (s *Statement[T]) Exec(ctx context.Context, c sqldb.Conn, list []T) (changed int64, err error) {
	for part := range Chunks(list) {
		query, args, err := s.bind(part)
		if err != nil {
			return changed, err
		}
		res, err := c.ExecContext(ctx, query, args...)
		if err != nil {
			return changed, err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return changed, err
		}
		changed += n
	}
	return changed, nil
}

// Returning runs a statement that returns rows, and scans them.
func Returning[T, R any](ctx context.Context, c sqldb.Conn, s *Statement[T], list []T,
	scan func(Scanner) (R, error)) (returned []R, err error) {
	for part := range Chunks(list) {
		query, args, err := s.bind(part)
		if err != nil {
			return returned, err
		}
		found, err := Collect(ctx, c, query, args, scan)
		if err != nil {
			return returned, err
		}
		returned = append(returned, found...)
	}
	return returned, nil
}

// InsertMany adds rows to a table; rest follows the values. It returns how many rows were added or changed.
func InsertMany[T any](
	ctx context.Context, c sqldb.Conn, d sqldb.Dialect, table, rest string, list []T, row func(T) Fields,
) (added int64, err error) {
	return InsertStatement(d, table, row, func(Fields) string { return rest }).Exec(ctx, c, list)
}

// UpdateMany writes the columns of many rows. The first columns are the keys.
func UpdateMany[T any](ctx context.Context, c sqldb.Conn, d sqldb.Dialect, table string, keys int, list []T,
	row func(T) Fields) error {
	_, err := UpdateStatement(d, table, keys, row).Exec(ctx, c, list)
	return err
}

// In runs a query or statement for each part of a list of texts: text returns the statement for the placeholders of one
// part, "($2, $3)", which follow those of the shared arguments, also in the text: SQLite counts them in that order.
func In(
	ctx context.Context, d sqldb.Dialect, list []string, shared []any,
	run func(ctx context.Context, marks string, args []any) error,
) error {
	for part := range Chunks(list) {
		args := append(make([]any, 0, len(shared)+len(part)), shared...)
		for _, v := range part {
			args = append(args, v)
		}
		if err := run(ctx, Tuples(d, len(shared), 1, len(part)), args); err != nil {
			return err
		}
	}
	return nil
}

// Distinct returns the texts sorted, without duplicates.
func Distinct(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
