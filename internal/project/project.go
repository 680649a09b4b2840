// Package project manages projects, the unit of tenancy: each project has its own definitions, runs and task queue.
package project

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
)

// Default is the project that always exists.
const Default = "default"

// MaxNameLength is the maximum length of a project's name, in bytes.
const MaxNameLength = 63

var namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// Project is one tenant.
type Project struct {
	Name        string
	Description string
	CreatedAt   time.Time
	Settings    Settings
	// ParkedAt is since when no worker serves the project, because nothing happens in it; zero while it is served. The
	// first start or event ends it.
	ParkedAt time.Time
}

// Settings are the settings of one project, which an admin changes.
type Settings struct {
	// MaxSteps is the most steps that one run may enter; 0 means runs.max_steps, which MaxSteps cannot raise.
	MaxSteps int64
	// MaxGeneration is the most starts between a run and one by a person or by the clock; 0 means runs.max_generation.
	MaxGeneration int64
	// EndPoison ends runs that are diagnosed as POISON.
	EndPoison bool
	// Runners are the kinds of programs that runs may execute, beside those that the servers permit in all projects.
	Runners []string
	// Images are patterns of the images that containers may use, beside the restriction of each runner. Empty: no further
	// restriction.
	Images []string
	// ProgramLimits bound the programs of its runs, beside the limits of each runner.
	ProgramLimits limit.Limits
}

// MostGenerations is the most that MaxGeneration may be: a run has the workflows of all its ancestors in its row.
const MostGenerations = 1000

// Change is an update of a project; nil fields keep their values.
type Change struct {
	Description *string `json:"description,omitempty"`
	MaxSteps    *int64  `json:"maxSteps,omitempty"`
	EndPoison   *bool   `json:"endPoison,omitempty"`
	// MaxGeneration is at most [MostGenerations].
	MaxGeneration *int64 `json:"maxGeneration,omitempty"`
	// Runners replaces the kinds.
	Runners *[]string `json:"runners,omitempty"`
	// Images replaces the patterns.
	Images *[]string `json:"images,omitempty"`
	// ProgramLimits replaces all limits of programs.
	ProgramLimits *limit.Limits `json:"programLimits,omitempty"`
}

// RunnerKinds returns the kinds of programs that a project may permit.
func RunnerKinds() []string {
	var kinds []string
	for _, k := range dsl.ProgramKinds() {
		kinds = append(kinds, string(k))
	}
	return kinds
}

// Store stores projects.
type Store interface {
	// CreateProject adds p, or returns [apperror.Exists] when the name is taken.
	CreateProject(ctx context.Context, p Project, e audit.Entry) error
	// GetProject returns [apperror.NotFound] for an unknown name.
	GetProject(ctx context.Context, name string) (Project, error)
	// UpdateProject applies a change and returns the project that results, or returns [apperror.NotFound] for an unknown
	// name.
	UpdateProject(ctx context.Context, name string, change Change, e audit.Entry) (Project, error)
	// ListProjects returns up to limit projects in order of name, from the first one after the given name.
	ListProjects(ctx context.Context, after string, limit int) ([]Project, error)
}

// Service creates and finds projects.
type Service struct {
	store Store
	now   func() time.Time
}

// NewService returns a service over a store and a clock.
func NewService(store Store, now func() time.Time) *Service {
	return &Service{store: store, now: now}
}

// Create creates a project.
func (s *Service) Create(ctx context.Context, name, description string) (Project, error) {
	if err := CheckName(name); err != nil {
		return Project{}, err
	}
	p := Project{Name: name, Description: description, CreatedAt: s.now()}
	entry := audit.NewEntry(ctx, p.CreatedAt, audit.ProjectCreate, name, name, "")
	if err := s.store.CreateProject(ctx, p, entry); err != nil {
		return Project{}, err
	}
	return p, nil
}

// Get returns one project.
func (s *Service) Get(ctx context.Context, name string) (Project, error) {
	return s.store.GetProject(ctx, name)
}

// Update changes the description and settings of a project. The audit entry contains the values that were set.
func (s *Service) Update(ctx context.Context, name string, change Change) (Project, error) {
	if err := change.check(name); err != nil {
		return Project{}, err
	}
	entry := audit.NewEntry(ctx, s.now(), audit.ProjectUpdate, name, name, "")
	var err error
	if entry.Detail, err = json.Marshal(change); err != nil {
		return Project{}, fmt.Errorf("encoding the change of project %q: %w", name, err)
	}
	return s.store.UpdateProject(ctx, name, change, entry)
}

