package problem

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/server"
)

// Store stores problems.
type Store interface {
	// Problems returns the records of the problems of these projects, sorted by ID. The project of problems without one is
	// "".
	Problems(ctx context.Context, projects []string) ([]Record, error)
	// Handle writes a record with the entry of the audit log. before is the revision of the stored record, and absent
	// means that there is none. It returns false, and writes nothing, when the stored record is another.
	Handle(ctx context.Context, r Record, before int64, absent bool, e audit.Entry) (bool, error)
}

// Projects lists projects by name.
type Projects interface {
	ListProjects(ctx context.Context, after string, limit int) ([]project.Project, error)
}

// Metrics measures how long problems are open.
type Metrics interface {
	// Acknowledged records the time from the detection of a problem to its acknowledgement.
	Acknowledged(ctx context.Context, code string, took time.Duration)
}

// Options configure [NewService].
type Options struct {
	Source      Source
	Store       Store
	Projects    Projects
	Dispatchers Dispatchers
	// Connection is the state of this process's connection to Temporal, Health that of its dependencies.
	Connection func() conntype.Status
	Health     func(context.Context) health.Report
	// LostServers returns the servers that write no heartbeats any more and were not stopped, and false while that is not
	// known.
	LostServers func(context.Context) (lost []server.Server, known bool, err error)
	// RunawayPerMinute is the number of runs in a minute above which a workflow that starts itself is a problem.
	RunawayPerMinute int
	// Retries is when a task that fails and is attempted again is a problem.
	Retries Retries
	// TaskQueue returns the task queue of a project.
	TaskQueue func(project string) string
	Metrics   Metrics
	Now       func() time.Time
	// StartedAt is the start of the process.
	StartedAt time.Time
}

// Service finds problems and records what operators do about them. It is safe for concurrent use.
type Service struct {
	o           Options
	dispatchers recent[[]dispatcher.Dispatcher]
	failures    recent[failures]
}

// NewService returns a service.
func NewService(o Options) *Service {
	return &Service{
		o: o, dispatchers: recent[[]dispatcher.Dispatcher]{turn: semaphore.NewWeighted(1)},
		failures: recent[failures]{turn: semaphore.NewWeighted(1)},
	}
}

// Query selects problems. Zero fields match everything.
type Query struct {
	Project string
	Kinds   []Kind
	States  []State
	Owner   string
	// Text is part of the title, detail, code, project, workflow, task or owner, in any case.
	Text string
	// After continues a list, and Limit bounds it; 0 means all.
	After *Cursor
	Limit int
}

// Cursor is a position in a list of problems.
type Cursor struct {
	Kind  int       `json:"kind"`
	First time.Time `json:"first"`
	ID    string    `json:"id"`
}

// CursorOf returns the position of a problem.
func CursorOf(p Problem) Cursor { return Cursor{slices.Index(Kinds(), p.Kind), p.First, p.ID} }

// compare orders lists: by kind, in the order of [Kinds]; of each the newest first.
func (c Cursor) compare(d Cursor) int {
	return cmp.Or(cmp.Compare(c.Kind, d.Kind), d.First.Compare(c.First), strings.Compare(c.ID, d.ID))
}

// List is a list of problems.
type List struct {
	Problems []Problem
	// Errors describe the sources that could not be read, one line each.
	Errors []string
	At     time.Time
}

// List returns the problems that the caller may see and that match, with the newest runs of each.
func (s *Service) List(ctx context.Context, q Query) (List, error) {
	if err := q.check(); err != nil {
		return List{}, err
	}
	list, err := s.all(ctx, q.Project)
	if err != nil {
		return List{}, err
	}
	list.Problems = slices.DeleteFunc(list.Problems, func(p Problem) bool {
		return !q.matches(p) || q.After != nil && CursorOf(p).compare(*q.After) <= 0
	})
	if q.Limit > 0 && len(list.Problems) > q.Limit {
		list.Problems = list.Problems[:q.Limit]
	}
	return list, s.addSamples(ctx, list.Problems)
}

