// Package maintenance has the maintenance mode of the platform: while it is on, no new run starts, in any project and
// on any server.
//
//	m := maintenance.New(store, time.Now)
//	err := m.Start(ctx)                       // follows the state in the store
//	state, err := m.Set(ctx, true, "upgrade") // audited
//	err = m.Begin(ctx, "the database was restored") // switches it on, unless it is on for another reason
//	err = m.Check(ctx)                        // refuses while it is on
//	err = m.Stop(ctx)
//
// Requests for runs are refused with the reason MAINTENANCE. What was accepted before it, or is accepted by something
// other than a request for a run, waits: deliveries of events and schedules, runs in queues, and batches of replays.
// Open runs continue, also with the runs that they start.
//
// Every process reads the state once a second, so that another process follows a change after that time at most. While
// the database is unavailable, the last state that was read holds.
package maintenance

import (
	"context"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
)

const (
	// MaxReason is the maximum length of a reason, in bytes.
	MaxReason = 500
	// readEvery is the interval between reads of the state.
	readEvery = time.Second
	// readTimeout bounds the first read, which a start of a run may wait for.
	readTimeout = time.Second
	// retryAfter is the delay before a retry that refused callers receive.
	retryAfter = 30 * time.Second
)

// State is whether the mode is on, and the last change.
type State struct {
	On bool
	// Reason is why it was switched on or off; it may be empty when it is off.
	Reason string
	// Actor is the name of the actor of the last change; empty if there was none.
	Actor string
	// Since is when it was last switched; zero if it never was.
	Since time.Time
}

// Store stores the state.
type Store interface {
	// Maintenance returns the state.
	Maintenance(ctx context.Context) (State, error)
	// ChangeMaintenance calls change with the state in the transaction that then stores its result with the audit entry. A
	// nil entry means that nothing is to be changed.
	ChangeMaintenance(ctx context.Context, change func(now State) (State, *audit.Entry)) error
}

// Mode follows and changes the state. It is safe for concurrent use.
type Mode struct {
	*loop.Loop

	store Store
	now   func() time.Time
	// seen is the last state that was read; nil before the first one.
	seen atomic.Pointer[State]
}

// New returns the mode. Before Start, Check reads the state once.
func New(store Store, now func() time.Time) *Mode {
	m := &Mode{store: store, now: now}
	m.Loop = loop.New(m.follow)
	return m
}

func (m *Mode) follow(ctx, _ context.Context) time.Duration {
	m.read(ctx)
	return readEvery
}

// read reads the state, and logs when another process has changed it.
func (m *Mode) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	state, err := m.store.Maintenance(ctx)
	if err != nil {
		return // the store logs its own outages
	}
	before := m.seen.Swap(&state)
	if state.On && (before == nil || !before.On) {
		logger.FromContext(ctx).WarnContext(ctx, "Maintenance mode is on: no new runs start", "reason", state.Reason,
			"actor", state.Actor)
	} else if !state.On && before != nil && before.On {
		logger.FromContext(ctx).InfoContext(ctx, "Maintenance mode is off: runs start", "actor", state.Actor)
	}
}

// Last returns the last state that this process has read, without reading it; false if it has read none.
func (m *Mode) Last() (State, bool) {
	if seen := m.seen.Load(); seen != nil {
		return *seen, true
	}
	return State{}, false
}

// Get returns the state in the store.
func (m *Mode) Get(ctx context.Context) (State, error) { return m.store.Maintenance(ctx) }

// Check returns an [apperror.Unavailable] while the mode is on. An unavailable database is no reason to refuse.
func (m *Mode) Check(ctx context.Context) error {
	if m.seen.Load() == nil {
		m.read(context.WithoutCancel(ctx))
	}
	state, _ := m.Last()
	if !state.On {
		return nil
	}
	return apperror.New(apperror.Unavailable, apperror.Maintenance,
		"the platform is in maintenance since %s (%s): no new runs start; `signalbox system maintenance` shows the state",
		state.Since.UTC().Format(time.RFC3339), state.Reason).
		WithFact("since", state.Since.UTC().Format(time.RFC3339Nano)).WithRetry(retryAfter)
}

// Set switches the mode on, which requires a reason, or off. It changes nothing and writes no audit entry if the mode
// is so already, for the same reason or, off, for any.
func (m *Mode) Set(ctx context.Context, on bool, reason string) (State, error) {
	reason = strings.TrimSpace(reason)
	if err := checkReason(on, reason); err != nil {
		return State{}, err
	}
	actor, _ := auth.ActorFrom(ctx)
	var result State
	err := m.store.ChangeMaintenance(ctx, func(now State) (State, *audit.Entry) {
		result = now
		if now.On == on && (!on || now.Reason == reason) {
			return now, nil
		}
		result = State{On: on, Reason: reason, Actor: actor.Name, Since: m.now().Truncate(time.Microsecond)}
		if now.On && on {
			result.Since = now.Since // only the reason changes
		}
		action := audit.SystemMaintenanceOff
		if on {
			action = audit.SystemMaintenanceOn
		}
		entry := audit.NewEntry(ctx, m.now(), action, "", "", reason)
		return result, &entry
	})
	if err == nil {
		m.seen.Store(&result)
	}
	return result, err
}

// Begin switches the mode on, unless it is on.
func (m *Mode) Begin(ctx context.Context, reason string) error {
	if state, err := m.Get(ctx); err != nil || state.On {
		return err
	}
	_, err := m.Set(ctx, true, reason)
	return err
}

func checkReason(on bool, reason string) error {
	switch {
	case on && reason == "":
		return apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"maintenance needs a reason, which refused callers see: give one").
			WithField("reason", "is required")
	case len(reason) > MaxReason || !utf8.ValidString(reason) || strings.ContainsFunc(reason, func(r rune) bool {
		return !unicode.IsPrint(r)
	}):
		return apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"the reason has %d bytes: use printable text of one line and at most %d bytes", len(reason), MaxReason).
			WithField("reason", "must be printable text of at most %d bytes", MaxReason)
	}
	return nil
}
