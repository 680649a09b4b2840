package golden_test

const batchID = "0199a4f5-0000-7c54-8a3c-5a0d1e0b7f21"

const (
	runningBatch = `{"id": "0199a4f5-0000-7c54-8a3c-5a0d1e0b7f21", "project": "shop", "action": "replay", "version": "latest", "status": "running", "reason": "the bug is fixed", "rate": 50, "total": "120", "pending": "100", "outcomes": {"started": "17", "open": "4", "completed": "3", "failedSameCause": "9", "failedOtherCause": "1"}, "refused": "2", "failed": "1",
		"actor": "ada", "requestId": "b-1", "createTime": "2026-11-24T02:58:00Z", "waiting": "Temporal is unavailable", "filter": {"statuses": ["failed"], "workflow": "shop/order", "labels": ["region=eu"]}}`
	doneBatch = `{"id": "0199a4f4-0000-7c54-8a3c-5a0d1e0b7f20", "project": "shop", "action": "cancel", "status": "completed", "reason": "wrong prices", "rate": 0.5, "total": "3", "succeeded": "2", "failed": "1", "actor": "ada", "requestId": "b-0",
		"createTime": "2026-11-22T02:58:00Z", "endTime": "2026-11-22T02:58:30Z"}`
)

func batchExamples() []example {
	steered := `{"batch": ` + runningBatch + `}`
	return []example{
		{name: "batch-list", line: "batch list -p shop",
			answers: answers{"ListBatches": `{"batches": [` + runningBatch + "," + doneBatch + `]}`}},
		{name: "batch-list-empty", line: "batch list", answers: answers{"ListBatches": `{}`}},
		{name: "batch-show", line: "batch show " + batchID, answers: answers{"GetBatch": steered}},
		{name: "batch-show-items", line: "batch show " + batchID + " --items",
			answers: answers{"ListBatchItems": `{"items": [{"runId": "` + openID + `", "status": "started", "newRunId": "` +
				doneID + `", "outcome": "failed_same_cause", "endTime": "2026-11-24T02:59:00Z"},
			{"runId": "` + failedID + `", "status": "failed", "error": "INTERNAL: the database does not answer", "endTime": "2026-11-24T02:59:00Z"}, {"runId": "0199a4f0-2222-7c54-8a3c-5a0d1e0b7f14", "status": "pending"}]}`}},
		{name: "batch-start", line: "batch start --action replay --status failed -r fixed --request-id b-1",
			answers: answers{"StartBatch": `{"batch": ` + runningBatch + `, "created": true}`}},
		{name: "batch-start-wait", line: "batch start --action cancel --status failed -r fixed --request-id b-1 --wait",
			answers: answers{"StartBatch": `{"batch": ` + doneBatch + `, "created": true}`}},
		{name: "batch-start-dry-run", line: "batch start --action replay --status failed --dry-run",
			answers: answers{"StartBatch": `{"batch": ` + runningBatch +
				`, "eligible": "117", "unchanged": "1", "preview": [{"reason": "RUN_OPEN", "count": "2", "sampleRunIds": ["` +
				openID + `"]}]}`}},
		{name: "batch-start-asks", line: "batch start --action terminate --status failed -r fixed", asks: true, stdin: "n\n",
			answers: answers{"StartBatch": `{"batch": ` + runningBatch + `, "eligible": "117", "created": true}`}},
		{name: "batch-start-dry-run-json", line: "batch start --action replay --status failed --dry-run -o json",
			answers: answers{"StartBatch": `{"batch": ` + doneBatch +
				`, "eligible": "117", "preview": [{"reason": "RUN_OPEN", "count": "2", "sampleRunIds": ["` + openID + `"]}]}`}},
		{name: "batch-start-nothing", line: "batch start --action cancel -r fixed"},
		{name: "batch-pause", line: "batch pause " + batchID, answers: answers{"PauseBatch": steered}},
		{name: "batch-unpause", line: "batch unpause " + batchID, answers: answers{"UnpauseBatch": steered}},
		{name: "batch-retry", line: "batch retry " + batchID, answers: answers{"RetryBatch": steered}},
	}
}

