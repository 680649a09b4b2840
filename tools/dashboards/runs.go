package main

func runs() board {
	return board{
		name: "runs", title: "Signalbox / Runs", byProject: true,
		description: "Runs that start, end and make no progress, how fast they do, the problems that wait for a person, " +
			"and the service level objectives.",
		rows: []row{
			{"Runs", throughput()}, {"Delays", delays()}, {"Runs without progress", progress()}, {"Limits", limits()},
			{"Problems", problems()},
			{"Service level objectives", objectives()},
		},
	}
}

func throughput() []panel {
	return []panel{
		{
			title: "Started runs", unit: perSecond, runbooks: []string{"StartLatencyBudgetBurn"},
			about:   "Runs that were accepted, by project.",
			queries: []query{{rated("project", "signalbox_runs_total", `status="queued",`+within), "{{project}}"}},
		},
		{
			title: "Ended runs by status", unit: perSecond, runbooks: []string{"RunsStuck"},
			about:   "Runs that entered their final status.",
			queries: []query{{rated("status", "signalbox_runs_total", `status!="queued",`+within), "{{status}}"}},
			colors: []color{{"^completed$", blue}, {"^failed$", red}, {"^canceled$", purple}, {"^terminated$", orange},
				{"^timed_out$", sky}},
		},
		{
			title: "Ended steps by status", unit: perSecond, runbooks: []string{"NoPollers", "RunsStuck"},
			about: "Steps of runs that ended in the chosen servers, of all projects. Each entry of a task is a step, in a " +
				"loop one for each turn. A failed step may be caught by a try, " +
				"and skipped are those whose condition did not hold.",
			queries: []query{{rated("status", "signalbox_steps_total", at), "{{status}}"}},
			colors:  []color{{"^completed$", blue}, {"^failed$", red}, {"^canceled$", purple}, {"^skipped$", sky}},
		},
		{
			title: "Workflow tasks and calls", unit: perSecond, runbooks: []string{"NoPollers", "RunsStuck"},
			about: "Tasks of runs that the workers of the chosen servers execute, of all projects: a workflow task advances a " +
				"run by one or several steps, an " +
				"activity is a call outside.",
			queries: []query{
				{"sum(rate(temporal_workflow_task_execution_latency_seconds_count{" + at + "}[$__rate_interval]))",
					"workflow tasks"},
				{"sum(rate(temporal_activity_execution_latency_seconds_count{" + at + "}[$__rate_interval]))", "activities"},
			},
			colors: []color{{"^workflow tasks$", blue}, {"^activities$", orange}},
		},
	}
}

func delays() []panel {
	return []panel{
		{
			title: "Start latency", unit: seconds, runbooks: []string{"StartLatencyBudgetBurn"},
			about: "Time from the request to start a run to Temporal's acceptance, of all projects. The limit is that of the " +
				"objective: 99 % within a second.",
			queries: quantiles("signalbox_run_start_seconds", at, recently, 50, 95, 99), colors: percentiles(),
			from: []float64{1},
		},
		{
			title: "Queue wait", unit: seconds, runbooks: []string{"NoPollers", "RunsStuck"},
			about: "Time from the creation of a run to its first task in a worker, with the wait for a slot of a quota, of " +
				"all projects.",
			queries: quantiles("signalbox_run_queue_wait_seconds", at, recently, 50, 95), colors: percentiles(),
		},
		{
			title: "Lateness of timers", unit: seconds, runbooks: []string{"TimersLate"},
			about: "Time from when a timer of a run was due (a wait, the delay of a retry, a timeout) until a worker received " +
				"it, of all projects. A timer that has not fired is " +
				"not in it: its run is stuck with TIMER_LATE. The limit is that of the alert.",
			queries: quantiles("signalbox_timer_lateness_seconds", at, recently, 50, 95, 99), colors: percentiles(),
			from: []float64{5},
		},
		{
			title: "Projection lag", unit: seconds, runbooks: []string{"ProjectionLag"},
			about: "Time from Temporal's acceptance of a workflow task to its rows in the database, of all projects: how " +
				"late lists and watches are.",
			queries: quantiles("signalbox_projection_lag_seconds", at, recently, 50, 95), colors: percentiles(),
			from: []float64{10},
		},
	}
}

