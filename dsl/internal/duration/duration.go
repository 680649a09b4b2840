// Package duration reads the durations of the language: objects of days, hours, minutes, seconds and milliseconds, and
// ISO 8601 durations.
//
//	length, err := duration.Of("PT1M30S")
//
// A year has 365 days and a month 30. Durations are never negative, and at most 292 years. The package does not
// evaluate expressions.
package duration

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/internal/value"
)

// Of returns the length of a duration in the language: a string or an object.
func Of(v any) (time.Duration, error) {
	switch v := v.(type) {
	case string:
		return iso(v)
	case map[string]any:
		return inline(v)
	}
	return 0, fmt.Errorf("want an ISO 8601 duration or an object of days, hours, minutes, seconds and milliseconds, got "+
		"%s", value.TypeName(v))
}

// unit is one member of an inline duration.
type unit struct {
	name   string
	length time.Duration
}

func units() []unit {
	return []unit{
		{"days", 24 * time.Hour}, {"hours", time.Hour}, {"minutes", time.Minute},
		{"seconds", time.Second}, {"milliseconds", time.Millisecond},
	}
}

func inline(m map[string]any) (time.Duration, error) {
	if len(m) == 0 {
		return 0, fmt.Errorf("a duration needs at least one of days, hours, minutes, seconds and milliseconds")
	}
	all := units()
	for _, key := range slices.Sorted(maps.Keys(m)) { // the same error every time
		if !slices.ContainsFunc(all, func(u unit) bool { return u.name == key }) {
			return 0, fmt.Errorf("a duration has no %q", key)
		}
	}
	total := new(big.Float).SetPrec(128)
	for _, u := range all {
		v, ok := m[u.name]
		if !ok {
			continue
		}
		n, ok := v.(int)
		if f, isFloat := v.(float64); isFloat && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			n, ok = int(f), true
		}
		if !ok {
			if text, isText := v.(string); isText {
				return 0, fmt.Errorf("%s must be an integer, got the text %.40q", u.name, text)
			}
			return 0, fmt.Errorf("%s must be an integer, got %v", u.name, v)
		}
		if n < 0 {
			return 0, fmt.Errorf("%s must not be negative, got %d", u.name, n)
		}
		addTime(total, new(big.Float).SetInt64(int64(n)), u.length)
	}
	return nanoseconds(total)
}

// Units returns the names of the members of an inline duration.
func Units() []string {
	var names []string
	for _, u := range units() {
		names = append(names, u.name)
	}
	return names
}

func addTime(total, n *big.Float, length time.Duration) {
	total.Add(total, new(big.Float).SetPrec(128).Mul(n, new(big.Float).SetInt64(int64(length))))
}

func nanoseconds(total *big.Float) (time.Duration, error) {
	n, _ := total.Int64()
	if n == math.MaxInt64 {
		return 0, fmt.Errorf("the duration is over the limit of 292 years")
	}
	return time.Duration(n), nil
}

// iso reads an ISO 8601 duration. Like the specification's schema it allows a fraction in any part.
func iso(s string) (time.Duration, error) {
	const maxLength, precision, day = 128, 128, 24 * time.Hour
	bad := fmt.Errorf("%.40q is not an ISO 8601 duration such as PT30S or P1DT12H", s)
	rest, ok := strings.CutPrefix(s, "P")
	if !ok || rest == "" || len(s) > maxLength {
		return 0, bad
	}
	units := []unit{{"Y", 365 * day}, {"M", 30 * day}, {"W", 7 * day}, {"D", day}}
	total, inTime := new(big.Float).SetPrec(precision), false
	for rest != "" {
		if !inTime && rest[0] == 'T' && len(rest) > 1 {
			inTime, rest = true, rest[1:]
			units = []unit{{"H", time.Hour}, {"M", time.Minute}, {"S", time.Second}}
		}
		end := strings.IndexFunc(rest, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
		if end <= 0 {
			return 0, bad
		}
		i := slices.IndexFunc(units, func(u unit) bool { return u.name == rest[end:end+1] })
		n, ok := new(big.Float).SetPrec(precision).SetString(rest[:end])
		if i < 0 || !ok || rest[0] == '.' || rest[end-1] == '.' {
			return 0, bad
		}
		addTime(total, n, units[i].length)
		units, rest = units[i+1:], rest[end+1:]
	}
	// rounds to the nearest nanosecond, so that 0.1 S is 100 ms in spite of binary fractions
	return nanoseconds(total.Add(total, big.NewFloat(0.5)))
}
