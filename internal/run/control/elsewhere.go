package control

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// ClusterReader reads which Temporals may hold runs.
type ClusterReader interface {
	// ClusterID asks Temporal for its current identity.
	ClusterID(ctx context.Context) (run.ClusterID, error)
	// RunsCluster returns the recorded Temporal that holds the runs.
	RunsCluster(ctx context.Context) (run.RunsCluster, error)
	// WorkerClusters returns the Temporals that the live workers are connected to; it omits workers that were never
	// connected.
	WorkerClusters(ctx context.Context) ([]run.ClusterID, error)
	// LeftIn returns the Temporal in which an adoption has left the run; zero where it has not.
	LeftIn(ctx context.Context, runID string) (run.ClusterID, error)
}

// SetClusterReader makes the service check whether a run that Temporal does not have may be in another one. Without it,
// the service assumes a single Temporal. It must be called before the service is used.
func (s *Service) SetClusterReader(r ClusterReader) { s.clusters = r }

// view reads how the Temporal that does not have a run relates to the runs.
func (s *Service) view(ctx context.Context, runID string) (v run.PlacementView, err error) {
	if s.clusters == nil {
		return v, nil
	}
	if v, err = run.ReadPlacement(ctx, s.clusters, s.clusters); err != nil {
		return v, err
	}
	v.Left, err = s.clusters.LeftIn(ctx, runID)
	return v, err
}

// checkMissing returns the fault of a control that is refused for a run that Temporal does not have.
func checkMissing(c Control, r run.Run, v run.PlacementView) error {
	switch a := DecideMissing(c, v.Placement()); {
	case a.Effect != Refused:
		return nil
	case a.Reason == apperror.RunElsewhere:
		return apperror.New(apperror.Refused, a.Reason,
			"run %s is %s: it may continue there, so nothing was changed. %s; to end it here alone, terminate it",
			r.ID, v.Explanation(), remedy(c, v)).
			WithFact("connected", run.ClusterName(v.Here)).WithFact("home", run.ClusterName(v.Other()))
	default:
		return refusal(c, r, a.Reason)
	}
}

func remedy(c Control, v run.PlacementView) string {
	if v.Placement() == run.PlacementElsewhere {
		return fmt.Sprintf("Point temporal.address and temporal.namespace back there and %s it again", verb(c))
	}
	return fmt.Sprintf("Make temporal.address and temporal.namespace the same in all processes and %s it again; workers "+
		"that stopped count for a few seconds more",
		verb(c))
}

// withUnreached adds to the error of a terminated run that its execution was not reached.
func withUnreached(runError *run.Error, v run.PlacementView) *run.Error {
	changed := *runError
	changed.Title += " in the table alone"
	changed.Detail += " (the execution was not reached: it was " + v.Explanation() + ", where it may continue)"
	return &changed
}

// unreachedDetail returns the same for the audit log.
func unreachedDetail(v run.PlacementView) json.RawMessage {
	text, _ := json.Marshal(map[string]any{ //nolint:errchkjson // texts and truths always encode
		"executionReached": false, "connected": run.ClusterName(v.Here), "home": run.ClusterName(v.Other()),
	})
	return text
}
