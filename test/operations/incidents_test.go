package operations_test

import "maps"

// incidents returns all incidents, by the fault.
func incidents() map[string]incident {
	all := map[string]incident{}
	for _, some := range []map[string]incident{
		serverIncidents(), storeIncidents(), connectionIncidents(), workerIncidents(), dispatcherIncidents(),
		terminationIncidents(), eventIncidents(), runIncidents(),
	} {
		maps.Copy(all, some)
	}
	return all
}

// notPlanted returns the alerts without an incident, each with the reason.
func notPlanted() map[string]string {
	const listener = "the servers of incidents use no TLS; TestPrometheusScrapesAServerWithTLS plants it"
	return map[string]string{
		"ListenerCertificateExpiring page":   listener,
		"ListenerCertificateExpiring ticket": listener,
		"ProjectionLag ticket": "what delays rows by 10 seconds also slows or interrupts the database, whose " +
			"alerts silence it",
		"TimersLate ticket": "what a test can do to Temporal or the workers delays more than timers, and has " +
			"an alert that silences it",
		"CleanupSlow ticket": "what delays a clean-up by 2 minutes is an outage whose alert silences it, or " +
			"more stale dispatchers than a test can plant",
		"StartLatencyBudgetBurn ticket": "the page for the same objective silences it for the first 6 hours of a fault; " +
			"its windows are up to 3 days long",
		"LostTimeBudgetBurn ticket": "the page for the same objective silences it for the first 6 hours after an outage; " +
			"its windows are up to 3 days long",
	}
}
