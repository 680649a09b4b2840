package owner

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/remote"
	"github.com/signalbox-dev/signalbox/internal/backoff"
)

// maxStallTime bounds the time without progress after which a dispatcher is replaced; the time doubles with each
// replacement that did not help.
const maxStallTime = time.Hour

// stall is a period without progress although work is due, in the checks since it was first seen.
type stall struct {
	runID      string // empty while there is progress
	since      time.Time
	unanswered bool // the run did not answer
	replaced   int  // runs replaced since the last progress
}

// recheck checks that the dispatcher is still open and owned by this process, and takes it again if not.
func (t *term) recheck(ctx context.Context) error {
	t.mu.Lock()
	a := &attempt{t: t, before: plan.PreviousUnknown, owner: t.owner}
	t.mu.Unlock()
	seen, open, err := a.observe(ctx)
	// A slow process may have been given an epoch after it lost its lease. Then no process can claim until the owner has a
	// later epoch.
	overtaken := a.fence.Epoch > a.owner.Epoch
	if err != nil {
		t.stall.runID = ""
		return nil //nolint:nilerr // the next check reads again
	}
	why := "Dispatcher is closed or has another owner; deciding again"
	if plan.Decide(a.before, seen, a.owner).Kind == plan.Keep && !overtaken {
		t.l.continued(open.RunID)
		if !seen.Silent {
			t.stall = stall{}
			return nil
		}
		if !t.mustReplace(ctx, open.RunID, a.owner) {
			t.ring(ctx)
			return nil
		}
		why = "Dispatcher makes no progress although work is due, and does not answer; replacing it"
	}
	if !t.hold.Valid() {
		return nil // keep handles the end of the lease
	}
	t.l.log.WarnContext(ctx, why)
	t.l.own(nil)
	t.began = time.Now()
	t.acquired = &acquired{entry: t.acquired.entry}
	return t.take(ctx, plan.PreviousUnknown)
}

// mustReplace reports whether a run without progress must be replaced: an earlier check saw it in the same state, it
// had time to react to the doorbell, and it does not answer. While replacements lead to no progress, each next run gets
// twice the time.
func (t *term) mustReplace(ctx context.Context, runID string, owner inbox.Owner) bool {
	s := &t.stall
	if s.runID != runID {
		s.runID, s.since, s.unanswered = runID, time.Now(), false
		return false
	}
	if time.Since(s.since) < backoff.Delay(t.l.p.Timing.StaleAfter, maxStallTime, s.replaced+1) {
		return false
	}
	ctx, cancel := t.whileHeld(ctx)
	defer cancel()
	if s.unanswered = errors.Is(t.l.p.Temporal.Ask(ctx, t.l.name, runID, owner), remote.ErrUnanswered); s.unanswered {
		s.replaced++
	}
	return s.unanswered
}

// ring wakes a dispatcher that may be parked although the inbox has no mark for it, so that no other process rings: a
// routing that was taken for dead can remove the mark after another one has parked. A doorbell does not disturb a
// dispatcher that is routing.
func (t *term) ring(ctx context.Context) {
	t.l.log.WarnContext(ctx, "Dispatcher makes no progress although work is due; ringing")
	if err := t.l.p.Temporal.Ring(ctx, t.l.name); err != nil {
		t.l.log.WarnContext(ctx, "Doorbell could not be rung; trying again later", "error", err)
	}
}
