package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// ErrUnknownOutcome marks an engine's error after which nobody knows whether the execution was started.
var ErrUnknownOutcome = errors.New("the outcome is not known")

// ErrNotKnown is an engine's answer for a run that Temporal does not know.
var ErrNotKnown = errors.New("temporal does not know the run")

// ErrClosed is an engine's answer for a run that has ended in Temporal.
var ErrClosed = errors.New("the run has ended in temporal")

// Engine is what executes runs.
type Engine interface {
	// Check returns a [fault.Unavailable] when no run can be started now. It has no side effect and answers within
	// two seconds.
	Check(ctx context.Context) error
	// Start starts the execution and returns its ID in Temporal. Starting a run that is started already is a success.
	// Every error but [ErrUnknownOutcome] means that nothing was started.
	Start(ctx context.Context, r Run) (executionID string, err error)
	// Cancel asks for cancellation; it may answer [ErrNotKnown] or [ErrClosed].
	Cancel(ctx context.Context, r Run, reason string) error
	// Repair brings the row of a run up to what Temporal has of it, when the two differ, and tells whether it changed.
	Repair(ctx context.Context, r Run) (bool, error)
}

// Workflows finds what is to run.
type Workflows interface {
	Resolve(ctx context.Context, project, name string) (string, error)
	Pick(ctx context.Context, project, name, version string) (workflow.Workflow, workflow.Version, error)
}

// Documents gives the documents that runs are pinned to.
type Documents interface {
	Document(ctx context.Context, hash string) (*dsl.Document, error)
}

// Options bound what the service accepts.
type Options struct {
	// MaxInputBytes is the largest input.
	MaxInputBytes int
	// StartTimeout is how long the start of a run waits for Temporal.
	StartTimeout time.Duration
	// Interpreter is the version of the interpreter that new runs are given.
	Interpreter int
	// Now is the clock.
	Now func() time.Time
	// Metrics is told of starts.
	Metrics Metrics
}

// Metrics counts starts.
type Metrics interface {
	// Count adds a run that came into a status.
	Count(ctx context.Context, project, status string)
	// Started records the time from the request to Temporal's acceptance.
	Started(ctx context.Context, project string, took time.Duration)
}

// Service starts, finds, watches and cancels runs.
type Service struct {
	store     Store
	engine    Engine
	workflows Workflows
	documents Documents
	changes   *Changes
	opts      Options
}

// NewService wires the service. changes is told of every change that this process makes to a run.
func NewService(store Store, engine Engine, workflows Workflows, documents Documents, changes *Changes, opts Options) *Service {
	return &Service{store: store, engine: engine, workflows: workflows, documents: documents, changes: changes, opts: opts}
}

// StartRequest asks for a run.
type StartRequest struct {
	Project string
	// Workflow is a full or short name.
	Workflow string
	// Version may be empty: the newest.
	Version string
	// Input is JSON; nil is null.
	Input json.RawMessage
	// RequestID may be empty: the server makes one.
	RequestID string
	Trigger   string
}

// maxRequestID is the longest request ID, in bytes.
const maxRequestID = 200

// Start starts a run. It returns the run and false when the request ID had made it before. When the outcome of the
// start is not known, it returns the run as `queued: starting` and no error: the truth as far as it is known.
func (s *Service) Start(ctx context.Context, req StartRequest) (Run, bool, error) {
	r, err := s.prepare(ctx, req)
	if err == nil {
		err = s.engine.Check(ctx)
	}
	if err != nil {
		return s.earlier(ctx, req, err)
	}
	entry := audit.NewEntry(ctx, r.CreatedAt, audit.RunStart, r.Project, r.ID, "")
	entry.Detail = startDetail(r)
	stored, created, err := s.store.InsertRun(ctx, r, entry)
	if err != nil {
		return Run{}, false, err
	}
	if !created {
		if stored.Workflow != r.Workflow || (req.Version != "" && stored.Version != r.Version) {
			return Run{}, false, fault.New(fault.Exists, fault.RequestIDReused,
				"request ID %q was used before, for run %s of %s@%s; use a new one", r.RequestID, stored.ID, stored.Workflow, stored.Version).
				WithField("requestId", "belongs to another request")
		}
		return stored, false, nil
	}
	if err := s.handOver(ctx, r); err != nil {
		return Run{}, false, err
	}
	stored, err = s.store.GetRun(ctx, r.Project, r.ID)
	return stored, true, err
}

