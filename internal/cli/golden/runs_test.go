package golden_test

import "fmt"

// Runs as the API has them: one that is open, one with an error of hostile text, one whose times are not known.
const (
	openRun = `{"id": "0199a4f2-9e07-7c54-8a3c-5a0d1e0b7f11", "project": "shop", "workflow": "shop/order", "version": "1.2.0", "status": "waiting", "waitingKind": "event",
		"stepsTotal": "7", "stepsDone": "5", "createTime": "2026-11-24T02:15:00Z", "startTime": "2026-11-24T02:15:01Z", "requestId": "order-4711", "actor": "checkout", "trigger": "api",
		"labels": {"order": "4711", "region": "eu"}, "input": {"json": "{\"order\": 4711}"}, "controls": ["cancel", "pause", "terminate"],
		"controlStates": [{"control": "pause", "effect": "later", "reason": "NO_WORKER", "detail": "no worker serves the project; the run pauses once one does"}],
		"waits": [{"kind": "event", "what": "event com.example.paid with orderId = 4711", "step": "6", "task": "awaitPayment", "since": "2026-11-24T02:16:00Z", "deadline": "2026-11-24T04:16:00Z"},
			{"kind": "timer", "what": "timer", "step": "7", "task": "remind", "since": "2026-11-24T02:16:00Z", "deadlineUnknown": true},
			{"kind": "retry", "what": "attempt 8", "step": "5", "task": "charge", "since": "2026-11-24T02:59:30Z", "dueTime": "2026-11-24T03:00:40Z",
				"retry": {"step": "5", "task": "charge", "failed": "7", "limit": "10", "since": "2026-11-24T02:48:00Z", "lastError": {"status": 503, "title": "Service Unavailable", "detail": "GET https://pay.example.com answered 503"}}}],
		"stuck": {"code": "NO_POLLER", "cause": "NO_WORKER", "since": "2026-11-24T02:40:00Z", "detail": "no worker polls the task queue signalbox-shop", "advice": "start a worker, or grant it the project shop"},
		"temporal": {"namespace": "signalbox", "taskQueue": "signalbox-shop", "workflowId": "shop/0199a4f2-9e07-7c54-8a3c-5a0d1e0b7f11", "runId": "7f0c6a53-3d0f-4c1f-8df2-0f3b7a1f3c55"}}`
	failedRun = `{"id": "0199a4f1-0000-7c54-8a3c-5a0d1e0b7f12", "project": "shop", "workflow": "shop/refund-of-orders-of-the-previous-business-year", "version": "10.0.0-rc.1", "status": "failed",
		"stepsTotal": "12", "stepsDone": "11", "createTime": "2026-11-22T02:15:00Z", "startTime": "2026-11-22T02:15:00Z", "endTime": "2026-11-22T02:19:10.5Z", "requestId": "refund-1", "actor": "ada", "trigger": "event",
		"error": {"type": "https://serverlessworkflow.io/spec/1.0.0/errors/communication", "status": 503, "title": "Service \u001b[31mUnavailable\u001b[0m: the payment provider is under maintenance until further notice", "detail": "line 1\nline 2", "instance": "/do/3/pay"},
		"failedStep": {"number": "12", "path": "/pay[3]", "task": "pay", "pointer": "/do/3/pay", "attempts": 5}, "input": {"json": "null"}}`
	queuedRun = `{"id": "0199a4f3-1111-7c54-8a3c-5a0d1e0b7f13", "project": "shop", "workflow": "shop/order", "version": "1.2.0", "status": "queued", "queuedReason": "concurrency", "queuePosition": "3",
		"createTime": "2026-11-24T02:59:48Z", "queueExpireTime": "2026-11-24T03:59:48Z", "requestId": "order-4712", "actor": "checkout", "trigger": "api", "cancelRequested": true, "cancelReason": "ordered twice"}`
	oldRun = `{"id": "0199a4f0-2222-7c54-8a3c-5a0d1e0b7f14", "project": "shop", "workflow": "shop/order", "version": "1.2.0", "status": "running", "trigger": "api",
		"behind": {"since": "2026-11-24T02:50:00Z", "reason": "the rows lack the end of the run"}}`
	doneRun = `{"id": "0199a4ef-3333-7c54-8a3c-5a0d1e0b7f15", "project": "shop", "workflow": "shop/order", "version": "1.2.0", "status": "completed", "stepsTotal": "2", "stepsDone": "2", "sequence": "9",
		"createTime": "2026-11-24T02:58:00Z", "startTime": "2026-11-24T02:58:00.1Z", "endTime": "2026-11-24T02:58:01.6Z", "requestId": "order-4710", "actor": "checkout", "trigger": "api",
		"input": {"json": "{\"order\": 4710}"}, "output": {"json": "{\"paid\": true}"}}`
)

