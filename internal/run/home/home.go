// Package home tells what a Temporal is to the runs: the one that they are in, or another one. What another one does not know is not lost.
//
//	view, err := home.Look(ctx, engine, store)
//	if view.Standing() == home.Elsewhere { // whatever is not here may go on there
//	}
//
// The place where the runs are is recorded by the reconciler; everybody who would conclude something from what Temporal does not
// know asks here first.
package home

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
)

// Standing is what the Temporal that this process sees is to the runs. What it does not know is lost only where they are.
type Standing int

// The standings.
const (
	// AtHome: the runs are here, also when this Temporal has just lost its data.
	AtHome Standing = iota
	// Divided: they are here, but live workers are connected to another Temporal, and what they were given is there.
	Divided
	// Elsewhere: they are in another Temporal.
	Elsewhere
)

// Stand compares the place where the runs are, zero when it is not known, with the one that this process sees and those
// of the live workers. One namespace may be reached at several addresses, so its ID tells; where that is another one at the same
// address and under the same name, the Temporal of before is gone.
func Stand(home, here run.Place, workers []run.Place) Standing {
	if home != (run.Place{}) && Another(home, here) {
		return Elsewhere
	}
	for _, w := range workers {
		if Another(w, here) {
			return Divided
		}
	}
	return AtHome
}

// Another tells whether two places are two Temporals, or two namespaces of one.
func Another(a, b run.Place) bool {
	return a.NamespaceID != b.NamespaceID && (a.Address != b.Address || a.Namespace != b.Namespace)
}

// View is what is known of where the runs are.
type View struct {
	// Home is where they were recorded to be; zero before the first comparison.
	Home run.Home
	// Here is the Temporal that this process sees, and Workers where the live workers are connected.
	Here    run.Place
	Workers []run.Place
}

// Look finds it out.
func Look(
	ctx context.Context, temporal interface {
		Place(ctx context.Context) (run.Place, error)
	}, rows interface {
		RunsHome(ctx context.Context) (run.Home, error)
		WorkerPlaces(ctx context.Context) ([]run.Place, error)
	},
) (v View, err error) {
	if v.Here, err = temporal.Place(ctx); err != nil {
		return v, err
	}
	if v.Home, err = rows.RunsHome(ctx); err != nil {
		return v, err
	}
	v.Workers, err = rows.WorkerPlaces(ctx)
	return v, err
}

// Standing judges it.
func (v View) Standing() Standing { return Stand(v.Home.Place, v.Here, v.Workers) }

// Other is the Temporal where a run may be that this one does not know; zero when this is the only one.
func (v View) Other() run.Place {
	if v.Standing() == Elsewhere {
		return v.Home.Place
	}
	for _, w := range v.Workers {
		if Another(w, v.Here) {
			return w
		}
	}
	return run.Place{}
}

// Because says, after what it is about ("they are"), where that is not known and where it may be.
func (v View) Because() string {
	if v.Standing() == Elsewhere {
		return fmt.Sprintf("not known to %s; since %s the runs have been in %s", Named(v.Here), v.Home.Since.UTC().Format(time.RFC3339), Named(v.Other()))
	}
	return fmt.Sprintf("not known to %s, and live workers are connected to %s", Named(v.Here), Named(v.Other()))
}

// Named names a place for people.
func Named(p run.Place) string {
	return fmt.Sprintf("Temporal at %s (namespace %q, ID %s)", p.Address, p.Namespace, p.NamespaceID)
}