const (
	stuckProblem = `{"id": "stuck.shop.NO_POLLER", "kind": "stuck", "code": "NO_POLLER", "cause": "NO_WORKER", "project": "shop", "taskQueue": "signalbox-shop", "title": "No worker polls the task queue", "detail": "3 runs wait", "advice": "start a worker", "count": "3",
		"firstTime": "2026-11-24T02:40:00Z", "lastTime": "2026-11-24T02:59:00Z", "samples": ["0199a4f2-9e07-7c54-8a3c-5a0d1e0b7f11"], "state": "open", "revision": "1", "detectTime": "2026-11-24T02:41:00Z"}`
	failureProblem = `{"id": "failure.shop.5f0c", "kind": "failure", "project": "shop", "workflow": "shop/order", "versions": [{"version": "1.2.0", "count": "10000"}], "task": "pay", "pointer": "/do/1/pay", "title": "Service Unavailable", "count": "10000", "more": true, "notReplayed": "0",
		"firstTime": "2026-11-20T02:40:00Z", "lastTime": "2026-11-24T02:59:00Z", "state": "acknowledged", "owner": "payments", "note": "the provider is under maintenance", "acknowledger": "ada", "acknowledgeTime": "2026-11-23T02:59:00Z", "revision": "4"}`
	platformProblem = `{"id": "platform.temporal", "kind": "platform", "code": "TEMPORAL_DOWN", "title": "Temporal is not connected", "state": "snoozed", "snoozeUntil": "2026-11-24T12:00:00Z", "revision": "2"}`
)

func problemExamples() []example {
	changed := answers{"GetProblem": `{"problem": ` + stuckProblem + `}`}
	with := func(method, problem string) answers {
		return answers{"GetProblem": changed["GetProblem"], method: `{"problem": ` + problem + `}`}
	}
	return []example{
		{name: "problem-list", line: "problem list",
			answers: answers{"ListProblems": `{"problems": [` + platformProblem + "," + stuckProblem + "," + failureProblem +
				`], "errors": ["stuck runs: the database does not answer"]}`}},
		{name: "problem-list-empty", line: "problem list", answers: answers{"ListProblems": `{}`}},
		{name: "problem-count", line: "problem count",
			answers: answers{"CountProblems": `{"states": {"open": "2", "acknowledged": "1"}, "meanTimeToAcknowledge": "754s"}`}},
		{name: "problem-count-partial-json", line: "problem count -o json",
			answers: answers{"CountProblems": `{"states": {"open": "2"}, "errors": ["failed runs: the database does not answer"]}`}},
		{name: "problem-count-partial", line: "problem count",
			answers: answers{"CountProblems": `{"states": {"open": "2"}, "errors": ["failed runs: the database does not answer"]}`}},
		{name: "problem-list-yaml", line: "problem list -o yaml",
			answers: answers{"ListProblems": `{"problems": [` + stuckProblem +
				`], "errors": ["stuck runs: the database does not answer"]}`}},
		{name: "problem-show", line: "problem show stuck.shop.NO_POLLER", answers: changed},
		{name: "problem-show-platform", line: "problem show platform.temporal",
			answers: answers{"GetProblem": `{"problem": ` + platformProblem + `}`}},
		{name: "problem-acknowledge", line: "problem acknowledge failure.shop.5f0c",
			answers: with("AcknowledgeProblem", failureProblem)},
		{name: "problem-snooze", line: "problem snooze platform.temporal --until 9h",
			answers: with("SnoozeProblem", platformProblem)},
		{name: "problem-snooze-nothing", line: "problem snooze platform.temporal", answers: changed},
		{name: "problem-update", line: "problem update failure.shop.5f0c --owner payments",
			answers: with("UpdateProblem", failureProblem)},
		{name: "problem-update-conflict", line: "problem update stuck.shop.NO_POLLER --owner payments",
			answers: answers{"GetProblem": changed["GetProblem"],
				"UpdateProblem": "!aborted REVISION_CONFLICT the problem has revision 2 by now; read it again"}},
		{name: "problem-reopen", line: "problem reopen stuck.shop.NO_POLLER", answers: with("ReopenProblem", stuckProblem)},
	}
}

