// Package explain determines what an open run waits for, and why the catch of a failed try did not handle its error.
//
//	service := explain.New(explain.Options{Store: store.Waits(), Redactor: sealer, Documents: documents, Key: interp.EntryKey, …})
//	list, err := service.Waits(ctx, r)         // for one run
//	reasons := service.Uncaught(ctx, r, steps)
//
// Both follow from stored data: the run's row, its open steps, listeners and awaited children, and the document. Only
// [run.StepWait] is written for this purpose, for facts that only the interpreter has. The rest costs a run nothing.
// The decisions are the functions [Waits] and [Uncaught], which perform no I/O. Facts that cannot be derived are marked
// as unknown.
package explain

import (
	"context"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/taskindex"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Most is the largest number of open steps of a run that are explained at once. More are open only where a fork has
// that many branches.
const Most = 500

// Rows is the stored data about what a run waits for.
type Rows struct {
	// Steps are the open steps of a page without their inputs and outputs, by number. More reports whether there are
	// further ones.
	Steps []run.Step
	More  bool
	// Around are the open steps of earlier pages that contain steps of this one.
	Around []run.Step
	// Listeners are those of Steps, Children the runs that they await.
	Listeners []event.Listener
	Children  []Child
}

// Page selects open steps.
type Page struct {
	// After is the number of the last step of the previous page; 0 for the first page.
	After int64
	// Limit is the maximum number of open steps.
	Limit int
	// Key returns the name of the entry with a path: that of its listener, and of the run that it awaits.
	Key func(path string) string
}

// Child is a run that another run awaits.
type Child struct {
	// Key names the entry into the task that awaits it.
	Key                      string
	RunID, Workflow, Version string
	Status                   run.Status
	QueuedReason             string
	WaitingKind              string
}

// Store reads what is pending of a run, and which events and listeners may concern each other.
type Store interface {
	Pending(ctx context.Context, project, runID string, p Page) (Rows, error)
	// Listening returns up to limit listeners of open runs that can match events of a type, those first that began to wait
	// last.
	Listening(ctx context.Context, project, typ string, limit int) ([]Listening, error)
	// NotTaken returns up to limit events, newest first, that were accepted since a run's start and have no delivery to
	// it: of one of the types, or of any. start is the position of the start.
	NotTaken(ctx context.Context, project, runID string, types []string,
		limit int) (list []event.Event, start int64, err error)
}

// Events reads events with their originals.
type Events interface {
	EventsAt(ctx context.Context, project string, positions []int64) ([]event.Event, error)
}

// Runs reads runs.
type Runs interface {
	Get(ctx context.Context, project, id string) (run.Run, error)
}

// Redactor opens the values that listeners expect, and replaces sensitive values by marks. A value that cannot be
// opened becomes nil.
type Redactor interface {
	Listeners(ctx context.Context, runID string, list []event.Listener) ([]event.Listener, error)
	// OpenToCompare returns copies with the values that are compared. They are not shown.
	OpenToCompare(events []event.Event, listeners []event.Listener) ([]event.Event, []event.Listener)
}

// Options are what the service reads from.
type Options struct {
	Store     Store
	Events    Events
	Runs      Runs
	Redactor  Redactor
	Documents run.Documents
	// Key names one entry into a task: the listener of a listen task and the child of a run task have that name.
	Key func(runID, path string) string
}

// Service explains runs. It is safe for concurrent use.
type Service struct{ opts Options }

// New returns the service.
func New(opts Options) *Service { return &Service{opts: opts} }

// Waits returns what a run waits for, in the order of its steps, after the step with this number; 0 for the first page,
// which begins with what holds the run as a whole. It examines up to limit open steps. last is the step after which the
// next page begins; 0 if this is the last page. A run that has ended waits for nothing.
func (s *Service) Waits(ctx context.Context, r run.Run, after int64, limit int) (list []Wait, last int64, err error) {
	if r.Status.Terminal() || r.Status == run.Queued && after > 0 {
		return nil, 0, nil
	}
	var stored []event.Listener
	state := State{Run: r, Key: s.opts.Key, After: after}
	if r.Status != run.Queued {
		page := Page{After: after, Limit: limit, Key: func(path string) string { return s.opts.Key(r.ID, path) }}
		if state.Rows, err = s.opts.Store.Pending(ctx, r.Project, r.ID, page); err != nil {
			return nil, 0, err
		}
		if stored = state.Rows.Listeners; len(stored) > 0 {
			state.Rows.Listeners = s.listeners(ctx, r, state.Rows.Listeners)
		}
		state.Document = s.document(ctx, r)
	}
	if state.Rows.More {
		last = state.Rows.Steps[len(state.Rows.Steps)-1].Number
	}
	list = Waits(state)
	if after == 0 && len(state.Rows.Listeners) > 0 {
		err = s.near(ctx, r, state.Document, stored, state.Rows.Listeners, list)
	}
	return list, last, err
}

// Uncaught returns, by step number, why the catch did not handle the error, for those of the steps that are failed
// tries.
func (s *Service) Uncaught(ctx context.Context, r run.Run, steps []run.Step) map[int64]string {
	var tasks map[string]*dsl.Task
	found := map[int64]string{}
	for i := range steps {
		t := &steps[i]
		if t.Kind != string(dsl.KindTry) || t.Status != stepFailed {
			continue
		}
		if tasks == nil {
			doc := s.document(ctx, r)
			if doc == nil {
				return nil
			}
			tasks = taskindex.Of(doc)
		}
		if why := Uncaught(tasks[t.Pointer], t); why != "" {
			found[t.Number] = why
		}
	}
	return found
}

// document returns the document of a run. It is nil where there is none, as for imported runs, or where it cannot be
// read: the run is shown nevertheless.
func (s *Service) document(ctx context.Context, r run.Run) *dsl.Document {
	if r.DocumentHash == "" {
		return nil
	}
	doc, err := s.opts.Documents.Document(ctx, r.DocumentHash)
	if err != nil {
		logger.FromContext(ctx).DebugContext(ctx, "Document of a run could not be read to explain the run", "run_id", r.ID,
			"error", err)
		return nil
	}
	return doc
}

// listeners returns the redacted listeners; none where they cannot be redacted.
func (s *Service) listeners(ctx context.Context, r run.Run, list []event.Listener) []event.Listener {
	shown, err := s.opts.Redactor.Listeners(ctx, r.ID, list)
	if err != nil {
		logger.FromContext(ctx).DebugContext(ctx, "Listeners of a run could not be redacted to explain the run",
			"run_id", r.ID, "error", err)
		return nil
	}
	return shown
}
