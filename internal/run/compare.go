package run

import (
	"context"
	"sync"
	"time"

	"github.com/jellydator/ttlcache/v3"

	"github.com/signalbox-dev/signalbox/internal/logger"
)

const (
	// compareEvery is the minimum interval between two comparisons of a run with Temporal in one process.
	compareEvery = 5 * time.Second
	// compareTimeout bounds the time that a read spends on the comparison. After Temporal was slower, no read compares for
	// compareRest.
	compareTimeout = 250 * time.Millisecond
	compareRest    = 2 * time.Second
	// comparesAtOnce limits concurrent comparisons in one process. A read that gets no slot returns the row uncompared.
	comparesAtOnce = 8
	// maxCompared is how many runs are remembered as compared.
	maxCompared = 10_000
)

// compared remembers when runs were last compared with Temporal.
type compared struct {
	slots chan struct{}
	at    *ttlcache.Cache[string, time.Time]

	mu   sync.Mutex
	slow time.Time
}

func newCompared() *compared {
	return &compared{slots: make(chan struct{}, comparesAtOnce), at: ttlcache.New(ttlcache.WithCapacity[string, time.Time](maxCompared))}
}

// begin reports whether a run is to be compared now; then end must be called.
func (c *compared) begin(id string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.at.Get(id); last != nil && now.Sub(last.Value()) < compareEvery || now.Sub(c.slow) < compareRest {
		return false
	}
	select {
	case c.slots <- struct{}{}:
	default:
		return false
	}
	c.at.Set(id, now, ttlcache.NoTTL)
	return true
}

func (c *compared) end(now time.Time, slow bool) {
	<-c.slots
	if slow {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.slow = now
	}
}

// compare checks with Temporal whether a row is behind, unless it was written a moment ago or this process is about to
// write it. If it is behind, compare sets r.Behind and requests a repair. A failure is only logged: the row is the best
// available answer.
func (s *Service) compare(ctx context.Context, r *Run) {
	now := s.opts.Now()
	switch {
	case r.Status.Terminal(), r.Trigger == TriggerImport, r.QueuedReason == QueuedEngine, r.QueuedReason == QueuedAdmission, r.Behind != nil:
		return
	case Recent(now, r.StatusAt, QuietAfter), Recent(now, r.WrittenAt, QuietAfter), s.opts.Holds != nil && s.opts.Holds(r.ID):
		return
	case !s.compared.begin(r.ID, now):
		return
	}
	asking, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()
	x, err := s.engine.Inspect(asking, *r)
	s.compared.end(now, asking.Err() != nil && ctx.Err() == nil)
	if err != nil {
		logger.FromContext(ctx).DebugContext(ctx, "Run could not be compared with Temporal", "run_id", r.ID, "error", err)
		return
	}
	if reason := BehindBecause(*r, x, now); reason != "" {
		r.Behind = &Behind{Since: now, Reason: reason}
		s.RequestRepair(ctx, RepairRequest{RunID: r.ID, Reason: reason, Behind: true})
	}
}

// RequestRepair requests that a worker updates the rows of a run from Temporal. A failure is logged: the reconciler
// finds the run as well.
func (s *Service) RequestRepair(ctx context.Context, request RepairRequest) {
	// A caller that disconnects may be the only one to have noticed it.
	ctx = context.WithoutCancel(ctx)
	if err := s.store.RequestRepairs(ctx, []RepairRequest{request}); err != nil {
		logger.FromContext(ctx).WarnContext(ctx, "Repair of a run could not be requested", "run_id", request.RunID, "error", err)
		return
	}
	if s.opts.Requested != nil {
		s.opts.Requested()
	}
}
