// Package placement compares the Temporal that this process is connected to with the recorded one that holds the runs
// and with those of the live workers. Processes on one database that are connected to different Temporals execute runs
// where the other processes cannot find them.
//
//	m := placement.New(placement.Options{Store: store, Registry: registry, Here: here})
//	err := m.Start(ctx)            // logs when a difference begins and ends
//	err = m.Check(ctx, project)    // before a run is started
//	text := m.Mismatch()           // for status, readiness and metrics
//
// It compares namespace IDs, not addresses: one Temporal has many addresses. Another ID at the same address and
// namespace is a Temporal that has lost its data, which package reconcile handles.
package placement

import (
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// namedWorkers is how many workers a text lists.
const namedWorkers = 3

// Facts are the Temporals of this process, of the runs, and of the live workers.
type Facts struct {
	// Here has no namespace ID until Temporal was reached.
	Here run.ClusterID
	// Recorded is zero until the runs were first compared.
	Recorded run.RunsCluster
	Workers  []worker.Worker
	// ExecutesRuns reports whether this process executes runs itself, also before it is one of Workers.
	ExecutesRuns bool
}

// Mismatch is a difference between Temporals.
type Mismatch struct {
	// Other is the Temporal that is not this process's. RunsThere reports that the runs are there; otherwise only
	// workers are.
	Other     run.ClusterID
	RunsThere bool
	// Detail contains both Temporals and the remedy.
	Detail string
}

// Compare returns how the Temporal of this process differs from the others; zero while it does not, or is not known
// yet.
func Compare(f Facts) Mismatch {
	if f.elsewhere() {
		there := f.connectedTo(f.Recorded.ClusterID)
		detail := fmt.Sprintf("this server is connected to %s; since %s the runs have been in %s", run.ClusterName(f.Here),
			f.Recorded.Since.UTC().Format(time.RFC3339), run.ClusterName(f.Recorded.ClusterID))
		advice := "point temporal.address and temporal.namespace of this server back there, or, if the move is meant, end the runs that were left behind"
		if len(there) > 0 {
			detail += ", where live workers are connected: " + list(there)
			advice = "point temporal.address and temporal.namespace of this server back there, or, if the move is meant, stop the workers that are connected there"
		}
		return Mismatch{Other: f.Recorded.ClusterID, RunsThere: true, Detail: detail + "; " + advice}
	}
	if f.Here.NamespaceID == "" {
		return Mismatch{}
	}
	var others []worker.Worker
	for _, w := range f.Workers {
		if at := clusterOf(w); at.NamespaceID != "" && run.DifferentCluster(at, f.Here) {
			others = append(others, w)
		}
	}
	if len(others) == 0 {
		return Mismatch{}
	}
	other := clusterOf(others[0])
	return Mismatch{Other: other, Detail: fmt.Sprintf("this server is connected to %s, and live workers to %s: %s; "+
		"make temporal.address and temporal.namespace the same in all processes on this database", run.ClusterName(f.Here), run.ClusterName(other), list(others))}
}

// Refusal returns why this process must not start runs: the runs are in another Temporal, and workers are connected
// there, or none is connected here. During a deliberate move to another Temporal, workers are connected here alone.
func Refusal(f Facts) error {
	if !f.elsewhere() {
		return nil
	}
	if executed := f.ExecutesRuns || len(f.connectedTo(f.Here)) > 0; executed && len(f.connectedTo(f.Recorded.ClusterID)) == 0 {
		return nil
	}
	return apperror.New(apperror.Refused, apperror.ContractMismatch, "nothing was started: %s", Compare(f).Detail)
}

// elsewhere reports whether the runs are in another Temporal than this process.
func (f Facts) elsewhere() bool {
	return f.Here.NamespaceID != "" && f.Recorded.ClusterID != (run.ClusterID{}) && run.DifferentCluster(f.Recorded.ClusterID, f.Here)
}

// connectedTo returns the live workers that are connected to a Temporal. A worker that has not reached its Temporal yet
// is compared by address.
func (f Facts) connectedTo(c run.ClusterID) (found []worker.Worker) {
	for _, w := range f.Workers {
		at := clusterOf(w)
		if at.NamespaceID == "" {
			at.NamespaceID = c.NamespaceID
			if at != c {
				continue
			}
		}
		if at.NamespaceID == c.NamespaceID {
			found = append(found, w)
		}
	}
	return found
}

func clusterOf(w worker.Worker) run.ClusterID {
	return run.ClusterID{Address: w.Fingerprint.Address, Namespace: w.Fingerprint.Namespace, NamespaceID: w.Fingerprint.NamespaceID}
}

// list returns the IDs of workers as text.
func list(workers []worker.Worker) string {
	var names []string
	for _, w := range workers[:min(len(workers), namedWorkers)] {
		names = append(names, w.ServerID)
	}
	if more := len(workers) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
