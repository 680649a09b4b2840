// Package explain says what an open run waits for, and why the catch of a failed try did not handle its error.
//
//	service := explain.New(explain.Options{Store: store.Waits(), Redactor: vault, Documents: documents, Key: interp.EntryKey})
//	list, err := service.Waits(ctx, r)         // for one run
//	reasons := service.Uncaught(ctx, r, steps)
//
// Both follow from what is stored anyway: the run's row, its open steps, listeners and awaited children, and the document. Nothing is
// written for it, so that it costs a run nothing and works for runs of earlier releases. The decisions are the functions [Waits] and
// [Uncaught], which do no I/O. What cannot be known from all this is marked as unknown.
package explain

import (
	"context"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/taskindex"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Most is up to how many open steps of a run are explained. More are open only where a fork has that many branches.
const Most = 500

// Rows are what is stored of what a run waits for.
type Rows struct {
	// Steps are the open steps without their inputs and outputs, by number: the first [Most] of them. More reports whether there are
	// further ones.
	Steps []run.Step
	More  bool
	// Listeners are those of the run, Children the runs whose ends it awaits.
	Listeners []event.Listener
	Children  []Child
}

// Child is a run whose end another run awaits.
type Child struct {
	// Key names the entry into the task that awaits it.
	Key                      string
	RunID, Workflow, Version string
	Status                   run.Status
	QueuedReason             string
	WaitingKind              string
}

// Store reads what is pending of a run.
type Store interface {
	Pending(ctx context.Context, project, runID string, limit int) (Rows, error)
}

// Redactor opens what listeners expect, and puts marks in place of what is sensitive. A value that cannot be opened becomes nil.
type Redactor interface {
	Listeners(ctx context.Context, runID string, list []event.Listener) ([]event.Listener, error)
}

// Options are what the service reads from.
type Options struct {
	Store     Store
	Redactor  Redactor
	Documents run.Documents
	// Key names one entry into a task: the listener of a listen task and the child of a run task have that name.
	Key func(runID, path string) string
}

// Service explains runs. It is safe for concurrent use.
type Service struct{ opts Options }

// New returns the service.
func New(opts Options) *Service { return &Service{opts: opts} }

// Waits returns what a run waits for, in the order of its steps, and whether there is more than that. A run that has ended waits for
// nothing.
func (s *Service) Waits(ctx context.Context, r run.Run) (list []Wait, more bool, err error) {
	if r.Status.Terminal() {
		return nil, false, nil
	}
	state := State{Run: r, Key: s.opts.Key}
	if r.Status != run.Queued {
		if state.Rows, err = s.opts.Store.Pending(ctx, r.Project, r.ID, Most); err != nil {
			return nil, false, err
		}
		if len(state.Rows.Listeners) > 0 {
			state.Rows.Listeners = s.listeners(ctx, r, state.Rows.Listeners)
		}
		state.Document = s.document(ctx, r)
	}
	return Waits(state), state.Rows.More, nil
}

// Uncaught returns, by number, why the catch of those of the steps that are failed tries did not handle the error.
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

// document returns the document of a run; nil where there is none, as for runs that were imported, or it cannot be read: a run is shown
// in any case.
func (s *Service) document(ctx context.Context, r run.Run) *dsl.Document {
	if r.DocumentHash == "" {
		return nil
	}
	doc, err := s.opts.Documents.Document(ctx, r.DocumentHash)
	if err != nil {
		logger.FromContext(ctx).DebugContext(ctx, "Document of a run could not be read to explain the run", "run_id", r.ID, "error", err)
		return nil
	}
	return doc
}

// listeners returns listeners as they may be shown; none where that cannot be found out.
func (s *Service) listeners(ctx context.Context, r run.Run, list []event.Listener) []event.Listener {
	shown, err := s.opts.Redactor.Listeners(ctx, r.ID, list)
	if err != nil {
		logger.FromContext(ctx).DebugContext(ctx, "Listeners of a run could not be redacted to explain the run", "run_id", r.ID, "error", err)
		return nil
	}
	return shown
}
