// Package auth names who does something. Every request has one [Actor], carried in its context from the listener to
// the audit log.
package auth

import (
	"context"
	"fmt"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/fault"
)

// Kinds of actors.
const (
	// KindLocal is whoever uses a listener that is open to this machine alone.
	KindLocal = "local"
	// KindToken is whoever has an API token.
	KindToken = "token"
	// KindSystem is Signalbox itself.
	KindSystem = "system"
)

// Role is what an actor may do in a project. Each includes those before it, but Operator and Publisher, which are beside each
// other.
type Role string

// The roles.
const (
	// Viewer reads, with marks instead of sensitive values.
	Viewer Role = "viewer"
	// Operator runs, replays, cancels and sends events.
	Operator Role = "operator"
	// Publisher changes definitions.
	Publisher Role = "publisher"
	// Admin does everything.
	Admin Role = "admin"
)

// Everywhere stands for every project, and for what belongs to none.
const Everywhere = "*"

// Known tells whether it is one of the four.
func (r Role) Known() bool { return slices.Contains([]Role{Viewer, Operator, Publisher, Admin}, r) }

// Actor is who does something.
type Actor struct {
	Kind string
	Name string
	// ID of the token; empty for whoever has none.
	ID string
	// Roles by project; Everywhere counts for all of them.
	Roles map[string]Role
}

// May tells whether the actor has a role in a project.
func (a Actor) May(project string, r Role) bool {
	return includes(a.Roles[project], r) || includes(a.Roles[Everywhere], r)
}

func includes(has, needed Role) bool {
	return has == Admin || has == needed || needed == Viewer && (has == Operator || has == Publisher)
}

// Visible returns the projects in which the actor has a role, in order; all is true where it has one in every project.
func (a Actor) Visible() (names []string, all bool) {
	if a.May(Everywhere, Viewer) {
		return nil, true
	}
	for name := range a.Roles {
		if a.May(name, Viewer) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, false
}

// Sees tells whether the actor of ctx has a role in the project. Where nobody acts, Signalbox itself does.
func Sees(ctx context.Context, project string) bool {
	a, ok := ActorFrom(ctx)
	return !ok || a.May(project, Viewer)
}

// Require returns an error where the actor of ctx has not the role in the project: a [fault.Denied], or, where it has no role there
// at all, the fault of a project that does not exist.
func Require(ctx context.Context, project string, r Role) error {
	a, _ := ActorFrom(ctx)
	switch {
	case a.May(project, r):
		return nil
	case project != Everywhere && !a.May(project, Viewer):
		return fault.NoProject(project)
	}
	where := fmt.Sprintf("in project %q", project)
	if project == Everywhere {
		where = "in all projects"
	}
	return fault.New(fault.Denied, fault.PermissionDenied, "%q has not the role %s %s, which this needs; an admin can make a token with it", a.Name, r, where).
		WithFact("role", string(r)).WithFact("project", project)
}

// System returns the actor for what Signalbox does of its own accord.
func System() Actor {
	return Actor{Kind: KindSystem, Name: "signalbox", Roles: map[string]Role{Everywhere: Admin}}
}

// Local returns whoever uses a listener that is open to this machine alone.
func Local() Actor {
	return Actor{Kind: KindLocal, Name: "local", Roles: map[string]Role{Everywhere: Admin}}
}

type contextKey struct{}

// WithActor returns a context in which a acts.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, contextKey{}, a)
}

// ActorFrom returns the actor of ctx, and whether it has one.
func ActorFrom(ctx context.Context) (Actor, bool) {
	a, ok := ctx.Value(contextKey{}).(Actor)
	return a, ok
}
