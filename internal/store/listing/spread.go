package listing

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
	// fewMatches is up to how many runs whose ID or request ID begins with a text are read and sorted.
	fewMatches = 2000
	// slack is how far the time in an ID may be from that of the run's creation; the index runs_untimed has the runs beyond it.
	slack = 10 * time.Minute
)

// Spread says how the runs whose ID or request ID begins with a filter's text lie in the order of the list, and so from where a page of
// them is read. The zero value holds for any text: they may be everywhere, and the list is walked until the page is full. What the
// others spare is the walk past all runs that come before the first match.
type Spread struct {
	// few are so few runs that they can be sorted.
	few bool
	// timed are many by their ID, all created between since and until, but for few that untimed selects; and few by their request ID.
	timed        bool
	since, until time.Time
	untimed      string
}

// SpreadOf counts in the indexes, and no further than it takes to tell few from many.
func SpreadOf(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, f run.Filter) (s Spread, err error) {
	if f.Text == "" || len(f.Problems) > 0 {
		return s, nil
	}
	few := func(where string, args ...any) (bool, error) {
		n, err := sqlrow.Count(ctx, c, `SELECT COUNT(*) FROM (SELECT 1 FROM runs WHERE `+where+sqlrow.Limit(fewMatches+1)+`) AS s`, args...)
		return n <= fewMatches, err
	}
	from, to := f.Text, behind(f.Text)
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
	return Spread{timed: true, since: since, until: until, untimed: beyond}, nil
}

// untimed is the condition of the index runs_untimed, word for word: the ID does not begin with the time of creation.
func untimed(d sqldb.Dialect) string {
	if d.Driver == sqldb.SQLite {
		return `substr(id, 1, 8) || substr(id, 10, 4) NOT BETWEEN printf('%012x', created_at / 1000 - 600000) AND printf('%012x', created_at / 1000 + 600000)`
	}
	return `substr(id, 1, 8) || substr(id, 10, 4) NOT BETWEEN lpad(to_hex(created_at / 1000 - 600000), 12, '0') AND lpad(to_hex(created_at / 1000 + 600000), 12, '0')`
}

// timesOf are the times between which a run was created whose ID begins with a text, and with its time as a UUIDv7 has it.
func timesOf(text string) (since, until time.Time, ok bool) {
	const digits, dash = 12, 8
	hex := text
	if len(text) > dash {
		if text[dash] != '-' {
			return since, until, false
		}
		hex = text[:dash] + text[dash+1:min(len(text), digits+1)]
	}
	// Times that begin with 8 and higher digits are thousands of years ahead; negative ones are written like that.
	first, err := strconv.ParseInt(hex+strings.Repeat("0", digits-len(hex)), 16, 48)
	if err != nil || strings.ToLower(hex) != hex || hex[0] < '0' || hex[0] > '7' {
		return since, until, false
	}
	last := first + 1<<(4*(digits-len(hex))) - 1
	return time.UnixMilli(first).Add(-slack), time.UnixMilli(last + 1).Add(slack), true
}

// behind is a text that comes after all that begin with the given one.
func behind(text string) string { return text + "\U0010FFFF" }
