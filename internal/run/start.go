package run

import (
	"cmp"
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
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// StartRequest asks for a run.
type StartRequest struct {
	Project string
	// Workflow is a full or short name.
	Workflow string
	// Version may be empty: the newest.
	Version string
	// Input is JSON; nil is null. InputOf, when it is set, makes the input for the document that is to run instead.
	Input   json.RawMessage
	InputOf func(*dsl.Document) (json.RawMessage, error)
	// InputHidden tells that the caller does not see all of the input: no error may quote it.
	InputHidden bool
	// Sensitive are texts that are to be hidden in the run wherever they come up, as they are in what its input is from.
	Sensitive []string
	// RunID may be empty: the server makes one. Whoever gives one gives it to the same request only.
	RunID string
	// RequestID may be empty: the server makes one.
	RequestID string
	Trigger   string
	// DocumentHash, when it is set, is what the version must hold: one that was deleted and published anew may not.
	DocumentHash string
	// Parent is the run that asks, with [TriggerParent].
	Parent Parent
	// ReplayOf is the run that is replayed, with [TriggerReplay]; Reason is why.
	ReplayOf string
	Reason   string
	// Replay is what was asked of the replay, by which the same request is recognized: Input and Version above are what became of it.
	Replay ReplayAsked
}

// ReplayAsked is the arguments of a replay as its caller gave them.
type ReplayAsked struct {
	Input, Patch json.RawMessage
	Version      string
}

const (
	// joinPause and joinPauseMax are how soon a caller sees what another process made of the run that both asked for.
	joinPause    = 10 * time.Millisecond
	joinPauseMax = 100 * time.Millisecond
)

// errAgain means that the run that a request had made was taken away again: the request is as good as new.
var errAgain = errors.New("the run was taken away")

// Start starts a run. It returns the run and false when the request ID had made it before.
//
// It answers within [Options.AnswerWithin] and the store's time. When Temporal has said nothing by then, or what it said
// leaves the outcome open, it returns the run as `queued: starting` and no error: the truth as far as it is known. The
// hand-over goes on. A run that anybody was given this way is never taken away: refused after all, it fails.
//
// While Temporal is away, or no live worker serves the project although others are alive, it is refused without a trace, or, in queue
// mode, comes back as `queued: engine`. Where its project has
// no place for one more run it comes back as `queued: admission`.
func (s *Service) Start(ctx context.Context, req StartRequest) (Run, bool, error) {
	answer, cancel := context.WithTimeout(ctx, s.opts.AnswerWithin)
	defer cancel()
	for {
		r, created, err := s.tryStart(ctx, answer, req)
		if !errors.Is(err, errAgain) {
			return r, created, err
		}
	}
}

// tryStart is one try of Start. answer ends when the caller is to have one.
func (s *Service) tryStart(ctx, answer context.Context, req StartRequest) (Run, bool, error) {
	r, err := s.prepare(ctx, req)
	if err != nil {
		return s.earlier(ctx, answer, req, err)
	}
	if err := s.Ready(ctx, req.Project); err != nil {
		if s.queues(err) {
			return s.enqueue(ctx, answer, req, r, err)
		}
		return s.earlier(ctx, answer, req, err)
	}
	if err := s.handOvers.Reserve(answer); err != nil {
		return Run{}, false, cmp.Or(ctx.Err(), err)
	}
	stored, created, err := s.store.InsertRun(ctx, r, startEntry(ctx, r, req.Reason))
	if err != nil || !created || stored.QueuedReason == QueuedAdmission {
		s.handOvers.Release()
	}
	switch {
	case err != nil:
		return Run{}, false, err
	case !created:
		return s.same(ctx, answer, req, r, stored)
	case stored.QueuedReason == QueuedAdmission:
		s.opts.Metrics.Count(ctx, r.Project, string(Queued))
		return stored, true, nil
	}
	return s.launch(ctx, answer, req, r, stored)
}

// Ready returns why no run of the project can be started now.
func (s *Service) Ready(ctx context.Context, project string) error {
	if s.opts.Admit != nil {
		if err := s.opts.Admit(); err != nil {
			return err
		}
	}
	if err := s.engine.Check(ctx); err != nil || s.opts.Workers == nil {
		return err
	}
	return s.opts.Workers.Check(ctx, project)
}

// launch hands the stored run over in the background, and answers when that has an outcome or it is time. What is stored may have
// marks in its input: r is the run as it was asked for, to be inserted again when its row was taken away.
func (s *Service) launch(ctx, answer context.Context, req StartRequest, r, stored Run) (Run, bool, error) {
	outcome := make(chan error, 1)
	s.handOvers.Begin(ctx, func(ctx context.Context) { outcome <- s.handOver(ctx, stored) })
	var err error
	select {
	case err = <-outcome:
	case <-answer.Done():
		if err := ctx.Err(); err != nil {
			return Run{}, false, fmt.Errorf("starting run %s: %w", r.ID, err)
		}
		told, tellErr := s.store.TellRun(ctx, r.Project, r.ID)
		if !fault.Is(tellErr, fault.RunNotFound) {
			return told, tellErr == nil, tellErr
		}
		// It was refused and taken away in this very moment.
		err = <-outcome
	}
	if err != nil {
		if s.queues(err) {
			return s.enqueue(ctx, answer, req, r, err)
		}
		return Run{}, false, err
	}
	// It is started, whatever becomes of the wish to see it.
	if now, err := s.store.GetRun(ctx, r.Project, r.ID); err == nil {
		stored = now
	}
	return stored, true, nil
}

// same answers a request that had made a run before, if it was the same request.
func (s *Service) same(ctx, answer context.Context, req StartRequest, r, stored Run) (Run, bool, error) {
	same, err := s.sameRequest(ctx, req, stored)
	if err != nil {
		return Run{}, false, err
	}
	if !same || stored.Workflow != r.Workflow || (req.Version != "" && stored.Version != r.Version) {
		return Run{}, false, reused(r.RequestID, stored)
	}
	return s.join(ctx, answer, stored)
}

// replays tells whether a run is a replay of what the request asks to replay, or neither is one.
func (s *Service) replays(ctx context.Context, req StartRequest, stored Run) (bool, error) {
	if stored.Trigger != TriggerReplay || req.ReplayOf == "" {
		return stored.Trigger != TriggerReplay && req.ReplayOf == "", nil
	}
	whole, err := s.store.GetRun(ctx, stored.Project, stored.ID) // rows that were found by something else have no links
	if fault.Is(err, fault.RunNotFound) {
		return false, errAgain
	}
	return whole.ReplayOf == req.ReplayOf, err
}

// join answers with a run that another call has made. While that one still hands it over, in whatever process, it waits for
// the outcome as that one does: a run that may yet be taken away is nothing to be told of.
func (s *Service) join(ctx, answer context.Context, r Run) (Run, bool, error) {
	changed, stop := s.changes.Subscribe(r.ID)
	defer stop()
	for pause := joinPause; ; pause = min(2*pause, joinPauseMax) {
		now, err := s.store.GetRun(ctx, r.Project, r.ID)
		if err == nil && now.QueuedReason == QueuedStarting &&
			(answer.Err() != nil || s.opts.Now().Sub(now.StatusAt) >= s.opts.AnswerWithin) {
			now, err = s.store.TellRun(ctx, r.Project, r.ID)
			if err == nil {
				return now, false, nil
			}
		}
		switch {
		case fault.Is(err, fault.RunNotFound):
			return Run{}, false, errAgain
		case err != nil:
			return Run{}, false, err
		case now.QueuedReason != QueuedStarting:
			return now, false, nil
		}
		timer := time.NewTimer(pause)
		select {
		case <-changed:
		case <-timer.C:
		case <-answer.Done():
		}
		timer.Stop()
	}
}

// earlier answers a request that cannot be met now: with the run that it made before, if it did. Whoever asks again because
// the answer was lost must not be told that there is no run, only because the workflow was paused or Temporal went away
// in between.
func (s *Service) earlier(ctx, answer context.Context, req StartRequest, refusal error) (Run, bool, error) {
	f, ok := fault.From(refusal)
	if !ok || req.RequestID == "" || (f.Class != fault.Refused && f.Class != fault.Unavailable && f.Class != fault.NotFound) {
		return Run{}, false, refusal
	}
	found, err := s.store.ListRuns(ctx, Filter{Project: req.Project, RequestID: req.RequestID, Limit: 1})
	if err != nil || len(found) == 0 || (req.Version != "" && req.Version != found[0].Version) ||
		(req.Workflow != found[0].Workflow && !strings.HasSuffix(found[0].Workflow, "/"+req.Workflow)) {
		return Run{}, false, refusal
	}
	stored, err := s.store.GetRun(ctx, req.Project, found[0].ID)
	if err != nil {
		return Run{}, false, refusal
	}
	if same, err := s.sameRequest(ctx, req, stored); err != nil || !same {
		return Run{}, false, refusal
	}
	r, _, err := s.join(ctx, answer, stored)
	if err != nil && !errors.Is(err, errAgain) {
		return Run{}, false, refusal
	}
	return r, false, err
}

// prepare validates the request and makes the row of the run, without any side effect.
func (s *Service) prepare(ctx context.Context, req StartRequest) (Run, error) {
	if problem := requestIDProblem(req); problem != "" {
		return Run{}, fault.New(fault.Invalid, fault.InvalidArgument, "the request ID %s", problem).WithField("requestId", "%s", problem)
	}
	w, v, err := s.workflows.Pick(ctx, req.Project, req.Workflow, req.Version)
	if w.State == workflow.StatePaused {
		return Run{}, fault.New(fault.Refused, fault.WorkflowPaused,
			"workflow %q is paused%s; `signalbox workflow unpause %s` lets new runs start", w.Name, because(w.PauseReason), w.Name)
	}
	if err != nil {
		return Run{}, err
	}
	if req.DocumentHash != "" && v.Hash != req.DocumentHash {
		return Run{}, fault.New(fault.NotFound, fault.VersionNotFound,
			"version %s of %q is not what it was: the workflow was deleted and published anew; name the version to run", v.Version, w.Name)
	}
	input, err := s.input(ctx, v, req)
	if err != nil {
		return Run{}, err
	}
	digest, err := s.digest(req)
	if err != nil {
		return Run{}, err
	}
	id := req.RunID
	if id == "" {
		made, err := uuid.NewV7()
		if err != nil {
			return Run{}, fmt.Errorf("making a run ID: %w", err)
		}
		id = made.String()
	}
	actor, _ := auth.ActorFrom(ctx)
	now := s.opts.Now()
	r := Run{
		ID: id, Project: req.Project, Workflow: w.Name, Version: v.Version, DocumentHash: v.Hash,
		Status: Queued, QueuedReason: QueuedStarting, StatusAt: now, CreatedAt: now,
		RequestID: cmp.Or(req.RequestID, id), RequestDigest: digest, Trigger: req.Trigger, Actor: actor.Name, Input: input, Interpreter: s.opts.Interpreter,
		ReplayOf: req.ReplayOf, Parent: req.Parent, Secrecy: redact.Inherited{Texts: req.Sensitive},
	}
	return r, nil
}

// input is what the run begins with, held against the document that is to run.
func (s *Service) input(ctx context.Context, v workflow.Version, req StartRequest) (json.RawMessage, error) {
	doc, err := s.documents.Document(ctx, v.Hash)
	if err != nil {
		return nil, err
	}
	input := req.Input
	if req.InputOf != nil {
		if input, err = req.InputOf(doc); err != nil {
			return nil, err
		}
	}
	if input == nil {
		input = json.RawMessage("null")
	}
	if len(input) > s.opts.MaxInputBytes {
		return nil, fault.New(fault.Exhausted, fault.InputTooLarge,
			"the input has %d bytes, more than the limit of %d (runs.max_input_bytes)", len(input), s.opts.MaxInputBytes).
			WithField("input", "is too large")
	}
	return input, checkInput(doc, input, req.InputHidden)
}

func startEntry(ctx context.Context, r Run, reason string) audit.Entry {
	action := audit.RunStart
	if r.ReplayOf != "" {
		action = audit.RunReplay
	}
	entry := audit.NewEntry(ctx, r.CreatedAt, action, r.Project, r.ID, reason)
	entry.Detail = startDetail(r)
	return entry
}