// Get returns one problem.
func (s *Service) Get(ctx context.Context, id string) (Problem, error) {
	p, err := s.get(ctx, id)
	if err != nil {
		return Problem{}, err
	}
	return s.withSamples(ctx, p)
}

func (s *Service) withSamples(ctx context.Context, p Problem) (Problem, error) {
	one := []Problem{p}
	err := s.addSamples(ctx, one)
	return one[0], err
}

// Counts are numbers of problems.
type Counts struct {
	States map[State]int64
	// TimeToAcknowledge is the mean time from the detection to the acknowledgement of the problems acknowledged in the
	// last day; 0 and false where there are none.
	TimeToAcknowledge time.Duration
	AnyAcknowledged   bool
	// Errors describe the sources that could not be read, one line each.
	Errors []string
	At     time.Time
}

// Count counts the problems that the caller may see by state.
func (s *Service) Count(ctx context.Context, projectName string) (Counts, error) {
	list, err := s.all(ctx, projectName)
	if err != nil {
		return Counts{}, err
	}
	c := Counts{States: map[State]int64{}, Errors: list.Errors, At: list.At}
	var sum time.Duration
	acknowledged := int64(0)
	for _, p := range list.Problems {
		c.States[p.State]++
		if !p.AcknowledgedAt.IsZero() && list.At.Sub(p.AcknowledgedAt) < kept {
			sum += p.AcknowledgedAt.Sub(p.SeenAt)
			acknowledged++
		}
	}
	if acknowledged > 0 {
		c.TimeToAcknowledge, c.AnyAcknowledged = sum/time.Duration(acknowledged), true
	}
	return c, nil
}

// all returns the problems that the caller may see: of one project, or of all with those of the platform, sorted.
func (s *Service) all(ctx context.Context, projectName string) (List, error) {
	platform := projectName == "" && auth.Sees(ctx, auth.Everywhere)
	projects, err := s.visible(ctx, projectName)
	if err != nil && !platform {
		return List{}, err
	}
	l := s.find(ctx, projects)
	if err != nil {
		l.missing(ctx, "projects", "the problems of projects", err)
	}
	owners := slices.Clone(projects)
	if platform {
		owners = append(owners, "")
	}
	records, err := s.o.Store.Problems(ctx, owners)
	if err != nil {
		l.missing(ctx, "records", "acknowledgements", err)
	}
	list := List{Errors: l.errors, At: s.o.Now()}
	byID := map[string]*Record{}
	for i := range records {
		byID[records[i].ID] = &records[i]
	}
	for i := range l.findings {
		f := &l.findings[i]
		if f.Project == "" && !platform {
			continue
		}
		p, _ := merge(f, byID[f.ID], false, list.At)
		list.Problems = append(list.Problems, p)
		delete(byID, f.ID)
	}
	for _, r := range byID {
		if p, listed := merge(nil, r, l.isUnknown(r.Finding), list.At); listed {
			if p.State == Resolved {
				p.Finding = l.resolved(p.Finding)
			}
			list.Problems = append(list.Problems, p)
		}
	}
	slices.SortFunc(list.Problems, func(a, b Problem) int { return CursorOf(a).compare(CursorOf(b)) })
	return list, nil
}

// visible returns the projects in which the caller has a role; only the named one, unless the name is empty.
func (s *Service) visible(ctx context.Context, name string) ([]string, error) {
	if name != "" {
		return []string{name}, nil
	}
	names, err := s.projects(ctx)
	return slices.DeleteFunc(names, func(name string) bool { return !auth.Sees(ctx, name) }), err
}

// projects returns the names of all projects.
func (s *Service) projects(ctx context.Context) (names []string, err error) {
	const page = 500
	for after := ""; ; after = names[len(names)-1] {
		projects, err := s.o.Projects.ListProjects(ctx, after, page)
		if err != nil {
			return nil, err
		}
		for _, p := range projects {
			names = append(names, p.Name)
		}
		if len(projects) < page {
			return names, nil
		}
	}
}

