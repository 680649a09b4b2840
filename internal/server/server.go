// Package server tracks the server processes of a platform, of all roles: which run, and which were lost.
//
// Every process runs a [Heartbeat], which writes a record to the store every few seconds, and removes it when the
// process is stopped. A server whose record was neither renewed nor removed is lost: its process was killed, is frozen,
// or cannot reach the database.
//
//	heartbeat := server.NewHeartbeat(store, server.Server{ID: serverID, Instance: "host:8080", Roles: roles, Version: version})
//	err := heartbeat.Start(ctx)
//	lost, known, err := heartbeat.Lost(ctx, 2*time.Minute)
//
// Times are those of the database's clock, so that the clocks of the processes need not agree. A server that starts
// replaces the records of earlier processes of its instance. Records are removed after a day.
package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

const (
	// beatEvery is the interval of the heartbeats.
	beatEvery = 5 * time.Second
	// steadyAfter is for how long this process must have written heartbeats without a gap before it reports a server as
	// lost: after an outage of the database all records are old, until each server has written its next one.
	steadyAfter = 3 * beatEvery
	// forgetAfter is the age of a record after which it is removed.
	forgetAfter = 24 * time.Hour
	// maxLost bounds how many servers are reported.
	maxLost = 100
)

// Server is one server process.
type Server struct {
	// ID identifies this start of the process.
	ID string
	// Instance is host and port, the same across restarts.
	Instance string
	Roles    []string
	Version  string
	// StartedAt is the start of the process, by its own clock.
	StartedAt time.Time
	// SeenAt is the time of its last heartbeat, by the database's clock.
	SeenAt time.Time
}

// Store stores servers.
type Store interface {
	// BeatServer adds the server or renews its record, with the database's current time. It removes records that are older
	// than forget, and those of processes of the same instance that started earlier.
	BeatServer(ctx context.Context, s Server, forget time.Duration) error
	// LeaveServer removes the server; an unknown server is not an error.
	LeaveServer(ctx context.Context, id string) error
	// SilentServers returns up to limit servers whose last heartbeat is older than that, the latest first.
	SilentServers(ctx context.Context, olderThan time.Duration, limit int) ([]Server, error)
}

// Heartbeat writes the heartbeats of this process, and reports the servers without one.
type Heartbeat struct {
	*loop.Loop

	store   Store
	self    Server
	failing bool

	mu sync.Mutex
	// last is the time of the last heartbeat that was written, steady that of the first one since which none was late.
	last, steady time.Time
}

// NewHeartbeat returns the heartbeat of this process.
func NewHeartbeat(store Store, self Server) *Heartbeat {
	h := &Heartbeat{store: store, self: self}
	h.Loop = loop.New(h.beat)
	return h
}

// Start begins the heartbeats. It does not wait for the store.
func (h *Heartbeat) Start(ctx context.Context) error {
	h.self.StartedAt = time.Now()
	return h.Loop.Start(ctx)
}

// Stop ends the heartbeats and removes the server from the store.
func (h *Heartbeat) Stop(ctx context.Context) error {
	return errors.Join(h.Loop.Stop(ctx), h.store.LeaveServer(ctx, h.self.ID))
}

func (h *Heartbeat) beat(ctx, _ context.Context) time.Duration {
	err := h.store.BeatServer(ctx, h.self, forgetAfter)
	if err != nil && ctx.Err() == nil && !h.failing {
		logger.FromContext(ctx).WarnContext(ctx, "The record of this server could not be renewed; trying again", "error", err)
	}
	h.failing = err != nil
	h.mu.Lock()
	defer h.mu.Unlock()
	switch now := time.Now(); {
	case err != nil:
		h.steady = time.Time{}
	case h.steady.IsZero(), now.Sub(h.last) > steadyAfter:
		h.last, h.steady = now, now
	default:
		h.last = now
	}
	return beatEvery
}

// Lost returns the servers that have written no heartbeat for that time and were not stopped. It returns false while
// that is not known, because the heartbeats of this process have just begun, or begun again.
func (h *Heartbeat) Lost(ctx context.Context, after time.Duration) (lost []Server, known bool, err error) {
	if !h.isSteady() {
		return nil, false, nil
	}
	lost, err = h.store.SilentServers(ctx, after, maxLost)
	return lost, err == nil && h.isSteady(), err
}

func (h *Heartbeat) isSteady() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	return !h.steady.IsZero() && now.Sub(h.steady) >= steadyAfter && now.Sub(h.last) <= steadyAfter
}
