package home_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/home"
)

func place(address, namespace, id string) run.Place {
	return run.Place{Address: address, Namespace: namespace, NamespaceID: id}
}

func TestStand(t *testing.T) {
	t.Parallel()
	here := place("a", "ns", "1")
	tests := []struct {
		name    string
		at      run.Place
		workers []run.Place
		want    home.Standing
	}{
		{"nothing recorded", run.Place{}, nil, home.AtHome},
		{"here", here, []run.Place{here}, home.AtHome},
		{"another address of the same", place("b", "ns", "1"), []run.Place{place("b", "ns", "1")}, home.AtHome},
		{"the data is lost", place("a", "ns", "0"), []run.Place{place("a", "ns", "0")}, home.AtHome},
		{"another address", place("b", "ns", "0"), []run.Place{here}, home.Elsewhere},
		{"another namespace", place("a", "other", "0"), nil, home.Elsewhere},
		{"a worker at another address", here, []run.Place{here, place("b", "ns", "0")}, home.Divided},
		{"a worker in another namespace", here, []run.Place{place("a", "other", "0")}, home.Divided},
		{"nothing recorded, and a worker elsewhere", run.Place{}, []run.Place{place("b", "ns", "0")}, home.Divided},
		{"elsewhere, with all workers there", place("b", "ns", "0"), []run.Place{place("b", "ns", "0")}, home.Elsewhere},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, home.Stand(tt.at, here, tt.workers), tt.name)
	}
}

// facts are what is told of places, or errs in its turn.
type facts struct {
	view home.View
	errs [3]error
}

func (f facts) Place(context.Context) (run.Place, error) { return f.view.Here, f.errs[0] }

func (f facts) RunsHome(context.Context) (run.Home, error) { return f.view.Home, f.errs[1] }

func (f facts) WorkerPlaces(context.Context) ([]run.Place, error) { return f.view.Workers, f.errs[2] }

func TestLook(t *testing.T) {
	t.Parallel()
	f := facts{view: home.View{Home: run.Home{Place: place("a", "ns", "1")}, Here: place("b", "ns", "2"), Workers: []run.Place{place("c", "ns", "3")}}}
	view, err := home.Look(t.Context(), f, f)
	require.NoError(t, err)
	require.Equal(t, f.view, view)
	for i := range f.errs {
		broken := f
		broken.errs[i] = errors.New("away")
		_, err := home.Look(t.Context(), broken, broken)
		require.ErrorIs(t, err, broken.errs[i])
	}
}

func TestOtherTemporalIsNamed(t *testing.T) {
	t.Parallel()
	here, there := place("a:7233", "ns", "1"), place("b:7233", "ns", "2")
	since := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

	v := home.View{Home: run.Home{Place: here, Since: since}, Here: here, Workers: []run.Place{here}}
	require.Zero(t, v.Other())

	v.Workers = append(v.Workers, there)
	require.Equal(t, there, v.Other())
	require.Equal(t, `not known to Temporal at a:7233 (namespace "ns", ID 1), and live workers are connected to `+
		`Temporal at b:7233 (namespace "ns", ID 2)`, v.Because())

	v.Here, v.Workers = there, nil
	require.Equal(t, here, v.Other())
	require.Equal(t, `not known to Temporal at b:7233 (namespace "ns", ID 2); since 2026-03-01T12:00:00Z the runs have been in `+
		`Temporal at a:7233 (namespace "ns", ID 1)`, v.Because())
}
