package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/notice"
	"github.com/signalbox-dev/signalbox/internal/run/places"
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
	// Check returns a [fault.Unavailable] when no run can be started now. It has no side effect and answers at once.
	Check(ctx context.Context) error
	// Start starts the execution and returns its ID in Temporal. Starting a run that is started already is a success.
	// Every error but [ErrUnknownOutcome] means that nothing was started.
	Start(ctx context.Context, r Run) (executionID string, err error)
	// Cancel asks for cancellation, Terminate ends the execution at once, and Control hands the operation (pause, unpause or
	// resume_quota) to it. They may answer [ErrNotKnown] or [ErrClosed].
	Cancel(ctx context.Context, r Run, reason string) error
	Terminate(ctx context.Context, r Run, reason string) error
	Control(ctx context.Context, r Run, op, reason string) error
	// Look is that of [Inspector].
	Look(ctx context.Context, r Run) (Execution, error)
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

// What an [Original] is of.
const (
	// OriginalInput is a run's input, as it is.
	OriginalInput = "input"
	// OriginalEnd is a [SealedEnd] in JSON, OriginalStep a [SealedStep].
	OriginalEnd  = "end"
	OriginalStep = "step"
	// OriginalTaint is a list of texts that were sensitive somewhere in the run. There may be several.
	OriginalTaint = "taint"
)

// Original is what marks stand for, sealed.
type Original struct {
	What string
	// Number is the step's; of a taint, any that is free.
	Number int64
	// KeyID is of the key that it was sealed with.
	KeyID  string
	Sealed []byte
}

// Secrecy is what decides how the values of a run are shown.
type Secrecy struct {
	RunID, DocumentHash string
	Taint               []Original
}

// SealedStore keeps originals. They are written with the rows that have marks, and go with the run.
type SealedStore interface {
	// Secrecies returns those of the runs that there are.
	Secrecies(ctx context.Context, ids []string) ([]Secrecy, error)
	// SealedOf returns the originals of a run of a kind; of steps, those with numbers above after, up to the number upTo.
	SealedOf(ctx context.Context, id, what string, after, upTo int64) ([]Original, error)
}

// Originals give back what runs began with.
type Originals interface {
	// Input returns the input as it was given, where the row's may have marks in place of sensitive values.
	Input(ctx context.Context, r Run) (json.RawMessage, error)
}

// Workers know what the live workers were made for.
type Workers interface {
	// Check returns a [fault.Refused] when no worker would find what this process starts, and a [fault.Unavailable] with the reason
	// [fault.NoWorkerForProject] when live workers would, but none of them serves the project.
	Check(ctx context.Context, project string) error
}

// Options bound what the service accepts.
type Options struct {
	// MaxInputBytes is the largest input.
	MaxInputBytes int
	// StartTimeout is how long the start of a run waits for Temporal.
	StartTimeout time.Duration
	// AnswerWithin is how long a caller waits for that; 0 means 1.5 s. After it the answer is `queued: starting`.
	AnswerWithin time.Duration
	// MaxHandOvers is how many runs are being handed over at a time; 0 means 512. A start that finds no room within
	// AnswerWithin is refused.
	MaxHandOvers int
	// Queue says whether runs are taken while Temporal is away.
	Queue QueueOptions
	// Workers are asked before each start; nil where nobody need agree.
	Workers Workers
	// Originals are where replays find inputs; nil where rows have them.
	Originals Originals
	// Redact puts marks into a text about a run; nil where no run has sensitive values.
	Redact func(ctx context.Context, runID, text string) (string, error)
	// Digests make and compare digests of requests; nil where requests with the same ID are compared by workflow and version alone.
	Digests Digests
	// Admit returns a fault while this process has no memory for one more run; nil where it always has.
	Admit func() error
	// Interpreter is the version of the interpreter that new runs are given.
	Interpreter int
	// Now is the clock.
	Now func() time.Time
	// Metrics is told of starts.
	Metrics Metrics
	// Holds reports whether this process has records of a run that are not written yet; nil where it never has.
	Holds func(runID string) bool
	// Requested is called after a repair was requested, so that a worker of this process need not wait for its next look; may be
	// nil. It must not block.
	Requested func()
	// Changed receives changes of status that were written without the projection; may be nil.
	Changed func(ctx context.Context, transitions []Transition)
}

// Metrics counts starts.
type Metrics interface {
	// Count adds a run that came into a status.
	Count(ctx context.Context, project, status string)
	// Started records the time from the request to Temporal's acceptance.
	Started(ctx context.Context, project string, took time.Duration)
}

// Service starts, finds and watches runs.
type Service struct {
	store     Store
	engine    Engine
	workflows Workflows
	documents Documents
	changes   *notice.Board
	opts      Options
	handOvers *places.Places
	compared  *compared
	feeds     *feeds

	resumption *resumption
}

const (
	defaultAnswerWithin = 1500 * time.Millisecond
	defaultHandOvers    = 512
)

// NewService wires the service. changes is told of every change that this process makes to a run.
func NewService(store Store, engine Engine, workflows Workflows, documents Documents, changes *notice.Board, opts Options) *Service {
	opts.AnswerWithin = cmp.Or(opts.AnswerWithin, defaultAnswerWithin)
	return &Service{
		store: store, engine: engine, workflows: workflows, documents: documents, changes: changes, opts: opts,
		handOvers: places.New(cmp.Or(opts.MaxHandOvers, defaultHandOvers)), compared: newCompared(), feeds: newFeeds(),
		resumption: newResumption(),
	}
}

// Close refuses further starts and joins the hand-overs that callers no longer wait for: it lets them end within ctx, and
// then cuts them off; what became of those is for the reconciler to find out.
func (s *Service) Close(ctx context.Context) error { return s.handOvers.Close(ctx) }

// Get returns one run as its row shows it. It never waits for a row to be brought up to Temporal: one that is found to be behind
// says so and is repaired by a worker.
func (s *Service) Get(ctx context.Context, project, id string) (Run, error) {
	r, err := s.store.GetRun(ctx, project, id)
	if err == nil {
		s.compare(ctx, &r)
	}
	return r, err
}

// Steps lists a run's steps in order of entry.
func (s *Service) Steps(ctx context.Context, project, id string, after int64, limit int) ([]Step, error) {
	if _, err := s.Get(ctx, project, id); err != nil {
		return nil, err
	}
	return s.store.ListSteps(ctx, project, id, after, limit)
}

// StepSummary returns what is counted of the steps that have no rows; nil when all have.
func (s *Service) StepSummary(ctx context.Context, project, id string) (*StepSummary, error) {
	return s.store.StepSummary(ctx, project, id, 0)
}
