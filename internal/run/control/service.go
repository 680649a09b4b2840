package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/start"
)

// maxReason is the length of the longest reason, in bytes: the limit of Temporal.
const maxReason = 1000

// Service starts and controls runs.
type Service struct {
	*start.Service

	store   run.Store
	engine  run.Engine
	changes *pubsub.Notifier
	repairs run.RepairRequests
	opts    Options

	clusters ClusterReader
}

// Originals returns unredacted inputs of runs.
type Originals interface {
	// Input returns the input as it was given; the row's may have marks in place of sensitive values.
	Input(ctx context.Context, r run.Run) (json.RawMessage, error)
}

// Options configure the service.
type Options struct {
	// MaxInputBytes and StartTimeout are those of [start.Options].
	MaxInputBytes int
	StartTimeout  time.Duration
	// Originals are the inputs for replays; nil where rows contain them.
	Originals Originals
	// Requested is that of [run.RepairRequests].
	Requested func()
	// Changed receives changes of status that were written without the projection; may be nil.
	Changed func(ctx context.Context, transitions []run.Transition)
	// Now is the clock.
	Now func() time.Time
	// Metrics counts the runs that the service ends.
	Metrics start.Metrics
}

// New returns the service; it extends starts and uses the same dependencies.
func New(starts *start.Service, store run.Store, engine run.Engine, changes *pubsub.Notifier, opts Options) *Service {
	if opts.Originals == nil {
		opts.Originals = rows{}
	}
	return &Service{Service: starts, store: store, engine: engine, changes: changes, opts: opts,
		repairs: run.RepairRequests{Rows: store, Requested: opts.Requested}}
}

// ending describes how a control ends a run.
type ending struct {
	control Control
	status  run.Status
	action  string
	reason  string
}

// Cancel requests the cancellation of a run from Temporal. It refuses a run that has ended, which stays unchanged. A
// run that was handed over and that Temporal does not have is finalised, unless it may be in another Temporal: then it
// is refused with [apperror.RunElsewhere].
func (s *Service) Cancel(ctx context.Context, project, id, reason string) (run.Run, error) {
	e := ending{Cancel, run.Canceled, audit.RunCancel, reason}
	r, over, err := s.end(ctx, project, id, e, s.engine.Cancel)
	if err != nil || over {
		return r, err
	}
	r, err = s.store.MarkCancelRequested(ctx, project, id, reason, s.entry(ctx, r, e))
	s.changes.Notify(id)
	return r, err
}

// Terminate ends a run at once, without a worker, for a required reason. Apart from that it behaves as Cancel, except
// that it also ends a run that may be in another Temporal, in the database alone, and records so.
func (s *Service) Terminate(ctx context.Context, project, id, reason string) (run.Run, error) {
	if err := needReason(reason); err != nil {
		return run.Run{}, err
	}
	e := ending{Terminate, run.Terminated, audit.RunTerminate, reason}
	r, over, err := s.end(ctx, project, id, e, s.engine.Terminate)
	if err != nil || over {
		return r, err
	}
	if err := s.store.WriteAudit(ctx, s.entry(ctx, r, e)); err != nil {
		return run.Run{}, err
	}
	if r, err = s.writeTerminated(ctx, r, reason); err != nil {
		// The reconciler writes the row's end; the run has ended in any case.
		logger.FromContext(ctx).WarnContext(ctx, "Run terminated, but its row could not be updated", "run_id", id,
			"error", err)
	}
	// Updates accepted before the end may be on their way to the row; if they are lost, a worker repairs the row.
	s.repairs.Request(ctx, run.RepairRequest{RunID: id, Reason: "the run was terminated", After: run.WriteLag})
	s.changes.Notify(id)
	return r, nil
}

// writeTerminated writes the end of a run that Temporal has terminated, without reading its history. The row may change
// until its end is written, as earlier accepted updates arrive.
func (s *Service) writeTerminated(ctx context.Context, r run.Run, reason string) (run.Run, error) {
	const tries = 10 // a write of the projection invalidates each try, and only a few such writes remain
	for range tries {
		now := s.opts.Now()
		transitions, err := s.store.ApplyUpdates(ctx, []run.Update{{RunID: r.ID, Position: r.Position + 1, State: &run.State{
			Status: run.Terminated, Since: now, StartedAt: cmp.Or(r.StartedAt, now), EndedAt: now,
			Error:      terminated(ctx, reason),
			StepsTotal: r.StepsTotal, StepsDone: r.StepsTotal, EndsSteps: true,
		}}})
		if err != nil {
			return r, err
		}
		if s.opts.Changed != nil {
			s.opts.Changed(ctx, transitions)
		}
		read, err := s.store.GetRun(ctx, r.Project, r.ID)
		if err != nil {
			return r, err
		}
		if r = read; r.Status.Terminal() {
			break
		}
	}
	return r, nil
}

