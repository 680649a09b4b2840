package owner

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/decide"
	"github.com/signalbox-dev/signalbox/dispatch/internal/remote"
)

// maxPatience bounds the time that a dispatcher without progress gets where replacing it did not help.
const maxPatience = time.Hour

// silence is that a dispatcher makes no progress although there is work, as all looks since one saw it.
type silence struct {
	runID    string // empty where it does make progress
	since    time.Time
	mute     bool // it did not answer either
	replaced int  // how many were replaced for that without one making progress
}

// lookAgain looks whether the dispatcher is still open and owned, and does what is needed if not.
func (t *tenure) lookAgain(ctx context.Context) error {
	t.mu.Lock()
	a := &attempt{t: t, before: decide.Unknown, owner: t.owner}
	t.mu.Unlock()
	seen, open, err := a.see(ctx)
	// Somebody slow may have been given an epoch long after it lost its lease: then nobody can claim until the owner is given another.
	overtaken := a.fence.Epoch > a.owner.Epoch
	if err != nil {
		t.silence.runID = ""
		return nil //nolint:nilerr // what cannot be seen is looked at again later
	}
	why := "The dispatcher is gone or another's; deciding again"
	if decide.What(a.before, seen, a.owner).Kind == decide.Keep && !overtaken {
		t.l.renamed(open.RunID)
		if !seen.Silent {
			t.silence = silence{}
			return nil
		}
		if !t.stuck(ctx, open.RunID, a.owner) {
			t.ring(ctx)
			return nil
		}
		why = "The dispatcher makes no progress although there is work, and does not answer; replacing it"
	}
	if !t.hold.Valid() {
		return nil // the select sees why
	}
	t.l.log.WarnContext(ctx, why)
	t.l.own(nil)
	t.began = time.Now()
	t.won = &victory{entry: t.won.entry}
	return t.take(ctx, decide.Unknown)
}

// stuck tells whether a run that makes no progress has to be replaced: it was seen like that before, had time to hear the doorbell, and
// does not answer. Whatever keeps one after another from making progress is not replaced away: each gets twice the time.
func (t *tenure) stuck(ctx context.Context, runID string, owner inbox.Owner) bool {
	s := &t.silence
	if s.runID != runID {
		s.runID, s.since, s.mute = runID, time.Now(), false
		return false
	}
	if time.Since(s.since) < min(t.l.p.Timing.StaleAfter<<min(s.replaced, 10), maxPatience) {
		return false
	}
	ctx, cancel := t.whileHeld(ctx)
	defer cancel()
	if s.mute = errors.Is(t.l.p.Temporal.Ask(ctx, t.l.name, runID, owner), remote.ErrUnanswered); s.mute {
		s.replaced++
	}
	return s.mute
}

// ring wakes a dispatcher that may sleep although the inbox does not say so, so that nobody else rings: a routing that was taken for
// dead may take the mark off when another one has parked. One that is awake is not disturbed.
func (t *tenure) ring(ctx context.Context) {
	t.l.log.WarnContext(ctx, "The dispatcher makes no progress although there is work; ringing")
	if err := t.l.p.Temporal.Ring(ctx, t.l.name); err != nil {
		t.l.log.WarnContext(ctx, "Doorbell could not be rung; trying again later", "error", err)
	}
}
