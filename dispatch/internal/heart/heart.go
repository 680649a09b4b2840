// Package heart gives a process's signs of life, and reads those of others.
package heart

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/lease"
)

// beatTimeout bounds one sign of life.
const beatTimeout = 3 * time.Second

// Heart beats.
type Heart struct {
	Leases   lease.Store
	ServerID string
	// Every is the pace, Terms are those of each beat.
	Every time.Duration
	Terms lease.Terms
	// Beat returns what to say. Each receipt from Changed means that it returns something else now, which is said at once.
	Beat    func() contract.Beat
	Changed <-chan struct{}
	// Returned is called when the heartbeat was lost and is back: others may have taken this process for gone.
	Returned func()
	Log      *slog.Logger

	mu     sync.Mutex
	failed time.Time // when the store did not answer last

	token   string
	beaten  bool
	failing bool
}

// Run beats until ctx ends, and then says that the process has gone.
func (h *Heart) Run(ctx context.Context) {
	for ctx.Err() == nil {
		h.once(ctx)
		timer := time.NewTimer(h.Every - rand.N(h.Every/10+1)) //nolint:gosec // spreads load, guards nothing
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-h.Changed:
		}
		timer.Stop()
	}
	if h.token == "" {
		return
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), beatTimeout)
	defer cancel()
	if err := h.Leases.Resign(bounded, contract.WorkerKey(h.ServerID), h.token); err != nil && !errors.Is(err, lease.ErrLost) {
		h.Log.WarnContext(ctx, "Heartbeat could not be resigned; it runs out by itself", "error", err)
	}
}

// StoreFailed tells whether the store was seen failing within that time.
func (h *Heart) StoreFailed(within time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.failed.IsZero() && time.Since(h.failed) < within+h.Every
}

func (h *Heart) once(ctx context.Context) {
	value, err := h.Beat().Encode()
	if err == nil {
		bounded, cancel := context.WithTimeout(ctx, beatTimeout)
		defer cancel()
		err = h.beat(bounded, value)
	}
	switch {
	case ctx.Err() != nil:
	case err == nil:
		h.failing = false
	default:
		h.mu.Lock()
		h.failed = time.Now()
		h.mu.Unlock()
		if !h.failing {
			h.Log.WarnContext(ctx, "Sign of life could not be written; trying again", "error", err)
		}
		h.failing = true
	}
}

func (h *Heart) beat(ctx context.Context, value []byte) error {
	key := contract.WorkerKey(h.ServerID)
	if h.token != "" {
		_, err := h.Leases.Renew(ctx, key, h.token, value, h.Terms)
		if !errors.Is(err, lease.ErrLost) {
			return err
		}
		h.token = ""
	}
	got, _, err := h.Leases.Acquire(ctx, key, h.ServerID, value, h.Terms)
	if held, ok := errors.AsType[*lease.HeldError](err); ok && held.Entry.Holder == h.ServerID {
		got, err = held.Entry, nil // by an attempt whose answer was lost
	}
	if err != nil {
		return err
	}
	h.token = got.Token
	if h.beaten {
		h.Returned()
	}
	h.beaten = true
	return nil
}

// Life is another process, as its heartbeat shows it.
type Life struct {
	ServerID string
	Alive    bool
	// Gone tells that it left in an orderly way.
	Gone bool
	Beat contract.Beat
}

// Serves tells whether it works for a project. One that serves more than its heartbeat can name is taken to.
func (l Life) Serves(project string) bool {
	return l.Beat.Serves > len(l.Beat.Projects) || slices.Contains(l.Beat.Projects, project)
}
