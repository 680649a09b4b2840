package problem

import (
	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// runbook returns the path of the runbook of an alert.
func runbook(alert string) string { return "docs/runbooks/" + alert + ".md" }

func connectionRunbook(c conntype.Status) string {
	switch {
	case c.State == conntype.Down:
		return runbook("TemporalDisconnected")
	case c.Kind == conntype.NotPolling:
		return runbook("NoPollers")
	}
	return runbook("TemporalLimited")
}

func dependencyRunbook(dependency string) string {
	switch dependency {
	case "leases":
		return runbook("LeasesUnavailable")
	case "placement":
		return runbook("ServersOnDifferentTemporals")
	case "certificate":
		return runbook("CertificateExpiring")
	}
	return runbook("StoreUnavailable")
}

func dispatcherRunbook(code Code) string {
	switch code {
	case DispatcherStale:
		return runbook("DispatcherStale")
	case DispatcherForeign:
		return runbook("DispatcherForeign")
	case DispatcherNoWorkers:
		return runbook("ProjectWithoutWorkers")
	case DispatcherUnknown: // what cannot be read for the list cannot be read by the supervisor either
		return runbook("SupervisorErrors")
	}
	return runbook("DispatcherMissing")
}

func stuckRunbook(code string) string {
	switch code {
	case run.InAnotherTemporal:
		return runbook("ServersOnDifferentTemporals")
	case run.EngineDisconnected:
		return runbook("TemporalDisconnected")
	case run.NotStarted:
		return runbook("TemporalLimited")
	case run.NoPoller, run.PollerStale, run.NoRunner:
		return runbook("NoPollers")
	case run.Poison:
		return runbook("PoisonRuns")
	case run.ExecutionMissing, run.ExecutionClosed:
		return runbook("ReconcileCorrections")
	case run.TimerLate:
		return runbook("TimersLate")
	}
	return runbook("RunsStuck")
}