// end ends a run that Temporal does not have in the database, and requests the end of any other run from Temporal. It
// returns true when the run has ended with that.
//
// A row that has changed since it was read is read again: a run that was just taken from a queue, or that Temporal did
// not have, may have arrived there meanwhile, and would continue although its row has ended.
func (s *Service) end(
	ctx context.Context, project, id string, e ending, request func(context.Context, run.Run, string) error,
) (run.Run, bool, error) {
	var unknown int64 // the row's sequence when Temporal did not have the run
	for {
		r, err := s.admit(ctx, project, id, e.control, e.reason)
		if err != nil {
			return run.Run{}, false, err
		}
		if StateOf(r).neverHandedOver() {
			if r, ended, err := s.endQueued(ctx, r, e); err != nil || ended {
				return r, ended, err
			}
			continue
		}
		if r.Sequence == unknown {
			r, err := s.endMissing(ctx, r, e)
			return r, true, err
		}
		switch err := request(ctx, r, e.reason); {
		case errors.Is(err, run.ErrClosed):
			return run.Run{}, false, s.closed(ctx, r, e.control)
		case errors.Is(err, run.ErrNotKnown):
			unknown = r.Sequence
		default:
			return r, false, err
		}
	}
}

// admit returns the run, unless the table refuses the control or the reason is invalid.
func (s *Service) admit(ctx context.Context, project, id string, c Control, reason string) (run.Run, error) {
	if err := checkReason(reason); err != nil {
		return run.Run{}, err
	}
	r, err := s.store.GetRun(ctx, project, id)
	if err == nil {
		r, err = s.Confirmed(ctx, r)
	}
	if err != nil {
		return run.Run{}, err
	}
	return r, check(c, r)
}

// closed returns the error for a run that has already ended in Temporal, and requests a repair of its row.
func (s *Service) closed(ctx context.Context, r run.Run, c Control) error {
	r, err := s.store.GetRun(ctx, r.Project, r.ID)
	if err != nil {
		return err
	}
	if !r.Status.Terminal() {
		const reason = "the run has ended in Temporal, and its end is not written"
		s.repairs.Request(ctx, run.RepairRequest{RunID: r.ID, Reason: reason, Behind: true})
	}
	return refusal(c, r, apperror.RunEnded)
}

// endQueued ends a run that was never handed over to Temporal. It returns false when the run has just been taken from
// the queue.
func (s *Service) endQueued(ctx context.Context, r run.Run, e ending) (run.Run, bool, error) {
	end := run.Run{ID: r.ID, Status: e.status, EndedAt: s.opts.Now()}
	if e.control == Cancel {
		end.CancelRequested, end.CancelReason = true, e.reason
	} else {
		end.Error = terminated(ctx, e.reason)
	}
	ended, err := s.store.FinishQueued(ctx, end, s.entry(ctx, r, e))
	if err != nil || !ended {
		return r, false, err
	}
	return s.over(ctx, r, e.status)
}

// endMissing ends a run that Temporal does not have. A run that is still being handed over may yet arrive there, and
// one that is in another Temporal continues.
func (s *Service) endMissing(ctx context.Context, r run.Run, e ending) (run.Run, error) {
	now := s.opts.Now()
	if r.Status == run.Queued && r.QueuedReason == run.QueuedStarting && now.Sub(r.StatusAt) < s.opts.StartTimeout {
		return run.Run{}, refusal(e.control, r, apperror.RunStarting).WithRetry(s.opts.StartTimeout)
	}
	view, err := s.view(ctx, r.ID)
	if err != nil {
		return run.Run{}, err
	}
	if err := checkMissing(e.control, r, view); err != nil {
		return run.Run{}, err
	}
	entry := s.entry(ctx, r, e)
	runError := terminated(ctx, e.reason)
	switch {
	case e.control == Terminate && view.Placement() != run.PlacementHere:
		runError, entry.Detail = withUnreached(runError, view), unreachedDetail(view)
	case e.control == Cancel:
		runError = &run.Error{
			Type: dsl.ErrorTypeRuntime, Status: 404, Title: "Execution missing", //nolint:mnd // "not found", as in HTTP
			Detail: "Temporal does not have this run; it was ended when its cancellation was requested", Instance: "",
		}
	}
	ended, err := s.store.FinishMissing(ctx, r.ID, e.status, runError, now, entry)
	if err != nil {
		return run.Run{}, err
	}
	if !ended { // another caller ended it meanwhile
		if r, err = s.store.GetRun(ctx, r.Project, r.ID); err != nil {
			return run.Run{}, err
		}
		return run.Run{}, refusal(e.control, r, apperror.RunEnded)
	}
	r, _, err = s.over(ctx, r, e.status)
	return r, err
}

