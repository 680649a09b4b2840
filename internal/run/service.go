package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// ErrUnknownOutcome marks an engine's error after which it is not known whether the execution was started.
var ErrUnknownOutcome = errors.New("the outcome is not known")

// ErrNotKnown is an engine's error for a run that Temporal does not have.
var ErrNotKnown = errors.New("temporal does not have the run")

// ErrClosed is an engine's error for a run that has ended in Temporal.
var ErrClosed = errors.New("the run has ended in temporal")

// Engine executes runs.
type Engine interface {
	// Check returns an [apperror.Unavailable] when no run can be started now. It has no side effect and returns at
	// once.
	Check(ctx context.Context) error
	// Start starts the execution and returns its ID in Temporal. Starting a run that is started already is a success.
	// Every error but [ErrUnknownOutcome] means that nothing was started.
	Start(ctx context.Context, r Run) (executionID string, err error)
	// Cancel requests cancellation, Terminate ends the execution at once, and Control sends the operation (pause,
	// unpause or resume_quota) to it. They may return [ErrNotKnown] or [ErrClosed].
	Cancel(ctx context.Context, r Run, reason string) error
	Terminate(ctx context.Context, r Run, reason string) error
	Control(ctx context.Context, r Run, op, reason string) error
	// Inspect is that of [Inspector].
	Inspect(ctx context.Context, r Run) (Execution, error)
}

// Workflows finds the workflow and version to execute.
type Workflows interface {
	Resolve(ctx context.Context, project, name string) (string, error)
	// Pin is that of [workflow.Service].
	Pin(ctx context.Context, project, name, version string) (workflow.Workflow, workflow.Version, error)
}

// Documents returns the documents that runs are pinned to.
type Documents interface {
	Document(ctx context.Context, hash string) (*dsl.Document, error)
}

// The kinds of an [Original].
const (
	// OriginalInput is a run's input without redaction.
	OriginalInput = "input"
	// OriginalEnd is the end of a run, OriginalStep one step, both in the JSON of package sealed.
	OriginalEnd  = "end"
	OriginalStep = "step"
	// OriginalSecrets is a list of texts that were sensitive somewhere in the run. There may be several.
	OriginalSecrets = "taint"
)

// Original is a sealed value that redaction marks stand for.
type Original struct {
	What string
	// Number is the step's; for secrets, any free number.
	Number int64
	// KeyID identifies the key that it was sealed with.
	KeyID  string
	Sealed []byte
}

// Secrecy determines how the values of a run are shown.
type Secrecy struct {
	RunID, Project, DocumentHash string
	Secrets                      []Original
}

// SealedStore reads originals. They are written with the rows that have marks, and deleted with the run.
type SealedStore interface {
	// Secrecies returns those of the runs that exist.
	Secrecies(ctx context.Context, ids []string) ([]Secrecy, error)
	// SealedOf returns a run's originals of one kind; for steps, those with numbers above after, up to the number upTo.
	SealedOf(ctx context.Context, id, what string, after, upTo int64) ([]Original, error)
}

// Originals returns unredacted inputs of runs.
type Originals interface {
	// Input returns the input as it was given; the row's may have marks in place of sensitive values.
	Input(ctx context.Context, r Run) (json.RawMessage, error)
}

// Workers reports what the live workers can execute.
type Workers interface {
	// Check returns an [apperror.Refused] when no worker would find what this process starts, and an
	// [apperror.Unavailable] with the reason [apperror.NoWorkerForProject] when live workers would, but none of them
	// serves the project.
	Check(ctx context.Context, project string) error
}

// Options configure the service.
type Options struct {
	// MaxInputBytes is the size of the largest accepted input.
	MaxInputBytes int
	// StartTimeout is how long the start of a run waits for Temporal.
	StartTimeout time.Duration
	// AnswerWithin is how long a caller waits for that; 0 means 1.5 s. After it the response is `queued: starting`.
	AnswerWithin time.Duration
	// FirstUpdateWithin is how long the row of a run whose first workflow task is executed in this process may stay
	// `queued: starting` after Temporal has accepted the run; 0 means 1 s. Most runs have their first update by then,
	// which saves the write of that state, also while many runs are started at once.
	FirstUpdateWithin time.Duration
	// MaxHandOvers is how many runs are handed over at a time; 0 means 512. A start that gets no slot within
	// AnswerWithin is refused.
	MaxHandOvers int
	// Queue configures whether runs are accepted while Temporal is unavailable.
	Queue QueueOptions
	// Workers is checked before each start; nil disables the check.
	Workers Workers
	// Originals are the inputs for replays; nil where rows contain them.
	Originals Originals
	// Redact replaces sensitive values in a text about a run by marks; nil where no run has sensitive values.
	Redact func(ctx context.Context, runID, text string) (string, error)
	// Mask finds the sensitive values of runs that are to be inserted; nil where no run has sensitive values.
	Mask Masking
	// Digests makes and compares digests of requests; nil where requests with the same ID are compared by workflow and
	// version alone.
	Digests Digests
	// Admit returns a fault while this process has no memory for one more run; nil disables the check.
	Admit func() error
	// Maintenance returns an [apperror.Unavailable] while the platform is in maintenance; nil disables the check. Runs
	// that other runs start are not checked, because open runs are to end.
	Maintenance func(ctx context.Context) error
	// MaxGeneration returns the largest generation of a run of a project; nil disables the check.
	MaxGeneration func(ctx context.Context, project string) (int, error)
	// Interpreter is the version of the interpreter that new runs start with.
	Interpreter int
	// Now is the clock.
	Now func() time.Time
	// Metrics counts starts.
	Metrics Metrics
	// Holds reports whether this process has records of a run that are not written yet; nil where it never has.
	Holds func(runID string) bool
	// Executes reports whether this process executes a workflow task of a run's execution; nil where it executes none.
	// Projected notifies of each run of which this process has written an update.
	Executes  func(runID, executionID string) bool
	Projected *pubsub.Notifier
	// Requested is called after a repair was requested, so that a worker of this process starts it before its next
	// poll; may be nil. It must not block.
	Requested func()
	// Changed receives changes of status that were written without the projection; may be nil.
	Changed func(ctx context.Context, transitions []Transition)
}

