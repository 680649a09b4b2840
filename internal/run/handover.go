package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// handOver starts the run in Temporal. It returns an error when the run was rejected permanently and its row removed; a
// disclosed row stays, and shows the outcome.
func (s *Service) handOver(ctx context.Context, r Run) error {
	startCtx, cancel := context.WithTimeout(ctx, s.opts.StartTimeout)
	defer cancel()
	executionID, refusal := s.startExecution(startCtx, r)
	// Temporal's answer is written also when the server stops; each call to the store has its own deadline.
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
	entry := audit.NewEntry(ctx, s.opts.Now(), audit.RunStartRefused, r.Project, r.ID, validText(refusal))
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

// HandedOver records that Temporal has the run.
func (s *Service) HandedOver(ctx context.Context, r Run, executionID string) {
	if err := s.store.MarkHandedOver(ctx, r.ID, executionID, s.opts.Now()); err != nil {
		// Temporal has the run; its records update the row.
		logger.FromContext(ctx).WarnContext(ctx, "Run started, but its row could not be updated", "run_id", r.ID, "error", err)
	}
}

// NotStarted fails a run that was not started although a caller has received it as queued. A refusal that may be
// transient leaves it `queued: starting`, and it is started again.
func (s *Service) NotStarted(ctx context.Context, r Run, refusal error) {
	log := logger.FromContext(ctx)
	log.WarnContext(ctx, "Run was not started", "run_id", r.ID, "error", s.loggable(ctx, r.ID, refusal))
	if Transient(refusal) {
		return
	}
	now, reason := s.opts.Now(), validText(refusal)
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

// loggable returns the text of an error that may quote values of a run, with marks in place of the sensitive ones.
// Where the run cannot be read, it returns only the reason.
func (s *Service) loggable(ctx context.Context, runID string, err error) string {
	text := validText(err)
	if s.opts.Redact == nil {
		return text
	}
	shown, failed := s.opts.Redact(ctx, runID, text)
	if failed == nil {
		return shown
	}
	if f, ok := errors.AsType[*apperror.Error](err); ok {
		return f.Reason
	}
	return redact.Mark
}

// Transient reports whether a refusal may be transient.
func Transient(refusal error) bool {
	f, ok := apperror.From(refusal)
	return ok && (f.Class == apperror.Unavailable || f.Class == apperror.Exhausted)
}
