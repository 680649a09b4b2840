package workflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/graph"
	"github.com/signalbox-dev/signalbox/dsl/taskindex"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/secret"
)

// Projects finds projects.
type Projects interface {
	GetProject(ctx context.Context, name string) (project.Project, error)
}

// Service checks, stores and finds definitions.
type Service struct {
	store     Store
	projects  Projects
	limits    dsl.Limits
	compiler  *compiler
	resources *resources
	now       func() time.Time
	secrets   secret.Provider // nil: publishing does not check secrets
	runners   FindRunners     // nil: checks do not ask whether programs can be executed
}

// NewService returns a service over a store, with the limits of documents.
func NewService(store Store, projects Projects, limits dsl.Limits, now func() time.Time) *Service {
	return &Service{store: store, projects: projects, limits: limits, compiler: newCompiler(limits),
		resources: newResources(store), now: now}
}

// SetSecretProvider makes publishing warn of secrets that the provider does not have. Call it before the service is
// used.
func (s *Service) SetSecretProvider(secrets secret.Provider) { s.secrets = secrets }

// SetLoader makes the service read web resources. Without it, documents that refer to them are refused. Call it before
// the service is used.
func (s *Service) SetLoader(loader Loader) { s.resources.loader = loader }

// SetFunctions makes the service find the functions of projects. Without it, there are none. Call it before the service
// is used.
func (s *Service) SetFunctions(functions Functions) { s.resources.functions = functions }

// secretTimeout bounds the check of the secrets of one document.
const secretTimeout = 3 * time.Second

// missing returns warnings for the secrets of a document that the server does not have. Workers may have others.
func (s *Service) missing(ctx context.Context, projectName string, doc *dsl.Document) dsl.Violations {
	if s.secrets == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	var out dsl.Violations
	for _, declared := range doc.Use.Secrets {
		_, err := s.secrets.Resolve(ctx, projectName, declared.Name)
		if err == nil {
			continue
		}
		violation := dsl.Violation{
			Severity: dsl.SeverityWarning, Code: dsl.CodeSecret, Path: declared.Path, Pos: declared.Pos,
			Message: fmt.Sprintf("the secret %q was not found by the server", declared.Name),
			Suggestion: "provide it before a run needs it; where workers have secrets of their own, it is enough that they " +
				"have it",
		}
		if !errors.Is(err, secret.ErrMissing) {
			violation.Message = fmt.Sprintf("whether there is a secret %q is not known: its provider failed", declared.Name)
		}
		out = append(out, violation)
	}
	return out
}

// Checked is the result of checking a document. Document is nil when it has violations of severity error.
type Checked struct {
	Name       string
	Version    string
	Document   *dsl.Document
	Violations dsl.Violations
}

// Validate checks a document and stores nothing. Its error is that the document was not checked. Web resources with an
// authentication are not loaded, with a warning each.
func (s *Service) Validate(ctx context.Context, projectName string, sub Submission) (Checked, error) {
	return s.check(ctx, projectName, sub, toCheck)
}

func (s *Service) check(ctx context.Context, projectName string, sub Submission, why purpose) (Checked, error) {
	if err := sub.checkFiles(); err != nil {
		return Checked{}, err
	}
	source := sub.Source
	compiled, err := s.compileSubmission(ctx, projectName, sub, why)
	if err != nil {
		return Checked{}, err
	}
	doc, violations := compiled.document, slices.Clip(compiled.violations)
	if wrong := s.unprotected(source, doc); len(wrong) > 0 {
		violations = append(wrong, violations...)
		return Checked{Name: doc.Namespace + "/" + doc.Name, Version: doc.Version, Violations: violations}, nil
	}
	if doc != nil {
		violations = append(violations, s.unexecuted(ctx, projectName, doc)...)
		return Checked{Name: doc.Namespace + "/" + doc.Name, Version: doc.Version, Document: doc, Violations: violations}, nil
	}
	c := Checked{Violations: violations}
	if id, ok := dsl.Identify([]byte(source), dsl.WithLimits(s.limits)); ok {
		c.Name, c.Version = id.Namespace+"/"+id.Name, id.Version
	}
	return c, nil
}

