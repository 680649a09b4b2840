package run_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run"
)

func cluster(address, namespace, id string) run.ClusterID {
	return run.ClusterID{Address: address, Namespace: namespace, NamespaceID: id}
}

func TestComparePlacement(t *testing.T) {
	t.Parallel()
	here := cluster("a", "ns", "1")
	tests := []struct {
		name    string
		at      run.ClusterID
		workers []run.ClusterID
		want    run.Placement
	}{
		{"nothing recorded", run.ClusterID{}, nil, run.PlacementHere},
		{"here", here, []run.ClusterID{here}, run.PlacementHere},
		{"another address of the same", cluster("b", "ns", "1"), []run.ClusterID{cluster("b", "ns", "1")}, run.PlacementHere},
		{"the data is lost", cluster("a", "ns", "0"), []run.ClusterID{cluster("a", "ns", "0")}, run.PlacementHere},
		{"another address", cluster("b", "ns", "0"), []run.ClusterID{here}, run.PlacementElsewhere},
		{"another namespace", cluster("a", "other", "0"), nil, run.PlacementElsewhere},
		{"a worker at another address", here, []run.ClusterID{here, cluster("b", "ns", "0")}, run.PlacementDivided},
		{"a worker in another namespace", here, []run.ClusterID{cluster("a", "other", "0")}, run.PlacementDivided},
		{"nothing recorded, and a worker elsewhere", run.ClusterID{}, []run.ClusterID{cluster("b", "ns", "0")},
			run.PlacementDivided},
		{"elsewhere, with all workers there", cluster("b", "ns", "0"), []run.ClusterID{cluster("b", "ns", "0")},
			run.PlacementElsewhere},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, run.ComparePlacement(tt.at, here, tt.workers), tt.name)
	}
}

// facts returns the Temporals of a view, or the errors in turn.
type facts struct {
	view run.PlacementView
	errs [3]error
}

func (f facts) ClusterID(context.Context) (run.ClusterID, error) { return f.view.Here, f.errs[0] }

func (f facts) RunsCluster(context.Context) (run.RunsCluster, error) {
	return f.view.Recorded, f.errs[1]
}

func (f facts) WorkerClusters(context.Context) ([]run.ClusterID, error) {
	return f.view.Workers, f.errs[2]
}

func TestReadPlacement(t *testing.T) {
	t.Parallel()
	f := facts{view: run.PlacementView{
		Recorded: run.RunsCluster{ClusterID: cluster("a", "ns", "1")}, Here: cluster("b", "ns", "2"),
		Workers: []run.ClusterID{cluster("c", "ns", "3")}}}
	view, err := run.ReadPlacement(t.Context(), f, f)
	require.NoError(t, err)
	require.Equal(t, f.view, view)
	for i := range f.errs {
		broken := f
		broken.errs[i] = errors.New("away")
		_, err := run.ReadPlacement(t.Context(), broken, broken)
		require.ErrorIs(t, err, broken.errs[i])
	}
}

func TestOtherTemporalIsNamed(t *testing.T) {
	t.Parallel()
	here, there := cluster("a:7233", "ns", "1"), cluster("b:7233", "ns", "2")
	since := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

	v := run.PlacementView{Recorded: run.RunsCluster{ClusterID: here, Since: since}, Here: here,
		Workers: []run.ClusterID{here}}
	require.Zero(t, v.Other())

	v.Workers = append(v.Workers, there)
	require.Equal(t, there, v.Other())
	require.Equal(t, `not known to Temporal at a:7233 (namespace "ns", ID 1), and live workers are connected to `+
		`Temporal at b:7233 (namespace "ns", ID 2)`, v.Explanation())

	v.Left, v.Workers = there, nil
	require.Equal(t, []any{there, run.PlacementElsewhere}, []any{v.Other(), v.Placement()})
	require.Equal(t, `not known to Temporal at a:7233 (namespace "ns", ID 1); the run was left in Temporal at b:7233 (namespace "ns", ID 2)`, v.Explanation())
	v.Here = there
	require.Equal(t, run.PlacementHere, v.Placement(), "the server uses that Temporal again")
	require.Zero(t, v.Other())
	v.Left = run.ClusterID{}

	require.Equal(t, here, v.Other())
	require.Equal(t, `not known to Temporal at b:7233 (namespace "ns", ID 2); since 2026-03-01T12:00:00Z the runs have been in `+
		`Temporal at a:7233 (namespace "ns", ID 1)`, v.Explanation())
}
