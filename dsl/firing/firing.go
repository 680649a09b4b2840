// Package firing computes the times at which a schedule fires: those of a cron expression in a time zone, or those of an
// interval. It computes the same times as Temporal, which fires the schedules; a test compares both.
//
//	times, err := firing.New(firing.Spec{Cron: "30 2 * * *", Zone: "Europe/Berlin"})
//	next := times.Next(time.Now())
//	list, more := times.Between(since, until, 100)
//
// The wall clock of the zone decides. A time that a change of the clocks skips does not exist, and the schedule does not
// fire at it. Of an hour that a change repeats, Temporal fires both times in zones west of Greenwich and the second one
// in zones east of it. There Temporal also fires the hour before twice, an hour apart; the second of these times does
// not match the expression. It is left out here, and [Times.Matches] recognizes it. Jitter is not part of these times:
// it delays the fire of a time.
package firing

import (
	"fmt"
	"math"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/internal/cron"
	"github.com/signalbox-dev/signalbox/dsl/internal/zone"
)

// lastYear is the last year in which Temporal fires a cron expression.
const lastYear = 2100

// firstWindow is how far Newest looks back at first.
const firstWindow = time.Hour

// Spec states when a schedule fires. Either Cron or Every is set.
type Spec struct {
	// Cron is a cron expression with five fields, or one of the names such as @daily.
	Cron string
	// Zone is the IANA name of the time zone of Cron; empty for UTC.
	Zone string
	// Every is an interval in whole seconds, at least one. It counts from Since, in whole seconds.
	Every time.Duration
	Since time.Time
	// Start is the earliest time; zero for none.
	Start time.Time
}

// Times computes the times of one schedule. It is immutable.
type Times struct {
	spec   Spec
	fields cron.Expression
	in     *time.Location
}

// New returns the times of a schedule.
func New(s Spec) (*Times, error) {
	t := &Times{spec: s, in: time.UTC}
	if s.Cron == "" {
		if s.Every < time.Second {
			return nil, fmt.Errorf("the interval %v is shorter than a second", s.Every)
		}
		return t, nil
	}
	var err error
	if t.fields, err = cron.Parse(s.Cron); err != nil {
		return nil, fmt.Errorf("%q is not a cron expression: %w", s.Cron, err)
	}
	if s.Zone != "" {
		if t.in, err = zone.Load(s.Zone); err != nil {
			return nil, fmt.Errorf("%q: %w", s.Zone, err)
		}
	}
	return t, nil
}

// Lists returns a cron expression as lists of numbers, in which Sunday is 0. Temporal reads these alike, but omits Sunday
// from 1-7. An invalid expression is returned as it is.
func Lists(expression string) string {
	parsed, err := cron.Parse(expression)
	if err != nil {
		return expression
	}
	return parsed.String()
}

// Phase returns the offset of an interval, which Temporal counts from the start of the year 1970.
func (s Spec) Phase() time.Duration {
	every := int64(s.Every / time.Second)
	phase := s.Since.Unix() % every
	if phase < 0 {
		phase += every
	}
	return time.Duration(phase) * time.Second
}

// Next returns the first time after another, in UTC and in whole seconds; zero if there is none.
func (t *Times) Next(after time.Time) time.Time {
	next := t.raw(after)
	for !next.IsZero() && !t.Matches(next) {
		next = t.raw(next)
	}
	return next
}

// Matches reports whether the wall clock of the zone at a time matches the cron expression. It is true for any time of
// an interval.
func (t *Times) Matches(at time.Time) bool {
	if t.spec.Cron == "" {
		return true
	}
	at = at.In(t.in)
	return has(t.fields.Months, int(at.Month())) && has(t.fields.Days, at.Day()) &&
		has(t.fields.Weekdays, int(at.Weekday())) && has(t.fields.Hours, at.Hour()) && has(t.fields.Minutes, at.Minute())
}