// unprotected returns a violation for each path that a document declares sensitive although no value can be there.
func (s *Service) unprotected(source string, doc *dsl.Document) (out dsl.Violations) {
	if doc == nil {
		return nil
	}
	found := redact.Violations(doc)
	found = found[:min(len(found), s.limits.MaxViolations)]
	pointers := make([]string, len(found))
	for i, p := range found {
		pointers[i] = p.Path
	}
	if len(pointers) == 0 {
		return nil
	}
	for i, pos := range dsl.Locate([]byte(source), pointers, dsl.WithLimits(s.limits)) {
		out = append(out, dsl.Violation{
			Severity: dsl.SeverityError, Code: dsl.CodeValue, Path: found[i].Path, Message: found[i].Message,
			Suggestion: found[i].Suggestion, Pos: pos,
		})
	}
	return out
}

// InputSchema returns the JSON Schema of a version's input, in the order of its document; nil if it has none, and for a
// document that the current parser rejects.
func (s *Service) InputSchema(ctx context.Context, v Version) ([]byte, error) {
	compiled, err := s.compileVersion(ctx, v)
	if err != nil || compiled.document == nil {
		return nil, err
	}
	return compiled.document.InputSchema(), nil
}

// SaveDraft stores a document as its workflow's draft, even with violations, as long as it is readable and names its
// workflow.
func (s *Service) SaveDraft(ctx context.Context, projectName string, sub Submission) (Workflow, dsl.Violations,
	error) {
	if _, err := s.projects.GetProject(ctx, projectName); err != nil {
		return Workflow{}, nil, err
	}
	if err := s.checkSize(sub.Source); err != nil {
		return Workflow{}, nil, err
	}
	c, err := s.Validate(ctx, projectName, sub)
	if err != nil {
		return Workflow{}, nil, err
	}
	if c.Name == "" {
		return Workflow{}, c.Violations,
			documentError("a draft must at least name its workflow (document.namespace and document.name)", c.Violations)
	}
	d := Draft{Project: projectName, Workflow: c.Name, Source: sub.Source, SavedAt: s.now()}
	if c.Document != nil {
		d.Title, d.Summary = c.Document.Title, c.Document.Summary
	}
	w, err := s.store.SaveDraft(ctx, d, audit.NewEntry(ctx, d.SavedAt, audit.WorkflowSaveDraft, projectName, c.Name, ""))
	return w, c.Violations, err
}

// Published is the result of publishing.
type Published struct {
	Workflow Workflow
	Version  Version
	// Created is false when this version existed already with the same content.
	Created    bool
	Violations dsl.Violations
}

// Publish makes a document an immutable version, with the texts that it refers to.
func (s *Service) Publish(ctx context.Context, projectName string, sub Submission, publisher string) (Published,
	error) {
	if _, err := s.projects.GetProject(ctx, projectName); err != nil {
		return Published{}, err
	}
	if err := s.checkSize(sub.Source); err != nil {
		return Published{}, err
	}
	c, err := s.check(ctx, projectName, sub, toPublish)
	if err != nil {
		return Published{}, err
	}
	if c.Document == nil {
		return Published{Violations: c.Violations}, documentError("the document cannot be published", c.Violations)
	}
	c.Violations = append(c.Violations, s.missing(ctx, projectName, c.Document)...)
	v := Version{
		Project: projectName, Workflow: c.Name, Version: c.Version,
		Hash: c.Document.Hash(), Title: c.Document.Title, Summary: c.Document.Summary,
		Source: sub.Source, Canonical: c.Document.Canonical(), Publisher: publisher, PublishedAt: s.now(),
	}
	v.Resources = pinned(c.Document, v.PublishedAt)
	for _, t := range taskindex.List(c.Document) {
		v.Tasks = append(v.Tasks, Task{Pointer: t.Pointer, Name: t.Name})
	}
	if v.Trigger, v.Timer, err = startedBy(projectName, c.Document); err != nil {
		return Published{Violations: c.Violations}, err
	}
	entry := audit.NewEntry(ctx, v.PublishedAt, audit.WorkflowPublish, projectName, c.Name, "")
	entry.Detail = versionDetail(v)
	stored, created, err := s.store.Publish(ctx, v, Newer, entry)
	if err != nil {
		return Published{Violations: c.Violations}, err
	}
	w, err := s.store.GetWorkflow(ctx, projectName, c.Name)
	return Published{Workflow: w, Version: stored, Created: created, Violations: c.Violations}, err
}

