package worker

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/processor"
)

// Heartbeat writes the heartbeats of this process: at an interval, and when Wake is called because the fingerprint may
// have changed.
type Heartbeat struct {
	*loop.Loop

	store   Store
	self    Worker
	sources Sources
	failing bool
}

// Sources return what changes in a worker. They are called for every heartbeat.
type Sources struct {
	// Fingerprint is without the namespace's ID until Temporal was reached.
	Fingerprint func() Fingerprint
	Busy        func() []Busy
	Processor   func() processor.State
}

// NewHeartbeat returns the heartbeat of a process that serves the projects, or all projects when there are none.
func NewHeartbeat(store Store, serverID string, projects []string, sources Sources) *Heartbeat {
	h := &Heartbeat{store: store, self: Worker{ServerID: serverID, Projects: projects}, sources: sources}
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
	w.Fingerprint, w.Busy, w.Processor = h.sources.Fingerprint(), h.sources.Busy(), h.sources.Processor()
	err := h.store.BeatWorker(ctx, w, forgetAfter)
	if err != nil && ctx.Err() == nil && !h.failing {
		logger.FromContext(ctx).WarnContext(ctx, "Heartbeat could not be written; trying again", "error", err)
	}
	h.failing = err != nil
	return BeatEvery
}
