package batch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/start"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

const (
	// maxReason leaves room for the batch's ID within the limit of reasons of controls.
	maxReason = 900
	maxRunID  = 200
)

// StartRequest is a request for a batch.
type StartRequest struct {
	Project string
	Action  Action
	// RunIDs are the runs, or else Filter selects them. A duplicate counts once.
	RunIDs []string
	Filter *run.Filter
	Reason string
	// Rate in items per second; zero means [DefaultRate].
	Rate float64
	// RequestID may be empty: one is generated.
	RequestID string
	// Version is only for replays.
	Version string
	// ExpectedTotal is the number of runs that the filter must select; nil for any number.
	ExpectedTotal *int64
}

// RequestIDReused returns the error for a request ID that belongs to a batch of another request.
func RequestIDReused(stored Batch) error {
	return apperror.New(apperror.Exists, apperror.RequestIDReused,
		"request ID %q was used before, for batch %s, which does something else; use a new one", stored.RequestID, stored.ID).
		WithField("requestId", "belongs to another request")
}

// Workflows finds workflows.
type Workflows interface {
	// Resolve returns the full name of a workflow, Get a workflow, both for a full or short name.
	Resolve(ctx context.Context, project, name string) (string, error)
	Get(ctx context.Context, project, name string) (workflow.Workflow, error)
}

// Service starts, finds and controls batches.
type Service struct {
	store     Store
	workflows Workflows
	wake      func()
	now       func() time.Time
}

// NewService returns a service. wake is called when there may be work.
func NewService(store Store, workflows Workflows, wake func(), now func() time.Time) *Service {
	return &Service{store: store, workflows: workflows, wake: wake, now: now}
}

// prepare checks a request and returns its batch, without an ID, and its distinct run IDs.
func (s *Service) prepare(ctx context.Context, req StartRequest) (Batch, []string, error) {
	if err := check(req); err != nil {
		return Batch{}, nil, err
	}
	b := Batch{
		Project: req.Project, Action: req.Action, Reason: req.Reason, Rate: cmp.Or(req.Rate, DefaultRate),
		Version:   req.Version,
		RequestID: req.RequestID, CreatedAt: s.now(), Expected: req.ExpectedTotal,
	}
	b.Actor, _ = auth.ActorFrom(ctx)
	if req.Filter != nil {
		f := *req.Filter
		if f.Workflow != "" {
			full, err := s.workflows.Resolve(ctx, req.Project, f.Workflow)
			if err != nil {
				return Batch{}, nil, err
			}
			f.Workflow = full
		}
		b.Filter = &f
	}
	return b, distinct(req.RunIDs), nil
}

// Start records the selected runs and starts the batch. It returns false with the existing batch when the request ID
// was used before.
func (s *Service) Start(ctx context.Context, req StartRequest) (Batch, bool, error) {
	b, ids, err := s.prepare(ctx, req)
	if err != nil {
		return Batch{}, false, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Batch{}, false, fmt.Errorf("making the ID of a batch: %w", err)
	}
	b.ID, b.Fingerprint = id.String(), fingerprint(b, ids)
	b.RequestID = cmp.Or(b.RequestID, b.ID)
	entry := audit.NewEntry(ctx, b.CreatedAt, audit.BatchStart, b.Project, b.ID, b.Reason)
	entry.Detail = detail(b, ids)
	stored, created, err := s.store.StartBatch(ctx, b, ids, Page, entry)
	if err != nil {
		return Batch{}, false, err
	}
	if stored.Fingerprint != b.Fingerprint {
		return Batch{}, false, RequestIDReused(stored)
	}
	s.wake()
	return stored, created, nil
}

// Get returns one batch.
func (s *Service) Get(ctx context.Context, project, id string) (Batch, error) {
	return s.store.GetBatch(ctx, project, id)
}

// List lists batches, newest first.
func (s *Service) List(ctx context.Context, f ListFilter) ([]Batch, error) {
	for _, status := range f.Statuses {
		if !slices.Contains(Statuses(), status) {
			return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument, "batch status %q is not one of %v", status,
				Statuses()).
				WithField("statuses", "unknown status %q", status)
		}
	}
	return s.store.ListBatches(ctx, f)
}

// Items lists the runs of a batch with the result of each.
func (s *Service) Items(ctx context.Context, f ItemFilter) ([]Item, error) {
	if f.Status != "" && !slices.Contains(ItemStatuses(), f.Status) {
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument, "item status %q is not one of %v", f.Status,
			ItemStatuses()).
			WithField("status", "unknown status %q", f.Status)
	}
	if f.Outcome != "" && !slices.Contains(AllOutcomes(), f.Outcome) {
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument, "outcome %q is not one of %v", f.Outcome,
			AllOutcomes()).
			WithField("outcome", "unknown outcome %q", f.Outcome)
	}
	return s.store.ListBatchItems(ctx, f)
}

