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

// The types of columns, for parameters with a type that does not follow from the text.
const (
	Text   = "TEXT"
	Number = "BIGINT"
)

// Column is a column of a table and its type.
type Column struct{ Name, Kind string }

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

// InsertMany adds rows to a table; columns are their names separated by commas, and rest follows the values. It returns
// how many rows were added or changed.
func InsertMany[T any](
	ctx context.Context, c sqldb.Conn, d sqldb.Dialect, table, columns, rest string, list []T, values func(T) ([]any, error),
) (added int64, err error) {
	count := strings.Count(columns, ",") + 1
	for part := range Chunks(list) {
		args := make([]any, 0, len(part)*count)
		for _, v := range part {
			row, err := values(v)
			if err != nil {
				return added, err
			}
			args = append(args, row...)
		}
		res, err := c.ExecContext(ctx, "INSERT INTO "+table+" ("+columns+") VALUES "+Tuples(d, 0, len(part), count)+rest, args...)
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

// updateText returns a statement that updates rows, each with its own values; the first columns are the keys. Only the
// first row of the values has types: the others follow it.
func updateText(d sqldb.Dialect, table string, keys int, columns []Column, rows int) string {
	var names, sets, match, first []string
	for i, c := range columns {
		names = append(names, c.Name)
		first = append(first, "CAST("+d.Mark(i+1)+" AS "+c.Kind+")")
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
	return "WITH v (" + strings.Join(names, ", ") + ") AS (VALUES (" + strings.Join(first, ", ") + ")" + rest.String() +
		") UPDATE " + table + " SET " + strings.Join(sets, ", ") + " FROM v WHERE " + strings.Join(match, " AND ")
}

// UpdateMany writes the columns of many rows. The first columns are the keys.
func UpdateMany[T any](
	ctx context.Context, c sqldb.Conn, d sqldb.Dialect, table string, keys int, columns []Column, list []T, values func(T) ([]any, error),
) error {
	for part := range Chunks(list) {
		args := make([]any, 0, len(part)*len(columns))
		for _, v := range part {
			row, err := values(v)
			if err != nil {
				return err
			}
			args = append(args, row...)
		}
		if _, err := c.ExecContext(ctx, updateText(d, table, keys, columns, len(part)), args...); err != nil {
			return err
		}
	}
	return nil
}

// In runs a query or statement for each part of a list of texts: text returns the statement for the placeholders of one
// part, "($2, $3)", which follow those of the shared arguments.
func In(
	ctx context.Context, d sqldb.Dialect, list []string, shared []any, run func(ctx context.Context, marks string, args []any) error,
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
