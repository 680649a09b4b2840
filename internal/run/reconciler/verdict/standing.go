package verdict

import "github.com/signalbox-dev/signalbox/internal/run"

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