// Pause pauses a batch once the items in flight have finished. Pausing a paused batch changes nothing.
func (s *Service) Pause(ctx context.Context, project, id string) (Batch, error) {
	return s.store.PauseBatch(ctx, project, id, true, audit.NewEntry(ctx, s.now(), audit.BatchPause, project, id, ""))
}

// Unpause resumes a batch.
func (s *Service) Unpause(ctx context.Context, project, id string) (Batch, error) {
	b, err := s.store.PauseBatch(ctx, project, id, false,
		audit.NewEntry(ctx, s.now(), audit.BatchUnpause, project, id, ""))
	s.wake()
	return b, err
}

// Retry retries only the failed items, and replays the runs that a batch of replays started and that failed.
func (s *Service) Retry(ctx context.Context, project, id string) (Batch, error) {
	b, err := s.store.RetryBatch(ctx, project, id, audit.NewEntry(ctx, s.now(), audit.BatchRetry, project, id, ""))
	s.wake()
	return b, err
}

// check returns everything that is wrong with a request.
func check(req StartRequest) error {
	var found []apperror.Field
	add := func(path, format string, args ...any) {
		found = append(found, apperror.Field{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	if !slices.Contains(Actions(), req.Action) {
		add("action", "is %q, not one of %v", req.Action, Actions())
	}
	switch named := len(req.RunIDs); {
	case named == 0 && req.Filter == nil:
		add("runIds", "or filter is required; a filter without conditions selects every run")
	case named > 0 && req.Filter != nil:
		add("filter", "is given together with runIds; give one of the two")
	case named > MaxIDs:
		add("runIds", "are %d, more than %d; use a filter or several batches", named, MaxIDs)
	}
	if i := slices.IndexFunc(req.RunIDs, func(id string) bool { return id == "" || len(id) > maxRunID }); i >= 0 {
		add(fmt.Sprintf("runIds[%d]", i), "is not a run ID: it is empty or longer than %d bytes", maxRunID)
	}
	switch {
	case strings.TrimSpace(req.Reason) == "":
		add("reason", "is required: the audit log records it with every run")
	case len(req.Reason) > maxReason:
		add("reason", "has %d bytes, more than %d", len(req.Reason), maxReason)
	}
	if req.Rate != 0 && !(req.Rate >= MinRate && req.Rate <= MaxRate) || math.IsNaN(req.Rate) {
		add("rate", "is %v, not between %v and %v items per second; 0 means %v", req.Rate, MinRate, MaxRate, DefaultRate)
	}
	switch {
	case req.ExpectedTotal == nil:
	case req.Filter == nil:
		add("expectedTotal", "is only for a filter: the runs are given by ID")
	case *req.ExpectedTotal < 0:
		add("expectedTotal", "is %d, less than 0", *req.ExpectedTotal)
	}
	if violation := start.RequestIDViolation(req.RequestID); violation != "" {
		add("requestId", "%s", violation)
	}
	switch {
	case req.Version != "" && req.Action != Replay:
		add("version", "is only for replays")
	case req.Version != "" && req.Version != Latest:
		add("version", "is %q; give %q for the newest published one, or nothing for each run's own", req.Version, Latest)
	}
	if req.Filter != nil {
		checkFilter(*req.Filter, add)
	}
	if len(found) == 0 {
		return nil
	}
	f := apperror.New(apperror.Invalid, apperror.InvalidArgument, "the batch was not started: %s %s", found[0].Path,
		found[0].Message)
	f.Fields = found
	return f
}

func checkFilter(f run.Filter, add func(path, format string, args ...any)) {
	for _, err := range []error{f.Check(), f.CheckPeriods()} {
		if e, wrong := apperror.From(err); wrong {
			for _, field := range e.Fields {
				add("filter."+field.Path, "%s", field.Message)
			}
		}
	}
}

// distinct returns each ID once, in the order given.
func distinct(ids []string) []string {
	seen := make(map[string]struct{}, len(ids))
	var out []string
	for _, id := range ids {
		if _, twice := seen[id]; !twice {
			seen[id] = struct{}{}
			out = append(out, id)
		}
	}
	return out
}

// fingerprint is equal for equal requests. It leaves out the reason and the rate, which do not change the effect.
func fingerprint(b Batch, ids []string) string { return hash(b.Action, b.Version, b.Filter, ids) }

func hash(parts ...any) string {
	text, _ := json.Marshal(parts) //nolint:errchkjson // texts and times always encode
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func detail(b Batch, ids []string) json.RawMessage {
	facts := map[string]any{"action": b.Action, "rate": b.Rate, "requestId": b.RequestID}
	if b.Version != "" {
		facts["version"] = b.Version
	}
	if b.Filter != nil {
		facts["filter"] = b.Filter
	} else {
		facts["runs"] = len(ids)
	}
	text, _ := json.Marshal(facts) //nolint:errchkjson // as above; the rate is finite
	return text
}
