package main

// unary are the calls that end with their answer; streams last until their reader leaves.
const unary = `rpc_method!~".*/(Watch|WatchRun|ExportRun|ExportRuns|ExportAudit)"`

// faults are the codes of calls that failed for a cause in the platform, not in the request.
const faults = `rpc_response_status_code!~"UNKNOWN|DEADLINE_EXCEEDED|INTERNAL|UNAVAILABLE|DATA_LOSS"`

func platform() board {
	return board{
		name: "platform", title: "Signalbox / Platform",
		description: "The servers themselves: their API, the database, the other dependencies, memory and processes, " +
			"deliveries to webhooks, and what retention deletes.",
		rows: []row{
			{"Servers", servers()}, {"API", api()}, {"Database", store()}, {"Memory and process", process()},
			{"Webhooks and retention", data()},
		},
	}
}

func servers() []panel {
	return []panel{
		{
			title: "Answers Prometheus", unit: count, runbooks: []string{"ServersMissing", "ServerUnreachable"},
			about: "Whether Prometheus could read the metrics of each server. All other panels lack data of a server that " +
				"does not answer.",
			queries: []query{{`up{job="signalbox",` + at + "}", "{{instance}}"}}, states: yes("answers", "no answer"),
		},
		{
			title: "Dependencies", unit: count,
			runbooks: []string{"StoreUnavailable", "LeasesUnavailable", "CertificateExpiring", "MemoryNearLimit",
				"ServersOnDifferentTemporals"},
			about: "State of each dependency of each server, as /readyz reports it.",
			queries: []query{{
				`sum by (instance, dependency) (signalbox_dependency_state{state="impaired",` + at +
					`}) + 2 * sum by (instance, dependency) (signalbox_dependency_state{state="down",` +
					at + "})", "{{instance}}: {{dependency}}",
			}},
			states: levels("up", "impaired", "down"),
		},
		{
			title: "Roles", unit: count, runbooks: []string{"StoreUnavailable", "TemporalDisconnected"},
			about: "Status of each role of each server, as /readyz reports it.",
			queries: []query{{
				`sum by (instance, role) (signalbox_role_status{status="degraded",` + at +
					`}) + 2 * sum by (instance, role) (signalbox_role_status{status="unavailable",` + at + "})",
				"{{instance}}: {{role}}",
			}},
			states: levels("ready", "degraded", "unavailable"),
		},
		{
			title: "Servers by version", unit: count,
			about: "Servers that run each version; two versions are expected during an upgrade only.",
			queries: []query{{"count by (version, revision, go_version) (signalbox_build_info{" + at + "})",
				"{{version}} {{revision}} {{go_version}}"}},
		},
		{
			title: "Time since the start", unit: seconds,
			about:   "Time since each process started. A drop is a restart.",
			queries: []query{{`time() - process_start_time_seconds{job="signalbox",` + at + "}", "{{instance}}"}},
		},
	}
}

func api() []panel {
	return []panel{
		{
			title: "Calls by code", unit: perSecond, runbooks: []string{"StoreUnavailable"},
			about: "Calls of the API that ended, by the code of their answer. A series appears with the first call.",
			queries: []query{{rated("rpc_response_status_code", "rpc_server_call_duration_seconds_count", at),
				"{{rpc_response_status_code}}"}},
			colors: []color{{"^OK$", blue}, {"^(UNKNOWN|DEADLINE_EXCEEDED|INTERNAL|UNAVAILABLE|DATA_LOSS)$", red}},
		},
		{
			title: "Errors of the platform", unit: ratio,
			runbooks: []string{"StoreUnavailable", "TemporalDisconnected", "MemoryNearLimit"},
			about: "Share of the calls that failed for a cause in the platform: UNKNOWN, DEADLINE_EXCEEDED, INTERNAL, " +
				"UNAVAILABLE or DATA_LOSS. A gap is a time " +
				"without calls.",
			queries: []query{{
				"1 - sum(rate(rpc_server_call_duration_seconds_count{" + faults + "," + at +
					"}[$__rate_interval])) / sum(rate(rpc_server_call_duration_seconds_count{" + at +
					"}[$__rate_interval]))", "failed",
			}},
			colors: []color{{"^failed$", red}},
		},
		{
			title: "Latency of calls", unit: seconds, runbooks: []string{"StoreSlow"},
			about:   "Duration of calls without streams, which last until their reader leaves.",
			queries: quantiles("rpc_server_call_duration_seconds", unary+","+at, recently, 50, 95, 99), colors: percentiles(),
		},
		{
			title: "Calls by method", unit: perSecond,
			about: "The ten methods with the most calls at each point.",
			queries: []query{{"topk(10, " + rated("rpc_method", "rpc_server_call_duration_seconds_count", at) + ")",
				"{{rpc_method}}"}},
		},
		{
			title: "Refused callers", unit: count, bars: true,
			about:   "Requests whose caller was not admitted, or lacked the role, by the reason in the answer.",
			queries: []query{{counted("reason", "signalbox_api_refusals_total", at), "{{reason}}"}},
		},
	}
}

