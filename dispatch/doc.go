// Package dispatch keeps exactly one healthy dispatcher per project and task queue: a Temporal workflow that takes events
// from an inbox to where they go, owned by one process at a time.
package dispatch
