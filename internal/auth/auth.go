// Package auth defines actors, roles and permissions. Every request has one [Actor], carried in its context from the
// listener to the audit log.
package auth

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// Kinds of actors.
const (
	// KindLocal is any caller of a listener that only this machine can reach.
	KindLocal = "local"
	// KindToken is a caller with an API token.
	KindToken = "token"
	// KindSystem is Signalbox itself.
	KindSystem = "system"
)

// Role is a set of permissions in a project. Each role includes the preceding ones, except that Publisher does not
// include Operator.
type Role string

// The roles.
const (
	// Viewer reads, with marks in place of sensitive values.
	Viewer Role = "viewer"
	// Operator starts, replays and cancels runs and publishes events.
	Operator Role = "operator"
	// Publisher changes definitions.
	Publisher Role = "publisher"
	// Admin has all permissions.
	Admin Role = "admin"
)

// Everywhere stands for every project, and for what belongs to no project.
const Everywhere = "*"

// Roles returns all roles.
func Roles() []Role { return []Role{Viewer, Operator, Publisher, Admin} }

// Known reports whether the role is one of [Roles].
func (r Role) Known() bool { return slices.Contains(Roles(), r) }

// Actor is the author of an action.
type Actor struct {
	Kind string
	Name string
	// ID of the token; empty without a token.
	ID string
	// Session is the ID of the session of a browser that was opened with the token; empty for requests with the token
	// itself.
	Session string
	// Roles by project; a role for Everywhere holds in all projects.
	Roles map[string]Role
}

// May reports whether the actor has a role in a project.
func (a Actor) May(project string, r Role) bool {
	return includes(a.Roles[project], r) || includes(a.Roles[Everywhere], r)
}

func includes(has, needed Role) bool {
	return has == Admin || has == needed || needed == Viewer && (has == Operator || has == Publisher)
}

// RolesIn returns the actor's roles in a project, without those that another one includes: at most two.
func (a Actor) RolesIn(project string) (roles []Role) {
	if a.May(project, Admin) {
		return []Role{Admin}
	}
	for _, r := range []Role{Operator, Publisher} {
		if a.May(project, r) {
			roles = append(roles, r)
		}
	}
	if len(roles) == 0 && a.May(project, Viewer) {
		return []Role{Viewer}
	}
	return roles
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

// Sees reports whether the actor of ctx has a role in the project. A context without an actor acts as Signalbox itself.
func Sees(ctx context.Context, project string) bool {
	a, ok := ActorFrom(ctx)
	return !ok || a.May(project, Viewer)
}

// Require returns an error when the actor of ctx lacks the role in the project: an [apperror.Denied], or, without any
// role there, the error for a project that does not exist.
func Require(ctx context.Context, project string, r Role) error {
	a, _ := ActorFrom(ctx)
	switch {
	case a.May(project, r):
		return nil
	case project != Everywhere && !a.May(project, Viewer):
		return apperror.NoProject(project)
	}
	where := fmt.Sprintf("in project %q", project)
	if project == Everywhere {
		where = "in all projects"
	}
	return apperror.New(apperror.Denied, apperror.PermissionDenied,
		"%q lacks the role %s %s, which this call requires; an admin can create a token with it", a.Name, r, where).
		WithFact("role", string(r)).WithFact("project", project)
}

// System returns the actor of Signalbox's own actions.
func System() Actor {
	return Actor{Kind: KindSystem, Name: "signalbox", Roles: map[string]Role{Everywhere: Admin}}
}

// runName begins the name of a run as an actor. No name of a token has a space.
const runName = "run "

// Run returns the actor of what a run does: children that it starts, and events that it emits.
func Run(id string) Actor { return Actor{Kind: KindSystem, Name: runName + id} }

// RunOf returns the run that is the actor of a name; false for other actors.
func RunOf(name string) (id string, ok bool) { return strings.CutPrefix(name, runName) }

// Local returns the actor of calls to a listener that only this machine can reach.
func Local() Actor {
	return Actor{Kind: KindLocal, Name: "local", Roles: map[string]Role{Everywhere: Admin}}
}

type contextKey struct{}

// WithActor returns a context with the actor a.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, contextKey{}, a)
}

// ActorFrom returns the actor of ctx, and whether it has one.
func ActorFrom(ctx context.Context) (Actor, bool) {
	a, ok := ctx.Value(contextKey{}).(Actor)
	return a, ok
}