func progress() []panel {
	return []panel{
		{
			title: "Stuck runs by code", unit: count, runbooks: []string{"RunsStuck", "PoisonRuns"},
			about: "Runs that make no progress although they should, by the code of the verdict, of all projects. Undecided " +
				"are those of which it is unknown " +
				"whether they are stuck, because the budget of diagnosis is used up.",
			queries: []query{{latest("code", "signalbox_runs_stuck", ""), "{{code}}"},
				{"max(signalbox_diagnosis_undecided_runs)", "undecided"}},
			from: []float64{1},
		},
		{
			title: "Budget of diagnosis", unit: count, runbooks: []string{"RunsStuck"},
			about: "Requests per second that a server may send to Temporal to diagnose, compare and rebuild runs. The budget " +
				"shrinks while Temporal is slow, " +
				"and what a request that it refuses was to find out is unknown.",
			queries: []query{{"min(signalbox_diagnosis_budget{" + at + "})", "budget"}},
			colors:  []color{{"^budget$", blue}},
		},
		{
			title: "Differences from Temporal", unit: count, bars: true, runbooks: []string{"ReconcileCorrections"},
			about: "Differences between runs and Temporal that the reconciler found, by kind. execution_missing, " +
				"reopened_in_temporal, adopted, " +
				"foreign_execution and forgotten_executions have a cause outside of the platform; the others are expected after " +
				"crashes and outages.",
			queries: []query{{"sum by (kind) (rate(signalbox_reconcile_corrections_total[$__rate_interval])) * $__interval_ms " +
				"/ 1000", "{{kind}}"}},
			colors: []color{{"^(execution_missing|reopened_in_temporal|adopted|foreign_execution|forgotten_executions)$", red}},
		},
		{
			title: "Rebuilt runs", unit: count, bars: true, runbooks: []string{"ReconcileCorrections"},
			about: "Rebuilds of the rows of runs from their histories, by outcome.",
			queries: []query{{"sum by (outcome) (rate(signalbox_rebuilds_total[$__rate_interval])) * $__interval_ms / 1000",
				"{{outcome}}"}},
			colors: []color{{"^rebuilt$", blue}, {"^failed$", red}, {"^canceled$", purple}},
		},
	}
}

func limits() []panel {
	return []panel{
		{
			title: "Maintenance", unit: count,
			about:   "While the platform is in maintenance no new runs start, and open ones end.",
			queries: []query{{"max(signalbox_maintenance)", "platform"}},
			states:  []state{{"0", "off", blue}, {"1", "maintenance", purple}},
		},
		{
			title: "Runs that wait for Temporal", unit: count, runbooks: []string{"QueueModeFilling", "TemporalDisconnected"},
			about: "Runs that queue mode accepted while Temporal was unavailable and that are not submitted yet, and their " +
				"maximum. No series of the maximum: " +
				"queue mode is off.",
			queries: []query{{"max(signalbox_queue_mode_runs)", "waiting"}, {"max(signalbox_queue_mode_max_runs)", "maximum"}},
			colors:  []color{{"^waiting$", blue}, {"^maximum$", grey}},
		},
		{
			title: "Use of queue mode", unit: ratio, runbooks: []string{"QueueModeFilling"},
			about: "Share of the maximum of queue mode that is used. When it is full, starts are refused. No series: queue " +
				"mode is off.",
			queries: []query{{"max(signalbox_queue_mode_runs) / max(signalbox_queue_mode_max_runs)", "used"}},
			from:    []float64{0.8}, top: 1,
		},
		{
			title: "Runs that wait for a quota", unit: count,
			about: "Runs of each project that wait for one of its slots (queued), or have started and wait for steps " +
				"(waiting). No series: the project never had " +
				"a quota.",
			queries: []query{
				{latest("project", "signalbox_quota_queued_runs", within), "{{project}}: queued"},
				{latest("project", "signalbox_quota_waiting_runs", within), "{{project}}: waiting"},
			},
			colors: []color{{": queued$", blue}, {": waiting$", orange}},
		},
	}
}

