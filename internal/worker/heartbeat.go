package worker

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

// Heartbeat writes the heartbeats of this process: at an interval, and when Wake is called because the fingerprint may have changed.
type Heartbeat struct {
	*loop.Loop

	store       Store
	self        Worker
	fingerprint func() Fingerprint
	busy        func() []Busy
	failing     bool
}

// NewHeartbeat returns the heartbeat of a process that serves the projects, or all projects when there are none. fingerprint is called
// for every heartbeat: the namespace's ID is unknown until Temporal was reached. So is busy.
func NewHeartbeat(store Store, serverID string, projects []string, fingerprint func() Fingerprint, busy func() []Busy) *Heartbeat {
	h := &Heartbeat{store: store, self: Worker{ServerID: serverID, Projects: projects}, fingerprint: fingerprint, busy: busy}
	h.Loop = loop.New(h.beat)
	return h
}

// Start begins the heartbeats. It does not wait for the store.
func (h *Heartbeat) Start(ctx context.Context) error {
	h.self.StartedAt = time.Now()
	return h.Loop.Start(ctx)
}

// Stop ends the heartbeats and removes the worker from the store.
func (h *Heartbeat) Stop(ctx context.Context) error {
	return errors.Join(h.Loop.Stop(ctx), h.store.LeaveWorker(ctx, h.self.ServerID))
}

func (h *Heartbeat) beat(ctx, _ context.Context) time.Duration {
	w := h.self
	w.Fingerprint, w.Busy = h.fingerprint(), h.busy()
	err := h.store.BeatWorker(ctx, w, forgetAfter)
	if err != nil && ctx.Err() == nil && !h.failing {
		logger.FromContext(ctx).WarnContext(ctx, "Heartbeat could not be written; trying again", "error", err)
	}
	h.failing = err != nil
	return BeatEvery
}