// earlier answers a request that cannot be met now: with the run that it made before, if it did. Whoever asks again because
// the answer was lost must not be told that there is no run, only because the workflow was paused or Temporal went away
// in between.
func (s *Service) earlier(ctx context.Context, req StartRequest, refusal error) (Run, bool, error) {
	f, ok := fault.From(refusal)
	if !ok || req.RequestID == "" || (f.Class != fault.Refused && f.Class != fault.Unavailable && f.Class != fault.NotFound) {
		return Run{}, false, refusal
	}
	found, err := s.store.ListRuns(ctx, Filter{Project: req.Project, RequestID: req.RequestID, Limit: 1})
	if err != nil || len(found) == 0 || (req.Version != "" && req.Version != found[0].Version) ||
		(req.Workflow != found[0].Workflow && !strings.HasSuffix(found[0].Workflow, "/"+req.Workflow)) {
		return Run{}, false, refusal
	}
	r, err := s.store.GetRun(ctx, req.Project, found[0].ID)
	if err != nil {
		return Run{}, false, refusal
	}
	return r, false, nil
}

// prepare validates the request and makes the row of the run, without any side effect.
func (s *Service) prepare(ctx context.Context, req StartRequest) (Run, error) {
	if len(req.RequestID) > maxRequestID {
		return Run{}, fault.New(fault.Invalid, fault.InvalidArgument,
			"the request ID has %d bytes, more than %d", len(req.RequestID), maxRequestID).WithField("requestId", "is too long")
	}
	w, v, err := s.workflows.Pick(ctx, req.Project, req.Workflow, req.Version)
	if w.State == workflow.StatePaused {
		return Run{}, fault.New(fault.Refused, fault.WorkflowPaused,
			"workflow %q is paused%s; `signalbox workflow unpause %s` lets new runs start", w.Name, because(w.PauseReason), w.Name)
	}
	if err != nil {
		return Run{}, err
	}
	input := req.Input
	if input == nil {
		input = json.RawMessage("null")
	}
	if err := s.checkInput(ctx, v, input); err != nil {
		return Run{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Run{}, fmt.Errorf("making a run ID: %w", err)
	}
	actor, _ := auth.ActorFrom(ctx)
	now := s.opts.Now()
	r := Run{
		ID: id.String(), Project: req.Project, Workflow: w.Name, Version: v.Version, DocumentHash: v.Hash,
		Status: Queued, QueuedReason: QueuedStarting, StatusAt: now, CreatedAt: now,
		RequestID: req.RequestID, Trigger: req.Trigger, Actor: actor.Name, Input: input, Interpreter: s.opts.Interpreter,
	}
	if r.RequestID == "" {
		r.RequestID = r.ID
	}
	return r, nil
}

func (s *Service) checkInput(ctx context.Context, v workflow.Version, input json.RawMessage) error {
	if len(input) > s.opts.MaxInputBytes {
		return fault.New(fault.Exhausted, fault.InputTooLarge,
			"the input has %d bytes, more than the limit of %d (runs.max_input_bytes)", len(input), s.opts.MaxInputBytes).
			WithField("input", "is too large")
	}
	doc, err := s.documents.Document(ctx, v.Hash)
	if err != nil {
		return err
	}
	return checkInput(doc, input)
}

// handOver gives the run to Temporal. A definite failure takes the row away again; an unknown outcome leaves it.
func (s *Service) handOver(ctx context.Context, r Run) error {
	startCtx, cancel := context.WithTimeout(ctx, s.opts.StartTimeout)
	defer cancel()
	executionID, err := s.engine.Start(startCtx, r)
	if err == nil {
		if err := s.store.MarkHandedOver(ctx, r.ID, executionID, s.opts.Now()); err != nil {
			// The run is Temporal's now; its own records will move the row on.
			logger.FromContext(ctx).WarnContext(ctx, "Run started, but its row could not be updated", "run_id", r.ID, "error", err)
		}
		s.changes.Notify(r.ID)
		s.opts.Metrics.Count(ctx, r.Project, string(Queued))
		s.opts.Metrics.Started(ctx, r.Project, s.opts.Now().Sub(r.CreatedAt))
		return nil
	}
	if errors.Is(err, ErrUnknownOutcome) {
		s.opts.Metrics.Count(ctx, r.Project, string(Queued))
		logger.FromContext(ctx).WarnContext(ctx, "Outcome of a run's start is not known", "run_id", r.ID, "error", err)
		return nil
	}
	// The caller may be gone; the row must not stay.
	cleanCtx, cancelClean := context.WithTimeout(context.WithoutCancel(ctx), s.opts.StartTimeout)
	defer cancelClean()
	entry := audit.NewEntry(ctx, s.opts.Now(), audit.RunStartRefused, r.Project, r.ID, readable(err))
	if _, rmErr := s.store.RemoveUnstarted(cleanCtx, r.ID, entry); rmErr != nil {
		return errors.Join(err, fmt.Errorf("removing the row of run %s, which was not started: %w", r.ID, rmErr))
	}
	return err
}

// Get returns one run.
func (s *Service) Get(ctx context.Context, project, id string) (Run, error) {
	r, err := s.store.GetRun(ctx, project, id)
	if err != nil || !s.repair(ctx, r) {
		return r, err
	}
	return s.store.GetRun(ctx, project, id)
}

// List lists runs.
func (s *Service) List(ctx context.Context, f Filter) ([]Run, error) {
	for _, status := range f.Statuses {
		if !status.Known() {
			return nil, fault.New(fault.Invalid, fault.InvalidArgument, "run status %q is none of %v", status, Statuses()).
				WithField("statuses", "unknown status %q", status)
		}
	}
	if f.Workflow != "" {
		full, err := s.workflows.Resolve(ctx, f.Project, f.Workflow)
		if err != nil {
			return nil, err
		}
		f.Workflow = full
	}
	return s.store.ListRuns(ctx, f)
}

// Steps lists a run's steps in order of entry.
func (s *Service) Steps(ctx context.Context, project, id string, after int64, limit int) ([]Step, error) {
	if _, err := s.Get(ctx, project, id); err != nil {
		return nil, err
	}
	return s.store.ListSteps(ctx, project, id, after, limit)
}

// Cancel asks Temporal to cancel a run. A run that has ended is refused and stays as it is; one that Temporal does not
// know, although it was handed over, is finalised.
func (s *Service) Cancel(ctx context.Context, project, id, reason string) (Run, error) {
	r, err := s.store.GetRun(ctx, project, id)
	if err != nil {
		return Run{}, err
	}
	if r.Status.Terminal() {
		return Run{}, ended(r)
	}
	switch err := s.engine.Cancel(ctx, r, reason); {
	case errors.Is(err, ErrClosed):
		if _, err := s.engine.Repair(ctx, r); err != nil {
			return Run{}, err
		}
		if r, err = s.store.GetRun(ctx, project, id); err != nil {
			return Run{}, err
		}
		return Run{}, ended(r)
	case errors.Is(err, ErrNotKnown):
		return s.finishMissing(ctx, r, reason)
	case err != nil:
		return Run{}, err
	}
	now := s.opts.Now()
	r, err = s.store.MarkCancelRequested(ctx, project, id, reason, audit.NewEntry(ctx, now, audit.RunCancel, project, id, reason))
	s.changes.Notify(id)
	return r, err
}

// finishMissing ends a run that Temporal does not know. One that is still being handed over may yet arrive there.
func (s *Service) finishMissing(ctx context.Context, r Run, reason string) (Run, error) {
	now := s.opts.Now()
	if r.Status == Queued && r.QueuedReason == QueuedStarting && now.Sub(r.CreatedAt) < s.opts.StartTimeout {
		return Run{}, fault.New(fault.Refused, fault.RunStarting,
			"run %s is being handed over to Temporal; cancel it again in a moment", r.ID).WithRetry(s.opts.StartTimeout)
	}
	problem := &Problem{
		Type: dsl.ErrorTypeRuntime, Status: 404, Title: "Execution missing", //nolint:mnd // "not found", as in HTTP
		Detail: "Temporal does not know this run; it was ended when its cancellation was asked for", Instance: "",
	}
	if _, err := s.store.FinishMissing(ctx, r.ID, Canceled, problem, now,
		audit.NewEntry(ctx, now, audit.RunCancel, r.Project, r.ID, reason)); err != nil {
		return Run{}, err
	}
	s.changes.Notify(r.ID)
	return s.store.GetRun(ctx, r.Project, r.ID)
}

// repair asks the engine to compare an open run with Temporal and tells whether the row changed. A failure is logged:
// the row as it is remains the best answer there is.
func (s *Service) repair(ctx context.Context, r Run) bool {
	if r.Status.Terminal() || s.opts.Now().Sub(r.StatusAt) < repairAfter {
		return false
	}
	changed, err := s.engine.Repair(ctx, r)
	if err != nil {
		logger.FromContext(ctx).DebugContext(ctx, "Run could not be compared with Temporal", "run_id", r.ID, "error", err)
	}
	if changed {
		s.changes.Notify(r.ID)
	}
	return changed
}