// found has a run with an error of hostile text, one of another project, and a task.
const found = `{"groups": [{"kind": "run", "more": true, "hits": [
	{"project": "shop", "id": "0199a4f1-0000-7c54-8a3c-5a0d1e0b7f12", "title": "shop/order", "workflow": "shop/order", "version": "1.2.0", "status": "failed",
		"detail": "Service \u001b[31mUnavailable\u001b[0m: the payment provider is under maintenance", "time": "2026-11-24T02:15:00Z", "field": "label.order", "parts": [{"text": "4711", "match": true}]},
	{"project": "billing", "id": "0199a4f2-9e07-7c54-8a3c-5a0d1e0b7f11", "title": "billing/invoice", "workflow": "billing/invoice", "version": "1.0.0", "status": "completed",
		"time": "2026-11-24T02:10:00Z", "field": "request_id", "parts": [{"text": "invoice-for-order-"}, {"text": "4711", "match": true}]}]},
	{"kind": "task", "hits": [{"project": "shop", "id": "/do/0/order4711", "title": "order4711", "workflow": "shop/order", "field": "name", "parts": [{"text": "order", "match": true}, {"text": "4711"}]}]}]}`

const (
	openID   = "0199a4f2-9e07-7c54-8a3c-5a0d1e0b7f11"
	failedID = "0199a4f1-0000-7c54-8a3c-5a0d1e0b7f12"
	doneID   = "0199a4ef-3333-7c54-8a3c-5a0d1e0b7f15"
)

const shortenedStep = `{"number": "1", "path": "/load", "task": "load", "kind": "call", "pointer": "/do/0/load", "status": "completed",
	"startTime": "2026-11-24T02:58:00Z", "endTime": "2026-11-24T02:58:01Z", "sequence": "2", "input": {"json": "{\"page\": 1}"},
	"output": {"json": "[{\"id\": 1, \"note\": \"very … [cut: 5000 bytes in all]\"}]"}, "outputShortened": {"size": "573034"}}`

const steps = `{"number": "1", "path": "/prepare", "task": "prepare", "kind": "set", "pointer": "/do/0/prepare", "status": "completed", "startTime": "2026-11-24T02:58:00.1Z", "endTime": "2026-11-24T02:58:00.102Z", "sequence": "2"},
	{"number": "2", "path": "/pay", "task": "pay", "kind": "call", "pointer": "/do/1/pay", "status": "failed", "caught": true, "startTime": "2026-11-24T02:58:00.2Z", "endTime": "2026-11-24T02:58:01.5Z", "sequence": "4",
		"input": {"json": "{\"amount\": 12}"}, "error": {"type": "about:blank", "status": 503, "title": "Service Unavailable"},
		"attempts": [{"number": 1, "endTime": "2026-11-24T02:58:00.7Z", "outcome": "unknown", "method": "POST", "host": "pay.example.com"},
			{"number": 2, "startTime": "2026-11-24T02:58:01Z", "endTime": "2026-11-24T02:58:01.5Z", "outcome": "failed", "httpStatus": 503, "retryAfter": "7s", "method": "POST", "host": "pay.example.com"}]},
	{"number": "3", "path": "/awaitPayment", "task": "awaitPayment", "kind": "listen", "pointer": "/do/2/awaitPayment", "status": "waiting", "waitingKind": "event", "startTime": "2026-11-24T02:58:01.5Z", "sequence": "5",
		"wait": {"kind": "event", "what": "event com.example.paid with orderId = 4711", "since": "2026-11-24T02:58:01.5Z", "dueTime": "2026-11-24T02:59:00Z"}},
	{"number": "4", "path": "/remind", "task": "remind", "kind": "wait", "pointer": "/do/3/remind", "status": "skipped", "sequence": "6"}`

