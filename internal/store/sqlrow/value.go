package sqlrow

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
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

// TimeInto scans the result of [Micros], and stores it.
func TimeInto(to *time.Time) Value { return value[time.Time, timeCodec]{to} }

type timeCodec struct{ numberColumn }

func (timeCodec) stored(t time.Time) (any, error) { return Micros(t), nil }

func (timeCodec) scan(src any) (time.Time, error) {
	switch v := src.(type) {
	case nil:
		return time.Time{}, nil
	case int64:
		return time.UnixMicro(v).UTC(), nil
	default:
		return time.Time{}, fmt.Errorf("a time is kept as %T", src)
	}
}

// NanosInto scans the nanoseconds of a time below its microsecond, which [Micros] omits, and adds them to a time that
// [TimeInto] has scanned from an earlier column.
func NanosInto(to *time.Time) Value { return nanosInto{to} }

type nanosInto struct{ to *time.Time }

// Stored implements [Value].
func (n nanosInto) Stored() (any, error) { return n.to.Nanosecond() % int(time.Microsecond), nil }

func (nanosInto) kind() string { return number }

// Scan implements [sql.Scanner].
func (n nanosInto) Scan(src any) error {
	v, ok := src.(int64)
	if !ok {
		return fmt.Errorf("nanoseconds are kept as %T", src)
	}
	*n.to = n.to.Add(time.Duration(v))
	return nil
}

// DurationInto scans a duration in microseconds, and stores it.
func DurationInto(to *time.Duration) Value { return value[time.Duration, durationCodec]{to} }

type durationCodec struct{ numberColumn }

func (durationCodec) stored(d time.Duration) (any, error) { return d.Microseconds(), nil }

func (durationCodec) scan(src any) (time.Duration, error) {
	v, ok := src.(int64)
	if !ok {
		return 0, fmt.Errorf("a duration is kept as %T", src)
	}
	return time.Duration(v) * time.Microsecond, nil
}

// HexInto scans bytes in hexadecimal, and stores them.
func HexInto(to *[]byte) Value { return value[[]byte, hexCodec]{to} }

type hexCodec struct{ textColumn }

func (hexCodec) stored(b []byte) (any, error) { return hex.EncodeToString(b), nil }

func (hexCodec) scan(src any) ([]byte, error) {
	given, _, err := textOf(src)
	if err != nil {
		return nil, err
	}
	b, err := hex.DecodeString(given)
	if err != nil {
		return nil, errors.New("the bytes are not hexadecimal") // the cause would quote a part of a secret hash
	}
	return b, nil
}

// Raw returns the stored form of JSON: the text that was given; nil is NULL.
func Raw(raw json.RawMessage) any {
	if raw == nil {
		return nil
	}
	return string(raw)
}

// RawInto scans the result of [Raw], and stores it.
func RawInto(to *json.RawMessage) Value { return value[json.RawMessage, rawCodec]{to} }

// MendedRawInto is [RawInto] for text that must be storable.
func MendedRawInto(to *json.RawMessage) Value { return value[json.RawMessage, mendedRawCodec]{to} }

type rawCodec struct{ textColumn }

func (rawCodec) stored(raw json.RawMessage) (any, error) { return Raw(raw), nil }

type mendedRawCodec struct{ rawCodec }

func (mendedRawCodec) stored(raw json.RawMessage) (any, error) {
	if raw == nil {
		return nil, nil
	}
	return Mended(string(raw)), nil
}

func (rawCodec) scan(src any) (json.RawMessage, error) {
	given, ok, err := textOf(src)
	if err != nil || !ok {
		return nil, err
	}
	return json.RawMessage(given), nil
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

// JSONInto scans the result of [AsJSON], and stores it; NULL is the zero value of a pointer or a list.
func JSONInto[T any](to *T) Value { return value[T, jsonCodec[T]]{to} }

func (jsonCodec[T]) scan(src any) (v T, err error) {
	given, ok, err := textOf(src)
	if err == nil && ok {
		err = json.Unmarshal([]byte(given), &v)
	}
	return v, err
}

type jsonCodec[T any] struct{ textColumn }

func (jsonCodec[T]) stored(v T) (any, error) {
	of := reflect.ValueOf(&v).Elem()
	return AsJSON(v, of.Kind() == reflect.Pointer && of.IsNil() || of.Kind() == reflect.Slice && of.Len() == 0)
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

// TextInto scans text, and stores it; the empty text is NULL, which a unique index accepts any number of times.
func TextInto(to *string) Value { return value[string, textCodec]{to} }

// MendedInto scans text, and stores the result of [Mended].
func MendedInto(to *string) Value { return value[string, mendedCodec]{to} }

type mendedCodec struct{ textCodec }

func (mendedCodec) stored(s string) (any, error) { return Mended(s), nil }

func (textCodec) scan(src any) (string, error) {
	given, _, err := textOf(src)
	return given, err
}

type textCodec struct{ textColumn }

func (textCodec) stored(s string) (any, error) {
	if s == "" {
		return nil, nil
	}
	return s, nil
}
