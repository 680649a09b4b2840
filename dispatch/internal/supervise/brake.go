package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/pace"
	"github.com/signalbox-dev/signalbox/lease"
)

const (
	// brakeTTL is for how long a process may hold the count of terminations, brakePause how long the next one waits for it.
	brakeTTL   = 2 * time.Second
	brakePause = 50 * time.Millisecond
	brakeTries = 60
)

// count is the value of the entry in which all processes count terminations.
type count struct {
	// Since is when the count began, in microseconds by the store's clock.
	Since int64 `json:"since"`
	Used  int   `json:"used"`
}

// allowed returns how many of the terminations that are due this process may make now, and counts them. All processes together make no more
// than one cycle of one process may, in the shortest time between two of its cycles.
func (s *Supervisor) allowed(ctx context.Context, due int) (int, error) {
	if due == 0 {
		return 0, nil
	}
	ask, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	window := s.o.Rules.Interval * 3 / 4 //nolint:mnd // cycles are up to a fifth sooner than the interval
	terms := lease.Terms{TTL: brakeTTL, Retention: max(window, brakeTTL)}
	for range brakeTries {
		got, before, err := s.o.Leases.Acquire(ask, contract.BrakeKey, guardPrefix+s.o.ServerID, nil, terms)
		if errors.Is(err, lease.ErrHeld) && pace.Sleep(ask, pace.Jitter(brakePause)) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("count terminations of all processes: %w", err)
		}
		return s.take(ask, got, before, due, window, terms)
	}
	return 0, errors.New("count terminations of all processes: others count all the time")
}

// take writes the count that this process holds. A count that cannot be read begins anew: it bounds a pace, and guards nothing.
func (s *Supervisor) take(ctx context.Context, got lease.Entry, before *lease.Entry, due int, window time.Duration, terms lease.Terms) (int, error) {
	var c count
	if before != nil && json.Unmarshal(before.Value, &c) != nil {
		c = count{}
	}
	if now := got.AcquiredAt; now.Sub(time.UnixMicro(c.Since)) >= window {
		c = count{Since: now.UnixMicro()}
	}
	allowed := max(0, min(due, s.o.Rules.Most-c.Used))
	c.Used += allowed
	value, err := json.Marshal(c)
	if err == nil {
		_, err = s.o.Leases.Renew(ctx, got.Key, got.Token, value, terms)
	}
	if err == nil {
		err = s.o.Leases.Resign(ctx, got.Key, got.Token)
	}
	if err != nil {
		return 0, fmt.Errorf("count terminations of all processes: %w", err)
	}
	return allowed, nil
}
