// Package auth names who does something. Every request has one [Actor], carried in its context from the listener to
// the audit log.
//
// It does not decide what an actor may do.
package auth

import "context"

// Kinds of actors.
const (
	// KindLocal is whoever uses a listener that is open to this machine alone.
	KindLocal = "local"
	// KindSystem is Signalbox itself.
	KindSystem = "system"
)

// Actor is who does something.
type Actor struct {
	Kind string
	Name string
}

// System returns the actor for what Signalbox does of its own accord.
func System() Actor { return Actor{Kind: KindSystem, Name: "signalbox"} }

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