// Metrics counts starts.
type Metrics interface {
	// Count adds a run that entered a status.
	Count(ctx context.Context, project, status string)
	// Started records the time from the request to Temporal's acceptance.
	Started(ctx context.Context, took time.Duration)
}

// Service starts, finds and watches runs.
type Service struct {
	store     Store
	engine    Engine
	workflows Workflows
	documents Documents
	changes   *pubsub.Notifier
	opts      Options
	handOvers *startSlots
	repeats   *repeats
	compared  *comparisonPace
	feeds     *feeds

	resumption *resumption
	// unconfirmed are the execution IDs of the runs that Temporal has accepted and whose rows are still `queued:
	// starting`, by run.
	unconfirmed sync.Map
}

const (
	defaultAnswerWithin      = 1500 * time.Millisecond
	defaultFirstUpdateWithin = time.Second
	defaultHandOvers         = 512
)

// NewService returns the service. It notifies changes of every change that this process makes to a run.
func NewService(store Store, engine Engine, workflows Workflows, documents Documents, changes *pubsub.Notifier,
	opts Options) *Service {
	opts.AnswerWithin = cmp.Or(opts.AnswerWithin, defaultAnswerWithin)
	opts.FirstUpdateWithin = cmp.Or(opts.FirstUpdateWithin, defaultFirstUpdateWithin)
	return &Service{
		store: store, engine: engine, workflows: workflows, documents: documents, changes: changes, opts: opts,
		handOvers: newStartSlots(cmp.Or(opts.MaxHandOvers, defaultHandOvers), RetryAfter), repeats: newRepeats(),
		compared: newComparisonPace(), feeds: newFeeds(),
		resumption: newResumption(),
	}
}

// Close refuses further starts and waits for the hand-overs that callers no longer wait for: it lets them end within
// ctx, and then cancels them; the reconciler finds out their outcomes.
func (s *Service) Close(ctx context.Context) error { return s.handOvers.Close(ctx) }

// Get returns one run as its row shows it. It never waits for a row to be updated from Temporal: a row that is found to
// be behind is returned with Behind set, and a worker repairs it.
func (s *Service) Get(ctx context.Context, project, id string) (Run, error) {
	r, err := s.store.GetRun(ctx, project, id)
	if err == nil {
		s.compare(ctx, &r)
	}
	return r, err
}

// Steps lists a run's steps by number.
func (s *Service) Steps(ctx context.Context, project, id string, f StepFilter) (StepPage, error) {
	for _, status := range f.Statuses {
		if !slices.Contains(StepStatuses(), status) {
			return StepPage{}, apperror.New(apperror.Invalid, apperror.InvalidArgument, "step status %q is not one of %s",
				status, strings.Join(StepStatuses(), ", ")).WithField("statuses", "unknown status")
		}
	}
	if len(f.Text) > maxStepText {
		return StepPage{}, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"the text has %d bytes: search for at most %d",
			len(f.Text), maxStepText).WithField("text", "is too long")
	}
	if f.ParentPath != "" && !strings.HasPrefix(f.ParentPath, "/") {
		return StepPage{}, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"parent path %q: give the path of a step, or / for the steps of the document's own list", f.ParentPath).
			WithField("parentPath", "must begin with /")
	}
	if _, err := s.Get(ctx, project, id); err != nil {
		return StepPage{}, err
	}
	return s.store.ListSteps(ctx, project, id, f)
}

// maxStepText is the maximum length in bytes of a text that steps are searched for.
const maxStepText = 200

// StepStatuses are the statuses of steps.
func StepStatuses() []string {
	return []string{"running", "waiting", "completed", "failed", "skipped", "canceled"}
}

// NoStep is the error for a step that the run does not have, or that has no row because a summary counts it.
func NoStep(id string, number int64) error {
	return apperror.New(apperror.NotFound, apperror.StepNotFound,
		"run %q has no step %d, or the step is only counted in the summary of a long run", id, number)
}

// SumSteps returns totals of a run's steps by task.
func (s *Service) SumSteps(ctx context.Context, project, id string) ([]TaskTotals, error) {
	return s.store.SumSteps(ctx, project, id)
}

// StepSummary returns the summary of the steps that have no rows; nil when all have.
func (s *Service) StepSummary(ctx context.Context, project, id string) (*StepSummary, error) {
	return s.store.StepSummary(ctx, project, id, 0)
}