func (c Change) check(name string) error {
	if c == (Change{}) {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"the update of project %q changes nothing: set description, max_steps, max_generation, end_poison, runners, "+
				"images or program_limits",
			name)
	}
	if c.MaxSteps != nil && *c.MaxSteps < 0 {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"max_steps %d of project %q is negative: use 0 for the limit of the servers, or a number of steps", *c.MaxSteps,
			name).
			WithField("max_steps", "is negative")
	}
	if c.MaxGeneration != nil && (*c.MaxGeneration < 0 || *c.MaxGeneration > MostGenerations) {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"max_generation %d of project %q is not between 0 and %d: use 0 for the limit of the servers, or a number of "+
				"starts", *c.MaxGeneration, name, MostGenerations).
			WithField("max_generation", "is not between 0 and %d", MostGenerations)
	}
	if c.Images != nil && slices.Contains(*c.Images, "") {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"images of project %q: a pattern is empty; ** permits all images", name).WithField("images", "has an empty pattern")
	}
	if c.ProgramLimits != nil {
		if err := checkLimits(*c.ProgramLimits, name); err != nil {
			return err
		}
	}
	if c.Runners == nil {
		return nil
	}
	kinds := RunnerKinds()
	for i, kind := range *c.Runners {
		if !slices.Contains(kinds, kind) || slices.Contains((*c.Runners)[:i], kind) {
			return apperror.New(apperror.Invalid, apperror.InvalidArgument,
				"runners of project %q: %q is not a kind of program, or is named twice; the kinds are %s", name, kind,
				strings.Join(kinds, ", ")).WithField("runners", "has an unknown kind, or one twice")
		}
	}
	return nil
}

// checkLimits reports a limit below which no program starts.
func checkLimits(l limit.Limits, name string) error {
	invalid := func(field, format string, arguments ...any) error {
		reason := fmt.Sprintf(format, arguments...)
		return apperror.New(apperror.Invalid, apperror.InvalidArgument, "program_limits of project %q: %s %s", name, field,
			reason).WithField("program_limits."+field, "%s", reason)
	}
	switch {
	case l.Memory != 0 && l.Memory < limit.MinMemory:
		return invalid("memory_bytes", "is below %d", limit.MinMemory)
	case l.Processes < 0:
		return invalid("processes", "is negative")
	case l.Processors != 0 && (l.Processors < limit.MinProcessors || l.Processors > limit.MaxProcessors):
		return invalid("processors", "is not between %v and %d", limit.MinProcessors, limit.MaxProcessors)
	case l.Disk < 0:
		return invalid("disk_bytes", "is negative")
	case l.Output < 0:
		return invalid("output_bytes", "is negative")
	case l.Time != 0 && l.Time < limit.MinTime:
		return invalid("time", "is below %v", limit.MinTime)
	case l.Network != "" && !slices.Contains(limit.Networks(), l.Network):
		return invalid("network", "%q is not one of none, guarded and host", l.Network)
	}
	return nil
}

// List returns up to limit projects after the given name: those in which the actor of ctx has a role, all without an
// actor.
func (s *Service) List(ctx context.Context, after string, limit int) ([]Project, error) {
	actor, acts := auth.ActorFrom(ctx)
	names, all := actor.Visible()
	if all || !acts {
		return s.store.ListProjects(ctx, after, limit)
	}
	var found []Project
	for _, name := range names {
		if name <= after || len(found) == limit {
			continue
		}
		p, err := s.store.GetProject(ctx, name)
		if apperror.Is(err, apperror.ProjectNotFound) {
			continue // a role outlives its project
		}
		if err != nil {
			return nil, err
		}
		found = append(found, p)
	}
	return found, nil
}

// CheckName reports an invalid project name: the name becomes part of Temporal's task queue and dispatcher IDs.
func CheckName(name string) error {
	if len(name) <= MaxNameLength && namePattern.MatchString(name) {
		return nil
	}
	return apperror.New(apperror.Invalid, apperror.InvalidArgument,
		"project name %q: use 1 to %d of a-z, 0-9 and \"-\", with a letter or digit at both ends", name, MaxNameLength).
		WithField("name", "does not match [a-z0-9]([a-z0-9-]*[a-z0-9])?")
}
