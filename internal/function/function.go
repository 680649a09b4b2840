// Package function is the catalog of a project: functions that its workflows call as name:version@default.
//
// A version of a function never changes. A workflow that calls it has its text stored with the version that was
// published (internal/workflow), so that deleting a function affects neither published workflows nor open runs.
package function

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/project"
)

// Function is one version of a function.
type Function struct {
	Project string
	Name    string
	Version string
	// Hash identifies the source: see dsl.ContentHash.
	Hash        string
	Size        int64
	Publisher   string
	PublishedAt time.Time
	// Source is the function as it was submitted. Lists have none.
	Source string
}

// Reference returns the name by which workflows of the project call the function.
func (f Function) Reference() string { return f.Name + ":" + f.Version + "@" + dsl.DefaultCatalog }

// User is a published version of a workflow that calls a function.
type User struct {
	Workflow string
	Version  string
	// Latest reports whether it is the latest version of the workflow.
	Latest bool
}

// Shown is a version of a function with what is shown beside it.
type Shown struct {
	Function
	Users []User
	// InputSchema and OutputSchema are JSON; nil if the function has none, or refers to it.
	InputSchema, OutputSchema []byte
}

// Filter selects versions of functions of a project. Its zero fields select all.
type Filter struct {
	Project string
	Text    string // of the name
	Name    string
	Latest  bool // of each function only the version that was published last
	After   *Cursor
	Limit   int
}

// Cursor is a position in a list of functions: by name, and each name by the time of publication, newest first.
type Cursor struct {
	Name        string    `json:"name"`
	PublishedAt time.Time `json:"at"`
	Version     string    `json:"version"`
}

// Position returns the position of a function in lists.
func (f Function) Position() Cursor {
	return Cursor{Name: f.Name, PublishedAt: f.PublishedAt, Version: f.Version}
}

// Store stores functions. A missing one is [apperror.NotFound] with the reason [apperror.FunctionNotFound].
type Store interface {
	// PublishFunction stores a function. When its version is published already with the same hash, it returns the stored
	// one and false, and changes nothing; with another hash it returns [apperror.Exists].
	PublishFunction(ctx context.Context, f Function, e audit.Entry) (Function, bool, error)
	// GetFunction returns a version with its source; an empty version is the one that was published last.
	GetFunction(ctx context.Context, project, name, version string) (Function, error)
	// ListFunctions lists versions of functions.
	ListFunctions(ctx context.Context, f Filter) ([]Function, error)
	// FunctionUsers returns the published versions of workflows that call a version, newest first, at most limit.
	FunctionUsers(ctx context.Context, f Function, limit int) ([]User, error)
	// DeleteFunction deletes a version, or with an empty version all versions.
	DeleteFunction(ctx context.Context, project, name, version string, e audit.Entry) error
}

// Projects finds projects.
type Projects interface {
	GetProject(ctx context.Context, name string) (project.Project, error)
}

// Service checks, stores and finds functions.
type Service struct {
	store    Store
	projects Projects
	limits   dsl.Limits
	now      func() time.Time
}

// NewService returns a service over a store, with the limits of documents.
func NewService(store Store, projects Projects, limits dsl.Limits, now func() time.Time) *Service {
	return &Service{store: store, projects: projects, limits: limits, now: now}
}

// Published is the result of publishing.
type Published struct {
	Function Function
	// Created is false when this version existed already with the same content.
	Created    bool
	Violations dsl.Violations
}

// maxUsers is the number of workflows that are listed with a function.
const maxUsers = 200

