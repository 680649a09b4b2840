package batch

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// stopCause is the cause of both changes in the audit log.
const stopCause = "workflow.stop"

// StopRequest is a request to pause a workflow and to cancel its open runs.
type StopRequest struct {
	Project string
	// Workflow is a full or short name.
	Workflow string
	Reason   string
	// RequestID may be empty: one is generated.
	RequestID string
	// ExpectedOpen is the maximum number of open runs; nil for any number.
	ExpectedOpen *int64
}

// Stopped is the result of a stop.
type Stopped struct {
	Workflow workflow.Workflow
	Batch    Batch
	// Created is false when the request ID was used before; then nothing was changed.
	Created bool
	// Paused reports whether this stop paused the workflow; false when it was paused already.
	Paused bool
	// Open counts the open runs of the workflow by status: those before the stop, or, when nothing was changed, those at
	// present.
	Open map[run.Status]int64
}

// StopPreview describes what a stop would do.
type StopPreview struct {
	Preview

	Workflow workflow.Workflow
	Open     map[run.Status]int64
}

// Stop pauses a workflow and starts a batch that cancels its open runs, both or neither. The runs are selected after
// the pause. With a request ID that was used before, it returns the existing batch and changes nothing.
func (s *Service) Stop(ctx context.Context, req StopRequest) (Stopped, error) {
	b, err := s.prepareStop(ctx, req, req.Reason)
	if err != nil {
		return Stopped{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Stopped{}, fmt.Errorf("making the ID of a batch: %w", err)
	}
	// A batch over the same runs has another fingerprint: it does not pause the workflow.
	b.ID, b.Fingerprint = id.String(), hash(stopCause, b.Filter.Workflow)
	b.RequestID = cmp.Or(b.RequestID, b.ID)
	pause := audit.NewEntry(ctx, b.CreatedAt, audit.WorkflowPause, b.Project, b.Filter.Workflow, b.Reason)
	pause.Detail = stopDetail(map[string]any{"batch": b.ID})
	start := audit.NewEntry(ctx, b.CreatedAt, audit.BatchStart, b.Project, b.ID, b.Reason)
	start.Detail = stopDetail(
		map[string]any{"action": b.Action, "rate": b.Rate, "requestId": b.RequestID, "filter": b.Filter})
	stopped, err := s.store.StopWorkflow(ctx, b, Page, pause, start)
	if err != nil {
		return Stopped{}, err
	}
	s.wake()
	return stopped, nil
}

// PreviewStop returns what Stop would do. It changes nothing.
func (s *Service) PreviewStop(ctx context.Context, req StopRequest) (StopPreview, error) {
	if req.ExpectedOpen != nil {
		return StopPreview{}, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"the expected number of open runs is given for a dry run, which returns it: leave it out").
			WithField("expectedOpen", "only without a dry run")
	}
	b, err := s.prepareStop(ctx, req, cmp.Or(req.Reason, "dry run"))
	if err != nil {
		return StopPreview{}, err
	}
	b.Reason = req.Reason
	w, err := s.workflows.Get(ctx, b.Project, b.Filter.Workflow)
	if err != nil {
		return StopPreview{}, err
	}
	if w.State == workflow.StateDraft {
		return StopPreview{}, workflow.NotPublished(w.Name)
	}
	states, err := s.store.RunStates(ctx, b, nil)
	if err != nil {
		return StopPreview{}, err
	}
	return StopPreview{Preview: preview(b, states, nil), Workflow: w, Open: CountByStatus(states)}, nil
}

// prepareStop checks a request and returns its batch, without an ID.
func (s *Service) prepareStop(ctx context.Context, req StopRequest, reason string) (Batch, error) {
	if req.ExpectedOpen != nil && *req.ExpectedOpen < 0 {
		return Batch{}, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"the expected number of open runs is %d, less than 0", *req.ExpectedOpen).
			WithField("expectedOpen", "is less than 0")
	}
	name, err := s.workflows.Resolve(ctx, req.Project, req.Workflow)
	if err != nil {
		return Batch{}, err
	}
	b, _, err := s.prepare(ctx, StartRequest{
		Project: req.Project, Action: Cancel, Reason: reason, RequestID: req.RequestID,
		Filter: &run.Filter{Workflow: name, Statuses: []run.Status{run.Queued, run.Running, run.Waiting}},
	})
	b.Expected = req.ExpectedOpen
	return b, err
}

func stopDetail(facts map[string]any) json.RawMessage {
	facts["cause"] = stopCause
	text, _ := json.Marshal(facts) //nolint:errchkjson // texts and finite numbers always encode
	return text
}

// CountByStatus adds up counts of states by the status of the runs.
func CountByStatus(states []StateCount) map[run.Status]int64 {
	counts := map[run.Status]int64{}
	for _, s := range states {
		counts[s.State.Status] += s.Count
	}
	return counts
}

// MoreOpen returns the error for a workflow that has more open runs than the caller expected.
func MoreOpen(name string, expected, open int64) error {
	return apperror.New(apperror.Refused, apperror.BatchTotalChanged,
		"workflow %q has %d open runs now, more than the expected %d; nothing was changed: check them and try again", name,
		open, expected).
		WithFact("total", strconv.FormatInt(open, 10)).WithFact("expected", strconv.FormatInt(expected, 10))
}
