// Package read reads, lists, counts and watches runs, their steps and their logs.
//
//	reads := read.New(store, engine, workflows, changes, read.Options{…})
//	r, err := reads.Get(ctx, project, id)
//	list, err := reads.List(ctx, run.Filter{Project: project})
//	err = reads.Watch(ctx, read.Watched{Project: project, ID: id}, func(c read.Change) error { … })
//
// A read never waits for a row to be updated from Temporal.
package read

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Workflows finds workflows by their names.
type Workflows interface {
	// Resolve returns the full name of a workflow.
	Resolve(ctx context.Context, project, name string) (string, error)
}

// Inspector compares runs with Temporal.
type Inspector interface {
	// Inspect is that of [run.Inspector].
	Inspect(ctx context.Context, r run.Run) (run.Execution, error)
}

// Options configure a reader.
type Options struct {
	// Holds reports whether this process has records of a run that are not written yet; nil where it never has.
	Holds func(runID string) bool
	// Requested is that of [run.RepairRequests].
	Requested func()
	// Now is the clock.
	Now func() time.Time
}

// Reader reads, lists, counts and watches runs.
type Reader struct {
	store     run.Store
	engine    Inspector
	workflows Workflows
	changes   *pubsub.Notifier
	opts      Options
	repairs   run.RepairRequests
	compared  *comparisonPace
	feeds     *feeds
}

// New returns a reader. Changes reports the runs that this process changes.
func New(store run.Store, engine Inspector, workflows Workflows, changes *pubsub.Notifier,
	opts Options) *Reader {
	return &Reader{store: store, engine: engine, workflows: workflows, changes: changes, opts: opts,
		repairs: run.RepairRequests{Rows: store, Requested: opts.Requested}, compared: newComparisonPace(), feeds: newFeeds()}
}

// Get returns one run as its row shows it. It never waits for a row to be updated from Temporal: a row that is found to
// be behind is returned with Behind set, and a worker repairs it.
func (s *Reader) Get(ctx context.Context, project, id string) (run.Run, error) {
	r, err := s.store.GetRun(ctx, project, id)
	if err == nil {
		s.compare(ctx, &r)
	}
	return r, err
}

// Steps lists a run's steps by number.
func (s *Reader) Steps(ctx context.Context, project, id string, f run.StepFilter) (run.StepPage, error) {
	for _, status := range f.Statuses {
		if !slices.Contains(run.StepStatuses(), status) {
			return run.StepPage{}, apperror.New(apperror.Invalid, apperror.InvalidArgument, "step status %q is not one of %s",
				status, strings.Join(run.StepStatuses(), ", ")).WithField("statuses", "unknown status")
		}
	}
	if len(f.Text) > maxStepText {
		return run.StepPage{}, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"the text has %d bytes: search for at most %d",
			len(f.Text), maxStepText).WithField("text", "is too long")
	}
	if f.ParentPath != "" && !strings.HasPrefix(f.ParentPath, "/") {
		return run.StepPage{}, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"parent path %q: give the path of a step, or / for the steps of the document's own list", f.ParentPath).
			WithField("parentPath", "must begin with /")
	}
	if _, err := s.Get(ctx, project, id); err != nil {
		return run.StepPage{}, err
	}
	return s.store.ListSteps(ctx, project, id, f)
}

// maxStepText is the maximum length in bytes of a text that steps are searched for.
const maxStepText = 200

// SumSteps returns totals of a run's steps by task.
func (s *Reader) SumSteps(ctx context.Context, project, id string) ([]run.TaskTotals, error) {
	return s.store.SumSteps(ctx, project, id)
}

// StepSummary returns the summary of the steps that have no rows; nil when all have.
func (s *Reader) StepSummary(ctx context.Context, project, id string) (*run.StepSummary, error) {
	return s.store.StepSummary(ctx, project, id, 0)
}
