// Package view has the saved views of the list of runs: named filters with the order and the columns of the list,
// personal or shared by a project.
//
//	views := view.NewService(store, runs, time.Now)
//	v, err := views.Save(ctx, view.View{Project: "shop", Name: "Failed", Query: view.Query{Filter: run.Filter{Statuses: …}}})
//
// A view belongs to the actor that created it, by kind and name. Other actors see it only if it is shared: then its
// owner and admins of its project may change and delete it, and its changes are in the audit log. A change names the
// revision that it is based on, so that it does not overwrite another change that its caller has not read.
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
	run.Filter

	// Period stands for Since of the filter, EndedPeriod for EndedSince: the time before the list is read.
	Period      time.Duration `json:"period,omitempty"`
	EndedPeriod time.Duration `json:"endedPeriod,omitempty"`
	// Order is a word of the API; empty for the newest runs first.
	Order string `json:"order,omitempty"`
	// Columns are the columns of the list, of [Columns]; empty for the choice of its reader.
	Columns []string `json:"columns,omitempty"`
}

// Columns returns the columns that a list of runs can have.
func Columns() []string {
	return []string{"status", "run", "workflow", "trigger", "actor", "queued", "started", "waited", "duration", "steps",
		"cause", "labels"}
}

// Store stores views. Missing projects are [apperror.NotFound].
type Store interface {
	// ListViews returns the views of an owner and the shared ones of a project, by name.
	ListViews(ctx context.Context, project string, owner Person) ([]View, error)
	// ChangeView calls change in the transaction that then writes its result. Its argument are the shared views of the
	// project, the view with the ID if there is one, and all views of that view's owner, or, for an ID without a view, of
	// the given owner.
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
