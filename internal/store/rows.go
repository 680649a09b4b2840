package store

import (
	"context"
	"iter"
	"math/bits"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// maxRows is how many rows one statement reads or writes at most.
const maxRows = 128

// chunks cuts a list into parts whose lengths are powers of two: statements over many rows then have few different
// texts, and the databases' caches of prepared statements hold them all.
func chunks[T any](list []T) iter.Seq[[]T] {
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

// Types of columns, for parameters whose type the text does not show.
const (
	text   = "TEXT"
	number = "BIGINT"
)

// column of a table and its type.
type column struct{ name, kind string }

// tuples returns rows of placeholders, "($1, $2), ($3, $4)", counted from $1.
func tuples(d sqldb.Dialect, rows, columns int) string {
	var b strings.Builder
	for r := range rows {
		if r > 0 {
			b.WriteString(", ")
		}
		tuple(&b, d, r*columns, columns)
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

// updateText is a statement that updates so many runs, each with values of its own; the first column is the key. Only
// the first row of the values has types: the others follow it.
func updateText(d sqldb.Dialect, columns []column, rows int) string {
	var names, sets, first []string
	for i, c := range columns {
		names = append(names, c.name)
		first = append(first, "CAST("+d.Mark(i+1)+" AS "+c.kind+")")
		if i > 0 {
			sets = append(sets, c.name+" = v."+c.name)
		}
	}
	var rest strings.Builder
	for r := 1; r < rows; r++ {
		rest.WriteString(", ")
		tuple(&rest, d, r*len(columns), len(columns))
	}
	return "WITH v (" + strings.Join(names, ", ") + ") AS (VALUES (" + strings.Join(first, ", ") + ")" + rest.String() +
		") UPDATE runs SET " + strings.Join(sets, ", ") + " FROM v WHERE runs.id = v.id"
}

// updateMany writes the columns of many runs.
func updateMany[T any](
	ctx context.Context, c sqldb.Conn, d sqldb.Dialect, columns []column, list []T, values func(T) ([]any, error),
) error {
	for part := range chunks(list) {
		args := make([]any, 0, len(part)*len(columns))
		for _, v := range part {
			row, err := values(v)
			if err != nil {
				return err
			}
			args = append(args, row...)
		}
		if _, err := c.ExecContext(ctx, updateText(d, columns, len(part)), args...); err != nil {
			return err
		}
	}
	return nil
}
