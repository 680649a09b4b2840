package control

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/notice"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/home"
)

// maxReason is the longest reason, in bytes: Temporal takes no more.
const maxReason = 1000

// Service is the service of runs with the controls.
type Service struct {
	*run.Service

	store     run.Store
	engine    run.Engine
	changes   *notice.Board
	originals run.Originals
	opts      run.Options

	whereabouts Whereabouts
}

// New wires the service over the one that starts and finds runs, with what that one has.
func New(runs *run.Service, store run.Store, engine run.Engine, changes *notice.Board, opts run.Options) *Service {
	s := &Service{Service: runs, store: store, engine: engine, changes: changes, originals: opts.Originals, opts: opts}
	if s.originals == nil {
		s.originals = rows{}
	}
	return s
}

// ending is how a run is ended by a control.
type ending struct {
	control Control
	status  run.Status
	action  string
	reason  string
}

// Cancel asks Temporal to cancel a run. A run that has ended is refused and stays as it is; one that Temporal does not
// know, although it was handed over, is finalised, unless it may be in another one: then it is refused with [fault.RunElsewhere].
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

// Terminate ends a run at once, without a worker, for a reason that must be given. Otherwise it is as Cancel is, but that it ends a
// run that may be in another Temporal, too, in the table alone, and says so.
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
		// The reconciler writes the row's end; that the run has ended is certain.
		logger.FromContext(ctx).WarnContext(ctx, "Run terminated, but its row could not be updated", "run_id", id, "error", err)
	}
	// What was accepted before the end may be on its way to the row; should it be lost, a worker makes up for it.
	s.RequestRepair(ctx, run.RepairRequest{RunID: id, Reason: "the run was terminated", After: run.WriteLag})
	s.changes.Notify(id)
	return r, nil
}

