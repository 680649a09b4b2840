package statistics

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/taskindex"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// Bounds of a grid.
const (
	// DefaultRuns and MaxRuns are numbers of runs.
	DefaultRuns = 30
	MaxRuns     = 50
	// GridSteps is the number of a run's first steps, and of its last steps, that a grid covers.
	GridSteps = 1000
)

// Runs lists runs, newest first.
type Runs interface {
	ListRuns(ctx context.Context, f run.Filter) ([]run.Run, error)
}

// Workflows finds workflows and their versions by full or short name.
type Workflows interface {
	Get(ctx context.Context, project, name string) (workflow.Workflow, error)
	GetVersion(ctx context.Context, project, name, version string) (workflow.Version, error)
}

// Documents reads compiled documents by hash.
type Documents interface {
	Document(ctx context.Context, hash string) (*dsl.Document, error)
}

// TaskRows are the steps of one task and status in one run.
type TaskRows struct {
	RunID, Pointer, Task, Kind, Status string
	Count, Attempts                    int64
	// StartedAt is the first start and EndedAt the last end; zero if there is none. Open reports that not all steps have
	// ended.
	StartedAt, EndedAt time.Time
	Open               bool
}

// GridRequest selects the runs of a grid.
type GridRequest struct {
	Project, Workflow string
	// Version is empty for runs of all versions.
	Version string
	// Runs is the maximum number of runs; zero is [DefaultRuns].
	Runs int
}

// Grid is the newest runs of a workflow by its tasks.
type Grid struct {
	Tasks []GridTask
	Runs  []run.Run
	// Cells are ordered by run and task.
	Cells []Cell
}

// GridTask is a task of a document.
type GridTask struct{ Pointer, Name, Kind string }

// Cell is what one task did in one run; Run and Task are indexes.
type Cell struct {
	Run, Task       int
	Status          string
	Count, Attempts int64
	// Duration is from the first start to the last end; nil while a step is open.
	Duration *time.Duration
}

// Partial reports whether a run has more steps than its cells cover.
func Partial(r run.Run) bool { return r.StepsTotal > 2*GridSteps }

// DurationOf returns the time from the start to the end of a run; nil if the row lacks one of them.
func DurationOf(r run.Run) *time.Duration { return between(r.StartedAt, r.EndedAt) }

func between(start, end time.Time) *time.Duration {
	if start.IsZero() || end.IsZero() {
		return nil
	}
	return new(end.Sub(start))
}

// Grid returns the newest runs of a workflow by its tasks.
func (s *Service) Grid(ctx context.Context, req GridRequest) (Grid, error) {
	if req.Runs < 0 || req.Runs > MaxRuns {
		return Grid{}, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"runs is %d, not between 1 and %d; 0 means %d", req.Runs, MaxRuns, DefaultRuns).
			WithField("runs", "must be between 1 and %d", MaxRuns)
	}
	w, err := s.Workflows.Get(ctx, req.Project, req.Workflow)
	if err != nil {
		return Grid{}, err
	}
	var g Grid
	if version := cmp.Or(req.Version, w.LatestVersion); version != "" {
		if g.Tasks, err = s.tasks(ctx, req.Project, w.Name, version); err != nil {
			return Grid{}, err
		}
	}
	g.Runs, err = s.Runs.ListRuns(ctx, run.Filter{
		Project: req.Project, Workflow: w.Name, Version: req.Version, Limit: cmp.Or(req.Runs, DefaultRuns),
	})
	if err != nil {
		return Grid{}, err
	}
	ids := make([]string, len(g.Runs))
	for i, r := range g.Runs {
		ids[i] = r.ID
	}
	rows, err := s.Store.ReadCells(ctx, ids)
	if err != nil {
		return Grid{}, err
	}
	g.add(ids, rows)
	return g, nil
}

// tasks returns the tasks of a version in the order of its document.
func (s *Service) tasks(ctx context.Context, project, name, version string) ([]GridTask, error) {
	v, err := s.Workflows.GetVersion(ctx, project, name, version)
	if err != nil {
		return nil, err
	}
	doc, err := s.Documents.Document(ctx, v.Hash)
	if err != nil {
		return nil, err
	}
	var tasks []GridTask
	for _, t := range taskindex.List(doc) {
		tasks = append(tasks, GridTask{t.Pointer, t.Name, string(t.Body.Kind())})
	}
	return tasks, nil
}

// add adds the cells of rows, and the tasks that the document lacks.
func (g *Grid) add(ids []string, rows []TaskRows) {
	index := map[string]int{}
	for i, t := range g.Tasks {
		index[t.Pointer] = i
	}
	unknown := map[string]GridTask{}
	for _, r := range rows {
		if _, ok := index[r.Pointer]; !ok {
			unknown[r.Pointer] = GridTask{r.Pointer, r.Task, r.Kind}
		}
	}
	for _, pointer := range slices.Sorted(maps.Keys(unknown)) {
		index[pointer] = len(g.Tasks)
		g.Tasks = append(g.Tasks, unknown[pointer])
	}
	type position struct{ run, task int }
	groups := map[position][]TaskRows{}
	for _, r := range rows {
		at := position{slices.Index(ids, r.RunID), index[r.Pointer]}
		groups[at] = append(groups[at], r)
	}
	for at, group := range groups {
		g.Cells = append(g.Cells, cellOf(at.run, at.task, group))
	}
	slices.SortFunc(g.Cells, func(a, b Cell) int { return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.Task, b.Task)) })
}

// severity orders the statuses of steps; a cell has the first that occurs.
func severity() []string {
	return []string{"failed", "canceled", "waiting", "running", "completed", "skipped"}
}

func cellOf(runIndex, task int, group []TaskRows) Cell {
	c := Cell{Run: runIndex, Task: task}
	order := severity()
	var start, end time.Time
	open := false
	for _, r := range group {
		if c.Status == "" || slices.Index(order, r.Status) < slices.Index(order, c.Status) {
			c.Status = r.Status
		}
		c.Count, c.Attempts, open = c.Count+r.Count, c.Attempts+r.Attempts, open || r.Open
		if start.IsZero() || !r.StartedAt.IsZero() && r.StartedAt.Before(start) {
			start = r.StartedAt
		}
		if r.EndedAt.After(end) {
			end = r.EndedAt
		}
	}
	if !open {
		c.Duration = between(start, end)
	}
	return c
}