func (s *Service) addSamples(ctx context.Context, problems []Problem) error {
	for i := range problems {
		p := &problems[i]
		if p.Kind == Platform && p.Code != WorkflowRunaway {
			continue
		}
		var err error
		if p.Samples, err = s.o.Source.Samples(ctx, p.Finding, Samples); err != nil {
			return err
		}
	}
	return nil
}

// get returns a problem without its runs. The problem of a project in which the caller has no role does not exist for
// the caller.
func (s *Service) get(ctx context.Context, id string) (Problem, error) {
	owner, ok := projectOf(id)
	if ok && auth.Sees(ctx, cmp.Or(owner, auth.Everywhere)) {
		list, err := s.all(ctx, owner)
		if err != nil {
			return Problem{}, err
		}
		if i := slices.IndexFunc(list.Problems, func(p Problem) bool { return p.ID == id }); i >= 0 {
			return list.Problems[i], nil
		}
	}
	return Problem{}, apperror.New(apperror.NotFound, apperror.ProblemNotFound,
		"there is no problem %q: `signalbox problem list` shows those that exist, and those that were resolved in the last "+
			"24 hours", id)
}

func (q Query) check() error {
	for _, kind := range q.Kinds {
		if !slices.Contains(Kinds(), kind) {
			return apperror.New(apperror.Invalid, apperror.InvalidArgument, "kind %q: use one of %v", kind,
				Kinds()).WithField("kinds", "unknown kind %q", kind)
		}
	}
	for _, state := range q.States {
		if !slices.Contains(States(), state) {
			return apperror.New(apperror.Invalid, apperror.InvalidArgument, "state %q: use one of %v", state,
				States()).WithField("states", "unknown state %q", state)
		}
	}
	return nil
}

func (q Query) matches(p Problem) bool {
	texts := strings.ToLower(
		strings.Join([]string{p.Title, p.Detail, string(p.Code), p.Project, p.Workflow, p.Task, p.Owner, p.Cause, p.ID},
			"\n"))
	return (len(q.Kinds) == 0 || slices.Contains(q.Kinds, p.Kind)) &&
		(len(q.States) == 0 || slices.Contains(q.States, p.State)) &&
		(q.Owner == "" || q.Owner == p.Owner) && strings.Contains(texts, strings.ToLower(q.Text))
}

// Gauge is a number of problems.
type Gauge struct {
	Project string
	Kind    Kind
	State   State
	Count   int64
	// Oldest is the age of the oldest of them, since its detection. It is set for open problems only, and 0 where there is
	// none.
	Oldest time.Duration
}

// errIncomplete is the reason why numbers of problems are not known.
var errIncomplete = errors.New("a source of problems cannot be read")

// Gauges counts the problems of all projects, and those of none, by kind and state, zeros included. It fails while a
// source cannot be read.
func (s *Service) Gauges(ctx context.Context) ([]Gauge, error) {
	ctx = auth.WithActor(ctx, auth.System())
	list, err := s.all(ctx, "")
	if err != nil {
		return nil, err
	}
	if len(list.Errors) > 0 {
		return nil, errIncomplete
	}
	projects, err := s.projects(ctx)
	if err != nil {
		return nil, err
	}
	counts, oldest := map[Gauge]int64{}, map[Gauge]time.Duration{}
	now := s.o.Now()
	for _, p := range list.Problems {
		of := Gauge{Project: p.Project, Kind: p.Kind, State: p.State}
		counts[of]++
		if p.State == Open && !p.SeenAt.IsZero() {
			oldest[of] = max(oldest[of], now.Sub(p.SeenAt))
		}
	}
	var gauges []Gauge
	for _, name := range append(projects, "") {
		for _, kind := range Kinds() {
			for _, state := range States() {
				g := Gauge{Project: name, Kind: kind, State: state}
				if n := counts[g]; name != "" || kind == Platform {
					g.Count, g.Oldest = n, oldest[g]
					gauges = append(gauges, g)
				}
			}
		}
	}
	return gauges, nil
}
