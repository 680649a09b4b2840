package start

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
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/backoff"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// Request requests a run.
type Request struct {
	Project string
	// Workflow is a full or short name.
	Workflow string
	// Version may be empty: the newest.
	Version string
	// Input is JSON; nil is null. InputOf, when set, computes the input for the document to execute instead.
	Input   json.RawMessage
	InputOf func(*dsl.Document) (json.RawMessage, error)
	// InputHidden reports that the caller cannot see all of the input: no error may quote it.
	InputHidden bool
	// Sensitive are texts to redact wherever they occur in the run, as they are in the source of its input.
	Sensitive []string
	// Labels are values by key. They replace those of the document with the same key. For a replay they include those of
	// the replayed run.
	Labels map[string]string
	// RunID may be empty: it is derived from project and request ID, or the server makes one. A caller that sets it must
	// use it for the same request only.
	RunID string
	// RequestID may be empty: the server makes one.
	RequestID string
	Trigger   string
	// AfterFailure reports that events that report a failure start the run. It is only stored.
	AfterFailure bool
	// Lineage is zero for a start by a person or by the clock.
	Lineage run.Lineage
	// DocumentHash, when set, is the hash that the version must have; a version that was deleted and published again
	// may have another.
	DocumentHash string
	// Parent is the requesting run, with [run.TriggerParent].
	Parent run.Parent
	// ReplayOf is the replayed run, with [run.TriggerReplay]; Reason is why.
	ReplayOf string
	Reason   string
	// Replay are the arguments of the replay, which identify a repeated request. Input and Version above are derived
	// from them.
	Replay ReplayArguments
	// DryRun only checks the request: [Service.Start] returns the run as it would be, without ID and input, or the
	// refusal, and stores nothing. Whether the request ID is in use and whether the project has a free slot is not
	// checked.
	DryRun bool
}

// ReplayArguments are the arguments of a replay as its caller gave them.
type ReplayArguments struct {
	Input, Patch json.RawMessage
	Version      string
	Labels       map[string]string
}

const (
	// joinInterval and joinIntervalMax are the polling intervals for the outcome of a run that another process is handing
	// over.
	joinInterval    = 10 * time.Millisecond
	joinIntervalMax = 100 * time.Millisecond
)

// errRemoved means that the run of an earlier request was removed: the request is to be handled as a new one.
var errRemoved = errors.New("the run was removed")

// Start starts a run. It returns the run and false when an earlier request with the request ID has made it.
//
// It returns within [Options.AnswerWithin] plus the time that the store takes. When Temporal has not answered by then,
// or its answer leaves the outcome open, it returns the run as `queued: starting` and no error; the hand-over
// continues. A run that was returned this way is never removed: if Temporal rejects it later, it fails.
//
// While Temporal is unavailable, or no live worker serves the project although others are alive, Start returns an error
// and leaves no row, or, in queue mode, returns the run as `queued: engine`. Where the project has no free slot, it
// returns the run as `queued: admission`.
func (s *Service) Start(ctx context.Context, req Request) (run.Run, bool, error) {
	answer, cancel := context.WithTimeout(ctx, s.opts.AnswerWithin)
	defer cancel()
	for {
		r, created, err := s.tryStart(ctx, answer, req)
		if !errors.Is(err, errRemoved) {
			return r, created, err
		}
	}
}

// tryStart is one attempt of Start. answer ends when the caller must receive a response.
func (s *Service) tryStart(ctx, answer context.Context, req Request) (run.Run, bool, error) {
	r, err := s.prepare(ctx, req)
	if req.DryRun {
		r, err = s.dryRun(ctx, r, err)
		return r, false, err
	}
	if err != nil {
		return s.existing(ctx, answer, req, err)
	}
	if err := s.ReadyFor(ctx, req.Project, req.Trigger); err != nil {
		if s.queueable(err) {
			return s.enqueue(ctx, answer, req, r, err)
		}
		return s.existing(ctx, answer, req, err)
	}
	if err := s.handOvers.Reserve(answer, r.Project); err != nil {
		return run.Run{}, false, cmp.Or(ctx.Err(), err)
	}
	stored, created, err := s.store.InsertRun(ctx, r, startEntry(ctx, r, req.Reason))
	if err != nil || !created || stored.QueuedReason == run.QueuedAdmission {
		s.handOvers.Release(r.Project)
	}
	switch {
	case err != nil:
		return run.Run{}, false, err
	case !created:
		return s.answerRepeated(ctx, answer, req, r, stored)
	case stored.QueuedReason == run.QueuedAdmission:
		s.opts.Metrics.Count(ctx, r.Project, string(run.Queued))
		return stored, true, nil
	}
	return s.launch(ctx, answer, req, r, stored)
}

// dryRun returns what a start of the prepared run would return now.
func (s *Service) dryRun(ctx context.Context, r run.Run, refusal error) (run.Run, error) {
	if refusal == nil {
		r.QueuedReason = ""
		if refusal = s.ReadyFor(ctx, r.Project, r.Trigger); refusal != nil && s.queueable(refusal) {
			r.QueuedReason, refusal = run.QueuedEngine, nil
		}
	}
	r.ID, r.Input = "", nil
	return r, refusal
}

