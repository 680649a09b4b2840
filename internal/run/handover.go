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

// Refusal is what the error of a start in Temporal says about the run.
type Refusal int

// The refusals.
const (
	// RefusedUnknown: Temporal may have the run, or the reason is none of those below. The run stays `queued: starting`, and the
	// reconciler starts it again.
	RefusedUnknown Refusal = iota
	// RefusedForNow: Temporal is unavailable or over its limits, and would refuse other runs as well.
	RefusedForNow
	// RefusedForGood: this run can never be started.
	RefusedForGood
)

// Classify returns the refusal of an error of [Service.StartAccepted].
func Classify(err error) Refusal {
	f, ok := apperror.From(err)
	if !ok || errors.Is(err, ErrUnknownOutcome) {
		return RefusedUnknown
	}
	switch f.Class { //nolint:exhaustive // the others do not say whether the next attempt would fail
	case apperror.Unavailable, apperror.Exhausted:
		return RefusedForNow
	case apperror.Refused, apperror.Invalid:
		return RefusedForGood
	default:
		return RefusedUnknown
	}
}

// StartAccepted starts a stored run in Temporal, within the configured timeout, and records in its row that Temporal has it. A run that is
// started several times is started once. [Classify] says what an error means.
func (s *Service) StartAccepted(ctx context.Context, r Run) error {
	startCtx, cancel := context.WithTimeout(ctx, s.opts.StartTimeout)
	defer cancel()
	executionID, err := s.startExecution(startCtx, r)
	if err != nil {
		return err
	}
	// Temporal's answer is written also when the server stops; each call to the store has its own deadline.
	ctx = context.WithoutCancel(ctx)
	if err := s.store.MarkHandedOver(ctx, r.ID, executionID, s.opts.Now()); err != nil {
		// Temporal has the run; its records update the row.
		logger.FromContext(ctx).WarnContext(ctx, "Run started, but its row could not be updated", "run_id", r.ID, "error", err)
	}
	s.changes.Notify(r.ID)
	return nil
}

// handOver starts a new run in Temporal. It returns an error when nothing was started and the row of the run removed; a disclosed row
// stays, and shows the outcome.
func (s *Service) handOver(ctx context.Context, r Run) error {
	refusal := s.StartAccepted(ctx, r)
	ctx = context.WithoutCancel(ctx)
	if refusal == nil {
		s.opts.Metrics.Count(ctx, r.Project, string(Queued))
		s.opts.Metrics.Started(ctx, r.Project, s.opts.Now().Sub(r.CreatedAt))
		return nil
	}
	defer s.changes.Notify(r.ID)
	if errors.Is(refusal, ErrUnknownOutcome) { // after every other error nothing was started
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

// NotStarted fails a run that was not started although a caller has received it as queued. A refusal that is not for good
// leaves it `queued: starting`, and it is started again.
func (s *Service) NotStarted(ctx context.Context, r Run, refusal error) {
	log := logger.FromContext(ctx)
	log.WarnContext(ctx, "Run was not started", "run_id", r.ID, "error", s.loggable(ctx, r.ID, refusal))
	if Classify(refusal) != RefusedForGood {
		return
	}
	now, problem := s.opts.Now(), NotStartedProblem(refusal)
	r, err := s.store.GetRun(ctx, r.Project, r.ID)
	finished := false
	if err == nil && r.QueuedReason == QueuedStarting && r.Position == 0 {
		finished, err = s.store.FinishMissing(ctx, r.ID, Failed, problem, now,
			audit.NewEntry(ctx, now, audit.RunStartRefused, r.Project, r.ID, problem.Detail))
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

// NotStartedProblem is the error of a run whose start was refused for good.
func NotStartedProblem(refusal error) *Problem {
	return &Problem{Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Not started", Detail: validText(refusal), Instance: "/"}
}
