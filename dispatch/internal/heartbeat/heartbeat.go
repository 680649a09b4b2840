// Package heartbeat writes a process's heartbeat, registers it with dispatchers, and reads the heartbeats of other
// processes.
package heartbeat

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

// beatTimeout limits one write.
const beatTimeout = 3 * time.Second

// Heartbeat writes the heartbeat of a process.
type Heartbeat struct {
	Leases   lease.Store
	ServerID string
	// Every is the interval, Lifetime that of each write.
	Every    time.Duration
	Lifetime lease.Lifetime
	// Beat returns the content. A receive from Changed means that the content has changed, and is written at once.
	Beat    func() dispatchtype.Heartbeat
	Changed <-chan struct{}
	// Returned is called when a lost heartbeat was written again: other processes may have evicted this one.
	Returned func()
	Log      *slog.Logger

	mu     sync.Mutex
	failed time.Time // the last failure of the store

	token   string
	beaten  bool
	failing bool
}

// Run writes the heartbeat until ctx ends, and then resigns it.
func (h *Heartbeat) Run(ctx context.Context) {
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
	if err := h.Leases.Resign(bounded, wire.WorkerKey(h.ServerID), h.token); err != nil && !errors.Is(err, lease.ErrLost) {
		h.Log.WarnContext(ctx, "Heartbeat could not be resigned; it runs out by itself", "error", err)
	}
}

// StoreFailed reports whether the store failed within that time.
func (h *Heartbeat) StoreFailed(within time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.failed.IsZero() && time.Since(h.failed) < within+h.Every
}

func (h *Heartbeat) once(ctx context.Context) {
	value, err := wire.EncodeHeartbeat(h.Beat())
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
			h.Log.WarnContext(ctx, "Heartbeat could not be written; trying again", "error", err)
		}
		h.failing = true
	}
}

func (h *Heartbeat) beat(ctx context.Context, value []byte) error {
	key := wire.WorkerKey(h.ServerID)
	if h.token != "" {
		_, err := h.Leases.Renew(ctx, key, h.token, value, h.Lifetime)
		if !errors.Is(err, lease.ErrLost) {
			return err
		}
		h.token = ""
	}
	got, _, err := h.Leases.Acquire(ctx, key, h.ServerID, value, h.Lifetime)
	if held, ok := errors.AsType[*lease.HeldError](err); ok && held.Entry.Holder == h.ServerID {
		got, err = held.Entry, nil // acquired by an attempt whose answer was lost
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

// Process is a process as its heartbeat shows it.
type Process struct {
	ServerID string
	Alive    bool
	// Gone reports that it resigned its heartbeat.
	Gone bool
	Beat dispatchtype.Heartbeat
}

// Serves reports whether it serves a project. A process with more projects than its heartbeat can list counts as
// serving all.
func (l Process) Serves(project string) bool {
	return l.Beat.Serves > len(l.Beat.Projects) || slices.Contains(l.Beat.Projects, project)
}