// raw returns the next time at which Temporal fires.
func (t *Times) raw(after time.Time) time.Time {
	if first := t.spec.Start.Add(-time.Second); !t.spec.Start.IsZero() && first.After(after) {
		after = first
	}
	var next time.Time
	if t.spec.Cron == "" {
		every, phase := int64(t.spec.Every/time.Second), int64(t.spec.Phase()/time.Second)
		next = time.Unix(((after.Unix()-phase)/every+1)*every+phase, 0).UTC()
	} else {
		next = t.nextCron(after)
	}
	if next.Year() > lastYear {
		return time.Time{}
	}
	return next
}

// Between returns the times after since and until until, that time included, at most limit of them. more reports whether
// there are more than limit.
func (t *Times) Between(since, until time.Time, limit int) (list []time.Time, more bool) {
	for at := t.Next(since); !at.IsZero() && !at.After(until); at = t.Next(at) {
		if len(list) == limit {
			return list, true
		}
		list = append(list, at)
	}
	return list, false
}

// Newest returns the last times after since and until until, that time included, in order: at most limit of them.
func (t *Times) Newest(since, until time.Time, limit int) []time.Time {
	for length := firstWindow; ; length *= 4 {
		from := until.Add(-length)
		if from.Before(since) {
			from = since
		}
		list, _ := t.Between(from, until, math.MaxInt)
		if len(list) >= limit || from.Equal(since) {
			return list[max(0, len(list)-limit):]
		}
	}
}

// clock is a time on the wall clock. Months begin at 1.
type clock struct {
	year              int
	month             time.Month
	day, hour, minute int
	// repeated: the clocks were set back, and it is the second of two equal times.
	repeated bool
}

func (c clock) at(in *time.Location) time.Time {
	return time.Date(c.year, c.month, c.day, c.hour, c.minute, 0, 0, in)
}

// nextCron returns the first time after another at which all fields match. It goes from the year to the minute, and in
// each of them to the next value that matches.
func (t *Times) nextCron(after time.Time) time.Time {
	from := after.In(t.in)
	c := clock{year: from.Year(), month: from.Month(), day: from.Day(), hour: from.Hour(), minute: from.Minute() + 1,
		repeated: from.Add(-time.Hour).Hour() == from.Hour()}
	for {
		c = c.carry(t.in)
		switch {
		case c.year > lastYear:
			return time.Time{}
		case !has(t.fields.Months, int(c.month)):
			c = clock{year: c.year, month: c.month + 1, day: 1}
		case !has(t.fields.Days, c.day) || !has(t.fields.Weekdays, int(c.at(t.in).Weekday())):
			c = clock{year: c.year, month: c.month, day: c.day + 1}
		case !has(t.fields.Hours, c.hour):
			c = clock{year: c.year, month: c.month, day: c.day, hour: c.hour + 1}
		case !has(t.fields.Minutes, c.minute):
			c.minute++
		default:
			next := c.at(t.in)
			if next.Hour() != c.hour { // the clocks were set forward: this time does not exist
				c = clock{year: c.year, month: c.month, day: c.day, hour: c.hour + 1, repeated: c.repeated}
				continue
			}
			if c.repeated {
				next = next.Add(time.Hour)
			}
			return next.UTC()
		}
	}
}

// carry returns the time with each field in its range. After the first of two equal hours follows the second.
func (c clock) carry(in *time.Location) clock {
	const minutes, hours = 60, 24
	if c.minute >= minutes {
		c.minute = 0
		from := c.at(in)
		c.hour++
		if repeats := !c.repeated && c.at(in).Sub(from) > time.Hour; repeats {
			c.hour, c.repeated = c.hour-1, true
		} else {
			c.repeated = false
		}
	}
	if c.hour >= hours {
		c.day, c.hour = c.day+1, 0
	}
	if c.day > time.Date(c.year, c.month+1, 0, 0, 0, 0, 0, time.UTC).Day() {
		c.month, c.day = c.month+1, 1
	}
	if c.month > time.December {
		c.year, c.month = c.year+1, time.January
	}
	return c
}

func has(set uint64, n int) bool { return set>>n&1 == 1 }
