package runrow

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

const (
	// fewMatches is the maximum number of runs whose ID or request ID begins with a text that are read and sorted.
	fewMatches = 2000
	// slack is the maximum difference between the time in an ID and that of the run's creation; the index runs_untimed
	// has the other runs.
	slack = 10 * time.Minute
)

// Spread describes where the runs with a filter's labels, or whose ID or request ID begins with its text, are in the
// order of the list, and so where the read of a page starts. The zero value is correct for any filter: they may be
// anywhere, and the list is scanned until the page is full. Other values avoid the scan of the runs before the first
// match.
type Spread struct {
	// few: there are so few runs that they can be sorted.
	few bool
	// timed: there are many by their ID, all created between since and until, except a few that untimed selects; and
	// few by their request ID.
	timed        bool
	since, until time.Time
	untimed      string

	// label is the key of the filter's label that the fewest runs have. fewLabelled: they are few. fewOthers: there
	// are more, and another index leads to fewer runs.
	label                  string
	fewLabelled, fewOthers bool

	// words are what the runs are found by, where the filter has any.
	words []foundBy

	// fewEnded: so few runs ended in the filter's period of ends that they can be sorted.
	fewEnded bool
}

// SpreadOf counts in the indexes, up to the number that distinguishes few from many.
func SpreadOf(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, f run.Filter) (s Spread, err error) {
	if len(f.Stuck) > 0 || len(f.IDs) > 0 {
		return s, nil
	}
	if s, err = labelSpread(ctx, c, f); err != nil || s.fewLabelled {
		return s, err
	}
	if s.fewEnded, err = fewEnded(ctx, c, f, fewMatches); err != nil || s.fewEnded {
		return s, err
	}
	if s.words, err = wordSpread(ctx, c, f); err != nil || len(s.words) > 0 || f.Text == "" {
		return s, err
	}
	few := func(where string, args ...any) (bool, error) {
		n, err := sqlrow.Count(ctx, c,
			`SELECT COUNT(*) FROM (SELECT 1 FROM runs WHERE `+where+sqlrow.Limit(fewMatches+1)+`) AS s`, args...)
		return n <= fewMatches, err
	}
	from, to := f.Text, upperBound(f.Text)
	if ok, err := few(`project = $1 AND request_id >= $2 AND request_id < $3`, f.Project, from, to); !ok || err != nil {
		return s, err
	}
	if s.few, err = few(`id >= $1 AND id < $2`, from, to); s.few || err != nil {
		return s, err
	}
	since, until, ok := timesOf(f.Text)
	if !ok {
		return s, nil
	}
	beyond := untimed(d)
	if ok, err = few(beyond+` AND project = $1 AND id >= $2 AND id < $3`, f.Project, from, to); !ok || err != nil {
		return s, err
	}
	s.timed, s.since, s.until, s.untimed = true, since, until, beyond
	return s, nil
}

// untimed equals the condition of the index runs_untimed: the ID does not begin with the time of creation.
func untimed(d sqldb.Dialect) string {
	if d.Driver == sqldb.SQLite {
		return `substr(id, 1, 8) || substr(id, 10, 4) NOT BETWEEN printf('%012x', created_at / 1000 - 600000)
			AND printf('%012x', created_at / 1000 + 600000)`
	}
	return `substr(id, 1, 8) || substr(id, 10, 4) NOT BETWEEN lpad(to_hex(created_at / 1000 - 600000), 12, '0')
		AND lpad(to_hex(created_at / 1000 + 600000), 12, '0')`
}

// timesOf returns the range of creation times of the runs with a UUIDv7 that begins with a text.
func timesOf(text string) (since, until time.Time, ok bool) {
	const digits, dash = 12, 8
	hex := text
	if len(text) > dash {
		if text[dash] != '-' {
			return since, until, false
		}
		hex = text[:dash] + text[dash+1:min(len(text), digits+1)]
	}
	// Times with a first digit of 8 or higher are thousands of years ahead; negative numbers have the same form.
	first, err := strconv.ParseInt(hex+strings.Repeat("0", digits-len(hex)), 16, 48)
	if err != nil || strings.ToLower(hex) != hex || hex[0] < '0' || hex[0] > '7' {
		return since, until, false
	}
	last := first + 1<<(4*(digits-len(hex))) - 1
	return time.UnixMilli(first).Add(-slack), time.UnixMilli(last + 1).Add(slack), true
}

// upperBound returns a text that sorts after all texts that begin with the given one.
func upperBound(text string) string { return text + "\U0010FFFF" }
