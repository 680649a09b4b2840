package start

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// Workflows finds the workflow and version to execute.
type Workflows interface {
	// Pin is that of [workflow.Service].
	Pin(ctx context.Context, project, name, version string) (workflow.Workflow, workflow.Version, error)
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
	// Executes reports whether this process executes a workflow task of a run's execution; nil where it executes none.
	// Projected notifies of each run of which this process has written an update.
	Executes  func(runID, executionID string) bool
	Projected *pubsub.Notifier
}

// Metrics counts starts.
type Metrics interface {
	// Count adds a run that entered a status.
	Count(ctx context.Context, project, status string)
	// Started records the time from the request to Temporal's acceptance.
	Started(ctx context.Context, took time.Duration)
}

// Service starts runs.
type Service struct {
	store     run.Store
	engine    run.Engine
	workflows Workflows
	documents run.Documents
	changes   *pubsub.Notifier
	opts      Options
	handOvers *slots
	repeats   *repeats

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

// New returns the service. It notifies changes of every change that this process makes to a run.
func New(store run.Store, engine run.Engine, workflows Workflows, documents run.Documents, changes *pubsub.Notifier,
	opts Options) *Service {
	opts.AnswerWithin = cmp.Or(opts.AnswerWithin, defaultAnswerWithin)
	opts.FirstUpdateWithin = cmp.Or(opts.FirstUpdateWithin, defaultFirstUpdateWithin)
	return &Service{
		store: store, engine: engine, workflows: workflows, documents: documents, changes: changes, opts: opts,
		handOvers: newSlots(cmp.Or(opts.MaxHandOvers, defaultHandOvers), RetryAfter), repeats: newRepeats(),
		resumption: newResumption(),
	}
}

// Close refuses further starts and waits for the hand-overs that callers no longer wait for: it lets them end within
// ctx, and then cancels them; the reconciler finds out their outcomes.
func (s *Service) Close(ctx context.Context) error { return s.handOvers.Close(ctx) }
