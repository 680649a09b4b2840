package main

func connection() board {
	return board{
		name: "connection", title: "Signalbox / Connection", byProject: true,
		description: "The connection of each server to Temporal: whether it can be used, its outages, the workers and " +
			"pollers that depend on it, and certificates.",
		rows: []row{{"State", connectionState()}, {"Outages", outages()}, {"Workers", workers()},
			{"Requests and certificates", requests()}},
	}
}

func connectionState() []panel {
	return []panel{
		{
			title: "Connection", runbooks: []string{"TemporalDisconnected", "ServersMissing"}, unit: count,
			about:   "Whether each server can use Temporal. A server that does not answer Prometheus is unknown.",
			queries: []query{{"temporal_connection_status{" + at + "}", "{{instance}} → {{host_port}} {{namespace}}"}},
			states:  yes("connected", "disconnected"),
		},
		{
			title: "Problems of a usable connection", runbooks: []string{"TemporalLimited"}, unit: count,
			about: "Temporal answers, but slowly (slow), refuses or delays most requests (limited), or the workers do not " +
				"poll (not_polling).",
			queries: []query{
				{"max by (instance, kind) (temporal_connection_degraded{" + at + "})", "{{instance}}: {{kind}}"},
			},
			states: no("no", "degraded"),
		},
		{
			title: "Circuit breaker", runbooks: []string{"BreakerOpen"}, unit: count,
			about:   "While it is open, attempts to connect are rare; half open, one attempt decides.",
			queries: []query{{"temporal_circuit_breaker_state{" + at + "}", "{{instance}} → {{host_port}} {{namespace}}"}},
			states:  levels("closed", "half open", "open"),
		},
		{
			title: "Different Temporals", runbooks: []string{"ServersOnDifferentTemporals"}, unit: count,
			about:   "Whether the runs, or live workers, are in another Temporal than that of the server.",
			queries: []query{{"signalbox_temporal_mismatch{" + at + "}", "{{instance}}"}}, states: no("same", "different"),
		},
		{
			title: "Uptime of the connection", runbooks: []string{"TemporalFlapping"}, unit: seconds,
			about:   "Duration of the current connection; 0 while there is none.",
			queries: []query{{"temporal_connection_uptime_seconds{" + at + "}", "{{instance}}"}},
		},
		{
			title: "Lost connections in 30 minutes", runbooks: []string{"TemporalFlapping"}, unit: count,
			about: "How often each server lost its connection in the 30 minutes before each point. Restarts of the server do " +
				"not count.",
			queries: []query{{
				"max by (instance) (resets(temporal_connection_uptime_seconds{" + at +
					"}[30m]) - on (instance) group_left () changes(process_start_time_seconds[30m]))",
				"{{instance}}",
			}},
			from: []float64{3},
		},
	}
}

func outages() []panel {
	return []panel{
		{
			title: "Attempts to connect", runbooks: []string{"TemporalDisconnected", "BreakerOpen"}, unit: count, bars: true,
			about:   "Attempts of each server to connect to Temporal.",
			queries: []query{{counted("instance", "temporal_reconnection_attempts_total", at), "{{instance}}"}},
		},
		{
			title: "Length of outages", runbooks: []string{"TemporalDisconnected", "LostTimeBudgetBurn"}, unit: seconds,
			about: "Ended outages, from the first failure to the reconnection, over the hour before each point. A gap is an " +
				"hour in which none ended.",
			queries: append(quantiles("temporal_outage_duration_seconds", at, hour, 50, 95),
				query{"sum(rate(temporal_outage_duration_seconds_sum{" + at +
					"}[1h])) / sum(rate(temporal_outage_duration_seconds_count{" + at + "}[1h]))", "mean"}),
			colors: append(percentiles(), color{"^mean$", orange}),
		},
		{
			title: "Length of ended connections", runbooks: []string{"TemporalFlapping"}, unit: seconds,
			about: "How long the connections lasted that ended in the hour before each point. A gap is an hour in which " +
				"none ended.",
			queries: quantiles("temporal_connection_duration_seconds", at, hour, 50, 95), colors: percentiles(),
		},
	}
}

func workers() []panel {
	return []panel{
		{
			title: "Worker sets", runbooks: []string{"NoPollers"}, unit: count,
			about: "Sets of workers that run in each server, one per project and one for calls that are handed over; 0 " +
				"while Temporal cannot be used.",
			queries: []query{{"temporal_workers_running{" + at + "}", "{{instance}}"}},
		},
		{
			title: "Pollers by project", runbooks: []string{"NoPollers", "ProjectWithoutWorkers"}, unit: count,
			about: "Task queues that the servers poll for each project. Runs of a project without any make no progress. No " +
				"series: no worker serves the project.",
			queries: []query{{`sum by (project) (signalbox_queue_pollers{serves="project",` + within + "})", "{{project}}"}},
			below:   []float64{1},
		},
		{
			title: "Age of the last poll", runbooks: []string{"NoPollers"}, unit: seconds,
			about: "Time since each server last polled the task queue that it has not polled for the longest time, of all " +
				"projects or of calls that are handed over. A " +
				"poll without a task takes a minute.",
			queries: []query{{"max by (instance, serves) (signalbox_queue_last_poll_age_seconds{" + at + "})",
				"{{instance}}: {{serves}}"}},
		},
	}
}

func requests() []panel {
	return []panel{
		{
			title: "Requests to Temporal", runbooks: []string{"TemporalLimited"}, unit: perSecond,
			about: "Requests of the servers to Temporal without those that wait for tasks, all and those that failed. No " +
				"series of failures: there was none " +
				"since the servers started.",
			queries: []query{
				{"sum(rate(temporal_request_total{" + at + "}[$__rate_interval]))", "all"},
				{"sum(rate(temporal_request_failure_total{" + at + "}[$__rate_interval]))", "failed"},
			},
			colors: []color{{"^all$", blue}, {"^failed$", red}},
		},
		{
			title: "Latency of requests to Temporal", runbooks: []string{"TemporalLimited", "StartLatencyBudgetBurn"},
			unit:    seconds,
			about:   "Duration of requests to Temporal with their repetitions, without those that wait for tasks.",
			queries: quantiles("temporal_request_latency_seconds", at, recently, 50, 95), colors: percentiles(),
		},
		{
			title: "Billable actions", unit: perSecond,
			about: "Actions as Temporal Cloud counts them, by kind: what the servers cause in Temporal. A cluster of one's own " +
				"has the same work to do for them.",
			queries: []query{{"sum by (kind) (rate(signalbox_temporal_actions_total{" + at + "}[$__rate_interval]))", "{{kind}}"}},
		},
		{
			title: "Time until certificates expire", runbooks: []string{"CertificateExpiring", "ListenerCertificateExpiring"},
			unit: seconds,
			about: "Of the client certificate for Temporal and of the listener's certificate of each server. No series: the " +
				"server uses none, or cannot read it. " +
				"Below zero it has expired.",
			queries: []query{
				{"signalbox_temporal_certificate_expiry_timestamp_seconds{" + at + "} - time()",
					"{{instance}}: client for Temporal"},
				{"signalbox_listener_certificate_expiry_timestamp_seconds{" + at + "} - time()", "{{instance}}: listener"},
			},
			colors: []color{{": client for Temporal$", blue}, {": listener$", purple}}, below: []float64{3600}, signed: true,
		},
	}
}
