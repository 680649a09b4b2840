// Package view has the saved views of the list of runs: named filters with the order and the columns of the list, personal or shared by
// a project.
//
//	views := view.NewService(store, runs, time.Now)
//	v, err := views.Save(ctx, view.View{Project: "shop", Name: "Failed", Query: view.Query{Filter: run.Filter{Statuses: …}}})
//
// A view belongs to the actor that created it, by kind and name. Other actors see it only if it is shared: then its owner and admins of
// its project may change and delete it, and its changes are in the audit log. A change names the revision that it is based on, so that
// it does not overwrite another change that its caller has not read.
//
// The package does not read runs: a view is a request that its reader sends.
package view

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Bounds of views.
const (
	// MaxName is the maximum length of a name, in bytes.
	MaxName = 100
	// MaxQuery is the maximum length of a stored query, in bytes of JSON.
	MaxQuery = 8 << 10
	// MaxOwned is the maximum number of views of an owner in a project, MaxShared that of the shared views of a project.
	MaxOwned  = 100
	MaxShared = 200
	// MaxPeriod is the longest period of a query.
	MaxPeriod = 3650 * 24 * time.Hour
)

// View is a named filter of the list of runs.
type View struct {
	ID      string
	Project string
	Name    string
	Query   Query
	Shared  bool
	// Owner created the view, Updater made the last change.
	Owner, Updater Person
	// Revision counts the changes, from 1.
	Revision  int64
	UpdatedAt time.Time
}

// Person identifies an actor across its requests.
type Person struct {
	// Kind is that of [auth.Actor].
	Kind, Name string
}

// personOf returns the person that an actor is.
func personOf(a auth.Actor) Person { return Person{Kind: a.Kind, Name: a.Name} }

// OwnedBy reports whether the view belongs to the actor.
func (v View) OwnedBy(a auth.Actor) bool { return v.Owner == personOf(a) }

// Query is what a list shows. Its JSON form is stored.
type Query struct {
	Statuses []run.Status `json:"statuses,omitempty"`
	// Workflow is "namespace/name".
	Workflow string `json:"workflow,omitempty"`
	Version  string `json:"version,omitempty"`
	// Since is inclusive, Until exclusive, both on the time of creation. Period stands for Since: the time before the list is read.
	Since            time.Time     `json:"since,omitzero"`
	Until            time.Time     `json:"until,omitzero"`
	Period           time.Duration `json:"period,omitempty"`
	Problems         []string      `json:"problems,omitempty"`
	Trigger          string        `json:"trigger,omitempty"`
	NotReplayed      bool          `json:"notReplayed,omitempty"`
	FailureGroup     string        `json:"failureGroup,omitempty"`
	Text             string        `json:"text,omitempty"`
	ParentRunID      string        `json:"parentRunId,omitempty"`
	ReplayOf         string        `json:"replayOf,omitempty"`
	BatchID          string        `json:"batchId,omitempty"`
	StartedByBatchID string        `json:"startedByBatchId,omitempty"`
	// Labels are values by key, as in [run.Filter].
	Labels map[string]string `json:"labels,omitempty"`
	// Order is a word of the API; empty for the newest runs first.
	Order string `json:"order,omitempty"`
	// Columns are the columns of the list, of [Columns]; empty for the choice of its reader.
	Columns []string `json:"columns,omitempty"`
}

// Columns returns the columns that a list of runs can have.
func Columns() []string {
	return []string{"status", "run", "workflow", "trigger", "actor", "queued", "started", "waited", "duration", "steps", "problem", "labels"}
}

// QueryOf returns the query with the conditions of a filter.
func QueryOf(f run.Filter) Query {
	return Query{
		Statuses: f.Statuses, Workflow: f.Workflow, Version: f.Version, Since: f.Since, Until: f.Until, Problems: f.Problems, Trigger: f.Trigger,
		NotReplayed: f.NotReplayed, FailureGroup: f.FailureGroup, Text: f.Text, ParentRunID: f.ParentRunID, ReplayOf: f.ReplayOf, BatchID: f.BatchID, StartedByBatchID: f.StartedByBatchID,
		Labels: f.Labels,
	}
}

// filter returns the conditions of the query, without its period.
func (q Query) filter(project string) run.Filter {
	return run.Filter{
		Project: project, Statuses: q.Statuses, Workflow: q.Workflow, Version: q.Version, Since: q.Since, Until: q.Until, Problems: q.Problems,
		Trigger: q.Trigger, NotReplayed: q.NotReplayed, FailureGroup: q.FailureGroup, Text: q.Text, ParentRunID: q.ParentRunID,
		ReplayOf: q.ReplayOf, BatchID: q.BatchID, StartedByBatchID: q.StartedByBatchID, Labels: q.Labels,
	}
}

// Store stores views. Missing projects are [apperror.NotFound].
type Store interface {
	// ListViews returns the views of an owner and the shared ones of a project, by name.
	ListViews(ctx context.Context, project string, owner Person) ([]View, error)
	// ChangeView calls change in the transaction that then writes its result. Its argument are the shared views of the project, the view with
	// the ID if there is one, and all views of that view's owner, or, for an ID without a view, of the given owner.
	ChangeView(ctx context.Context, project, id string, owner Person, change func(views []View) (Change, error)) error
}

// Change is what becomes of a view.
type Change struct {
	// To is the new content of the view; nil deletes it.
	To *View
	// Entry is written unless it is nil.
	Entry *audit.Entry
}

// find returns the view with an ID.
func find(views []View, id string) *View {
	if i := slices.IndexFunc(views, func(v View) bool { return v.ID == id }); i >= 0 {
		return &views[i]
	}
	return nil
}
