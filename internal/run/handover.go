package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// handOver gives the run to Temporal. It returns an error when the run was refused for good and its row taken away; a row
// of which somebody was told stays, and tells what became of it.
func (s *Service) handOver(ctx context.Context, r Run) error {
	startCtx, cancel := context.WithTimeout(ctx, s.opts.StartTimeout)
	defer cancel()
	executionID, refusal := s.startExecution(startCtx, r)
	// What Temporal has answered is written also when the server stops; each call to the store has its own deadline.
	ctx = context.WithoutCancel(ctx)
	defer s.changes.Notify(r.ID)
	if refusal == nil {
		s.HandedOver(ctx, r, executionID)
		s.opts.Metrics.Count(ctx, r.Project, string(Queued))
		s.opts.Metrics.Started(ctx, r.Project, s.opts.Now().Sub(r.CreatedAt))
		return nil
	}
	if errors.Is(refusal, ErrUnknownOutcome) {
		s.opts.Metrics.Count(ctx, r.Project, string(Queued))
		logger.FromContext(ctx).WarnContext(ctx, "Outcome of a run's start is not known", "run_id", r.ID, "error", s.loggable(ctx, r.ID, refusal))
		return nil
	}
	entry := audit.NewEntry(ctx, s.opts.Now(), audit.RunStartRefused, r.Project, r.ID, readable(refusal))
	removed, err := s.store.RemoveUnstarted(ctx, r.ID, entry)
	if err != nil {
		return errors.Join(refusal, fmt.Errorf("removing the row of run %s, which was not started: %w", r.ID, err))
	}
	if removed {
		return refusal
	}
	s.opts.Metrics.Count(ctx, r.Project, string(Queued))
	s.NotStarted(ctx, r, refusal)
	return nil
}

// HandedOver notes that Temporal has the run.
func (s *Service) HandedOver(ctx context.Context, r Run, executionID string) {
	if err := s.store.MarkHandedOver(ctx, r.ID, executionID, s.opts.Now()); err != nil {
		// The run is Temporal's now; its own records will move the row on.
		logger.FromContext(ctx).WarnContext(ctx, "Run started, but its row could not be updated", "run_id", r.ID, "error", err)
	}
}

// NotStarted ends a run visibly that was not started after somebody was told that it is queued. A refusal that may pass
// leaves it `queued: starting`, from where it is started again.
func (s *Service) NotStarted(ctx context.Context, r Run, refusal error) {
	log := logger.FromContext(ctx)
	log.WarnContext(ctx, "Run was not started", "run_id", r.ID, "error", s.loggable(ctx, r.ID, refusal))
	if Passing(refusal) {
		return
	}
	now, reason := s.opts.Now(), readable(refusal)
	r, err := s.store.GetRun(ctx, r.Project, r.ID)
	finished := false
	if err == nil && r.QueuedReason == QueuedStarting && r.Position == 0 {
		problem := &Problem{Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Not started", Detail: reason, Instance: "/"}
		finished, err = s.store.FinishMissing(ctx, r.ID, Failed, problem, now,
			audit.NewEntry(ctx, now, audit.RunStartRefused, r.Project, r.ID, reason))
	}
	if err != nil {
		log.WarnContext(ctx, "Run that was not started could not be ended yet", "run_id", r.ID, "error", err)
	}
	if finished {
		s.opts.Metrics.Count(ctx, r.Project, string(Failed))
	}
}

// loggable returns the text of an error that may quote values of a run, with marks in place of those that are sensitive. Where the run
// cannot be read, it returns the reason alone.
func (s *Service) loggable(ctx context.Context, runID string, err error) string {
	text := readable(err)
	if s.opts.Redact == nil {
		return text
	}
	shown, failed := s.opts.Redact(ctx, runID, text)
	if failed == nil {
		return shown
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f.Reason
	}
	return redact.Mark
}

// Passing tells a refusal that may be over in a while from one for good.
func Passing(refusal error) bool {
	f, ok := fault.From(refusal)
	return ok && (f.Class == fault.Unavailable || f.Class == fault.Exhausted)
}
