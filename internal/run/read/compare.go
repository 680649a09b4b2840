package read

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// compareTimeout bounds the time that a read spends on the comparison.
const compareTimeout = 250 * time.Millisecond

// compare checks with Temporal whether a row is behind, unless it was written a moment ago or this process is about to
// write it. If it is behind, compare sets r.Behind and requests a repair. A failure is only logged: the row is the best
// available answer.
func (s *Reader) compare(ctx context.Context, r *run.Run) {
	now := s.opts.Now()
	switch {
	case r.Status.Terminal(), r.Trigger == run.TriggerImport, r.QueuedReason == run.QueuedEngine,
		r.QueuedReason == run.QueuedAdmission, r.Behind != nil:
		return
	case run.Recent(now, r.StatusAt, run.QuietAfter), run.Recent(now, r.WrittenAt, run.QuietAfter),
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
	if reason := run.BehindBecause(*r, x, now); reason != "" {
		r.Behind = &run.Behind{Since: now, Reason: reason}
		s.repairs.Request(ctx, run.RepairRequest{RunID: r.ID, Reason: reason, Behind: true})
	}
}
