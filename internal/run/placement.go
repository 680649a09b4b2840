package run

import (
	"context"
	"fmt"
	"time"
)

// Placement is how the Temporal that this process is connected to relates to the runs: the one that holds them, or
// another one. The reconciler records the one that holds the runs. Code that concludes something from a run missing in
// Temporal calls [ReadPlacement] first: a run is lost only where it is missing in the Temporal that holds the runs.
//
//	view, err := run.ReadPlacement(ctx, engine, store)
//	if view.Placement() == run.PlacementElsewhere { // the run may continue in the other one
//	}
type Placement int

// The placements.
const (
	// PlacementHere: this Temporal holds the runs, also when it has just lost its data.
	PlacementHere Placement = iota
	// PlacementDivided: this Temporal holds the runs, but live workers are connected to another one, and runs started
	// through that one are there.
	PlacementDivided
	// PlacementElsewhere: another Temporal holds the runs.
	PlacementElsewhere
)

// ComparePlacement compares the recorded Temporal, zero when it is not known, with the one that this process is
// connected to and those of the live workers. One namespace may be reached at several addresses, so its ID is decisive;
// where another ID is found at the same address and under the same name, the previous Temporal no longer exists.
func ComparePlacement(recorded, here ClusterID, workers []ClusterID) Placement {
	if recorded != (ClusterID{}) && DifferentCluster(recorded, here) {
		return PlacementElsewhere
	}
	for _, w := range workers {
		if DifferentCluster(w, here) {
			return PlacementDivided
		}
	}
	return PlacementHere
}

// DifferentCluster reports whether two IDs refer to two Temporals, or to two namespaces of one.
func DifferentCluster(a, b ClusterID) bool {
	return a.NamespaceID != b.NamespaceID && (a.Address != b.Address || a.Namespace != b.Namespace)
}

// PlacementView is what is known of the Temporals that may hold runs.
type PlacementView struct {
	// Recorded is the one that is recorded to hold the runs; zero before the first comparison.
	Recorded RunsCluster
	// Here is the Temporal that this process is connected to, Workers those that the live workers are connected to.
	Here    ClusterID
	Workers []ClusterID
	// Left is the Temporal in which an adoption has left the run in question; zero where it has not.
	Left ClusterID
}

// ReadPlacement reads all of them.
func ReadPlacement(
	ctx context.Context, temporal interface {
		ClusterID(ctx context.Context) (ClusterID, error)
	}, rows interface {
		RunsCluster(ctx context.Context) (RunsCluster, error)
		WorkerClusters(ctx context.Context) ([]ClusterID, error)
	},
) (v PlacementView, err error) {
	if v.Here, err = temporal.ClusterID(ctx); err != nil {
		return v, err
	}
	if v.Recorded, err = rows.RunsCluster(ctx); err != nil {
		return v, err
	}
	v.Workers, err = rows.WorkerClusters(ctx)
	return v, err
}

// Placement returns the result of [ComparePlacement], for a run that was left somewhere by that Temporal.
func (v PlacementView) Placement() Placement {
	if v.Left != (ClusterID{}) {
		return ComparePlacement(v.Left, v.Here, v.Workers)
	}
	return ComparePlacement(v.Recorded.ClusterID, v.Here, v.Workers)
}

// left reports whether the run in question was left in another Temporal than this one.
func (v PlacementView) left() bool {
	return v.Left != (ClusterID{}) && DifferentCluster(v.Left, v.Here)
}

// Other returns the Temporal that may have a run which this one does not have; zero when there is no other.
func (v PlacementView) Other() ClusterID {
	if v.left() {
		return v.Left
	}
	if v.Left == (ClusterID{}) && v.Placement() == PlacementElsewhere {
		return v.Recorded.ClusterID
	}
	for _, w := range v.Workers {
		if DifferentCluster(w, v.Here) {
			return w
		}
	}
	return ClusterID{}
}

// Explanation completes a sentence ("they are …") with the Temporal that does not have the runs and the one that may.
func (v PlacementView) Explanation() string {
	if v.left() {
		return fmt.Sprintf("not known to %s; the run was left in %s", ClusterName(v.Here), ClusterName(v.Left))
	}
	if v.Placement() == PlacementElsewhere {
		return fmt.Sprintf("not known to %s; since %s the runs have been in %s", ClusterName(v.Here),
			v.Recorded.Since.UTC().Format(time.RFC3339), ClusterName(v.Other()))
	}
	return fmt.Sprintf("not known to %s, and live workers are connected to %s", ClusterName(v.Here),
		ClusterName(v.Other()))
}

// ClusterName formats an ID for display.
func ClusterName(c ClusterID) string {
	return fmt.Sprintf("Temporal at %s (namespace %q, ID %s)", c.Address, c.Namespace, c.NamespaceID)
}

// AdoptRequest requests that runs start in the Temporal of this process from now on.
type AdoptRequest struct {
	// Address and Namespace must be those of this process, unless DryRun is set: nothing is adopted by mistake.
	Address, Namespace string
	Reason             string
	DryRun             bool
}

// Adoption is what an adoption did, or would do.
type Adoption struct {
	// Before is the Temporal that held the runs, Now that of this process.
	Before RunsCluster
	Now    ClusterID
	// Left counts the open runs that stay in Before, by project.
	Left map[string]int64
	// Needed is false where both are the same, so that there is nothing to adopt.
	Needed bool
	// Adopted reports that Now holds the runs from now on.
	Adopted bool
}
