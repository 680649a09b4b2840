package schema

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/redact"
)

// Size is a number of bytes, written "512KiB", "4MiB" or as a plain number.
type Size int64

type unit struct {
	suffix string
	bytes  int64
}

// units is ordered longest suffix first, so that "KiB" is not read as "B".
func units() []unit {
	return []unit{
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},
		{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9},
		{"B", 1},
	}
}

// ParseSize reads a number of bytes with an optional unit: B, KiB, MiB, GiB, KB, MB, GB.
func ParseSize(text string) (Size, error) {
	number, factor := strings.TrimSpace(text), int64(1)
	for _, u := range units() {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, factor = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/factor {
		return 0, fmt.Errorf("%q is not a size: write a number of bytes with a unit, for example \"512KiB\" or \"4MiB\"",
			text)
	}
	return Size(n * factor), nil
}

// String returns the size in the largest binary unit that is exact.
func (s Size) String() string {
	switch n := int64(s); {
	case n >= 1<<30 && n%(1<<30) == 0:
		return strconv.FormatInt(n>>30, 10) + "GiB"
	case n >= 1<<20 && n%(1<<20) == 0:
		return strconv.FormatInt(n>>20, 10) + "MiB"
	case n >= 1<<10 && n%(1<<10) == 0:
		return strconv.FormatInt(n>>10, 10) + "KiB"
	default:
		return strconv.FormatInt(n, 10) + "B"
	}
}

// Secret is a value that must not be shown. Its formatted output is the mark of package redact; Reveal returns the
// value.
type Secret string

// Reveal returns the secret itself, for the code that uses it.
func (s Secret) Reveal() string { return string(s) }

// String hides the value.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redact.Mark
}

// GoString hides the value from %#v.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// LogValue hides the value from log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the value from JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Set parses text into the key's field, by the field's type.
func (k Key) Set(text string) error {
	field := k.Value
	switch field.Interface().(type) {
	case string:
		field.SetString(text)
	case Secret:
		field.SetString(text)
	case bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		field.SetBool(b)
	case int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		field.SetInt(int64(n))
	case time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a duration: write a number with a unit, for example \"10s\", \"500ms\" or \"2m\"", text)
		}
		field.SetInt(int64(d))
	case Size:
		size, err := ParseSize(text)
		if err != nil {
			return err
		}
		field.SetInt(int64(size))
	case []string:
		field.Set(reflect.ValueOf(splitList(text)))
	default:
		return errors.New("a key of type " + field.Type().String() + " cannot be set from text")
	}
	return nil
}

func splitList(text string) []string {
	items := []string{}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// TypeName returns the name of the field's type in the reference and the flags.
func (k Key) TypeName() string {
	if k.IsFile() {
		return "file"
	}
	switch k.Value.Interface().(type) {
	case bool:
		return "bool"
	case int:
		return "number"
	case time.Duration:
		return "duration"
	case Size:
		return "size"
	case []string:
		return "list"
	default:
		return "text"
	}
}
