package legacy

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/store/sqlrow"
)

// progress is how far a source has been followed.
type progress struct {
	known bool
	// marks are the values up to which all runs were read, by column; later replace them once they are old enough.
	marks, later Values
	notedAt      time.Time
	// walked is the ID of the last run of the current scan, nil at its beginning.
	walked any
	rounds int64
}

// advanceMarks records the newest values. The values recorded before replace the marks once they are old enough.
func (p *progress) advanceMarks(newest map[string]any, now time.Time) {
	p.marks, p.later, p.notedAt = p.later, newest, now
	if !p.known {
		p.marks, p.known = newest, true // older runs are read by the first scan of all runs
	}
}

// progress reads how far a source has been followed.
func (f *Follower) progress(ctx context.Context, name string) (p progress, err error) {
	err = f.target.Read(ctx, "read how far a legacy database was followed", func(ctx context.Context, c sqldb.Conn) error {
		list, err := sqlrow.Collect(ctx, c,
			`SELECT marks, later, noted_at, walked, rounds FROM legacy_sources WHERE name = $1`, []any{name},
			func(row sqlrow.Scanner) (p progress, err error) {
				var walked Key
				err = row.Scan(sqlrow.JSONInto(&p.marks), sqlrow.JSONInto(&p.later), sqlrow.TimeInto(&p.notedAt),
					sqlrow.JSONInto(&walked), &p.rounds)
				p.walked, p.known = walked.Value, true
				return p, err
			})
		if err == nil && len(list) > 0 {
			p = list[0]
		}
		return err
	})
	return p, err
}

// keep writes how far a source has been followed.
func (f *Follower) keep(ctx context.Context, name string, p progress) error {
	args := []any{name}
	for _, v := range []any{p.marks, p.later} {
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("keep how far the legacy database %s was followed: %w", name, err)
		}
		args = append(args, string(text))
	}
	walked, err := json.Marshal(Key{Value: p.walked})
	if err != nil {
		return fmt.Errorf("keep how far the legacy database %s was followed: %w", name, err)
	}
	args = append(args, p.notedAt.UnixMicro(), string(walked), p.rounds)
	return f.target.Exec(ctx, "keep how far a legacy database was followed",
		func(ctx context.Context, c sqldb.Conn) error {
			_, err := c.ExecContext(ctx,
				`INSERT INTO legacy_sources (name, marks, later, noted_at, walked, rounds) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (name) DO UPDATE SET marks = excluded.marks, later = excluded.later, noted_at = excluded.noted_at,
walked = excluded.walked, rounds = excluded.rounds`, args...)
			return err
		})
}
