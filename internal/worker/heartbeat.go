package worker

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
)

// Heartbeat writes the heartbeats of this process.
type Heartbeat struct {
	store       Store
	self        Worker
	fingerprint func() Fingerprint
	wake        chan struct{}

	cancel context.CancelFunc
	joined sync.WaitGroup
}

// NewHeartbeat returns the heartbeat of a process that serves the projects, or all projects when there are none. fingerprint is called
// for every heartbeat: the namespace's ID is unknown until Temporal was reached.
func NewHeartbeat(store Store, serverID string, projects []string, fingerprint func() Fingerprint) *Heartbeat {
	return &Heartbeat{store: store, self: Worker{ServerID: serverID, Projects: projects}, fingerprint: fingerprint, wake: make(chan struct{}, 1)}
}

// Start begins the heartbeats. It does not wait for the store.
func (h *Heartbeat) Start(ctx context.Context) error {
	h.self.StartedAt = time.Now()
	ctx, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
	h.joined.Go(func() { h.loop(ctx) })
	return nil
}

// Wake writes a heartbeat now, because the fingerprint may have changed. It does not block.
func (h *Heartbeat) Wake() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Stop ends the heartbeats and removes the worker from the store.
func (h *Heartbeat) Stop(ctx context.Context) error {
	h.cancel()
	h.joined.Wait()
	return h.store.LeaveWorker(ctx, h.self.ServerID)
}

func (h *Heartbeat) loop(ctx context.Context) {
	ticker := time.NewTicker(BeatEvery)
	defer ticker.Stop()
	failing := false
	for {
		w := h.self
		w.Fingerprint = h.fingerprint()
		err := h.store.BeatWorker(ctx, w, forgetAfter)
		if err != nil && ctx.Err() == nil && !failing {
			logger.FromContext(ctx).WarnContext(ctx, "Heartbeat could not be written; trying again", "error", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
		case <-ticker.C:
		}
	}
}