// writeTerminated writes the end of a run that Temporal has terminated, which takes no look at its history. The row may move until
// its end is written, as what Temporal accepted before that arrives.
func (s *Service) writeTerminated(ctx context.Context, r run.Run, reason string) (run.Run, error) {
	const tries = 10 // each is lost to a write of the projection, which has no more than a few left
	for range tries {
		now := s.opts.Now()
		transitions, err := s.store.ApplyUpdates(ctx, []run.Update{{RunID: r.ID, Position: r.Position + 1, State: &run.State{
			Status: run.Terminated, Since: now, StartedAt: cmp.Or(r.StartedAt, now), EndedAt: now, Error: terminated(ctx, reason),
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

// end ends what Temporal does not have, and asks it to end the rest. It returns true when the run has ended with that.
//
// A row that has moved since it was read is read again: a run that was just taken from a queue, or that Temporal did not know, may have
// arrived there meanwhile, and would go on behind a row that has ended.
func (s *Service) end(
	ctx context.Context, project, id string, e ending, ask func(context.Context, run.Run, string) error,
) (run.Run, bool, error) {
	var unknown int64 // the row's sequence when Temporal did not know the run
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
		switch err := ask(ctx, r, e.reason); {
		case errors.Is(err, run.ErrClosed):
			return run.Run{}, false, s.closed(ctx, r, e.control)
		case errors.Is(err, run.ErrNotKnown):
			unknown = r.Sequence
		default:
			return r, false, err
		}
	}
}

// admit returns the run, unless the table refuses the control or the reason is none that can be kept.
func (s *Service) admit(ctx context.Context, project, id string, c Control, reason string) (run.Run, error) {
	if err := checkReason(reason); err != nil {
		return run.Run{}, err
	}
	r, err := s.store.GetRun(ctx, project, id)
	if err != nil {
		return run.Run{}, err
	}
	return r, check(c, r)
}

// closed is the answer for a run that turned out to have ended in Temporal: a worker brings its row up to that.
func (s *Service) closed(ctx context.Context, r run.Run, c Control) error {
	r, err := s.store.GetRun(ctx, r.Project, r.ID)
	if err != nil {
		return err
	}
	if !r.Status.Terminal() {
		const reason = "the run has ended in Temporal, and its end is not written"
		s.RequestRepair(ctx, run.RepairRequest{RunID: r.ID, Reason: reason, Behind: true})
	}
	return refusal(c, r, fault.RunEnded)
}

// endQueued ends a run that Temporal was never given. It returns false when the run has just been taken from the queue.
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

// endMissing ends a run that Temporal does not know. One that is still being handed over may yet arrive there, and one that is in
// another Temporal goes on.
func (s *Service) endMissing(ctx context.Context, r run.Run, e ending) (run.Run, error) {
	now := s.opts.Now()
	if r.Status == run.Queued && r.QueuedReason == run.QueuedStarting && now.Sub(r.StatusAt) < s.opts.StartTimeout {
		return run.Run{}, refusal(e.control, r, fault.RunStarting).WithRetry(s.opts.StartTimeout)
	}
	view, err := s.view(ctx)
	if err != nil {
		return run.Run{}, err
	}
	if err := checkUnknown(e.control, r, view); err != nil {
		return run.Run{}, err
	}
	entry := s.entry(ctx, r, e)
	problem := terminated(ctx, e.reason)
	switch {
	case e.control == Terminate && view.Standing() != home.AtHome:
		problem, entry.Detail = unreached(problem, view), unreachedDetail(view)
	case e.control == Cancel:
		problem = &run.Problem{
			Type: dsl.ErrorTypeRuntime, Status: 404, Title: "Execution missing", //nolint:mnd // "not found", as in HTTP
			Detail: "Temporal does not know this run; it was ended when its cancellation was asked for", Instance: "",
		}
	}
	ended, err := s.store.FinishMissing(ctx, r.ID, e.status, problem, now, entry)
	if err != nil {
		return run.Run{}, err
	}
	if !ended { // by somebody else, in this moment
		if r, err = s.store.GetRun(ctx, r.Project, r.ID); err != nil {
			return run.Run{}, err
		}
		return run.Run{}, refusal(e.control, r, fault.RunEnded)
	}
	r, _, err = s.over(ctx, r, e.status)
	return r, err
}

// over tells those who watch of an end that was written in the table alone.
func (s *Service) over(ctx context.Context, r run.Run, status run.Status) (run.Run, bool, error) {
	s.opts.Metrics.Count(ctx, r.Project, string(status))
	s.changes.Notify(r.ID)
	r, err := s.store.GetRun(ctx, r.Project, r.ID)
	return r, true, err
}

func (s *Service) entry(ctx context.Context, r run.Run, e ending) audit.Entry {
	return audit.NewEntry(ctx, s.opts.Now(), e.action, r.Project, r.ID, e.reason)
}

// terminated is the problem of a run that was terminated in the table alone, as the engine words that of one in Temporal.
func terminated(ctx context.Context, reason string) *run.Problem {
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
	return fault.New(fault.Invalid, fault.InvalidArgument, "no reason given: say why, for the audit log and whoever looks at the run").
		WithField("reason", "is required")
}

// checkReason refuses what Temporal or a database does not take, before anything is done.
func checkReason(reason string) error {
	switch {
	case len(reason) > maxReason:
		return fault.New(fault.Invalid, fault.InvalidArgument, "the reason has %d bytes, more than %d", len(reason), maxReason).
			WithField("reason", "is too long")
	case !utf8.ValidString(reason) || strings.ContainsRune(reason, 0):
		return fault.New(fault.Invalid, fault.InvalidArgument, "the reason is no plain text").WithField("reason", "has bytes that are no text")
	default:
		return nil
	}
}

// settleWithin is how long a control that Temporal has taken waits for a worker to show it.
const settleWithin = time.Second

// Pause keeps a run from entering further tasks; what is in flight ends.
func (s *Service) Pause(ctx context.Context, project, id, reason string) (run.Run, error) {
	return s.signal(ctx, project, id, Pause, audit.RunPause, reason)
}

// Unpause lets a paused run go on.
func (s *Service) Unpause(ctx context.Context, project, id, reason string) (run.Run, error) {
	return s.signal(ctx, project, id, Unpause, audit.RunUnpause, reason)
}

// ResumeQuota lets a run go on that waits for its project's steps; it gets one more grant of them.
func (s *Service) ResumeQuota(ctx context.Context, project, id, reason string) (run.Run, error) {
	return s.signal(ctx, project, id, ResumeQuota, audit.RunResumeQuota, reason)
}

// signal hands a control to the run itself. It is sent also when the row says that it changes nothing: the row may be behind, and
// the run ignores what it has done already.
func (s *Service) signal(ctx context.Context, project, id string, c Control, action, reason string) (run.Run, error) {
	r, err := s.admit(ctx, project, id, c, reason)
	if err != nil {
		return run.Run{}, err
	}
	switch err := s.engine.Control(ctx, r, string(c), reason); {
	case errors.Is(err, run.ErrClosed):
		return run.Run{}, s.closed(ctx, r, c)
	case errors.Is(err, run.ErrNotKnown):
		view, err := s.view(ctx)
		if err != nil {
			return run.Run{}, err
		}
		return run.Run{}, checkUnknown(c, r, view)
	case err != nil:
		return run.Run{}, err
	}
	if err := s.store.WriteAudit(ctx, audit.NewEntry(ctx, s.opts.Now(), action, project, id, reason)); err != nil {
		return run.Run{}, err
	}
	if c == ResumeQuota {
		return r, nil // it is asked for many at a time
	}
	return s.settled(ctx, r, c)
}

// settled returns the run as soon as its row shows what the control has done, or after a while as it is: without a worker, nothing
// happens before there is one.
func (s *Service) settled(ctx context.Context, r run.Run, c Control) (run.Run, error) {
	const look = 50 * time.Millisecond // other processes do not tell of their changes
	changed, stop := s.changes.Subscribe(r.ID)
	defer stop()
	patience := time.NewTimer(settleWithin)
	defer patience.Stop()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		now, err := s.store.GetRun(ctx, r.Project, r.ID)
		if err != nil || Of(c, StateOf(now)).Effect != Done {
			return now, err
		}
		select {
		case <-changed:
		case <-ticker.C:
		case <-patience.C:
			return now, nil
		case <-ctx.Done():
			return now, nil
		}
	}
}