// Publish checks a function and makes it an immutable version.
func (s *Service) Publish(ctx context.Context, f Function) (Published, error) {
	if err := checkName(f.Name, f.Version); err != nil {
		return Published{}, err
	}
	if _, err := s.projects.GetProject(ctx, f.Project); err != nil {
		return Published{}, err
	}
	if len(f.Source) > s.limits.MaxBytes {
		return Published{}, apperror.New(apperror.Exhausted, apperror.DefinitionTooLarge,
			"the function has %d bytes, more than the limit of %d (workflows.max_definition_bytes)", len(f.Source),
			s.limits.MaxBytes).WithField("source", "is too large")
	}
	violations := dsl.CheckFunction(f.Reference(), []byte(f.Source), dsl.WithLimits(s.limits), dsl.WithContext(ctx))
	if violations.HasErrors() {
		return Published{Violations: violations}, invalid(violations)
	}
	f.Hash, f.Size, f.PublishedAt = dsl.ContentHash([]byte(f.Source)), int64(len(f.Source)), s.now()
	entry := audit.NewEntry(ctx, f.PublishedAt, audit.FunctionPublish, f.Project, f.Name+":"+f.Version, "")
	entry.Detail, _ = json.Marshal(map[string]string{"hash": f.Hash}) //nolint:errchkjson // strings always encode
	stored, created, err := s.store.PublishFunction(ctx, f, entry)
	return Published{Function: stored, Created: created, Violations: violations}, err
}

// Get returns a version with its source, its schemas, and the published workflows that call it, at most 200. An empty
// version is the one that was published last.
func (s *Service) Get(ctx context.Context, projectName, name, version string) (shown Shown, err error) {
	if _, err := s.projects.GetProject(ctx, projectName); err != nil {
		return shown, err
	}
	if shown.Function, err = s.store.GetFunction(ctx, projectName, name, version); err != nil {
		return shown, err
	}
	shown.InputSchema, shown.OutputSchema = dsl.FunctionSchemas([]byte(shown.Source), dsl.WithLimits(s.limits))
	shown.Users, err = s.store.FunctionUsers(ctx, shown.Function, maxUsers)
	return shown, err
}

// List lists versions of functions.
func (s *Service) List(ctx context.Context, f Filter) ([]Function, error) {
	if _, err := s.projects.GetProject(ctx, f.Project); err != nil {
		return nil, err
	}
	return s.store.ListFunctions(ctx, f)
}

// Delete deletes a version, or with an empty version all versions. Workflows that were published with it keep it.
func (s *Service) Delete(ctx context.Context, projectName, name, version string) error {
	if _, err := s.projects.GetProject(ctx, projectName); err != nil {
		return err
	}
	subject := strings.TrimSuffix(name+":"+version, ":")
	return s.store.DeleteFunction(ctx, projectName, name, version,
		audit.NewEntry(ctx, s.now(), audit.FunctionDelete, projectName, subject, ""))
}

// Source returns the text of a function by the name of its call, for workflows that are published.
func (s *Service) Source(ctx context.Context, projectName, reference string) ([]byte, error) {
	name, rest, _ := strings.Cut(reference, ":")
	version, _, _ := strings.Cut(rest, "@")
	f, err := s.store.GetFunction(ctx, projectName, name, version)
	return []byte(f.Source), err
}

// checkName returns an error for a name or a version that a function cannot have. The names are those of the official
// catalog.
func checkName(name, version string) error {
	if !dsl.IsFunctionName(name) {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"the name %.80q of a function is not allowed: use up to 63 lower-case letters, digits and inner hyphens", name).
			WithField("name", "is not allowed")
	}
	if !dsl.IsVersion(version) {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"the version %.80q of a function is not a semantic version such as 1.0.0", version).
			WithField("version", "is not a semantic version")
	}
	return nil
}

// invalid returns the error for a function with violations: the first one in the message, all of them as fields.
func invalid(violations dsl.Violations) error {
	f := apperror.New(apperror.Invalid, apperror.InvalidDocument, "")
	count, first := 0, ""
	for _, v := range violations {
		if v.Severity != dsl.SeverityError {
			continue
		}
		if count++; count == 1 {
			first = v.String()
		}
		f = f.WithField("source", "%s", v)
	}
	f.Message = "the function cannot be published: " + first
	if count > 1 {
		f.Message += fmt.Sprintf(" (and %d more)", count-1)
	}
	return f
}
