package sqlrow

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// Micros returns the stored form of a time; the zero time is NULL.
func Micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// Kept returns t as it is read back from the database.
func Kept(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMicro(t.UnixMicro()).UTC()
}

// TimeInto scans the result of [Micros].
func TimeInto(to *time.Time) sql.Scanner { return timeInto{to} }

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

// Nanos returns the nanoseconds of a time below its microsecond, which [Micros] omits.
func Nanos(t time.Time) int { return t.Nanosecond() % int(time.Microsecond) }

// NanosInto scans the result of [Nanos] and adds it to a time that [TimeInto] has scanned from an earlier column.
func NanosInto(to *time.Time) sql.Scanner { return nanosInto{to} }

type nanosInto struct{ to *time.Time }

// Scan implements [sql.Scanner].
func (n nanosInto) Scan(src any) error {
	v, ok := src.(int64)
	if !ok {
		return fmt.Errorf("nanoseconds are kept as %T", src)
	}
	*n.to = n.to.Add(time.Duration(v))
	return nil
}

// Raw returns the stored form of JSON: the text that was given; nil is NULL.
func Raw(raw json.RawMessage) any {
	if raw == nil {
		return nil
	}
	return string(raw)
}

// RawInto scans the result of [Raw].
func RawInto(to *json.RawMessage) sql.Scanner { return rawInto{to} }

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

// AsJSON returns a value as JSON; an empty one is NULL.
func AsJSON[T any](v T, empty bool) (any, error) {
	if empty {
		return nil, nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return string(b), nil
}

// JSONInto scans the result of [AsJSON]; NULL is the zero value.
func JSONInto[T any](to *T) sql.Scanner { return jsonInto[T]{to} }

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

// Storable refuses text that Postgres cannot store, so that both databases refuse the same.
func Storable(field, text string) error {
	if at := strings.IndexByte(text, 0); at >= 0 {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"%s holds a NUL character at byte %d: remove it", field, at).WithField(field, "holds a NUL character")
	}
	if !utf8.ValidString(text) {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"%s is not valid UTF-8: save it in that encoding", field).WithField(field, "is not valid UTF-8")
	}
	return nil
}

// Mended makes any text storable. Data that Temporal has accepted must get its row: one invalid character must not
// block the projection of every run in the batch.
func Mended(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// MendedRaw is [Raw] for text that must be storable.
func MendedRaw(raw json.RawMessage) any {
	if raw == nil {
		return nil
	}
	return Mended(string(raw))
}