// PublishDraft publishes the stored draft.
func (s *Service) PublishDraft(ctx context.Context, projectName, name, publisher string) (Published, error) {
	full, err := s.Resolve(ctx, projectName, name)
	if err != nil {
		return Published{}, err
	}
	d, err := s.store.GetDraft(ctx, projectName, full)
	if err != nil {
		return Published{}, err
	}
	return s.Publish(ctx, projectName, Submission{Source: d.Source}, publisher)
}

// Get returns a workflow by its full or short name.
func (s *Service) Get(ctx context.Context, projectName, name string) (Workflow, error) {
	if strings.Contains(name, "/") {
		return s.store.GetWorkflow(ctx, projectName, name) // reports also a project that does not exist
	}
	full, err := s.Resolve(ctx, projectName, name)
	if err != nil {
		return Workflow{}, err
	}
	return s.store.GetWorkflow(ctx, projectName, full)
}

// GetDraft returns a workflow's draft.
func (s *Service) GetDraft(ctx context.Context, projectName, name string) (Draft, error) {
	full, err := s.Resolve(ctx, projectName, name)
	if err != nil {
		return Draft{}, err
	}
	return s.store.GetDraft(ctx, projectName, full)
}

// GetVersion returns one version; empty selects the newest.
func (s *Service) GetVersion(ctx context.Context, projectName, name, version string) (Version, error) {
	_, v, err := s.Pick(ctx, projectName, name, version)
	return v, err
}

// Pick returns a workflow with one of its versions; an empty version selects the newest. An error that concerns the
// version comes with the workflow.
func (s *Service) Pick(ctx context.Context, projectName, name, version string) (Workflow, Version, error) {
	w, version, err := s.pick(ctx, projectName, name, version)
	if err != nil {
		return w, Version{}, err
	}
	v, err := s.store.GetVersion(ctx, projectName, w.Name, version)
	return w, v, err
}

// Pin is Pick for starts of runs, which need no source and no document. It reads the newest version with its workflow.
func (s *Service) Pin(ctx context.Context, projectName, name, version string) (Workflow, Version, error) {
	w, version, err := s.pick(ctx, projectName, name, version)
	if err != nil {
		return w, Version{}, err
	}
	if version == w.LatestVersion {
		return w, Version{Project: w.Project, Workflow: w.Name, Version: version, Hash: w.LatestHash}, nil
	}
	v, err := s.store.GetVersion(ctx, projectName, w.Name, version)
	return w, v, err
}

// pick returns a workflow and which of its versions is meant.
func (s *Service) pick(ctx context.Context, projectName, name, version string) (Workflow, string, error) {
	w, err := s.Get(ctx, projectName, name)
	if err != nil {
		return Workflow{}, "", err
	}
	if version = cmp.Or(version, w.LatestVersion); version == "" {
		return w, "", NotPublished(w.Name)
	}
	return w, version, nil
}

// VersionGraph is the control flow of a version, or of a draft if Version is empty.
type VersionGraph struct {
	Workflow, Version string
	Graph             graph.Graph
}

// Graph returns the control flow of a version, or of the draft. Without a version, it is that of the newest version,
// and that of the draft if nothing is published.
func (s *Service) Graph(ctx context.Context, projectName, name, version string, draft bool) (VersionGraph, error) {
	w, err := s.Get(ctx, projectName, name)
	if err != nil {
		return VersionGraph{}, err
	}
	out := VersionGraph{Workflow: w.Name}
	var (
		compiled compilation
		what     string
	)
	if draft || version == "" && w.LatestVersion == "" {
		d, err := s.store.GetDraft(ctx, projectName, w.Name)
		if err != nil {
			return VersionGraph{}, err
		}
		what = fmt.Sprintf("the draft of workflow %q has no graph until it is valid", w.Name)
		if compiled, err = s.compileSubmission(ctx, projectName, Submission{Source: d.Source}, toCheck); err != nil {
			return VersionGraph{}, err
		}
	} else {
		v, err := s.GetVersion(ctx, projectName, w.Name, version)
		if err != nil {
			return VersionGraph{}, err
		}
		out.Version, what = v.Version, fmt.Sprintf("version %s of workflow %q cannot be read", v.Version, w.Name)
		if compiled, err = s.compileVersion(ctx, v); err != nil {
			return VersionGraph{}, err
		}
	}
	if compiled.document == nil {
		return VersionGraph{}, documentError(what, compiled.violations)
	}
	out.Graph = graph.Of(compiled.document)
	return out, nil
}