func store() []panel {
	return []panel{
		{
			title: "Calls to the database", unit: perSecond, runbooks: []string{"StoreSlow"},
			about: "Calls by kind.",
			queries: []query{{rated("db_operation_name", "db_client_operation_duration_seconds_count", at),
				"{{db_operation_name}}"}},
		},
		{
			title: "Latency of the database", unit: seconds, runbooks: []string{"StoreSlow"},
			about: "Duration of calls, with the wait for a connection and with repeated transactions. The limit is that of " +
				"the alert: 95 % within 500 ms.",
			queries: quantiles("db_client_operation_duration_seconds", at, recently, 50, 95, 99), colors: percentiles(),
			from: []float64{0.5},
		},
		{
			title: "Fast calls", unit: ratio, runbooks: []string{"StoreSlow"},
			about: "Share of the calls of each server in the 5 minutes before each point that took at most 500 ms.",
			queries: []query{{
				`sum by (instance) (rate(db_client_operation_duration_seconds_bucket{le="0.5",` + at +
					"}[5m])) / sum by (instance) (rate(db_client_operation_duration_seconds_count{" +
					at + "}[5m]))", "{{instance}}",
			}},
			below: []float64{0.95}, top: 1,
		},
		{
			title: "Calls to the database by cause of failure", unit: perSecond, runbooks: []string{"StoreUnavailable"},
			about: "Calls that succeeded (none) and those that failed, by cause: unavailable (the database is down, full or " +
				"too slow), canceled (the caller stopped waiting), " +
				"other. The series of a cause appears with its first failure.",
			queries: []query{
				{`label_replace(` + rated("error_type", "db_client_operation_duration_seconds_count", at) +
					`, "error_type", "none", "error_type", "")`, "{{error_type}}"},
			},
			colors: []color{{"^none$", blue}, {"^unavailable$", red}, {"^canceled$", purple}, {"^other$", orange}},
		},
		{
			title: "Connections to the database", unit: count, runbooks: []string{"StoreSlow"},
			about: "Connections in use in each pool of each server, and the pool's maximum. A call waits while all are in use.",
			queries: []query{
				{
					`sum by (instance, db_client_connection_pool_name) (db_client_connections{db_client_connection_state="used",` +
						at + "})",
					"{{instance}} {{db_client_connection_pool_name}}: used",
				},
				{
					"sum by (instance, db_client_connection_pool_name) (db_client_connection_max{" + at +
						"})", "{{instance}} {{db_client_connection_pool_name}}: maximum",
				},
			},
			colors: []color{{": maximum$", grey}},
		},
		{
			title: "Begun waits for a connection", unit: count, bars: true, runbooks: []string{"StoreSlow"},
			about:   "Calls that waited for a connection of the pool, because all were in use.",
			queries: []query{{counted("pool", "signalbox_store_connection_waits_total", at), "{{pool}}"}},
		},
		{
			title: "Calls that wait for a connection", unit: count, runbooks: []string{"StoreSlow"},
			about:   "How many calls waited for a connection of the pool at once, on average.",
			queries: []query{{rated("pool", "signalbox_store_connection_wait_seconds_total", at), "{{pool}}"}},
		},
	}
}

