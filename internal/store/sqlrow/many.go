package sqlrow

import (
	"context"
	"iter"
	"math/bits"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// maxRows is the maximum number of rows that one statement reads or writes.
const maxRows = 128

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
	for r := range rows {
		if r > 0 {
			b.WriteString(", ")
		}
		tuple(&b, d, before+r*columns, columns)
	}
	return b.String()
}

func tuple(b *strings.Builder, d sqldb.Dialect, before, columns int) {
	b.WriteByte('(')
	for i := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(d.Mark(before + i + 1))
	}
	b.WriteByte(')')
}

// InsertMany adds rows to a table; rest follows the values. It returns how many rows were added or changed.
func InsertMany[T any](
	ctx context.Context, c sqldb.Conn, d sqldb.Dialect, table, rest string, list []T, row func(T) Fields,
) (added int64, err error) {
	for part := range Chunks(list) {
		columns, args, err := values(part, row)
		if err != nil {
			return added, err
		}
		res, err := c.ExecContext(ctx, insertText(d, table, rest, columns, len(part)), args...)
		if err != nil {
			return added, err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return added, err
		}
		added += n
	}
	return added, nil
}

// InsertReturning is [InsertMany] with a rest that returns rows, which it scans.
func InsertReturning[T, R any](
	ctx context.Context, c sqldb.Conn, d sqldb.Dialect, table, rest string, list []T, row func(T) Fields,
	scan func(Scanner) (R, error),
) (returned []R, err error) {
	for part := range Chunks(list) {
		columns, args, err := values(part, row)
		if err != nil {
			return returned, err
		}
		found, err := Collect(ctx, c, insertText(d, table, rest, columns, len(part)), args, scan)
		if err != nil {
			return returned, err
		}
		returned = append(returned, found...)
	}
	return returned, nil
}

func insertText(d sqldb.Dialect, table, rest string, columns Fields, rows int) string {
	return "INSERT INTO " + table + " (" + columns.Names("") + ") VALUES " + Tuples(d, 0, rows, len(columns)) + rest
}

// values returns the columns of rows, and the arguments for all of them.
func values[T any](list []T, row func(T) Fields) (columns Fields, args []any, err error) {
	for i, v := range list {
		fields := row(v)
		if i == 0 {
			columns, args = fields, make([]any, 0, len(list)*len(fields))
		}
		if args, err = fields.appendArgs(args); err != nil {
			return nil, nil, err
		}
	}
	return columns, args, nil
}

// updateText returns a statement that updates rows, each with its own values; the first columns are the keys. Only the
// first row of the values has types: the others follow it.
func updateText(d sqldb.Dialect, table string, keys int, columns Fields, rows int) (string, error) {
	var sets, match, first []string
	for i, c := range columns {
		kind, err := c.kind()
		if err != nil {
			return "", err
		}
		first = append(first, "CAST("+d.Mark(i+1)+" AS "+kind+")")
		if i < keys {
			match = append(match, table+"."+c.Name+" = v."+c.Name)
		} else {
			sets = append(sets, c.Name+" = v."+c.Name)
		}
	}
	var rest strings.Builder
	for r := 1; r < rows; r++ {
		rest.WriteString(", ")
		tuple(&rest, d, r*len(columns), len(columns))
	}
	return "WITH v (" + columns.Names("") + ") AS (VALUES (" + strings.Join(first, ", ") + ")" + rest.String() +
		") UPDATE " + table + " SET " + strings.Join(sets, ", ") + " FROM v WHERE " + strings.Join(match, " AND "), nil
}

// UpdateMany writes the columns of many rows. The first columns are the keys.
func UpdateMany[T any](ctx context.Context, c sqldb.Conn, d sqldb.Dialect, table string, keys int, list []T,
	row func(T) Fields) error {
	for part := range Chunks(list) {
		columns, args, err := values(part, row)
		if err != nil {
			return err
		}
		query, err := updateText(d, table, keys, columns, len(part))
		if err != nil {
			return err
		}
		if _, err := c.ExecContext(ctx, query, args...); err != nil {
			return err
		}
	}
	return nil
}

// In runs a query or statement for each part of a list of texts: text returns the statement for the placeholders of one
// part, "($2, $3)", which follow those of the shared arguments.
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