// over counts an end that was written in the database alone, and notifies its watches.
func (s *Service) over(ctx context.Context, r run.Run, status run.Status) (run.Run, bool, error) {
	s.opts.Metrics.Count(ctx, r.Project, string(status))
	s.changes.Notify(r.ID)
	r, err := s.store.GetRun(ctx, r.Project, r.ID)
	return r, true, err
}

func (s *Service) entry(ctx context.Context, r run.Run, e ending) audit.Entry {
	return audit.NewEntry(ctx, s.opts.Now(), e.action, r.Project, r.ID, e.reason)
}

// terminated returns the error of a run that was terminated in the database alone, with the same text as for one in
// Temporal.
func terminated(ctx context.Context, reason string) *run.Error {
	actor, ok := auth.ActorFrom(ctx)
	if !ok {
		actor = auth.System()
	}
	return TerminatedBy(actor.Name, reason)
}

func needReason(reason string) error {
	if strings.TrimSpace(reason) != "" {
		return nil
	}
	return apperror.New(apperror.Invalid, apperror.InvalidArgument,
		"no reason given: it is recorded in the audit log and the run's history").
		WithField("reason", "is required")
}

// checkReason refuses reasons that Temporal or a database rejects, before anything is done.
func checkReason(reason string) error {
	switch {
	case len(reason) > maxReason:
		return apperror.New(apperror.Invalid, apperror.InvalidArgument, "the reason has %d bytes, more than %d", len(reason),
			maxReason).
			WithField("reason", "is too long")
	case !utf8.ValidString(reason) || strings.ContainsRune(reason, 0):
		return apperror.New(apperror.Invalid, apperror.InvalidArgument, "the reason is not plain text").
			WithField("reason", "contains bytes that are not text")
	default:
		return nil
	}
}

// effectTimeout is how long a control accepted by Temporal waits until the row shows its effect.
const effectTimeout = time.Second

// Pause keeps a run from entering further tasks; tasks in progress end.
func (s *Service) Pause(ctx context.Context, project, id, reason string) (run.Run, error) {
	return s.signal(ctx, project, id, Pause, audit.RunPause, reason)
}

// Unpause lets a paused run continue.
func (s *Service) Unpause(ctx context.Context, project, id, reason string) (run.Run, error) {
	return s.signal(ctx, project, id, Unpause, audit.RunUnpause, reason)
}

// ResumeQuota lets a run continue that waits for its project's steps; it gets one more grant of steps.
func (s *Service) ResumeQuota(ctx context.Context, project, id, reason string) (run.Run, error) {
	return s.signal(ctx, project, id, ResumeQuota, audit.RunResumeQuota, reason)
}

// signal sends a control to the run itself. It is sent also when the row indicates no effect: the row may be behind,
// and the run ignores repeated controls.
func (s *Service) signal(ctx context.Context, project, id string, c Control, action, reason string) (run.Run, error) {
	r, err := s.admit(ctx, project, id, c, reason)
	if err != nil {
		return run.Run{}, err
	}
	switch err := s.engine.Control(ctx, r, string(c), reason); {
	case errors.Is(err, run.ErrClosed):
		return run.Run{}, s.closed(ctx, r, c)
	case errors.Is(err, run.ErrNotKnown):
		view, err := s.view(ctx, r.ID)
		if err != nil {
			return run.Run{}, err
		}
		return run.Run{}, checkMissing(c, r, view)
	case err != nil:
		return run.Run{}, err
	}
	if err := s.store.WriteAudit(ctx, audit.NewEntry(ctx, s.opts.Now(), action, project, id, reason)); err != nil {
		return run.Run{}, err
	}
	if c == ResumeQuota {
		return r, nil // callers resume many runs at a time
	}
	return s.awaitEffect(ctx, r, c)
}

// awaitEffect returns the run as soon as its row shows the effect of the control, or after a timeout as it is: without
// a worker there is no effect until one starts.
func (s *Service) awaitEffect(ctx context.Context, r run.Run, c Control) (run.Run, error) {
	const interval = 50 * time.Millisecond // other processes send no notification of their changes
	changed, stop := s.changes.Subscribe(r.ID)
	defer stop()
	timeout := time.NewTimer(effectTimeout)
	defer timeout.Stop()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		now, err := s.store.GetRun(ctx, r.Project, r.ID)
		if err != nil || Decide(c, StateOf(now)).Effect != Done {
			return now, err
		}
		select {
		case <-changed:
		case <-ticker.C:
		case <-timeout.C:
			return now, nil
		case <-ctx.Done():
			return now, nil
		}
	}
}
