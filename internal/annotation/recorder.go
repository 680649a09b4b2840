package annotation

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

const (
	// observeEvery is how often the connection is read, which takes no time. Shorter outages are read from its statistics.
	observeEvery = time.Second
	// confirmEvery is how often an open outage is written.
	confirmEvery = 5 * time.Second
	// maxUnwritten is how many ended outages are kept while the store is unavailable, the newest.
	maxUnwritten = 1000
)

// Recorder records the outages of Temporal that its process sees. While the store is unavailable, it keeps them and
// writes them after.
type Recorder struct {
	*loop.Loop

	connection func() conntype.Status
	store      Store
	server     string
	now        func() time.Time

	// open is the outage that lasts; nil if there is none.
	open *Outage
	// counted is the number of outages in the connection's statistics that were seen.
	counted int64
	// ended are outages that have ended and are not written.
	ended   []Outage
	dueAt   time.Time
	failing bool
}

// NewRecorder returns a recorder of the process with this server ID. connection returns the state of its connection and
// does not block.
func NewRecorder(connection func() conntype.Status, store Store, server string, now func() time.Time) *Recorder {
	r := &Recorder{connection: connection, store: store, server: server, now: now}
	r.Loop = loop.New(r.pass)
	return r
}

// Stop ends the recorder. An open outage ends for this server.
func (r *Recorder) Stop(ctx context.Context) error {
	if err := r.Loop.Stop(ctx); err != nil {
		return err
	}
	r.observe(r.connection(), r.now())
	r.end(r.now())
	if len(r.ended) > 0 {
		r.write(ctx)
	}
	return nil
}

func (r *Recorder) pass(_, work context.Context) time.Duration {
	now := r.now()
	r.observe(r.connection(), now)
	if (len(r.ended) > 0 || r.open != nil) && !now.Before(r.dueAt) {
		r.write(work)
	}
	return observeEvery
}

// observe compares the connection with what was seen before.
func (r *Recorder) observe(s conntype.Status, now time.Time) {
	up := s.State == conntype.Connected || s.State == conntype.Degraded
	// Before its first attempt has failed, a process does not know of an outage.
	down := s.State == conntype.Down || s.State == conntype.Connecting && s.LastError != ""
	missed := s.Statistics.Outages > r.counted
	r.counted = s.Statistics.Outages
	switch {
	case down && r.open == nil:
		r.open = &Outage{Server: r.server, Since: s.Since}
		r.dueAt = now
	case down && missed:
		// Temporal was there for a moment between two observations.
		r.end(s.Since)
		r.open = &Outage{Server: r.server, Since: s.Since}
	case up && r.open != nil:
		r.end(s.Statistics.ConnectedSince)
		r.dueAt = now
	case up && missed:
		end := s.Statistics.ConnectedSince
		r.open = &Outage{Server: r.server, Since: end.Add(-s.Statistics.LastOutage), Kind: "short"}
		r.end(end)
		r.dueAt = now
	}
	if r.open != nil {
		r.open.Kind, r.open.SeenAt = string(s.Kind), now
	}
}

// end ends the open outage.
func (r *Recorder) end(at time.Time) {
	if r.open == nil {
		return
	}
	r.open.SeenAt, r.open.EndedAt = at, at
	r.ended = append(r.ended, *r.open)
	r.ended = r.ended[max(0, len(r.ended)-maxUnwritten):]
	r.open = nil
}

func (r *Recorder) write(ctx context.Context) {
	rows := r.ended
	if r.open != nil {
		rows = append(slices.Clip(rows), *r.open)
	}
	r.dueAt = r.now().Add(confirmEvery)
	err := r.store.WriteOutages(ctx, rows)
	if err == nil {
		r.ended = nil
	} else if ctx.Err() == nil && !r.failing {
		logger.FromContext(ctx).WarnContext(ctx, "An outage of Temporal could not be recorded; trying again", "error", err)
	}
	r.failing = err != nil
}
