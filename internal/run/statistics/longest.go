package statistics

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
)

// MaxCompared is how many open runs, the oldest ones, and how many ended runs, the newest ones, a list by length
// compares.
const MaxCompared = 10_000

// Length is when a run started and ended.
type Length struct {
	ID string
	// StartedAt is zero while the run has not started.
	StartedAt time.Time
	// EndedAt is zero while the run is open.
	EndedAt time.Time
}

// LengthCursor is a position in a list by length.
type LengthCursor struct {
	// At is the time at which the first page was read: the length of a run that was open then ends there, so that later
	// pages fit.
	At     time.Time     `json:"at"`
	Length time.Duration `json:"length"`
	ID     string        `json:"id"`
}

// at returns the position of a run.
func (l Length) at(t time.Time) LengthCursor {
	end := l.EndedAt
	if end.IsZero() || end.After(t) {
		end = t
	}
	var length time.Duration // of a run that has not started
	if d := between(l.StartedAt, end); d != nil {
		length = max(*d, 0)
	}
	return LengthCursor{At: t, Length: length, ID: l.ID}
}

// compare orders a list: the longest first, of the same length the newest.
func (c LengthCursor) compare(d LengthCursor) int {
	return cmp.Or(cmp.Compare(d.Length, c.Length), strings.Compare(d.ID, c.ID))
}

// Longest returns the runs that match a checked filter in order of their length, the longest first, and the position of
// the next page, nil after the last. It compares the oldest [MaxCompared] open runs and the newest MaxCompared ended
// ones.
func (s *Service) Longest(ctx context.Context, f run.Filter, after *LengthCursor,
	limit int) (page []run.Run, next *LengthCursor, err error) {
	t := s.Now()
	if after != nil {
		t = after.At
	}
	if f.Until.IsZero() || f.Until.After(t) {
		f.Until = t.Add(time.Microsecond) // exclusive
	}
	lengths, err := s.lengths(ctx, f)
	if err != nil {
		return nil, nil, err
	}
	var positions []LengthCursor
	for _, l := range lengths {
		if p := l.at(t); after == nil || after.compare(p) < 0 {
			positions = append(positions, p)
		}
	}
	slices.SortFunc(positions, LengthCursor.compare)
	if len(positions) > limit {
		positions = positions[:limit]
		next = &positions[limit-1]
	}
	if len(positions) == 0 {
		return nil, nil, nil
	}
	ids := make([]string, len(positions))
	for i, p := range positions {
		ids[i] = p.ID
	}
	page, err = s.Runs.ListRuns(ctx, run.Filter{Project: f.Project, IDs: ids})
	slices.SortFunc(page, func(a, b run.Run) int { return cmp.Compare(slices.Index(ids, a.ID), slices.Index(ids, b.ID)) })
	return page, next, err
}

// lengths reads the runs that are compared.
func (s *Service) lengths(ctx context.Context, f run.Filter) (all []Length, err error) {
	matches := func(status run.Status) bool { return len(f.Statuses) == 0 || slices.Contains(f.Statuses, status) }
	var open, ended []run.Status
	for _, status := range run.Statuses() {
		switch {
		case !matches(status):
		case status.Terminal():
			ended = append(ended, status)
		default:
			open = append(open, status)
		}
	}
	f.Limit = MaxCompared
	for _, of := range []struct {
		statuses []run.Status
		oldest   bool
	}{{open, true}, {ended, false}} {
		if len(of.statuses) == 0 {
			continue
		}
		f.Statuses, f.OldestFirst = of.statuses, of.oldest
		some, err := s.Store.ReadLengths(ctx, f)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}
