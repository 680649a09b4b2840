package start

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Refusal is what the error of a start in Temporal says about the run.
type Refusal int

// The refusals.
const (
	// RefusedUnknown: Temporal may have the run, or the reason is none of those below. The run stays `queued: starting`,
	// and the reconciler starts it again.
	RefusedUnknown Refusal = iota
	// RefusedForNow: Temporal is unavailable or over its limits, and would refuse other runs as well.
	RefusedForNow
	// RefusedForGood: this run can never be started.
	RefusedForGood
)

// Classify returns the refusal of an error of [Service.StartAccepted].
func Classify(err error) Refusal {
	f, ok := apperror.From(err)
	if !ok || errors.Is(err, run.ErrUnknownOutcome) {
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

// StartAccepted starts a stored run in Temporal, within the configured timeout, and records in its row that Temporal
// has it. A run that is started several times is started once. [Classify] says what an error means.
func (s *Service) StartAccepted(ctx context.Context, r run.Run) error {
	executionID, err := s.startWithin(ctx, r)
	if err != nil {
		return err
	}
	s.markHandedOver(ctx, r.ID, executionID, s.opts.Now())
	return nil
}

// startWithin is startExecution within the configured timeout.
func (s *Service) startWithin(ctx context.Context, r run.Run) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.StartTimeout)
	defer cancel()
	return s.startExecution(ctx, r)
}

// markHandedOver writes that Temporal has a run, also when the server stops; each call to the store has its own
// deadline.
func (s *Service) markHandedOver(ctx context.Context, id, executionID string, at time.Time) {
	ctx = context.WithoutCancel(ctx)
	if err := s.store.MarkHandedOver(ctx, id, executionID, at); err != nil {
		// Temporal has the run; its records update the row.
		logger.FromContext(ctx).WarnContext(ctx, "Run started, but its row could not be updated", "run_id", id, "error", err)
	}
	s.changes.Notify(id)
}

// handedOver is the outcome of a new run's start: the run as Temporal has accepted it, or an error if nothing was
// started and the row of the run removed.
type handedOver struct {
	run run.Run
	err error
}

// handOver starts a new run in Temporal, and sends the outcome as soon as it is known. It calls answered once
// Temporal's answer is known. A disclosed row of a run that was not started stays, and shows the outcome.
func (s *Service) handOver(ctx context.Context, r run.Run, answered func(), outcome chan<- handedOver) {
	var updated <-chan struct{}
	if s.opts.Executes != nil {
		var stop func()
		updated, stop = s.opts.Projected.Subscribe(r.ID)
		defer stop()
	}
	executionID, refusal := s.startWithin(ctx, r)
	if refusal != nil {
		if err := s.notHandedOver(ctx, r, refusal); err != nil {
			outcome <- handedOver{err: err}
			return
		}
		outcome <- handedOver{run: s.reread(ctx, r)}
		return
	}
	at := s.opts.Now()
	s.opts.Metrics.Count(ctx, r.Project, string(run.Queued))
	s.opts.Metrics.Started(ctx, at.Sub(r.CreatedAt))
	accepted := r
	accepted.QueuedReason, accepted.StatusAt, accepted.ExecutionID = run.QueuedWorker, at, executionID
	if s.opts.Executes == nil || !s.opts.Executes(r.ID, executionID) {
		s.markHandedOver(ctx, r.ID, executionID, at)
		outcome <- handedOver{run: s.reread(ctx, accepted)}
		return
	}
	// The first workflow task is executed here: its update writes the row.
	s.unconfirmed.Store(r.ID, executionID)
	defer s.unconfirmed.Delete(r.ID)
	answered()
	outcome <- handedOver{run: accepted}
	select {
	case <-updated:
		return
	case <-time.After(s.opts.FirstUpdateWithin):
	case <-s.handOvers.Closing():
	}
	s.markHandedOver(ctx, r.ID, executionID, at)
}

// reread returns the run as its row shows it, or as given if it cannot be read here.
func (s *Service) reread(ctx context.Context, r run.Run) run.Run {
	if now, err := s.store.GetRun(ctx, r.Project, r.ID); err == nil {
		return now
	}
	return r
}

// Confirmed returns a run as it is after Temporal's acceptance was written, if this process knows of it and has not
// written it yet. Any other run is returned as it was given.
func (s *Service) Confirmed(ctx context.Context, r run.Run) (run.Run, error) {
	executionID, ok := s.unconfirmed.Load(r.ID)
	if !ok || r.QueuedReason != run.QueuedStarting {
		return r, nil
	}
	s.markHandedOver(ctx, r.ID, executionID.(string), s.opts.Now()) //nolint:forcetypeassert // the map has no other values
	return s.store.GetRun(ctx, r.Project, r.ID)
}

// notHandedOver processes the refusal of a new run's start, and returns the error for the caller: nil where the run
// stays.
func (s *Service) notHandedOver(ctx context.Context, r run.Run, refusal error) error {
	ctx = context.WithoutCancel(ctx)
	defer s.changes.Notify(r.ID)
	if errors.Is(refusal, run.ErrUnknownOutcome) { // after every other error nothing was started
		s.opts.Metrics.Count(ctx, r.Project, string(run.Queued))
		logger.FromContext(ctx).WarnContext(ctx, "Outcome of a run's start is not known", "run_id", r.ID,
			"error", s.loggable(ctx, r.ID, refusal))
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
	s.opts.Metrics.Count(ctx, r.Project, string(run.Queued))
	s.NotStarted(ctx, r, refusal)
	return nil
}

// NotStarted fails a run that was not started although a caller has received it as queued. A refusal that is not for
// good leaves it `queued: starting`, and it is started again.
func (s *Service) NotStarted(ctx context.Context, r run.Run, refusal error) {
	log := logger.FromContext(ctx)
	log.WarnContext(ctx, "Run was not started", "run_id", r.ID, "error", s.loggable(ctx, r.ID, refusal))
	if Classify(refusal) != RefusedForGood {
		return
	}
	now, runError := s.opts.Now(), NotStartedError(refusal)
	r, err := s.store.GetRun(ctx, r.Project, r.ID)
	finished := false
	if err == nil && r.QueuedReason == run.QueuedStarting && r.Position == 0 {
		finished, err = s.store.FinishMissing(ctx, r.ID, run.Failed, runError, now,
			audit.NewEntry(ctx, now, audit.RunStartRefused, r.Project, r.ID, runError.Detail))
	}
	if err != nil {
		log.WarnContext(ctx, "Run that was not started could not be ended yet", "run_id", r.ID, "error", err)
	}
	if finished {
		s.opts.Metrics.Count(ctx, r.Project, string(run.Failed))
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

// NotStartedError is the error of a run whose start was refused for good.
func NotStartedError(refusal error) *run.Error {
	return &run.Error{
		Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Not started", Detail: validText(refusal), Instance: "/",
	}
}
