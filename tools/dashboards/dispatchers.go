package main

// recently is the window of percentiles of what happens all the time, and hour of what is rare.
const (
	recently = "$__rate_interval"
	hour     = "1h"
)

func dispatchers() board {
	return board{
		name: "dispatchers", title: "Signalbox / Dispatchers", byProject: true,
		description: "Who owns the dispatcher of each project, how fast it gets another owner, what the supervisor cleans " +
			"up, and the events that wait.",
		rows: []row{
			{"Ownership", ownership()}, {"Takeovers", takeovers()}, {"Clean-up", cleanups()}, {"Supervisor", supervisor()},
			{"Inbox", inbox()},
		},
	}
}

func ownership() []panel {
	return []panel{
		{
			title: "Owner of the dispatcher", runbooks: []string{"DispatcherMissing"}, unit: count,
			about: "Whether a server owns the dispatcher of each project. For up to half a minute after a crash it has no " +
				"owner.",
			queries: []query{{"sum by (project) (dispatcher_active{" + within + "})", "{{project}}"}},
			states:  []state{{"0", "no owner", red}, {"1", "owned", blue}, {"2", "two report it", orange}},
		},
		{
			title:    "Stale, duplicate and foreign dispatchers",
			runbooks: []string{"DispatcherStale", "DispatcherDuplicate", "DispatcherForeign"}, unit: count,
			about: "Dispatchers to clean up, open beside the one that should be, or foreign: one whose workflow ID another " +
				"workflow uses, or an unknown " +
				"dispatcher on the task queue. None is the normal state.",
			queries: []query{
				{latest("project", "dispatcher_stale", within), "{{project}}: stale"},
				{latest("project", "dispatcher_duplicates", within), "{{project}}: duplicate"},
				{latest("project", "dispatcher_foreign", within), "{{project}}: foreign"},
			},
			colors: []color{{": stale$", orange}, {": duplicate$", purple}, {": foreign$", red}}, from: []float64{1},
		},
		{
			title: "Evicted workers in 15 minutes", runbooks: []string{"WorkerEvictionsHigh"}, unit: count,
			about: "Workers without heartbeats that each dispatcher evicted in the 15 minutes before each point.",
			queries: []query{{"sum by (project) (increase(dispatcher_worker_evictions_total{" + within + "}[15m]))",
				"{{project}}"}},
			from: []float64{5},
		},
	}
}

func takeovers() []panel {
	return []panel{
		{
			title: "Takeover latency", runbooks: []string{"TakeoverSlow"}, unit: seconds,
			about: "Time until a dispatcher of any project had its next owner, over the hour before each point: after a crash " +
				"from the last renewal of the lease, otherwise " +
				"from the acquisition. A gap is an hour without a takeover.",
			queries: quantiles("dispatcher_takeover_seconds", at, hour, 50, 95), colors: percentiles(), from: []float64{30},
		},
		{
			title: "Takeovers in time", runbooks: []string{"TakeoverSlow"}, unit: ratio,
			about: "Share of the takeovers of the last hour, of all projects, that took at most 30 seconds. A gap is an " +
				"hour without a takeover.",
			queries: []query{{"signalbox:dispatcher_takeovers_in_time:ratio1h", "in time"}}, below: []float64{0.95}, top: 1,
		},
		{
			title: "Takeovers by outcome", runbooks: []string{"TakeoverSlow", "DispatcherMissing"}, unit: count, bars: true,
			about: "Attempts of the chosen servers to own a dispatcher, of all projects. A handover replaces an owner that " +
				"resigned, a takeover one that crashed; lost and error had no effect.",
			queries: []query{{counted("outcome", "dispatcher_takeovers_total", at), "{{outcome}}"}},
			colors: []color{
				{"^cold_start$", sky}, {"^joined$", green}, {"^handover$", blue}, {"^takeover$", orange}, {"^lost$", purple},
				{"^error$", red},
			},
		},
	}
}