func problems() []panel {
	return []panel{
		{
			title: "Problems by state", unit: count, runbooks: []string{"ProblemsUnacknowledged"},
			about:   "Problems of all projects. An open one waits for a person.",
			queries: []query{{"sum by (state) (max by (kind, state) (signalbox_problems))", "{{state}}"}},
			colors:  []color{{"^open$", red}, {"^acknowledged$", blue}, {"^snoozed$", purple}, {"^resolved$", green}},
		},
		{
			title: "Oldest open problem", unit: seconds, runbooks: []string{"ProblemsUnacknowledged", "RunsRetrying"},
			about: "Time since the detection of the oldest problem that no person has acknowledged, by project and kind; 0 " +
				"where none is open.",
			queries: []query{{latest("project, kind", "signalbox_problem_oldest_open_seconds", within), "{{project}} {{kind}}"}},
			from:    []float64{300},
		},
		{
			title: "Mean time to acknowledge", unit: seconds,
			runbooks: []string{"AcknowledgeTimeHigh", "ProblemsUnacknowledged"},
			about: "Mean of the problems of all projects that were acknowledged in the day and in the 7 days before each " +
				"point. The objective is 5 minutes. " +
				"A gap is a time without acknowledgements.",
			queries: []query{
				{"signalbox:problem_acknowledge_seconds:mean1d", "1 day"},
				{"signalbox:problem_acknowledge_seconds:mean7d", "7 days"},
			},
			colors: []color{{"^1 day$", sky}, {"^7 days$", blue}}, from: []float64{300},
		},
		{
			title: "Percentiles of the time to acknowledge", unit: seconds, runbooks: []string{"AcknowledgeTimeHigh"},
			about: "Of all acknowledgements that the chosen servers have seen since they started, of all projects: a window " +
				"would miss the first one of each code. No series: there " +
				"was none. The objective for the mean is 5 minutes.",
			queries: []query{
				{"histogram_quantile(0.50, sum by (le) (signalbox_problem_acknowledge_seconds_bucket{" + at + "}))", "p50"},
				{"histogram_quantile(0.95, sum by (le) (signalbox_problem_acknowledge_seconds_bucket{" + at + "}))", "p95"},
				{"histogram_quantile(0.99, sum by (le) (signalbox_problem_acknowledge_seconds_bucket{" + at + "}))", "p99"},
			},
			colors: percentiles(), from: []float64{300},
		},
		{
			title: "Mean time to acknowledge by code", unit: seconds, runbooks: []string{"AcknowledgeTimeHigh"},
			about: "Mean of all acknowledgements that the chosen servers have seen since they started, of all projects, by " +
				"the code of the problem. No series: there was none.",
			queries: []query{{
				"sum by (code) (signalbox_problem_acknowledge_seconds_sum{" + at +
					"}) / sum by (code) (signalbox_problem_acknowledge_seconds_count{" + at + "})",
				"{{code}}",
			}},
			from: []float64{300},
		},
	}
}

func objectives() []panel {
	return []panel{
		{
			title: "Budgets that remain of 30 days", unit: ratio,
			runbooks: []string{"StartLatencyBudgetBurn", "LostTimeBudgetBurn"},
			about: "What is left of the 1 % of starts that may take longer than a second, and of the 0.1 % of the time in " +
				"which no run may be startable. Below zero " +
				"the objective is missed. With less than 30 days of data, the budget is that of the time that Prometheus has.",
			queries: []query{
				{"1 - signalbox:run_starts_slow:ratio_rate30d / 0.01", "starts within a second"},
				{"1 - signalbox:lost:ratio30d / 0.001", "runs can be started"},
			},
			colors: []color{{"^starts", blue}, {"^runs", purple}}, top: 1, signed: true,
		},
		{
			title: "Burn rate of slow starts", unit: count, runbooks: []string{"StartLatencyBudgetBurn"},
			about: "How many times faster than allowed the budget of slow starts is used: 1 uses it up in exactly 30 days. " +
				"14.4 in the last hour or 6 in the last " +
				"6 hours raise a page. A gap is a time without starts.",
			queries: []query{
				{"signalbox:run_starts_slow:ratio_rate5m / 0.01", "5 minutes"},
				{"signalbox:run_starts_slow:ratio_rate1h / 0.01", "1 hour"},
				{"signalbox:run_starts_slow:ratio_rate6h / 0.01", "6 hours"},
				{"signalbox:run_starts_slow:ratio_rate3d / 0.01", "3 days"},
			},
			colors: windows(), from: []float64{6, 14.4},
		},
		{
			title: "Burn rate of lost time", unit: count, runbooks: []string{"LostTimeBudgetBurn"},
			about: "How many times faster than allowed the budget of lost time is used: 1 uses it up in exactly 30 days. 14.4 " +
				"in the last hour or 6 in the last " +
				"6 hours raise a page.",
			queries: []query{
				{"signalbox:lost:ratio5m / 0.001", "5 minutes"}, {"signalbox:lost:ratio1h / 0.001", "1 hour"},
				{"signalbox:lost:ratio6h / 0.001", "6 hours"}, {"signalbox:lost:ratio3d / 0.001", "3 days"},
			},
			colors: windows(), from: []float64{6, 14.4},
		},
	}
}

// windows are the colours of the windows of burn rates.
func windows() []color {
	return []color{{"^5 minutes$", orange}, {"^1 hour$", sky}, {"^6 hours$", blue}, {"^3 days$", purple}}
}