// List lists workflows.
func (s *Service) List(ctx context.Context, f Filter) ([]Workflow, error) {
	if _, err := s.projects.GetProject(ctx, f.Project); err != nil {
		return nil, err
	}
	return s.find(ctx, f)
}

// Find lists workflows of all projects in which the actor of ctx has a role; without an actor, of all projects.
func (s *Service) Find(ctx context.Context, f Filter) ([]Workflow, error) {
	actor, acts := auth.ActorFrom(ctx)
	if names, all := actor.Visible(); acts && !all {
		if f.Projects = names; len(names) == 0 {
			return nil, nil
		}
	}
	return s.find(ctx, f)
}

func (s *Service) find(ctx context.Context, f Filter) ([]Workflow, error) {
	for _, state := range f.States {
		if !slices.Contains(States(), state) {
			return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument,
				"workflow state %q is not one of draft, published, paused", state).WithField("states", "unknown state")
		}
	}
	return s.store.ListWorkflows(ctx, f)
}

// ListVersions lists a workflow's versions, newest first.
func (s *Service) ListVersions(ctx context.Context, projectName, name string, after *VersionCursor,
	limit int) ([]Version, error) {
	full, err := s.Resolve(ctx, projectName, name)
	if err != nil {
		return nil, err
	}
	return s.store.ListVersions(ctx, projectName, full, after, limit)
}

// SetPaused pauses or unpauses a workflow. A workflow without a published version cannot be paused.
func (s *Service) SetPaused(ctx context.Context, projectName, name string, paused bool,
	reason string) (Workflow, error) {
	w, err := s.Get(ctx, projectName, name)
	if err != nil {
		return Workflow{}, err
	}
	if w.State == StateDraft {
		return Workflow{}, NotPublished(w.Name)
	}
	action := audit.WorkflowPause
	if !paused {
		action = audit.WorkflowUnpause
	}
	return s.store.SetPaused(ctx, projectName, w.Name, paused, reason,
		audit.NewEntry(ctx, s.now(), action, projectName, w.Name, reason))
}

// Delete removes a workflow; it is refused while the workflow has open runs.
func (s *Service) Delete(ctx context.Context, projectName, name string) error {
	full, err := s.Resolve(ctx, projectName, name)
	if err != nil {
		return err
	}
	return s.store.DeleteWorkflow(ctx, projectName, full,
		audit.NewEntry(ctx, s.now(), audit.WorkflowDelete, projectName, full, ""))
}

// Resolve returns the full name of a workflow for a full or short name. A short name must be unambiguous. It does not
// check that a full name exists.
func (s *Service) Resolve(ctx context.Context, projectName, name string) (string, error) {
	if name == "" {
		return "", apperror.New(apperror.Invalid, apperror.InvalidArgument, "no workflow named: give NAMESPACE/NAME or NAME").
			WithField("workflow", "is required")
	}
	if _, err := s.projects.GetProject(ctx, projectName); err != nil {
		return "", err
	}
	if strings.Contains(name, "/") {
		return name, nil
	}
	const enough = 5
	names, err := s.store.FindByShortName(ctx, projectName, name, enough)
	if err != nil {
		return "", err
	}
	switch len(names) {
	case 1:
		return names[0], nil
	case 0:
		return "", apperror.New(apperror.NotFound, apperror.WorkflowNotFound,
			"workflow %q not found in project %q; `signalbox workflow list` shows what there is", name, projectName)
	default:
		return "", apperror.New(apperror.Invalid, apperror.WorkflowAmbiguous,
			"workflow %q is ambiguous: say which of %s", name, strings.Join(names, ", ")).WithField("workflow", "is ambiguous")
	}
}

// Newer reports whether version a takes precedence over b (semver.org, item 11).
func Newer(a, b string) bool { return semver.Compare("v"+a, "v"+b) > 0 }

func (s *Service) checkSize(source string) error {
	if len(source) <= s.limits.MaxBytes {
		return nil
	}
	return apperror.New(apperror.Exhausted, apperror.DefinitionTooLarge,
		"the document has %d bytes, more than the limit of %d (workflows.max_definition_bytes)", len(source),
		s.limits.MaxBytes).
		WithField("source", "is too large")
}
