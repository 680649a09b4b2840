// Package worker knows the processes that work: which are alive, and what they were made for.
//
// Every process with the role of a worker runs a [Heartbeat], which writes what it is to the store every few seconds.
// Those that start runs ask a [Registry] first: a run in a project that none of the live workers serves is refused, and when every live worker knows Temporal under other names, or works in
// another namespace, nobody would ever pick the run up, and it is refused while somebody is there to be told.
//
//	registry := worker.NewRegistry(store, fingerprint)
//	err := registry.Check(ctx, project)                               // before a run is started
//	heartbeat := worker.NewHeartbeat(store, serverID, projects, fingerprint)
//	err = heartbeat.Start(ctx)
//
// It does not tell whether a worker polls; Temporal knows that. That nobody is alive is no reason to refuse: a worker may
// come later. Alive is who has given a sign within [AliveFor] by the database's clock, so that the clocks of the
// processes need not agree.
package worker

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	// BeatEvery is how often a worker gives a sign of life.
	BeatEvery = 5 * time.Second
	// AliveFor is how long a sign of life counts.
	AliveFor = 20 * time.Second
	// forgetAfter is when a worker that gave none is forgotten.
	forgetAfter = 10 * time.Minute
	// maxWorkers bounds how many are read.
	maxWorkers = 1000
)

// Fingerprint is what a process and the workers that are to take its runs must agree about.
type Fingerprint struct {
	// Contract is a hash of the names that they share in Temporal.
	Contract string
	// Address and Namespace are where Temporal is, as configured.
	Address, Namespace string
	// NamespaceID is Temporal's own; empty until it was reached.
	NamespaceID string
}

// Differs tells whether runs that one process starts are none of the other's. Addresses and names are not compared: one
// cluster has many. Its namespace's ID tells, as far as both know it.
func (f Fingerprint) Differs(other Fingerprint) bool {
	return f.Contract != other.Contract ||
		(f.NamespaceID != "" && other.NamespaceID != "" && f.NamespaceID != other.NamespaceID)
}

// String names it for people.
func (f Fingerprint) String() string {
	id := f.NamespaceID
	if id == "" {
		id = "not known yet"
	}
	return fmt.Sprintf("contract %s, Temporal at %s, namespace %q (ID %s)", f.Contract, f.Address, f.Namespace, id)
}

// Worker is one process that works.
type Worker struct {
	// ServerID is the identity of this start of the process.
	ServerID    string
	Fingerprint Fingerprint
	// Projects are those it works for; empty means all.
	Projects  []string
	StartedAt time.Time
	// BeatAt is its last sign of life, by the database's clock.
	BeatAt time.Time
}

// Serves reports whether the worker executes runs of the project.
func (w Worker) Serves(project string) bool {
	return len(w.Projects) == 0 || slices.Contains(w.Projects, project)
}

// Store keeps workers.
type Store interface {
	// BeatWorker adds the worker or renews its sign of life, whose time is the database's now, and forgets those whose
	// last one is older than forget.
	BeatWorker(ctx context.Context, w Worker, forget time.Duration) error
	// LeaveWorker forgets the worker; one that is not known is no error.
	LeaveWorker(ctx context.Context, serverID string) error
	// ListWorkers returns up to limit workers that gave a sign of life within that time, in order of their IDs.
	ListWorkers(ctx context.Context, within time.Duration, limit int) ([]Worker, error)
}
