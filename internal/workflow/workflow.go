// Package workflow stores definitions: one draft each, and published versions that never change.
//
// A definition has a namespace-qualified name, "namespace/name". A run executes a document, which is identified by the
// hash of its canonical form: editing, pausing or deleting a definition does not affect open runs.
package workflow

import (
	"context"
	"encoding/json"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// States of a workflow.
const (
	// StateDraft: nothing is published.
	StateDraft = "draft"
	// StatePublished: new runs may start.
	StatePublished = "published"
	// StatePaused: new runs are refused.
	StatePaused = "paused"
)

// States returns all states.
func States() []string { return []string{StateDraft, StatePublished, StatePaused} }

// Workflow is the record of one definition.
type Workflow struct {
	Project string
	// Name is "namespace/name".
	Name    string
	Title   string
	Summary string
	State   string
	// LatestVersion is the published version of highest precedence (semver.org, item 11); empty when there is none.
	LatestVersion string
	// LatestHash is the hash of the document of that version.
	LatestHash string
	// HasDraft reports whether a draft is stored.
	HasDraft    bool
	PauseReason string
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Draft is the unpublished document of a workflow; it may have violations.
type Draft struct {
	Project  string
	Workflow string
	Title    string
	Summary  string
	Source   string
	SavedAt  time.Time
}

// Version is one published document.
type Version struct {
	Project  string
	Workflow string
	Version  string
	// Hash of Canonical, as "sha256:…".
	Hash    string
	Title   string
	Summary string
	// Source is the document as it was submitted.
	Source string
	// Canonical is the form that runs execute.
	Canonical []byte
	// Resources are the texts that the document refers to, by URI. Lists of versions have none.
	Resources []Resource
	// Tasks are those of the document; only a version that is published has them.
	Tasks []Task
	// Trigger and Timer start the workflow while this is its newest version: the JSON of event.Spec and of
	// event.TimerSpec, nil where there is none.
	Trigger     json.RawMessage
	Timer       json.RawMessage
	Publisher   string
	PublishedAt time.Time
}

// Task is a task of a document, by which its workflow is found.
type Task struct{ Pointer, Name string }

// Filter selects the workflows to list, in order of project and name.
type Filter struct {
	// Project is the project. Empty means those of Projects, or all projects if that is nil, too.
	Project  string
	Projects []string
	// Text is a part of the name.
	Text   string
	States []string
	// After is the position of the last workflow of the previous page; nil for the first page.
	After *Cursor
	Limit int
}

// Cursor is a position in a list of workflows.
type Cursor struct {
	Project string `json:"project"`
	Name    string `json:"name"`
}

// Position returns the position of a workflow in lists.
func (w Workflow) Position() Cursor { return Cursor{Project: w.Project, Name: w.Name} }

// VersionCursor is a position in a list of versions, newest first.
type VersionCursor struct {
	PublishedAt time.Time `json:"at"`
	Version     string    `json:"version"`
}

// Store stores workflows. Missing objects are [apperror.NotFound] with the matching reason.
type Store interface {
	// SaveDraft stores the draft and creates the workflow when it is new.
	SaveDraft(ctx context.Context, d Draft, e audit.Entry) (Workflow, error)
	// GetDraft returns the stored draft.
	GetDraft(ctx context.Context, project, name string) (Draft, error)
	// Publish stores v and its document, deletes the draft when its source is v's, and sets the latest version by
	// calling newer(candidate, current). When v.Version is published already with the same hash it returns the
	// stored version and false, and changes nothing; with another hash it returns [apperror.Exists].
	Publish(ctx context.Context, v Version, newer func(a, b string) bool, e audit.Entry) (Version, bool, error)
	// GetWorkflow returns one workflow.
	GetWorkflow(ctx context.Context, project, name string) (Workflow, error)
	// FindByShortName returns the full names of the workflows "*/short", in order, at most limit.
	FindByShortName(ctx context.Context, project, short string, limit int) ([]string, error)
	// ListWorkflows lists workflows in order of name.
	ListWorkflows(ctx context.Context, f Filter) ([]Workflow, error)
	// GetVersion returns one version, source and canonical form included.
	GetVersion(ctx context.Context, project, name, version string) (Version, error)
	// ListVersions lists versions newest first, without source and canonical form.
	ListVersions(ctx context.Context, project, name string, after *VersionCursor, limit int) ([]Version, error)
	// SetPaused pauses or unpauses a workflow; when it is in that state already, it changes nothing and writes no audit
	// entry.
	SetPaused(ctx context.Context, project, name string, paused bool, reason string, e audit.Entry) (Workflow, error)
	// SetOverride replaces what operators have set of the schedule of a workflow.
	SetOverride(ctx context.Context, project, name string, o event.Override, e audit.Entry) error
	// DeleteWorkflow removes the workflow, its draft and its versions, unless runs of it are open
	// ([apperror.WorkflowHasOpenRuns], their number in the message). Documents stay.
	DeleteWorkflow(ctx context.Context, project, name string, e audit.Entry) error
	// Document returns the canonical form with this hash; documents are never deleted.
	Document(ctx context.Context, hash string) ([]byte, error)
	// Resources returns the contents of resources of published versions by their hashes; they are never deleted.
	Resources(ctx context.Context, hashes []string) (map[string][]byte, error)
}