// Ready returns why no run of the project can be started now, except by other runs.
func (s *Service) Ready(ctx context.Context, project string) error {
	return s.ReadyFor(ctx, project, run.TriggerAPI)
}

// ReadyFor returns why no run of the project with this trigger can be started now.
func (s *Service) ReadyFor(ctx context.Context, project, trigger string) error {
	if s.opts.Maintenance != nil && trigger != run.TriggerParent {
		if err := s.opts.Maintenance(ctx); err != nil {
			return err
		}
	}
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

// launch hands the stored run over in the background, and returns when there is an outcome or answer ends. The stored
// input may contain redaction marks: r is the run as requested, to be inserted again when its row was removed.
func (s *Service) launch(ctx, answer context.Context, req Request, r, stored run.Run) (run.Run, bool, error) {
	outcome := make(chan handedOver, 1)
	s.handOvers.Begin(ctx, r.Project, func(ctx context.Context, answered func()) {
		s.handOver(ctx, stored, answered, outcome)
	})
	var result handedOver
	select {
	case result = <-outcome:
	case <-answer.Done():
		if err := ctx.Err(); err != nil {
			return run.Run{}, false, fmt.Errorf("starting run %s: %w", r.ID, err)
		}
		disclosed, markErr := s.store.MarkDisclosed(ctx, r.Project, r.ID)
		if !apperror.Is(markErr, apperror.RunNotFound) {
			return disclosed, markErr == nil, markErr
		}
		// It was rejected and removed in this moment.
		result = <-outcome
	}
	if err := result.err; err != nil {
		if s.queueable(err) {
			return s.enqueue(ctx, answer, req, r, err)
		}
		return run.Run{}, false, err
	}
	return result.run, true, nil
}

// answerRepeated answers a request whose request ID is in use, with the stored run if that was made by the same
// request.
func (s *Service) answerRepeated(ctx, answer context.Context, req Request, r, stored run.Run) (run.Run, bool, error) {
	actor, _ := auth.ActorFrom(ctx)
	if err := s.repeats.check(actor, s.opts.Now()); err != nil {
		return run.Run{}, false, err
	}
	same, err := s.sameRequest(ctx, req, stored)
	if err != nil {
		return run.Run{}, false, err
	}
	if !same || stored.Workflow != r.Workflow || (req.Version != "" && stored.Version != r.Version) {
		return run.Run{}, false, s.refuseRepeat(ctx, r.RequestID, stored)
	}
	return s.join(ctx, answer, stored)
}

// replays reports whether stored is a replay of the run that the request replays, or neither is a replay.
func (s *Service) replays(ctx context.Context, req Request, stored run.Run) (bool, error) {
	if stored.Trigger != run.TriggerReplay || req.ReplayOf == "" {
		return stored.Trigger != run.TriggerReplay && req.ReplayOf == "", nil
	}
	full, err := s.store.GetRun(ctx, stored.Project, stored.ID) // rows found by request ID have no links
	if apperror.Is(err, apperror.RunNotFound) {
		return false, errRemoved
	}
	return full.ReplayOf == req.ReplayOf, err
}

// join answers with a run that another call has made. While any process still hands it over, join waits for the outcome
// as that call does: a run that may still be removed must not be returned.
func (s *Service) join(ctx, answer context.Context, r run.Run) (run.Run, bool, error) {
	changed, stop := s.changes.Subscribe(r.ID)
	defer stop()
	for n := 1; ; n++ {
		now, err := s.store.GetRun(ctx, r.Project, r.ID)
		if err == nil {
			now, err = s.Confirmed(ctx, now)
		}
		if err == nil && now.QueuedReason == run.QueuedStarting &&
			(answer.Err() != nil || s.opts.Now().Sub(now.StatusAt) >= s.opts.AnswerWithin) {
			now, err = s.store.MarkDisclosed(ctx, r.Project, r.ID)
			if err == nil {
				return now, false, nil
			}
		}
		switch {
		case apperror.Is(err, apperror.RunNotFound):
			return run.Run{}, false, errRemoved
		case err != nil:
			return run.Run{}, false, err
		case now.QueuedReason != run.QueuedStarting:
			return now, false, nil
		}
		timer := time.NewTimer(backoff.Delay(joinInterval, joinIntervalMax, n))
		select {
		case <-changed:
		case <-timer.C:
		case <-answer.Done():
		}
		timer.Stop()
	}
}

// existing answers a request that cannot be fulfilled now with the run that it made before, if it did. A caller that
// repeats a request because the response was lost must not receive an error only because the workflow was paused or
// Temporal became unavailable in between.
func (s *Service) existing(ctx, answer context.Context, req Request, refusal error) (run.Run, bool, error) {
	f, ok := apperror.From(refusal)
	if !ok || req.RequestID == "" ||
		(f.Class != apperror.Refused && f.Class != apperror.Unavailable && f.Class != apperror.NotFound) {
		return run.Run{}, false, refusal
	}
	found, err := s.store.ListRuns(ctx, run.Filter{Project: req.Project, RequestID: req.RequestID, Limit: 1})
	if err != nil || len(found) == 0 || (req.Version != "" && req.Version != found[0].Version) ||
		(req.Workflow != found[0].Workflow && !strings.HasSuffix(found[0].Workflow, "/"+req.Workflow)) {
		return run.Run{}, false, refusal
	}
	stored, err := s.store.GetRun(ctx, req.Project, found[0].ID)
	if err != nil {
		return run.Run{}, false, refusal
	}
	if same, err := s.sameRequest(ctx, req, stored); err != nil || !same {
		return run.Run{}, false, refusal
	}
	r, _, err := s.join(ctx, answer, stored)
	if err != nil && !errors.Is(err, errRemoved) {
		return run.Run{}, false, refusal
	}
	return r, false, err
}

// prepare validates the request and builds the row of the run, without any side effect.
func (s *Service) prepare(ctx context.Context, req Request) (run.Run, error) {
	if violation := requestIDViolation(req); violation != "" {
		return run.Run{}, apperror.New(apperror.Invalid, apperror.InvalidArgument, "the request ID %s",
			violation).WithField("requestId", "%s", violation)
	}
	w, v, err := s.workflows.Pin(ctx, req.Project, req.Workflow, req.Version)
	if w.State == workflow.StatePaused {
		return run.Run{}, apperror.New(apperror.Refused, apperror.WorkflowPaused,
			"workflow %q is paused%s; `signalbox workflow unpause %s` lets new runs start", w.Name, inParentheses(w.PauseReason),
			w.Name)
	}
	if err != nil {
		return run.Run{}, err
	}
	if req.DocumentHash != "" && v.Hash != req.DocumentHash {
		return run.Run{}, apperror.New(apperror.NotFound, apperror.VersionNotFound,
			"version %s of %q has another document: the workflow was deleted and published again; name the version to "+
				"run", v.Version, w.Name)
	}
	if err := s.checkGeneration(ctx, req); err != nil {
		return run.Run{}, err
	}
	doc, err := s.documents.Document(ctx, v.Hash)
	if err != nil {
		return run.Run{}, err
	}
	input, warning, err := s.input(doc, req)
	if err != nil {
		return run.Run{}, err
	}
	digest, err := s.digest(req)
	if err != nil {
		return run.Run{}, err
	}
	id := req.RunID
	switch {
	case id == "" && req.RequestID != "":
		id = idOf(req.Project, req.RequestID)
	case id == "":
		made, err := uuid.NewV7()
		if err != nil {
			return run.Run{}, fmt.Errorf("making a run ID: %w", err)
		}
		id = made.String()
	}
	actor, _ := auth.ActorFrom(ctx)
	now := s.opts.Now()
	r := run.Run{
		ID: id, Project: req.Project, Workflow: w.Name, Version: v.Version, DocumentHash: v.Hash,
		Status: run.Queued, QueuedReason: run.QueuedStarting, StatusAt: now, CreatedAt: now,
		RequestID: cmp.Or(req.RequestID, id), RequestDigest: digest, Trigger: req.Trigger, Actor: actor.Name, Input: input,
		Interpreter:  s.opts.Interpreter,
		AfterFailure: req.AfterFailure, ReplayOf: req.ReplayOf, Parent: req.Parent, Lineage: req.Lineage,
		Secrecy: redact.Inherited{Texts: req.Sensitive},
	}
	if warning != "" {
		r.Warnings = []run.Warning{{Code: run.WarningInputFormat, Detail: warning, At: now}}
	}
	return r, s.addLabels(ctx, doc, req, &r)
}

// input returns the input of the run, validated against the document to execute, and the warning of its formats.
func (s *Service) input(doc *dsl.Document, req Request) (input json.RawMessage, warning string, err error) {
	input = req.Input
	if req.InputOf != nil {
		if input, err = req.InputOf(doc); err != nil {
			return nil, "", err
		}
	}
	if input == nil {
		input = json.RawMessage("null")
	}
	if len(input) > s.opts.MaxInputBytes {
		return nil, "", apperror.New(apperror.Exhausted, apperror.InputTooLarge,
			"the input has %d bytes, more than the limit of %d (runs.max_input_bytes)", len(input), s.opts.MaxInputBytes).
			WithField("input", "is too large")
	}
	warning, err = checkInput(doc, input, req.InputHidden)
	return input, warning, err
}

func startEntry(ctx context.Context, r run.Run, reason string) audit.Entry {
	action := audit.RunStart
	if r.ReplayOf != "" {
		action = audit.RunReplay
	}
	entry := audit.NewEntry(ctx, r.CreatedAt, action, r.Project, r.ID, reason)
	entry.Detail = startDetail(r)
	return entry
}
