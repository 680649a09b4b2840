// Package delivery is where events go out: what matching made of them, the deliveries with their claims, and the
// dispatchers that may claim.
//
// All of its methods are those of vault.EventStore. Each that changes anything for a dispatcher looks at its owner in the same
// transaction, in which it holds the dispatcher's row. Where it holds the project's inbox too, it takes that second.
//
// It matches nothing and makes no delivery.
package delivery