func process() []panel {
	return []panel{
		{
			title: "Use of the memory limit", unit: ratio, runbooks: []string{"MemoryNearLimit"},
			about: "Memory in use after the last garbage collection, as a share of the limit. From 70 % a server does not " +
				"diagnose and repair runs, from 85 % it refuses " +
				"starts. No series: the server has no limit.",
			queries: []query{{"signalbox_memory_used_bytes{" + at + "} / signalbox_memory_limit_bytes{" + at + "}",
				"{{instance}}"}}, from: []float64{0.7, 0.85}, top: 1,
		},
		{
			title: "Resident memory", unit: bytes, runbooks: []string{"MemoryNearLimit"},
			about:   "Memory of each process that the operating system holds in RAM.",
			queries: []query{{`process_resident_memory_bytes{job="signalbox",` + at + "}", "{{instance}}"}},
		},
		{
			title: "Processors in use", unit: count,
			about:   "Processors that each process keeps busy.",
			queries: []query{{`rate(process_cpu_seconds_total{job="signalbox",` + at + "}[$__rate_interval])", "{{instance}}"}},
		},
		{
			title: "Throttled periods", unit: ratio, runbooks: []string{"ProcessorThrottled"},
			about: "Share of the scheduling periods in which the control group of each process had used up its limit. No " +
				"series: the process has no limit, or it cannot " +
				"be read.",
			queries: []query{{
				"rate(signalbox_processor_throttled_periods_total{" + at +
					"}[$__rate_interval]) / rate(signalbox_processor_periods_total{" + at + "}[$__rate_interval])",
				"{{instance}}",
			}}, from: []float64{0.25}, top: 1,
		},
		{
			title: "Waits for a processor", unit: count, runbooks: []string{"ProcessorThrottled"},
			about: "Threads of each process that were ready and waited for a processor, on average, with the processors that " +
				"stood still for it because of its limit, and " +
				"that limit.",
			queries: []query{
				{"rate(signalbox_processor_wait_seconds_total{" + at + "}[$__rate_interval])", "{{instance}}: waiting threads"},
				{"rate(signalbox_processor_throttled_seconds_total{" + at + "}[$__rate_interval])", "{{instance}}: throttled"},
				{"signalbox_processor_limit{" + at + "}", "{{instance}}: limit"},
			},
			colors: []color{{": limit$", grey}},
		},
		{
			title: "Goroutines", unit: count,
			about:   "Goroutines of each process. A number that only grows is a leak.",
			queries: []query{{`go_goroutines{job="signalbox",` + at + "}", "{{instance}}"}},
		},
		{
			title: "Open files", unit: ratio,
			about: "Open files and connections of each process, as a share of its limit.",
			queries: []query{{`process_open_fds{job="signalbox",` + at + `} / process_max_fds{job="signalbox",` + at + "}",
				"{{instance}}"}}, top: 1,
		},
	}
}

func data() []panel {
	return []panel{
		{
			title: "Deliveries to webhooks", unit: count, bars: true,
			about: "Attempts to deliver an event to a webhook, of all projects, by outcome: delivered, retried (the attempt " +
				"failed, another one follows) or " +
				"dead (given up).",
			queries: []query{{counted("outcome", "signalbox_webhook_deliveries_total", at), "{{outcome}}"}},
			colors:  []color{{"^delivered$", blue}, {"^retried$", orange}, {"^dead$", red}},
		},
		{
			title: "Failing webhooks", runbooks: []string{"WebhookDeliveriesFailing"}, unit: count,
			about: "Webhooks of each project whose attempts fail, and those that were paused after failures. Projects " +
				"without a webhook have no line.",
			queries: []query{{latest("project", "signalbox_webhooks_failing", at), "{{project}}"}}, from: []float64{1},
		},
		{
			title: "Pending deliveries to webhooks", runbooks: []string{"WebhookDeliveriesFailing"}, unit: count,
			about:   "Deliveries of all projects that are neither delivered nor given up.",
			queries: []query{{"max(signalbox_webhook_pending_deliveries{" + at + "})", "pending"}},
		},
		{
			title: "Age of the oldest pending delivery", runbooks: []string{"WebhookDeliveriesFailing"}, unit: seconds,
			about:   "How long the oldest delivery to a webhook of any project has waited; 0 where none waits.",
			queries: []query{{"max(signalbox_webhook_oldest_pending_seconds{" + at + "})", "oldest"}},
		},
		{
			title: "Events about failures that are not published", unit: count,
			about: "Events about failed runs and dead deliveries, of all projects, that are committed and not in the inbox of " +
				"their project yet. They follow " +
				"within a second while the database works.",
			queries: []query{{"max(signalbox_unpublished_events{" + at + "})", "events"}},
		},
		{
			title: "Age of the oldest event that is not published", unit: seconds,
			about:   "Time since the oldest failure whose event is not in the inbox of its project yet; 0 where there is none.",
			queries: []query{{"max(signalbox_unpublished_events_oldest_seconds{" + at + "})", "oldest"}},
		},
		{
			title: "Rows deleted by retention", unit: count, bars: true,
			about: "Rows past their limit that were deleted, by kind. No series: none was deleted since the servers started.",
			queries: []query{{"sum by (kind) (rate(signalbox_retention_deleted_total[$__rate_interval])) * $__interval_ms / " +
				"1000", "{{kind}}"}},
		},
	}
}
