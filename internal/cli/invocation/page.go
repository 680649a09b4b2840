package invocation

import (
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

// pageSize is asked for where a list is longer; servers allow 500.
const pageSize = 200

// Fetch returns a page of a list, and the token of the next page; "" after the last one.
type Fetch[T any] = func(size int32, token string) ([]T, string, error)

// Pages collects a list page by page, up to limit items; 0 means all, and a negative limit is an error of the flag.
// More says that the list goes on.
func Pages[T any](limit int, fetch Fetch[T]) (items []T, more bool, err error) {
	if limit < 0 {
		return nil, false, exit.Usagef("--limit: %d must be 0 or greater; 0 means all", limit)
	}
	items = []T{}
	token := ""
	for {
		size := pageSize
		if limit > 0 {
			size = min(size, limit-len(items))
		}
		page, next, err := fetch(int32(size), token)
		if err != nil {
			return nil, false, err
		}
		items = append(items, page...)
		if next == "" || limit > 0 && len(items) >= limit {
			return items, next != "", nil
		}
		token = next
	}
}

// Time reads a flag that is a moment (RFC 3339, a day with or without a time, "today", "yesterday"; in UTC, as times
// are printed) or a time before now ("2h", "7d", "1w"). Empty is the zero time.
func (s *Invocation) Time(flag, text string) (time.Time, error) {
	today := s.Now().UTC().Truncate(day)
	switch text {
	case "today":
		return today, nil
	case "yesterday":
		return today.Add(-day), nil
	}
	if t, is := moment(text); is {
		return t, nil
	}
	ago, err := span(text)
	if err != nil || ago < 0 {
		return time.Time{}, exit.Usagef("--%s: %q is no time; write how long ago (\"90m\", \"7d\", \"1w\"), a day "+
			"(yesterday, 2026-01-31) or a moment (2026-01-31T12:00:00Z)", flag, text)
	}
	return s.Now().Add(-ago), nil
}

// Ahead is Time for a moment to come: a duration counts from now on.
func (s *Invocation) Ahead(flag, text string) (time.Time, error) {
	if t, is := moment(text); is {
		return t, nil
	}
	ahead, err := span(text)
	if err != nil || ahead <= 0 {
		return time.Time{}, exit.Usagef("--%s: %q is no time to come; write in how long (\"12h\", \"90d\") or a moment "+
			"(2027-01-31T12:00:00Z)", flag, text)
	}
	return s.Now().Add(ahead), nil
}

// Span reads a flag that is a length of time ("90m", "7d").
func Span(flag, text string) (time.Duration, error) {
	length, err := span(text)
	if err != nil || length <= 0 {
		return 0, exit.Usagef("--%s: %q is no length of time; write it like \"90m\" or \"7d\"", flag, text)
	}
	return length, nil
}

const day = 24 * time.Hour

// moment reads a moment (RFC 3339, or a day with or without a time), and reports whether it is one; empty is the zero
// time.
func moment(text string) (t time.Time, is bool) {
	if text == "" {
		return t, true
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly, "2006-01-02 15:04", time.DateTime} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return t, false
}

// span reads a duration, also in days or weeks.
func span(text string) (time.Duration, error) {
	for suffix, unit := range map[string]time.Duration{"d": day, "w": 7 * day} {
		if number, is := strings.CutSuffix(text, suffix); is {
			n, err := strconv.Atoi(number)
			return time.Duration(n) * unit, err
		}
	}
	return time.ParseDuration(text)
}

// Timestamp is a time in a request; the zero time is none.
func Timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// Words checks the values of a flag against the known ones.
func Words(flag string, values, known []string) ([]string, error) {
	var out []string
	for _, value := range values {
		found := false
		for _, word := range known {
			found = found || word == value
		}
		if !found {
			return nil, exit.Usagef("--%s: %q is not one of %s", flag, value, strings.Join(known, ", "))
		}
		out = append(out, value)
	}
	return out, nil
}
