package control

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/patch"
	"github.com/signalbox-dev/signalbox/internal/run/start"
)

// Latest selects the newest published version.
const Latest = "latest"

// ReplayRequest requests a new run with the input of an earlier one.
type ReplayRequest struct {
	Project string
	// RunID is the earlier run.
	RunID string
	// Input is the whole input, Patch a JSON patch against the input as the caller sees it. Both nil: the original
	// input. An empty object is an input like any other.
	Input json.RawMessage
	Patch json.RawMessage
	// Version may be empty: that of the earlier run, with exactly the same document; [Latest], or a version.
	Version string
	// Reason is required.
	Reason string
	// RequestID may be empty: the server makes one.
	RequestID string
	// DryRun only checks the request, as that of [start.Request] does; it needs no reason.
	DryRun bool
	// Labels are added to those of the earlier run, which they replace where the key is the same.
	Labels map[string]string
}

// rows returns inputs from rows, where nothing is redacted.
type rows struct{}

func (rows) Input(_ context.Context, r run.Run) (json.RawMessage, error) { return r.Input, nil }

// Replay starts a new run with the input of an earlier one, in whatever state that is, and links the two. Apart from
// that it behaves as Start: it returns false when the request ID had made the run before. A refused replay leaves no
// run behind.
func (s *Service) Replay(ctx context.Context, req ReplayRequest) (run.Run, bool, error) {
	if !req.DryRun {
		if err := needReason(req.Reason); err != nil {
			return run.Run{}, false, err
		}
	}
	r, err := s.admit(ctx, req.Project, req.RunID, Replay, req.Reason)
	if err != nil {
		return run.Run{}, false, err
	}
	request := start.Request{
		Project: r.Project, Workflow: r.Workflow, Version: req.Version, RequestID: req.RequestID,
		Trigger: run.TriggerReplay, ReplayOf: r.ID, Reason: req.Reason, DryRun: req.DryRun, InputHidden: r.Redacted &&
			req.Input == nil,
		Replay: start.ReplayArguments{Input: req.Input, Patch: req.Patch, Version: req.Version, Labels: req.Labels},
		Labels: withLabels(r.Labels, req.Labels),
	}
	switch req.Version {
	case "":
		request.Version, request.DocumentHash = r.Version, r.DocumentHash
	case Latest:
		request.Version = ""
	}
	if request.Input, err = s.replayInput(ctx, r, req); err != nil {
		return run.Run{}, false, err
	}
	if r.Trigger == run.TriggerImport {
		if err := checkImported(r, req, request.Input); err != nil {
			return run.Run{}, false, err
		}
	}
	return s.Start(ctx, request)
}

// withLabels returns labels with others added; nil if there are none.
func withLabels(labels, others map[string]string) map[string]string {
	if len(labels) == 0 {
		return others
	}
	all := maps.Clone(labels)
	maps.Copy(all, others)
	return all
}

// replayInput returns the input of the new run.
func (s *Service) replayInput(ctx context.Context, r run.Run, req ReplayRequest) (json.RawMessage, error) {
	switch {
	case req.Input != nil && req.Patch != nil:
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"input and patch are both given: send the whole input, or a patch").
			WithField("patch", "only without input")
	case req.Input != nil:
		return req.Input, patch.Whole(req.Input, redact.Mark)
	}
	original, err := s.opts.Originals.Input(ctx, r)
	if err != nil || req.Patch == nil {
		return original, err
	}
	return patch.Patched(orNull(original), orNull(r.Input), req.Patch, redact.Mark, s.opts.MaxInputBytes)
}

// checkImported refuses the replay of an imported run where its document or its input is not stored.
func checkImported(r run.Run, req ReplayRequest, input json.RawMessage) error {
	lacking := func(what string) error {
		return apperror.New(apperror.Refused, apperror.RunImported, "run %s was imported, and %s", r.ID, what)
	}
	switch {
	case req.Version == "":
		return lacking(fmt.Sprintf("its document is not stored: name the version of %s to execute, or %s", r.Workflow,
			Latest))
	case req.Input != nil: // it was checked already
		return nil
	case len(r.Input) == 0:
		return lacking("its input is not stored: give one")
	case patch.Whole(input, redact.Mark) != nil:
		return lacking("sensitive values of its input were not stored: give the whole input, or a patch that replaces each " +
			"mark")
	}
	return nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}