const (
	routing = `{"project": "shop", "taskQueue": "signalbox-shop", "workflowId": "signalbox-dispatcher-shop", "state": "routing",
		"lease": {"state": "held", "owner": {"serverId": "host-1-abc", "epoch": "7"}, "acquireTime": "2026-11-24T01:00:00Z", "renewTime": "2026-11-24T02:59:58Z", "remaining": "13s"},
		"execution": {"runId": "7f0c6a53-3d0f-4c1f-8df2-0f3b7a1f3c55", "startTime": "2026-11-24T01:00:00Z", "owner": {"serverId": "host-1-abc", "epoch": "7"}, "interpreter": 4, "historyLength": "812"},
		"progress": {"head": "4711", "routed": "4709", "pending": "2", "sinceProgress": "3s", "lag": "1.5s"},
		"workers": [{"serverId": "host-1-abc", "build": "1.2.3", "registerTime": "2026-11-24T01:00:00Z", "missed": 1}],
		"owners": [{"time": "2026-11-24T01:00:00Z", "how": "adopted", "owner": {"serverId": "host-1-abc", "epoch": "7"}, "previous": {"serverId": "host-2-def", "epoch": "6"}, "reason": "node 3 is drained"},
			{"time": "2026-11-23T01:00:00Z", "how": "takeover", "owner": {"serverId": "host-2-def", "epoch": "6"}, "runId": "7f0c6a53", "endedRunId": "5e0b4a11", "reason": "no heartbeat for 30 s"}]}`
	unread = `{"project": "a-project-with-a-name-of-many-words", "taskQueue": "signalbox-a-project-with-a-name-of-many-words", "workflowId": "signalbox-dispatcher-a-project-with-a-name-of-many-words", "state": "unknown", "detail": "Redis does not answer",
		"errors": ["leases: Redis does not answer", "temporal: connection refused"]}`
)

func dispatcherExamples() []example {
	return []example{
		{name: "dispatcher-list", line: "dispatcher list",
			answers: answers{"ListDispatchers": `{"dispatchers": [` + routing + "," + unread + `]}`}},
		{name: "dispatcher-list-empty", line: "dispatcher list", answers: answers{"ListDispatchers": `{}`}},
		{name: "dispatcher-show", line: "dispatcher show shop",
			answers: answers{"GetDispatcher": `{"dispatcher": ` + routing + `}`}},
		{name: "dispatcher-show-unknown", line: "dispatcher show a-project-with-a-name-of-many-words",
			answers: answers{"GetDispatcher": `{"dispatcher": ` + unread + `}`}},
		{name: "dispatcher-handover", line: "dispatcher handover shop",
			answers: answers{"HandOverDispatcher": `{"owner": {"serverId": "host-1-abc", "epoch": "7"}}`}},
		{name: "dispatcher-reconcile", line: "dispatcher reconcile",
			answers: answers{"ReconcileDispatchers": `{"dispatchers": "3", "healthy": "1", "stale": "1", "unknown": "1", "took": "0.12s",
			"items": [{"action": "end", "kind": "stale", "project": "shop", "workflowId": "signalbox-dispatcher-shop", "runId": "7f0c6a53", "owner": {"serverId": "host-2-def", "epoch": "6"}, "reason": "its owner host-2-def has no heartbeat", "applied": true}, {"action": "alert", "kind": "foreign", "project": "billing", "workflowId": "signalbox-dispatcher-billing", "reason": "another workflow uses the ID"}]}`}},
		{name: "dispatcher-reconcile-dry-run", line: "dispatcher reconcile --dry-run",
			answers: answers{"ReconcileDispatchers": `{"dispatchers": "2", "healthy": "2", "took": "0.12s", "dryRun": true}`}},
		{name: "worker-list", line: "worker list", answers: answers{"ListWorkers": `{"workers": [
			{"serverId": "host-1-abc", "state": "alive", "build": "1.2.3", "interpreter": 4, "contract": "2", "startTime": "2026-11-24T01:00:00Z", "lastBeatTime": "2026-11-24T02:59:55Z", "staleIn": "25s", "lastPollTime": "2026-11-24T02:56:50Z", "busyTime": "2026-11-24T02:57:00Z", "registrations": [{"project": "shop"}]},
			{"serverId": "host-2-def", "state": "silent", "staleIn": "-90s", "registrations": [{"project": "shop"}, {"project": "billing"}]}, {"serverId": "host-3-ghi", "state": "unknown"}], "errors": ["heartbeats: Redis does not answer"]}`}},
		{name: "worker-list-empty", line: "worker list", answers: answers{"ListWorkers": `{}`}},
	}
}

