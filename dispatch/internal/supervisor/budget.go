package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/internal/backoff"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/lease"
)

const (
	// budgetTTL is how long a process may hold the count of terminations. budgetPause is the pause between attempts to
	// acquire it.
	budgetTTL      = 2 * time.Second
	budgetPause    = 50 * time.Millisecond
	budgetAttempts = 60
)

// count is the value of the entry with the terminations of all processes.
type count struct {
	// Since is the start of the count, in microseconds by the store's clock.
	Since int64 `json:"since"`
	Used  int   `json:"used"`
}

// allowed returns how many of the due terminations this process may make now, and adds them to the count. All processes
// together make no more terminations than one cycle of one process may, in the shortest time between two of its cycles.
func (s *Supervisor) allowed(ctx context.Context, due int) (int, error) {
	if due == 0 {
		return 0, nil
	}
	ask, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	window := s.o.Rules.Interval * 3 / 4 //nolint:mnd // cycles are up to a fifth sooner than the interval
	terms := lease.Lifetime{TTL: budgetTTL, Retention: max(window, budgetTTL)}
	for range budgetAttempts {
		got, before, err := s.o.Leases.Acquire(ask, wire.TerminationsKey, guardPrefix+s.o.ServerID, nil, terms)
		if errors.Is(err, lease.ErrHeld) && loop.Sleep(ask, backoff.Jitter(budgetPause)) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("count terminations of all processes: %w", err)
		}
		return s.spend(ask, got, before, due, window, terms)
	}
	return 0, errors.New("count terminations of all processes: the count is always held by others")
}

// spend updates the count that this process holds. An unreadable count starts anew: it only limits a rate.
func (s *Supervisor) spend(ctx context.Context, got lease.Entry, before *lease.Entry, due int, window time.Duration,
	terms lease.Lifetime) (int, error) {
	var c count
	if before != nil && json.Unmarshal(before.Value, &c) != nil {
		c = count{}
	}
	if now := got.AcquiredAt; now.Sub(time.UnixMicro(c.Since)) >= window {
		c = count{Since: now.UnixMicro()}
	}
	allowed := max(0, min(due, s.o.Rules.MaxActions-c.Used))
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
