package sqlrow

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// Field is one column of a row. Value is a pointer to its value in Go, or a [Value] over one; in rows that are only
// written it may also be the stored value itself.
type Field struct {
	Name  string
	Value any
}

// Col returns a field.
func Col(name string, value any) Field { return Field{name, value} }

// Row returns fields, given as names and values that take turns.
func Row(pairs ...any) Fields {
	n := (len(pairs) + 1) / 2      // a name without a value panics below
	fields := make(Fields, n, 2*n) // callers append the columns that not all rows have
	for i := range fields {
		name, _ := pairs[2*i].(string)
		fields[i] = Field{name, pairs[2*i+1]}
	}
	return fields
}

// Value converts a column to its value in Go, and this to what is stored.
type Value interface {
	sql.Scanner
	// Stored returns the argument of a statement.
	Stored() (any, error)
	// kind returns the type of the column.
	kind() string
}

// codec converts between a column and its value in Go. It has no state.
type codec[T any] interface {
	scan(src any) (T, error)
	stored(v T) (any, error)
	kind() string
}

// value is a Value over to. It is as large as a pointer: an interface holds it without an allocation.
type value[T any, C codec[T]] struct{ to *T }

// Scan implements [sql.Scanner].
func (v value[T, C]) Scan(src any) (err error) {
	var c C
	*v.to, err = c.scan(src)
	return err
}

// Stored implements [Value].
func (v value[T, C]) Stored() (any, error) {
	var c C
	return c.stored(*v.to)
}

func (value[T, C]) kind() string {
	var c C
	return c.kind()
}

// textColumn and numberColumn are the parts of codecs that state the type of the column.
type (
	textColumn   struct{}
	numberColumn struct{}
)

func (textColumn) kind() string   { return text }
func (numberColumn) kind() string { return number }

// The types of columns, for arguments with a type that does not follow from the text.
const (
	text    = "TEXT"
	number  = "BIGINT"
	boolean = "BOOLEAN"
)

func (f Field) kind() (string, error) {
	switch v := f.Value.(type) {
	case Value:
		return v.kind(), nil
	case sql.NullInt64:
		return number, nil
	}
	of := reflect.TypeOf(f.Value)
	if of != nil && of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case of != nil && of.Kind() == reflect.String:
		return text, nil
	case of != nil && (of.Kind() == reflect.Int || of.Kind() == reflect.Int64):
		return number, nil
	case of != nil && of.Kind() == reflect.Bool:
		return boolean, nil
	}
	return "", fmt.Errorf("update column %q: the type of %T is unknown", f.Name, f.Value)
}

// Fields are the columns of a row, each described once: from them come the lists of columns, of what a row is scanned
// into, and of arguments.
//
//	func fields(v *view.View) sqlrow.Fields {
//		return sqlrow.Row("id", &v.ID, "name", &v.Name, "query", sqlrow.JSONInto(&v.Query))
//	}
//
//	list, err := sqlrow.Collect(ctx, c, `SELECT `+sqlrow.Columns(fields)+` FROM views`, nil, sqlrow.Scan(fields))
//	_, err = sqlrow.Insert(ctx, c, "views", fields(&v), sqlrow.Replace("id", "name", "query"))
type Fields []Field

// Names returns the names of the columns, separated by commas, each after prefix.
func (f Fields) Names(prefix string) string {
	var b strings.Builder
	for i, field := range f {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(prefix)
		b.WriteString(field.Name)
	}
	return b.String()
}

// Into returns the targets of a scan.
func (f Fields) Into() []any {
	into := make([]any, len(f))
	for i, field := range f {
		into[i] = field.Value
	}
	return into
}

// Args returns the arguments of a statement.
func (f Fields) Args() ([]any, error) { return f.appendArgs(make([]any, 0, len(f))) }

func (f Fields) appendArgs(args []any) ([]any, error) {
	for _, field := range f {
		v, err := stored(field.Value)
		if err != nil {
			return nil, err
		}
		args = append(args, v)
	}
	return args, nil
}

func stored(value any) (any, error) {
	switch v := value.(type) {
	case Value:
		return v.Stored()
	case *string:
		return *v, nil
	case *int64:
		return *v, nil
	case *int:
		return *v, nil
	case *bool:
		return *v, nil
	case *[]byte:
		if *v == nil {
			return nil, nil
		}
		return *v, nil
	}
	if v := reflect.ValueOf(value); v.Kind() == reflect.Pointer && !v.IsNil() {
		return v.Elem().Interface(), nil
	}
	return value, nil
}

// Columns returns the names of the columns of a row.
func Columns[T any](fields func(*T) Fields) string { return fields(new(T)).Names("") }

// Scan returns the function that scans a row.
func Scan[T any](fields func(*T) Fields) func(Scanner) (T, error) {
	return func(row Scanner) (v T, err error) {
		err = row.Scan(fields(&v).Into()...)
		return v, err
	}
}

// Insert adds a row; rest follows the values. It reports whether a row was added or changed.
func Insert(ctx context.Context, c sqldb.Conn, table string, f Fields, rest string) (bool, error) {
	args, err := f.Args()
	if err != nil {
		return false, err
	}
	var b strings.Builder
	b.WriteString("INSERT INTO " + table + " (" + f.Names("") + ") VALUES ")
	tuples(&b, func(n int) string { return "$" + strconv.Itoa(n) }, 0, 1, len(f))
	return Affected(ctx, c, b.String()+rest, args...)
}

// Replace returns the end of an insert that writes columns of the existing row instead, if there is one with the same
// key.
func Replace(key string, columns ...string) string {
	sets := make([]string, len(columns))
	for i, column := range columns {
		sets[i] = column + " = excluded." + column
	}
	return " ON CONFLICT (" + key + ") DO UPDATE SET " + strings.Join(sets, ", ")
}

// ReplaceAll is [Replace] of all columns that are not in the key.
func (f Fields) ReplaceAll(key string) string {
	keys := strings.Split(key, ", ")
	var columns []string
	for _, field := range f {
		if !slices.Contains(keys, field.Name) {
			columns = append(columns, field.Name)
		}
	}
	return Replace(key, columns...)
}
