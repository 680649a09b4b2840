// Package worker tracks the worker processes: which are alive, and with which settings.
//
// Every process with the role worker runs a [Heartbeat], which writes its fingerprint to the store every few seconds.
// Processes that start runs check a [Registry] first. They refuse a run in a project that none of the live workers
// serves. They also refuse it when every live worker has another contract of Temporal names or another namespace,
// because no worker would ever pick the run up.
//
//	registry := worker.NewRegistry(store, fingerprint)
//	live, known := registry.Live(ctx)
//	err := registry.Check(project, live)                              // before a run is started
//	heartbeat := worker.NewHeartbeat(store, serverID, projects, worker.Sources{Fingerprint: fingerprint, Busy: busy, Processor: state})
//	err = heartbeat.Start(ctx)
//
// The package does not report whether a worker polls; Temporal reports that. Without any live worker, runs are
// accepted: a worker may start later. A worker is alive when its last heartbeat is at most [AliveFor] old by the
// database's clock, so that the clocks of the processes need not agree.
package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/internal/processor"
)

const (
	// BeatEvery is the interval of the heartbeats.
	BeatEvery = 5 * time.Second
	// AliveFor is how long a heartbeat counts.
	AliveFor = 20 * time.Second
	// forgetAfter is the age of the last heartbeat after which a worker is removed. Until then, [Left] distinguishes
	// killed workers, also after a long outage.
	forgetAfter = 24 * time.Hour
	// maxWorkers bounds how many workers are read.
	maxWorkers = 1000
)

// Fingerprint is what a process and the workers of its runs must have in common.
type Fingerprint struct {
	// Contract is a hash of the names that they share in Temporal.
	Contract string
	// Address and Namespace are the configured address and namespace of Temporal.
	Address, Namespace string
	// NamespaceID is Temporal's own ID of the namespace; empty until Temporal was reached.
	NamespaceID string
}

// Differs reports whether the workers of other cannot execute the runs of f. Addresses and names are not compared,
// because one cluster has many. The namespace's ID is compared where both sides have it.
func (f Fingerprint) Differs(other Fingerprint) bool {
	return f.Contract != other.Contract ||
		(f.NamespaceID != "" && other.NamespaceID != "" && f.NamespaceID != other.NamespaceID)
}

// String formats the fingerprint for messages.
func (f Fingerprint) String() string {
	id := f.NamespaceID
	if id == "" {
		id = "not known yet"
	}
	return fmt.Sprintf("contract %s, Temporal at %s, namespace %q (ID %s)", f.Contract, f.Address, f.Namespace, id)
}

// Worker is one worker process.
type Worker struct {
	// ServerID identifies this start of the process.
	ServerID    string
	Fingerprint Fingerprint
	// Projects are the projects that it serves; empty means all.
	Projects  []string
	StartedAt time.Time
	// BeatAt is the time of its last heartbeat, by the clock of the process that lists the workers.
	BeatAt time.Time
	// Busy are the projects whose task queues it does not poll now, because its slots are in use.
	Busy []Busy
	// Processor is what it got of its machine's processors until its last heartbeat.
	Processor processor.State
}

// Busy reports that a worker takes no more tasks of a project until one of those in progress ends, or there is
// processor time for them.
type Busy struct {
	Project string `json:"project"`
	// WorkflowTasks and Activities are since when its pollers for these wait for a free slot; zero where they do not.
	WorkflowTasks time.Time `json:"workflowTasks,omitzero"`
	Activities    time.Time `json:"activities,omitzero"`
}

// BusyWith returns the entry of a project, zero where the worker is not busy with it.
func (w Worker) BusyWith(project string) Busy {
	for _, b := range w.Busy {
		if b.Project == project {
			return b
		}
	}
	return Busy{}
}

// Serves reports whether the worker executes runs of the project.
func (w Worker) Serves(project string) bool {
	return len(w.Projects) == 0 || slices.Contains(w.Projects, project)
}

// Store stores workers.
type Store interface {
	// BeatWorker adds the worker or renews its heartbeat, with the database's current time, and removes workers whose last
	// heartbeat is older than forget.
	BeatWorker(ctx context.Context, w Worker, forget time.Duration) error
	// LeaveWorker removes the worker; an unknown worker is not an error.
	LeaveWorker(ctx context.Context, serverID string) error
	// ListWorkers returns up to limit workers with a heartbeat within that time, in order of their IDs.
	ListWorkers(ctx context.Context, within time.Duration, limit int) ([]Worker, error)
}

// Left returns those of the processes that are not in the store: a worker that stops removes itself, and a killed one
// remains for a day.
func Left(ctx context.Context, store Store, serverIDs []string) ([]string, error) {
	stored, err := store.ListWorkers(ctx, forgetAfter, maxWorkers)
	if err != nil || len(stored) >= maxWorkers { // of more, the rest is not known
		return nil, err
	}
	var left []string
	for _, id := range serverIDs {
		if !slices.ContainsFunc(stored, func(w Worker) bool { return w.ServerID == id }) {
			left = append(left, id)
		}
	}
	return left, nil
}
