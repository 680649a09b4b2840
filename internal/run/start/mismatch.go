package start

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

// PlacementFacts are the Temporals of this process, of the runs, and of the live workers.
type PlacementFacts struct {
	// Here has no namespace ID until Temporal was reached.
	Here run.ClusterID
	// Recorded is zero until a run was started or compared.
	Recorded run.RunsCluster
	// Open is how many open runs Recorded may have.
	Open    int64
	Workers []worker.Worker
	// ExecutesRuns reports whether this process executes runs itself, also before it is one of Workers.
	ExecutesRuns bool
}

// PlacementMismatch is a difference between Temporals.
type PlacementMismatch struct {
	// Other is the Temporal that is not this process's. RunsThere reports that the runs are there; otherwise only
	// workers are.
	Other     run.ClusterID
	RunsThere bool
	// Summary is the difference in one sentence, without addresses.
	Summary string
	// Detail contains both Temporals and the remedy.
	Detail string
}

// CompareClusters returns how the Temporal of this process differs from the others; zero while it does not, or is not
// known yet.
func CompareClusters(f PlacementFacts) PlacementMismatch {
	if f.elsewhere() {
		return f.runsElsewhere()
	}
	if f.Here.NamespaceID == "" {
		return PlacementMismatch{}
	}
	var others []worker.Worker
	for _, w := range f.Workers {
		if at := clusterOf(w); at.NamespaceID != "" && run.DifferentCluster(at, f.Here) {
			others = append(others, w)
		}
	}
	if len(others) == 0 {
		return PlacementMismatch{}
	}
	other := clusterOf(others[0])
	detail := fmt.Sprintf("this server is connected to %s, and live workers to %s: %s; make temporal.address and "+
		"temporal.namespace the same in all processes on this database", run.ClusterName(f.Here), run.ClusterName(other),
		listWorkers(others))
	return PlacementMismatch{
		Other: other, Summary: "Live workers use another Temporal than this server", Detail: detail}
}

// runsElsewhere returns the difference between this Temporal and the one that holds the runs.
func (f PlacementFacts) runsElsewhere() PlacementMismatch {
	detail := fmt.Sprintf("this server is connected to %s; since %s the runs have been in %s", run.ClusterName(f.Here),
		f.Recorded.Since.UTC().Format(time.RFC3339), run.ClusterName(f.Recorded.ClusterID))
	var meant []string
	if there := f.connectedTo(f.Recorded.ClusterID); len(there) > 0 {
		detail += ", where live workers are connected: " + listWorkers(there)
		meant = append(meant, "stop the workers that are connected there")
	}
	summary := "This server uses another Temporal than the runs"
	if f.Open > 0 {
		summary = fmt.Sprintf("This server uses another Temporal than %d open runs", f.Open)
		if f.Open == 1 {
			summary = "This server uses another Temporal than 1 open run"
		}
		meant = append(meant, fmt.Sprintf("run `signalbox system adopt-temporal %s %s`", f.Here.Address, f.Here.Namespace))
	}
	detail += "; point temporal.address and temporal.namespace of this server back there"
	if len(meant) > 0 {
		detail += ", or, if the move is meant, " + strings.Join(meant, " and ")
	}
	return PlacementMismatch{Other: f.Recorded.ClusterID, RunsThere: true, Summary: summary, Detail: detail}
}

// PlacementRefusal returns why this process must not start runs: the runs are in another Temporal, which has open runs
// or live workers, or no worker is connected here. Without an error, this Temporal may replace the recorded one.
func PlacementRefusal(f PlacementFacts) error {
	if !f.elsewhere() {
		return nil
	}
	executed := f.ExecutesRuns || len(f.connectedTo(f.Here)) > 0
	if executed && f.Open == 0 && len(f.connectedTo(f.Recorded.ClusterID)) == 0 {
		return nil
	}
	return refused(f)
}

func refused(f PlacementFacts) error {
	m := CompareClusters(f)
	return apperror.New(apperror.Refused, apperror.ContractMismatch, "nothing was started. %s: %s", m.Summary, m.Detail)
}

// elsewhere reports whether the runs are in another Temporal than this process.
func (f PlacementFacts) elsewhere() bool {
	return f.Here.NamespaceID != "" && f.Recorded.ClusterID != (run.ClusterID{}) &&
		run.DifferentCluster(f.Recorded.ClusterID, f.Here)
}

// connectedTo returns the live workers that are connected to a Temporal. A worker that has not reached its Temporal yet
// is compared by address.
func (f PlacementFacts) connectedTo(c run.ClusterID) (found []worker.Worker) {
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
	return run.ClusterID{Address: w.Fingerprint.Address, Namespace: w.Fingerprint.Namespace,
		NamespaceID: w.Fingerprint.NamespaceID}
}

// listWorkers returns the IDs of workers as text.
func listWorkers(workers []worker.Worker) string {
	var names []string
	for _, w := range workers[:min(len(workers), namedWorkers)] {
		names = append(names, w.ServerID)
	}
	if more := len(workers) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