func eventExamples() []example {
	deliveries := `[{"id": "d1", "kind": "start", "workflow": "shop/order", "version": "1.2.0", "runId": "` + doneID +
		`", "status": "done", "attempts": 1, "positions": ["4711"], "createTime": "2026-11-24T02:58:00Z"},
		{"id": "d2", "kind": "wake", "runId": "` + openID + `", "status": "pending", "attempts": 3, "nextTime": "2026-11-24T03:00:40Z", "positions": ["4711", "4712"], "createTime": "2026-11-24T02:58:00Z", "updateTime": "2026-11-24T02:59:40Z", "reason": "Temporal is unavailable"}]`
	event := `{"position": "4711", "project": "shop", "id": "5f0c6a53-3d0f-4c1f-8df2-0f3b7a1f3c55", "source": "/shop", "type": "com.example.order.created", "subject": "4711", "status": "routed", "receiveTime": "2026-11-24T02:58:00Z", "time": "2026-11-24T02:57:59Z", "actor": "checkout", "data": {"json": "{\"order\": 4711}"}}`
	rejected := `{"position": "4710", "project": "shop", "id": "x", "source": "https://example.com/a/source/of/events/with/a/long/path", "type": "com.example.order.created.in.a.name.space.of.many.words", "status": "rejected", "reason": "data\u0007 is no object", "dataBase64": "AAEC"}`
	return []example{
		{name: "event-list", line: "event list -p shop",
			answers: answers{"ListEvents": `{"events": [` + event + "," + rejected + `]}`}},
		{name: "event-list-json", line: "event list -p shop -o json",
			answers: answers{"ListEvents": `{"events": [` + event + "," + rejected + `]}`}},
		{name: "event-send-json", line: "event send --type com.example.paid --source /shop --id e1 -o json",
			answers: answers{"PublishEvents": `{"accepted": [{"id": "e1", "source": "/shop", "position": "4713", "duplicate": true}]}`}},
		{name: "event-list-empty", line: "event list -p shop", answers: answers{"ListEvents": `{}`}},
		{name: "event-show", line: "event show 5f0c",
			answers: answers{"GetEvent": `{"event": ` + event + `, "deliveries": ` + deliveries + `}`}},
		{name: "event-show-missed", line: "event show 5f0c",
			answers: answers{"GetEvent": `{"event": ` + event + `, "missed": [{"runId": "` + openID +
				`", "workflow": "shop/order", "version": "1.2.0", "step": "6", "task": "awaitPayment", "since": "2026-11-24T02:16:00Z", "reason": "data.orderId is 4711, not 4712"}]}`}},
		{name: "event-show-rejected", line: "event show x", answers: answers{"GetEvent": `{"event": ` + rejected + `}`}},
		{name: "event-show-nothing", line: "event show"},
		{name: "event-redeliver", line: "event redeliver --position 4711",
			answers: answers{"RedeliverEvent": `{"deliveries": ` + deliveries + `}`}},
		{name: "event-redeliver-nothing", line: "event redeliver --position 4711", answers: answers{"RedeliverEvent": `{}`}},
		{name: "event-send", line: "event send --type com.example.paid --source /shop --id e1",
			answers: answers{"PublishEvents": `{"accepted": [{"id": "e1", "source": "/shop", "position": "4713", "duplicate": true}]}`}},
		{name: "event-send-file", line: "event send --file FILE",
			file:    `[{"specversion": "1.0", "id": "e1", "source": "/shop", "type": "com.example.paid"}, {"specversion": "1.0", "id": "e2", "source": "/shop", "type": "com.example.paid"}]`,
			answers: answers{"PublishEvents": `{"accepted": [{"id": "e1", "source": "/shop", "position": "4713"}, {"id": "e2", "source": "/shop", "position": "4714"}]}`}},
		{name: "event-send-nothing", line: "event send --type com.example.paid"},
	}
}

