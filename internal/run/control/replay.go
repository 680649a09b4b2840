package control

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/edit"
)

// Latest asks for the newest published version.
const Latest = "latest"

// ReplayRequest asks for a new run with the input of an earlier one.
type ReplayRequest struct {
	Project string
	// RunID is the earlier run.
	RunID string
	// Input is the whole input, Patch a JSON patch against the input as the caller sees it. Both nil: the original as it was.
	// An empty object is an input like any other.
	Input json.RawMessage
	Patch json.RawMessage
	// Version may be empty: that of the earlier run, the very same document; [Latest], or a version.
	Version string
	// Reason must be given.
	Reason string
	// RequestID may be empty: the server makes one.
	RequestID string
}

// rows are the originals where nothing is redacted.
type rows struct{}

func (rows) Input(_ context.Context, r run.Run) (json.RawMessage, error) { return r.Input, nil }

// Replay starts a new run with the input of an earlier one, whatever became of that, and links the two. Otherwise it is as Start
// is: it returns false when the request ID had made the run before. Refused, it leaves no run behind.
func (s *Service) Replay(ctx context.Context, req ReplayRequest) (run.Run, bool, error) {
	if err := needReason(req.Reason); err != nil {
		return run.Run{}, false, err
	}
	r, err := s.admit(ctx, req.Project, req.RunID, Replay, req.Reason)
	if err != nil {
		return run.Run{}, false, err
	}
	start := run.StartRequest{
		Project: r.Project, Workflow: r.Workflow, Version: req.Version, RequestID: req.RequestID,
		Trigger: run.TriggerReplay, ReplayOf: r.ID, Reason: req.Reason, InputHidden: r.Redacted && req.Input == nil,
		Replay: run.ReplayAsked{Input: req.Input, Patch: req.Patch, Version: req.Version},
	}
	switch req.Version {
	case "":
		start.Version, start.DocumentHash = r.Version, r.DocumentHash
	case Latest:
		start.Version = ""
	}
	if start.Input, err = s.replayInput(ctx, r, req); err != nil {
		return run.Run{}, false, err
	}
	if r.Trigger == run.TriggerImport {
		if err := checkImported(r, req, start.Input); err != nil {
			return run.Run{}, false, err
		}
	}
	return s.Start(ctx, start)
}

// replayInput is what the new run begins with.
func (s *Service) replayInput(ctx context.Context, r run.Run, req ReplayRequest) (json.RawMessage, error) {
	switch {
	case req.Input != nil && req.Patch != nil:
		return nil, fault.New(fault.Invalid, fault.InvalidArgument, "input and patch are both given: send the whole input, or what changes in it").
			WithField("patch", "only without input")
	case req.Input != nil:
		return req.Input, edit.Whole(req.Input, redact.Mark)
	}
	original, err := s.originals.Input(ctx, r)
	if err != nil || req.Patch == nil {
		return original, err
	}
	return edit.Patched(orNull(original), orNull(r.Input), req.Patch, redact.Mark, s.opts.MaxInputBytes)
}

// checkImported refuses the replay of an imported run where what it ran, or what it began with, is not here.
func checkImported(r run.Run, req ReplayRequest, input json.RawMessage) error {
	lacking := func(what string) error {
		return fault.New(fault.Refused, fault.RunImported, "run %s was imported, and %s", r.ID, what)
	}
	switch {
	case req.Version == "":
		return lacking(fmt.Sprintf("what it ran is not here: name the version of %s that is to run, or %s", r.Workflow, Latest))
	case req.Input != nil: // it was checked already
		return nil
	case len(r.Input) == 0:
		return lacking("its input is not here: give one")
	case edit.Whole(input, redact.Mark) != nil:
		return lacking("sensitive values of its input were not kept: give the whole input, or a patch that replaces each mark")
	}
	return nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}