func cleanups() []panel {
	return []panel{
		{
			title: "Clean-up time", runbooks: []string{"CleanupSlow"}, unit: seconds,
			about: "Time from the last heartbeat of a stale dispatcher or entry of any project until it was cleaned up, over " +
				"the hour before each point. A gap is an hour " +
				"without a clean-up.",
			queries: quantiles("dispatcher_cleanup_seconds", at, hour, 50, 95), colors: percentiles(), from: []float64{120},
		},
		{
			title: "Clean-ups in time", runbooks: []string{"CleanupSlow"}, unit: ratio,
			about: "Share of the clean-ups of the last hour, of all projects, that took at most 2 minutes. A gap is an hour " +
				"without a clean-up.",
			queries: []query{{"signalbox:dispatcher_cleanups_in_time:ratio1h", "in time"}}, below: []float64{0.95}, top: 1,
		},
		{
			title: "Clean-ups and failures", runbooks: []string{"CleanupSlow", "DispatcherStale"}, unit: count, bars: true,
			about: "Stale dispatchers and entries of all projects that the supervisor of each server cleaned up, and failures " +
				"to do so.",
			queries: []query{
				{counted("instance", "dispatcher_stale_cleanups_total", at), "{{instance}}: cleaned up"},
				{counted("instance", "dispatcher_cleanup_errors_total", at), "{{instance}}: failed"},
			},
			colors: []color{{": cleaned up$", blue}, {": failed$", red}},
		},
		{
			title: "Terminations by reason", runbooks: []string{"DispatcherStale", "DispatcherDuplicate"}, unit: count,
			bars: true,
			about: "Dispatchers of all projects that were terminated to be replaced or because they should not be open, by " +
				"the chosen servers.",
			queries: []query{{counted("reason", "dispatcher_terminations_total", at), "{{reason}}"}},
		},
		{
			title: "Failed terminations in 15 minutes", runbooks: []string{"TerminateErrors"}, unit: count,
			about: "Failures to terminate a dispatcher in the 15 minutes before each point. They are repeated.",
			queries: []query{{"sum by (project) (increase(dispatcher_terminate_errors_total{" + within + "}[15m]))",
				"{{project}}"}},
			from: []float64{1},
		},
	}
}

func supervisor() []panel {
	return []panel{
		{
			title: "Cycles by result", runbooks: []string{"SupervisorErrors"}, unit: count, bars: true,
			about: "Cycles of the supervisors of the chosen servers: each compares leases, heartbeats and the dispatchers " +
				"in Temporal.",
			queries: []query{{counted("result", "dispatcher_supervisor_cycles_total", at), "{{result}}"}},
			colors:  []color{{"^ok$", blue}, {"^error$", red}, {"^postponed$", orange}},
		},
		{
			title: "Failed cycles in an hour", runbooks: []string{"SupervisorErrors"}, unit: ratio,
			about: "Share of the cycles of all servers in the hour before each point that failed.",
			queries: []query{{
				`sum(increase(dispatcher_supervisor_cycles_total{result="error"}[1h])) / sum(increase(dispatcher_supervisor_cycles_total[1h]))`, "failed",
			}},
			from: []float64{0.01},
		},
		{
			title: "Time since the last cycle", runbooks: []string{"SupervisorErrors"}, unit: seconds,
			about: "Time since the supervisor of each server ended a cycle; by default one begins every minute. A server " +
				"without the worker role has none, " +
				"and one that has just started is unknown.",
			queries: []query{{"clamp_min(time() - dispatcher_supervisor_last_cycle_timestamp_seconds{" + at + "}, 0)",
				"{{instance}}"}},
		},
		{
			title: "Duration of cycles", runbooks: []string{"SupervisorErrors"}, unit: seconds,
			about:   "How long the cycles of the supervisors took, over the hour before each point.",
			queries: quantiles("dispatcher_supervisor_cycle_seconds", at, hour, 50, 95), colors: percentiles(),
		},
	}
}

func inbox() []panel {
	return []panel{
		{
			title: "Inbox lag", runbooks: []string{"InboxLag"}, unit: seconds,
			about:   "Age of the oldest event of each project that waits to be matched or delivered; 0 where none waits.",
			queries: []query{{latest("project", "dispatcher_inbox_lag_seconds", within), "{{project}}"}}, from: []float64{60},
		},
		{
			title: "Pending events and deliveries", runbooks: []string{"InboxLag"}, unit: count,
			about:   "Events that are not matched yet, and deliveries that are neither done nor given up, by project.",
			queries: []query{{latest("project", "dispatcher_inbox_pending", within), "{{project}}"}},
		},
		{
			title: "Attempts to deliver", runbooks: []string{"DeadLetters", "InboxLag"}, unit: perSecond,
			about: "Attempts to deliver an event to a workflow or a run, by outcome. A delivery with the outcome dead was " +
				"given up.",
			queries: []query{{rated("outcome", "dispatcher_deliveries_total", within), "{{outcome}}"}},
			colors:  []color{{"^done$", blue}, {"^retry$", orange}, {"^dead$", red}},
		},
		{
			title: "Dead letters in 15 minutes", runbooks: []string{"DeadLetters"}, unit: count,
			about: "Deliveries that were given up in the 15 minutes before each point. They are kept, and attempted again " +
				"only on request.",
			queries: []query{{`sum by (project) (increase(dispatcher_deliveries_total{outcome="dead",` + within + "}[15m]))",
				"{{project}}"}},
			from: []float64{1},
		},
	}
}