func systemExamples() []example {
	connected := `"connection": {"state": "connected", "since": "2026-11-23T03:00:00Z", "address": "temporal.example:7233", "namespace": "signalbox", "generation": "2", "latency": "0.004s", "attempts": "3", "breaker": {"state": "closed"},
		"statistics": {"uptime": "86000s", "downtime": "400s", "connections": "2", "outages": "1", "lastOutage": "400s", "longestOutage": "400s", "connectedSince": "2026-11-23T03:10:00Z"},
		"workerSets": [{"name": "runs", "running": true, "polling": true, "generation": "2", "startTime": "2026-11-23T03:00:00Z", "lastPollTime": "2026-11-24T02:59:59Z", "taskQueues": ["signalbox-shop"]}, {"name": "starts", "error": "not permitted"}]}`
	down := `"connection": {"state": "down", "kind": "connection_refused", "since": "2026-11-24T02:50:00Z", "address": "temporal.example:7233", "namespace": "signalbox", "lastError": "connect: connection refused", "lastErrorTime": "2026-11-24T02:59:58Z", "generation": "2", "attempts": "41", "nextAttemptTime": "2026-11-24T03:00:04Z",
		"breaker": {"state": "open", "failures": "12", "openTime": "2026-11-24T02:50:10Z", "nextProbeTime": "2026-11-24T03:00:04Z"}, "statistics": {"uptime": "86000s", "downtime": "600s", "connections": "1", "outages": "1", "lastOutage": "600s", "longestOutage": "600s"}}`
	return []example{
		{name: "system-status", line: "system status",
			answers: answers{"GetStatus": `{"version": "1.2.3", "serverId": "host-1-abc", "roles": ["api", "worker"], "startTime": "2026-11-23T03:00:00Z", "time": "2026-11-24T03:00:00Z", ` + connected + `,
			"queueMode": {"enabled": true, "runs": "3", "maxRuns": "1000", "ttl": "3600s"}, "reconciler": {"lastTime": "2026-11-24T02:59:40Z", "checked": "4", "corrections": "0", "searchedUntil": "2026-11-23T12:00:00Z"}, "maintenance": {},
			"store": {"driver": "postgres", "location": "db.example/signalbox", "version": "17.2", "schema": "81", "requiredSchema": "81", "bytes": "123456789", "latency": "0.0009s", "pools": [{"name": "main", "inUse": "1", "limit": "20", "waits": "0"}]},
			"processor": {"limit": 0.25, "used": 0.24, "throttled": 0.93, "waiting": 1.8, "required": 0.5, "shortage": "it gets 24 % of a processor (limited to 25 % of a processor and throttled in 93 % of the last minute's periods)"},
			"workers": [{"serverId": "host-1-abc", "contract": "2", "address": "temporal.example:7233", "namespace": "signalbox", "namespaceId": "0f6e2a", "startTime": "2026-11-23T03:00:00Z", "lastBeatTime": "2026-11-24T02:59:58Z", "takesRuns": true, "processor": {"limit": 2, "used": 0.4, "required": 0.5}}],
			"runners": [{"project": "bank", "name": "signalbox.runner-bank", "kinds": ["script"]},
				{"project": "shop", "name": "signalbox.runner-shop", "kinds": ["container", "script"], "runners": [
					{"serverId": "host-2-def", "lastPollTime": "2026-11-24T02:59:58Z", "polling": true,
						"isolations": {"container": "container", "js": "webassembly", "shell": "none"}},
					{"serverId": "host-3-ghi", "lastPollTime": "2026-11-24T02:57:00Z"}]},
				{"project": "toys", "kinds": ["script"], "error": "Temporal is unavailable"}], "moreRunners": true}`}},
		{name: "system-status-down", line: "system status",
			answers: answers{"GetStatus": `{"version": "1.2.3", "serverId": "host-1-abc", "roles": ["api"], ` + down +
				`, "workersError": "unknown: Redis does not answer",
			"dependencies": [{"name": "redis", "state": "down", "since": "2026-11-24T02:55:00Z", "error": "connection refused"}], "maintenance": {"active": true, "reason": "upgrade of the database", "actor": "ada", "since": "2026-11-24T02:30:00Z"}}`}},
		{name: "system-connection", line: "system connection",
			answers: answers{"GetConnection": `{"state": "connected", "since": "2026-11-23T03:00:00Z", "queuesRuns": true}`}},
		{name: "system-connection-down", line: "system connection",
			answers: answers{"GetConnection": `{"state": "down", "kind": "unreachable", "since": "2026-11-24T02:50:00Z", "title": "Temporal cannot be reached", "queuesRuns": true}`}},
		{name: "system-queues", line: "system queues",
			answers: answers{"ListQueues": `{"time": "2026-11-24T03:00:00Z", "queues": [{"project": "shop", "name": "signalbox-shop", "workflowTasks": {"pollers": "2", "busy": "1", "lastPollTime": "2026-11-24T02:59:58Z", "backlog": "3", "backlogAge": "12s"}, "activities": {"pollers": "0", "backlog": "0"}},
			{"project": "billing", "name": "signalbox-billing", "error": "deadline exceeded"}]}`}},
		{name: "system-queues-empty", line: "system queues", answers: answers{"ListQueues": `{}`}},
		{name: "system-health", line: "system health",
			answers: answers{"/readyz": `200 {"status": "degraded", "roles": [{"role": "api", "status": "ready"}, {"role": "worker", "status": "degraded", "because": ["temporal"], "lastError": "connection refused"}]}`}},
		{name: "system-health-unready", line: "system health",
			answers: answers{"/readyz": `503 {"status": "unready", "stopping": true, "roles": [{"role": "api", "status": "unready", "because": ["database", "redis"]}]}`}},
		{name: "system-health-foreign", line: "system health", answers: answers{"/readyz": `200 ok`}},
		{name: "system-maintenance", line: "system maintenance",
			answers: answers{"GetMaintenance": `{"maintenance": {"active": true, "reason": "upgrade of the database", "actor": "ada", "since": "2026-11-24T02:30:00Z"}}`}},
		{name: "system-maintenance-unknown", line: "system maintenance", answers: answers{"GetMaintenance": `{}`}},
		{name: "system-maintenance-off", line: "system maintenance off",
			answers: answers{"SetMaintenance": `{"maintenance": {}}`}},
		{name: "system-reset-breaker", line: "system reset-breaker", answers: answers{"ResetBreaker": `{` + down + `}`}},
		{name: "system-adopt-temporal", line: "system adopt-temporal --dry-run",
			answers: answers{"AdoptTemporal": `{"former": {"address": "temporal.example:7233", "namespace": "signalbox", "namespaceId": "n-1"}, "since": "2026-11-01T03:00:00Z", "now": {"address": "next.example:7233", "namespace": "signalbox", "namespaceId": "n-2"}, "needed": true, "dryRun": true,
			"leftRuns": [{"project": "billing", "runs": "20"}, {"project": "shop", "runs": "1"}]}`}},
		{name: "system-adopt-temporal-nothing", line: "system adopt-temporal temporal.example:7233 signalbox --reason moved",
			answers: answers{"AdoptTemporal": `{"former": {"address": "temporal.example:7233", "namespace": "signalbox", "namespaceId": "n-1"}, "since": "2026-11-01T03:00:00Z", "now": {"address": "temporal.example:7233", "namespace": "signalbox", "namespaceId": "n-1"}}`}},
		{name: "system-reconcile", line: "system reconcile",
			answers: answers{"Reconcile": `{"checked": "12", "open": "12", "total": "3", "failed": "1", "failedBecause": "run 0199a4f3-0000-7c54-8a3c-5a0d1e0b7f13: its history cannot be read", "took": "0.5s", "withheld": "2", "withheldBecause": "Temporal has no namespace of the recorded ID",
			"corrections": [{"kind": "ended", "runId": "` + openID + `", "project": "shop", "detail": "it has completed in Temporal", "applied": true}, {"kind": "missing", "runId": "` + failedID + `", "project": "shop", "detail": "Temporal does not have it"}]}`}},
		{name: "restore-check", line: "restore check",
			answers: answers{"CheckRestore": `{"time": "2026-11-24T03:00:00Z", "restoredTime": "2026-11-24T02:59:00Z", "backupTime": "2026-11-24T02:00:00Z", "newestRowTime": "2026-11-24T01:59:40Z",
			"maintenance": {"active": true, "reason": "the database was restored", "actor": "system", "since": "2026-11-24T02:59:00Z"},
			"comparison": {"checked": "12", "open": "12", "total": "7", "failed": "1", "failedBecause": "run ` + failedID + `: its history cannot be read", "took": "0.5s", "searchedUntil": "2026-11-24T02:30:00Z", "foreign": [{"project": "shop", "workflow": "a/b", "version": "1.0.0", "reason": "its document is not stored", "count": "1", "open": "1"}]},
			"differences": {"adopted": "3", "execution_missing": "2", "finished": "1", "forgotten_executions": "1"}, "adopted": "40", "failedMissing": "2", "lostPayloads": {"runs": "7", "sampleRunIds": ["` + openID + `"], "searched": "4000"},
			"lost": {"open": "1", "ended": "2", "young": "2", "upToHour": "2", "upToDay": "1", "newestTime": "2026-11-24T02:45:00Z", "forgottenFrom": "2026-11-24T01:58:00Z", "forgottenUntil": "2026-11-24T02:10:00Z"},
			"schedules": "2", "lackingSchedules": ["create signalbox-schedule/shop/nightly"],
			"sealingKeys": [{"id": "2027-05", "fingerprint": "0011223344556677", "configured": true, "active": true, "openRuns": "3"}, {"id": "2026-11", "openRuns": "2"}], "errors": {"dispatchers": "the leases cannot be read"}}`}},
		{name: "system-keys", line: "system keys",
			answers: answers{"ListSealingKeys": `{"time": "2026-11-24T03:00:00Z", "sealingKeys": [
			{"id": "2027-05", "fingerprint": "0011223344556677", "firstTime": "2026-11-23T03:00:00Z", "lastTime": "2026-11-24T02:59:55Z", "configured": true, "active": true, "openRuns": "3"},
			{"id": "2026-11", "fingerprint": "8899aabbccddeeff", "firstTime": "2026-01-01T00:00:00Z", "lastTime": "2026-11-23T03:01:00Z", "configured": true, "openRuns": "2", "waitingEvents": "1", "incompleteSets": "4", "scheduledStarts": "1", "webhooks": "1"},
			{"id": "2025-11", "fingerprint": "0123456789abcdef", "firstTime": "2025-01-01T00:00:00Z", "lastTime": "2026-01-01T00:00:00Z", "configured": true}, {"id": "lost", "webhooks": "1"}]}`}},
		{name: "system-keys-none", line: "system keys",
			answers: answers{"ListSealingKeys": `{"time": "2026-11-24T03:00:00Z"}`}},
		{name: "restore-check-complete", line: "restore check --fix",
			answers: answers{"CheckRestore": `{"time": "2026-11-24T03:00:00Z", "complete": true, "newestRowTime": "2026-11-24T02:59:40Z", "lostPayloads": {"searched": "12", "allSearched": true}, "schedules": "1", "dispatchers": "1", "comparison": {"checked": "12", "open": "12", "took": "0.5s"}, "lost": {},
			"maintenance": {"active": true, "reason": "the database was restored", "actor": "system", "since": "2026-11-24T02:59:00Z"}}`}},
		{name: "system-reconcile-nothing", line: "system reconcile --dry-run",
			answers: answers{"Reconcile": `{"checked": "12", "open": "12", "took": "0.5s", "dryRun": true}`}},
	}
}
