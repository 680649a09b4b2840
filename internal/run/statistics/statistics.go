// Package statistics summarises the recent runs of workflows.
//
//	s := statistics.NewService(statistics.Options{Store: store, …})
//	byName, err := s.OfWorkflows(ctx, "default", []string{"shop/order"}, 24*time.Hour)
//	grid, err := s.Grid(ctx, statistics.GridRequest{Project: "default", Workflow: "shop/order"})
//
// All reads are bounded: counts end at [run.MaxCount], and success rates and durations describe the newest [MaxSample]
// ended runs of the window; a grid covers at most [MaxRuns] runs and 2 × [GridSteps] steps of each. A value that is not
// known is nil, never zero.
package statistics

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Bounds of statistics.
const (
	// MaxSample is the number of ended runs of a workflow from which success rate and durations are computed.
	MaxSample = 1000
	// MaxRecent is the number of runs in [Workflow.Recent].
	MaxRecent = 20
	// MaxWorkflows is the number of workflows of one call.
	MaxWorkflows = 50
	// DefaultWindow, MinWindow and MaxWindow are lengths of the window.
	DefaultWindow = 24 * time.Hour
	MinWindow     = time.Minute
	MaxWindow     = 90 * 24 * time.Hour
)

// The names, beside those of statuses, of the counts in [Workflow.More].
const (
	CountOpen  = "open"
	CountStuck = "stuck"
)

// Window is a period of creation of runs: Since is inclusive, Until exclusive.
type Window struct{ Since, Until time.Time }

// Ended is a run in a sample.
type Ended struct {
	Status run.Status
	// Duration is nil if the row lacks the start or the end.
	Duration *time.Duration
}

// Recent is one of the newest runs of a workflow.
type Recent struct {
	ID        string
	Status    run.Status
	CreatedAt time.Time
	// Duration is nil while the run is open, and if it never started.
	Duration *time.Duration
}

// Rows are what a [Store] reads of one workflow.
type Rows struct {
	// Statuses counts the runs of the window, up to one more than [run.MaxCount] per status.
	Statuses map[run.Status]int64
	// Open counts the open runs by status, Stuck the stuck ones, also up to one more than [run.MaxCount].
	Open  map[run.Status]int64
	Stuck int64
	// Sample has the newest ended runs of the window, in any order, at most [MaxSample].
	Sample []Ended
	// Recent has the newest runs, at most [MaxRecent], newest first.
	Recent []Recent
}

// Store reads the runs of workflows.
type Store interface {
	// ReadWorkflows returns the rows of existing workflows of a project by name; the others are omitted.
	ReadWorkflows(ctx context.Context, project string, names []string, w Window) (map[string]Rows, error)
	// ReadCells returns the first and the last [GridSteps] steps of runs, grouped by run, task and status.
	ReadCells(ctx context.Context, runIDs []string) ([]TaskRows, error)
	// ReadLengths returns when the runs of a list began and ended.
	ReadLengths(ctx context.Context, f run.Filter) ([]Length, error)
}

// Workflow is the statistics of one workflow.
type Workflow struct {
	Window Window
	// Statuses counts the runs of the window; statuses without runs are omitted.
	Statuses map[run.Status]int64
	// SuccessRate is the share of completed runs among those of the sample that completed, failed or timed out; nil if
	// there are none.
	SuccessRate *float64
	// P50 and P95 are durations of the runs of the sample; nil if none has a duration.
	P50, P95 *time.Duration
	// Sample is the number of runs in the sample.
	Sample      int64
	Recent      []Recent
	Open, Stuck int64
	// More names the counts that are limits: statuses, [CountOpen] or [CountStuck].
	More []string
}

// Options are what a [Service] needs.
type Options struct {
	Store Store
	// Runs lists runs.
	Runs      Runs
	Workflows Workflows
	Documents Documents
	Now       func() time.Time
}

// Service computes statistics.
type Service struct{ Options }

// NewService returns a service.
func NewService(o Options) *Service { return &Service{o} }

// OfWorkflows returns the statistics of workflows, at most [MaxWorkflows], by full name. A window of zero is
// [DefaultWindow].
func (s *Service) OfWorkflows(ctx context.Context, project string, names []string,
	window time.Duration) (map[string]Workflow, error) {
	if window == 0 {
		window = DefaultWindow
	}
	if window < MinWindow || window > MaxWindow {
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"the window of the statistics is %s, not between %s and %s", window, MinWindow, MaxWindow).
			WithField("statsWindow", "must be between %s and %s", MinWindow, MaxWindow)
	}
	if len(names) == 0 {
		return nil, nil
	}
	until := s.Now()
	w := Window{Since: until.Add(-window), Until: until}
	rows, err := s.Store.ReadWorkflows(ctx, project, names, w)
	if err != nil {
		return nil, err
	}
	out := make(map[string]Workflow, len(rows))
	for name, r := range rows {
		out[name] = r.statistics(w)
	}
	return out, nil
}

func (r Rows) statistics(w Window) Workflow {
	out := Workflow{Window: w, Statuses: map[run.Status]int64{}, Sample: int64(len(r.Sample)), Recent: r.Recent}
	bounded := func(name string, n int64) int64 {
		if n > run.MaxCount {
			out.More = append(out.More, name)
			return run.MaxCount
		}
		return n
	}
	for _, status := range run.Statuses() {
		if n := r.Statuses[status]; n > 0 {
			out.Statuses[status] = bounded(string(status), n)
		}
		out.Open += r.Open[status]
	}
	out.Open, out.Stuck = bounded(CountOpen, out.Open), bounded(CountStuck, r.Stuck)
	out.SuccessRate = successRate(r.Sample)
	out.P50, out.P95 = percentiles(r.Sample)
	return out
}

func successRate(sample []Ended) *float64 {
	var completed, failed float64
	for _, e := range sample {
		switch e.Status {
		case run.Completed:
			completed++
		case run.Failed, run.TimedOut:
			failed++
		case run.Queued, run.Running, run.Waiting, run.Canceled, run.Terminated:
		}
	}
	if completed+failed == 0 {
		return nil
	}
	return new(completed / (completed + failed))
}

// percentiles returns the durations that half and 95 % of the runs do not exceed (nearest rank).
func percentiles(sample []Ended) (p50, p95 *time.Duration) {
	var durations []time.Duration
	for _, e := range sample {
		if e.Duration != nil {
			durations = append(durations, *e.Duration)
		}
	}
	if len(durations) == 0 {
		return nil, nil
	}
	slices.Sort(durations)
	rank := func(share float64) *time.Duration {
		return new(durations[int(math.Ceil(share*float64(len(durations))))-1])
	}
	return rank(0.5), rank(0.95)
}
