package run

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
)

// compareTimeout bounds the time that a read spends on the comparison.
const compareTimeout = 250 * time.Millisecond

// compare checks with Temporal whether a row is behind, unless it was written a moment ago or this process is about to
// write it. If it is behind, compare sets r.Behind and requests a repair. A failure is only logged: the row is the best
// available answer.
func (s *Service) compare(ctx context.Context, r *Run) {
	now := s.opts.Now()
	switch {
	case r.Status.Terminal(), r.Trigger == TriggerImport, r.QueuedReason == QueuedEngine,
		r.QueuedReason == QueuedAdmission, r.Behind != nil:
		return
	case Recent(now, r.StatusAt, QuietAfter), Recent(now, r.WrittenAt, QuietAfter),
		s.opts.Holds != nil && s.opts.Holds(r.ID):
		return
	case !s.compared.Begin(r.ID, now):
		return
	}
	asking, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()
	x, err := s.engine.Inspect(asking, *r)
	s.compared.End(now, asking.Err() != nil && ctx.Err() == nil)
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
		logger.FromContext(ctx).WarnContext(ctx, "Repair of a run could not be requested", "run_id", request.RunID,
			"error", err)
		return
	}
	if s.opts.Requested != nil {
		s.opts.Requested()
	}
}
