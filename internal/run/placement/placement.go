// Package placement compares the Temporal that this process is connected to with the one where the runs are and with those of the live
// workers. Processes on one database that are connected to different Temporals execute runs where the others do not find them.
//
//	m := placement.New(placement.Options{Store: store, Registry: registry, Here: here})
//	err := m.Start(ctx)            // logs when a difference begins and ends
//	err = m.Check(ctx, project)    // before a run is started
//	text := m.Mismatch()           // for status, readiness and metrics
//
// Namespace IDs are compared, not addresses: one Temporal has many addresses. Another ID at the same address and namespace is a Temporal that
// has lost its data, which package reconciler deals with.
package placement

import (
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/home"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// namedWorkers is how many workers a text names.
const namedWorkers = 3

// Facts are where this process is connected, where the runs are, and where the live workers are connected.
type Facts struct {
	// Here has no namespace ID until Temporal was reached.
	Here run.Place
	// Home is zero until the runs were first compared.
	Home    run.Home
	Workers []worker.Worker
	// Works is whether this process executes runs itself, also before it is one of Workers.
	Works bool
}

// Mismatch is a difference between Temporals.
type Mismatch struct {
	// Other is the Temporal that is not this process's. RunsThere is whether the runs are there; otherwise only workers are.
	Other     run.Place
	RunsThere bool
	// Detail names both sides and what to do.
	Detail string
}

// Compare returns how the Temporal of this process differs from the others; zero while it does not, or is not known yet.
func Compare(f Facts) Mismatch {
	if f.elsewhere() {
		there := f.connectedTo(f.Home.Place)
		detail := fmt.Sprintf("this server is connected to %s; since %s the runs have been in %s", home.Named(f.Here),
			f.Home.Since.UTC().Format(time.RFC3339), home.Named(f.Home.Place))
		advice := "point temporal.address and temporal.namespace of this server back there, or, if the move is meant, end the runs that were left behind"
		if len(there) > 0 {
			detail += ", where live workers are connected: " + named(there)
			advice = "point temporal.address and temporal.namespace of this server back there, or, if the move is meant, stop the workers that are connected there"
		}
		return Mismatch{Other: f.Home.Place, RunsThere: true, Detail: detail + "; " + advice}
	}
	if f.Here.NamespaceID == "" {
		return Mismatch{}
	}
	var others []worker.Worker
	for _, w := range f.Workers {
		if at := placeOf(w); at.NamespaceID != "" && home.Another(at, f.Here) {
			others = append(others, w)
		}
	}
	if len(others) == 0 {
		return Mismatch{}
	}
	other := placeOf(others[0])
	return Mismatch{Other: other, Detail: fmt.Sprintf("this server is connected to %s, and live workers to %s: %s; "+
		"make temporal.address and temporal.namespace the same in all processes on this database", home.Named(f.Here), home.Named(other), named(others))}
}

// Refusal returns why no run may be started by this process: the runs are in another Temporal, and workers are connected there, or none is
// connected here. A move to another Temporal has workers here alone.
func Refusal(f Facts) error {
	if !f.elsewhere() {
		return nil
	}
	if executed := f.Works || len(f.connectedTo(f.Here)) > 0; executed && len(f.connectedTo(f.Home.Place)) == 0 {
		return nil
	}
	return fault.New(fault.Refused, fault.ContractMismatch, "nothing was started: %s", Compare(f).Detail)
}

// elsewhere reports whether the runs are in another Temporal than this process.
func (f Facts) elsewhere() bool {
	return f.Here.NamespaceID != "" && f.Home.Place != (run.Place{}) && home.Another(f.Home.Place, f.Here)
}

// connectedTo returns the live workers that are connected to a Temporal. Of one that has not reached its Temporal yet, the address counts.
func (f Facts) connectedTo(p run.Place) (found []worker.Worker) {
	for _, w := range f.Workers {
		at := placeOf(w)
		if at.NamespaceID == "" {
			at.NamespaceID = p.NamespaceID
			if at != p {
				continue
			}
		}
		if at.NamespaceID == p.NamespaceID {
			found = append(found, w)
		}
	}
	return found
}

func placeOf(w worker.Worker) run.Place {
	return run.Place{Address: w.Fingerprint.Address, Namespace: w.Fingerprint.Namespace, NamespaceID: w.Fingerprint.NamespaceID}
}

// named lists workers.
func named(workers []worker.Worker) string {
	var names []string
	for _, w := range workers[:min(len(workers), namedWorkers)] {
		names = append(names, w.ServerID)
	}
	if more := len(workers) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