const logs = `{"logs": [{"number": "4", "task": "build", "attempt": 1, "stdout": {"text": "compiling\nlinking\n"},
		"stderr": {"text": "warning: old\n", "skippedBytes": "2048", "skippedLines": "12"}},
	{"number": "4", "task": "build", "attempt": 2, "stdout": {"text": "compiling\n"}, "stderr": {}, "running": true}]}`

// watchedRuns is a watch of runs that the server ends.
func watchedRuns(runs string) answers {
	row := func(run string, matches bool) string { return fmt.Sprintf(`{"run": %s, "matches": %t}`, run, matches) }
	return answers{"ListRuns": runs,
		"Watch": `{"cursor": "1", "runs": {"rows": [` + row(openRun, true) + "," + row(queuedRun, true) + `]}}` + "\n---\n" +
			`{"cursor": "2", "heartbeat": true}` + "\n---\n" + `{"cursor": "3", "runs": {"rows": [` + row(failedRun, false) +
			`]}}` + "\n---\n" +
			"!unauthenticated TOKEN_REVOKED the token is revoked"}
}

func runExamples() []example {
	runs := `{"runs": [` + queuedRun + "," + openRun + "," + failedRun + "," + oldRun + `]}`
	shown := func(method, run string) answers { return answers{method: `{"run": ` + run + `}`} }
	started := func(method, run string) answers { return answers{method: `{"run": ` + run + `, "created": true}`} }
	missing := `!not_found RUN_NOT_FOUND project "shop" has no run "` + openID + `"; list them with "signalbox run list"`
	return []example{
		{name: "run-list", line: "run list -p shop", answers: answers{"ListRuns": runs}},
		{name: "run-list-more", line: "run list -p shop --limit 1",
			answers: answers{"ListRuns": `{"runs": [` + doneRun + `], "nextPageToken": "2"}`}},
		{name: "run-list-empty", line: "run list -p shop --status failed", answers: answers{"ListRuns": `{}`}},
		{name: "run-list-json", line: "run list -p shop -o json",
			answers: answers{"ListRuns": `{"runs": [` + doneRun + `]}`}},
		{name: "run-list-yaml", line: "run list -p shop -o yaml",
			answers: answers{"ListRuns": `{"runs": [` + doneRun + `]}`}},
		{name: "run-list-watch", line: "run list -p shop --watch", answers: watchedRuns(runs)},
		{name: "run-list-watch-json", line: "run list -p shop --watch -o json", answers: watchedRuns(runs)},
		{name: "run-list-forbidden-json", line: "run list -p shop -o json",
			answers: answers{"ListRuns": `!permission_denied FORBIDDEN the token "ci" has no role in project "shop"`}},
		{name: "run-list-empty-json", line: "run list -p shop -o json", answers: answers{"ListRuns": `{}`}},
		{name: "run-show-json", line: "run show " + failedID + " -o json", answers: shown("GetRun", failedRun)},
		{name: "run-show-yaml", line: "run show " + failedID + " -o yaml", answers: shown("GetRun", failedRun)},
		{name: "run-show-missing-yaml", line: "run show " + openID + " -o yaml", answers: answers{"GetRun": missing}},
		{name: "run-start-wait-json", line: "run start shop/order -p shop --wait -o json", answers: answers{
			"StartRun": `{"run": ` + doneRun + `, "created": true}`, "GetRun": `{"run": ` + failedRun +
				`}`, "WatchRun": `{"run": ` + failedRun + `}`,
		}},
		{name: "run-count-json", line: "run count -p shop -o json",
			answers: answers{"CountRuns": `{"statuses": {"completed": "10000", "failed": "3"}, "more": ["completed"]}`}},
		{name: "run-count-yaml", line: "run count -p shop -o yaml",
			answers: answers{"CountRuns": `{"statuses": {"completed": "10000", "failed": "3"}, "more": ["completed"]}`}},
		{name: "run-steps-json", line: "run steps " + openID + " -o json",
			answers: answers{"ListSteps": `{"steps": [` + steps + `]}`}},
		{name: "run-list-name", line: "run list -p shop -o name", answers: answers{"ListRuns": runs}},
		{name: "run-list-jq", line: "run list -p shop --jq .[].status", answers: answers{"ListRuns": runs}},
		{name: "run-list-wrong-status", line: "run list --status broken"},
		{name: "run-list-forbidden", line: "run list -p shop",
			answers: answers{"ListRuns": `!permission_denied FORBIDDEN the token "ci" has no role in project "shop"`}},
		{name: "run-list-away", line: "run list -p shop",
			answers: answers{"ListRuns": `!unavailable STORE_UNAVAILABLE the database does not answer`}},
		{name: "run-show-waiting", line: "run show " + openID, answers: shown("GetRun", openRun)},
		{name: "run-show-failed", line: "run show " + failedID, answers: shown("GetRun", failedRun)},
		{name: "run-show-queued", line: "run show 0199a4f3-1111-7c54-8a3c-5a0d1e0b7f13", answers: shown("GetRun", queuedRun)},
		{name: "run-show-unknown-times", line: "run show 0199a4f0-2222-7c54-8a3c-5a0d1e0b7f14",
			answers: shown("GetRun", oldRun)},
		{name: "run-show-missing", line: "run show " + openID, answers: answers{"GetRun": missing}},
		{name: "run-show-ambiguous", line: "run show 0199a4f", answers: answers{"ListRuns": runs}},
		{name: "run-start", line: "run start shop/order -p shop", answers: started("StartRun", doneRun)},
		{name: "run-start-wait", line: "run start shop/order -p shop --wait", answers: answers{
			"StartRun": `{"run": ` + doneRun + `, "created": true}`, "GetRun": `{"run": ` + failedRun +
				`}`, "WatchRun": `{"run": ` + failedRun + `}`,
		}},
		{name: "run-start-queued", line: "run start shop/order -p shop", answers: started("StartRun", queuedRun)},
		{name: "run-start-again", line: "run start shop/order -p shop --request-id order-4710",
			answers: answers{"StartRun": `{"run": ` + doneRun + `}`}},
		{name: "run-start-dry-run", line: "run start shop/order -p shop --dry-run",
			answers: answers{"StartRun": `{"run": {"workflow": "shop/order", "version": "1.2.0"}}`}},
		{name: "run-start-missing", line: "run start shop/ordr -p shop",
			answers: answers{"StartRun": `!not_found WORKFLOW_NOT_FOUND project "shop" has no workflow "shop/ordr"`}},
		{name: "find", line: "find order 4711 -p shop", answers: answers{"Search": found}},
		{name: "find-nothing", line: "find 4712 -p shop", answers: answers{"Search": `{}`}},
		{name: "find-json", line: "find 4711 -p shop -o json", answers: answers{"Search": found}},
		{name: "find-too-short", line: "find x", answers: answers{
			"Search": `!invalid_argument INVALID_ARGUMENT the text to search for, "x", is too short: at least 2 characters are required`}},
		{name: "run-count", line: "run count -p shop",
			answers: answers{"CountRuns": `{"statuses": {"completed": "10000", "failed": "3", "waiting": "1"}, "stuck": {"NO_POLLER": "1"}, "more": ["completed"]}`}},
		{name: "run-count-empty", line: "run count -p shop", answers: answers{"CountRuns": `{}`}},
		{name: "run-count-bucket", line: "run count -p shop --since 2d --bucket 1d", answers: answers{
			"CountRuns": `{"buckets": [{"start": "2026-11-22T03:00:00Z", "statuses": {"completed": "12", "failed": "3"}}, {"start": "2026-11-23T03:00:00Z"}]}`,
		}},
		{name: "run-count-bucket-wrong", line: "run count -p shop --since 2d --bucket soon"},
		{name: "run-count-bucket-without-since", line: "run count -p shop --bucket 1h"},
		{name: "run-steps", line: "run steps " + openID, answers: answers{"ListSteps": `{"steps": [` + steps + `]}`}},
		{name: "run-steps-shortened", line: "run steps " + openID,
			answers: answers{"ListSteps": `{"steps": [` + shortenedStep + `]}`}},
		{name: "run-steps-shortened-json", line: "run steps " + openID + " -o json",
			answers: answers{"ListSteps": `{"steps": [` + shortenedStep + `]}`}},
		{name: "run-step-shortened", line: "run step " + openID + " 1",
			answers: answers{"GetStep": `{"step": ` + shortenedStep + `}`}},
		{name: "run-steps-empty", line: "run steps " + openID, answers: answers{"ListSteps": `{}`}},
		{name: "run-steps-summarized", line: "run steps " + openID, answers: answers{"ListSteps": `{"steps": [
			{"number": "1", "path": "/prepare", "task": "prepare", "kind": "set", "status": "completed", "startTime": "2026-11-24T02:58:00Z", "endTime": "2026-11-24T02:58:00.002Z"},
			{"number": "9000", "path": "/pay", "task": "pay", "kind": "call", "status": "running", "startTime": "2026-11-24T02:59:00Z"}],
			"summary": {"from": "2", "to": "8999", "steps": "8998", "tasks": [{"pointer": "/do/1/each", "task": "each", "kind": "set", "count": "8998", "completed": "8998", "shortest": "0.001s", "longest": "0.021s", "total": "12.5s"}]}}`}},
		{name: "run-step", line: "run step " + openID + " 2",
			answers: answers{"GetStep": `{"step": {"number": "2", "path": "/pay", "task": "pay", "kind": "call", "status": "failed", "startTime": "2026-11-24T02:58:00.2Z", "endTime": "2026-11-24T02:58:01.5Z",
			"input": {"json": "{\"amount\": 12}"}, "error": {"status": 503, "title": "Service Unavailable"}, "attempts": [{"number": 1, "endTime": "2026-11-24T02:58:00.7Z", "outcome": "unknown", "method": "POST", "host": "pay.example.com"}]}}`}},
		{name: "run-step-wrong", line: "run step " + openID + " zero"},
		{name: "run-value", line: "run value " + openID + " 1 output --pointer /0",
			answers: answers{"GetStepValue": `{"text": "{\"id\":1,\"note\":\"very long\"}", "size": "27"}`}},
		{name: "run-value-yaml", line: "run value " + openID + " 1 output -o yaml",
			answers: answers{"GetStepValue": `{"text": "[{\"id\":1,\"note\":\"very long\"}]", "size": "29"}`}},
		{name: "run-value-wrong", line: "run value " + openID + " 1 error"},
		{name: "run-value-gone", line: "run value " + openID + " 1 output",
			answers: answers{"GetStepValue": `!not_found VALUE_NOT_RECORDED the output of step 1 of run "` + openID +
				`" is not available whole: Temporal does not have the history of its execution any more`}},
		{name: "run-logs", line: "run logs " + openID, answers: answers{"ListLogs": logs}},
		{name: "run-logs-attempt", line: "run logs " + openID + " 4 --attempt 2", answers: answers{"ListLogs": logs}},
		{name: "run-logs-json", line: "run logs " + openID + " -o json", answers: answers{"ListLogs": logs}},
		{name: "run-logs-none", line: "run logs " + openID, answers: answers{"ListLogs": `{}`}},
		{name: "run-logs-unknown", line: "run logs " + openID,
			answers: answers{"ListLogs": `{"runningError": "Temporal is unavailable"}`}},
		{name: "run-logs-follow", line: "run logs " + doneID + " --follow",
			answers: answers{"ListLogs": logs, "GetRun": `{"run": ` + doneRun + `}`}},
		{name: "run-logs-wrong", line: "run logs " + openID + " zero"},
		{name: "run-summary", line: "run summary " + openID, answers: answers{"SummarizeSteps": `{"tasks": [
			{"pointer": "/do/1/pay", "task": "pay", "kind": "call", "statuses": {"failed": "2", "completed": "3"}, "attempts": "9", "firstFailed": "4", "total": "3s", "longest": "1s", "firstStartTime": "2026-11-24T02:58:00Z", "lastEndTime": "2026-11-24T02:58:03Z"},
			{"pointer": "/do/2/each", "task": "each", "kind": "set", "statuses": {"completed": "7"}, "notListed": "2"}]}`}},
		{name: "run-summary-empty", line: "run summary " + openID, answers: answers{"SummarizeSteps": `{}`}},
		{name: "run-waits", line: "run waits " + openID,
			answers: answers{"ListWaits": `{"waits": [{"kind": "paused", "what": "unpause: the run is paused"},
			{"kind": "timer", "what": "timer", "step": "7", "task": "remind", "path": "/remind", "since": "2026-11-24T02:16:00Z", "dueTime": "2026-11-25T02:16:00Z", "deadlineUnknown": true}]}`}},
		{name: "run-waits-empty", line: "run waits " + openID, answers: answers{"ListWaits": `{}`}},
		{name: "run-watch", line: "run watch " + doneID, answers: answers{
			"GetRun": `{"run": ` + doneRun + `}`, "WatchRun": `{"run": {"id": "` + doneID +
				`", "workflow": "shop/order", "version": "1.2.0", "status": "running", "createTime": "2026-11-24T02:58:00Z", "sequence": "1"}, "steps": [` + steps + `]}` + "\n---\n" + `{"run": ` + doneRun + `}`,
		}},
		{name: "run-watch-failed", line: "run watch " + failedID,
			answers: answers{"GetRun": `{"run": ` + failedRun + `}`, "WatchRun": `{"run": ` + failedRun + `}`}},
		{name: "run-cancel", line: "run cancel " + openID + " -r duplicate", answers: shown("CancelRun", openRun)},
		{name: "run-cancel-ended", line: "run cancel " + doneID,
			answers: answers{"CancelRun": `!failed_precondition RUN_ENDED run ` + doneID +
				` has ended already: it is completed`}},
		{name: "run-terminate", line: "run terminate " + openID + " -r duplicate", answers: shown("TerminateRun", doneRun)},
		{name: "run-terminate-without-reason", line: "run terminate " + openID},
		{name: "run-pause", line: "run pause " + openID, answers: shown("PauseRun", openRun)},
		{name: "run-unpause", line: "run unpause " + openID, answers: shown("UnpauseRun", openRun)},
		{name: "run-replay", line: "run replay " + doneID + " -r fixed", answers: started("ReplayRun", doneRun)},
		{name: "run-replay-dry-run", line: "run replay " + doneID + " --dry-run",
			answers: answers{"ReplayRun": `{"run": {"workflow": "shop/order", "version": "1.2.0"}}`}},
		{name: "run-export", line: "run export --all",
			answers: answers{"ExportRuns": "id,status\n" + doneID + ",completed\n"}},
		{name: "run-export-nothing", line: "run export"},
	}
}
