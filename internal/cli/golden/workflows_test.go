package golden_test

import "strings"

const (
	order = `{"name": "shop/order", "title": "Takes an order", "summary": "Charges the card, and waits for the payment.", "state": "published", "latestVersion": "1.2.0", "hasDraft": true,
		"createTime": "2026-10-01T08:00:00Z", "updateTime": "2026-11-20T08:00:00Z",
		"stats": {"since": "2026-11-23T03:00:00Z", "until": "2026-11-24T03:00:00Z", "statuses": {"completed": "10000", "failed": "3"}, "successRate": 0.9997, "p50": "1.5s", "p95": "12s", "sample": "1000", "open": "4", "stuck": "1", "more": ["completed"],
			"lastRuns": [{"id": "1", "status": "completed"}, {"id": "2", "status": "failed"}]}}`
	refund = `{"name": "shop/refund-of-orders-of-the-previous-business-year", "state": "paused", "pauseReason": "wrong prices", "latestVersion": "10.0.0-rc.1",
		"createTime": "2026-10-01T08:00:00Z", "updateTime": "2026-11-24T02:00:00Z", "stats": {"since": "2026-11-23T03:00:00Z", "until": "2026-11-24T03:00:00Z"}}`
	draft  = `{"name": "shop/new", "state": "draft", "hasDraft": true}`
	source = `document:\n  dsl: 1.0.0\n  namespace: shop\n  name: order\n  version: 1.2.0\ndo:\n  - nap:\n      wait: {seconds: 1}\n`
)

const validDocument = "document:\n  dsl: 1.0.0\n  namespace: shop\n  name: order\n  version: 1.2.0\ndo:\n  - nap:\n  " +
	"    wait: {seconds: 1}\n"

const testedDocument = "document:\n  dsl: 1.0.0\n  namespace: shop\n  name: order\n  version: 1.2.0\ndo:\n  - pay:\n" +
	"      call: http\n      with: {method: post, endpoint: https://shop.example/payments, body: '${ . }'}\n" +
	"  - large: {if: '${ .amount > 100 }', set: {large: true}}\n"

func workflowExamples() []example {
	one := func(method, workflow string) answers { return answers{method: `{"workflow": ` + workflow + `}`} }
	version := `"version": {"version": "1.2.0", "hash": "sha256:5f0c", "publisher": "ada", "publishTime": "2026-11-20T08:00:00Z", "source": "` + source + `"}`
	stop := `{"workflow": ` + refund +
		`, "created": true, "batch": {"id": "0199a4f5-0000-7c54-8a3c-5a0d1e0b7f21", "total": "4"}, "open": {"running": "1", "waiting": "3"}, "eligible": "3", "unchanged": "1",
		"startedBy": "schedule", "preview": [{"reason": "RUN_ENDED", "count": "1", "sampleRunIds": ["` + doneID + `"]}], "timer": {"every": "3600s", "unknownBecause": "Temporal is unavailable"}}`
	return []example{
		{name: "workflow-list", line: "workflow list -p shop",
			answers: answers{"ListWorkflows": `{"workflows": [` + draft + "," + order + "," + refund + `]}`}},
		{name: "workflow-list-all-projects", line: "workflow list --all-projects",
			answers: answers{"FindWorkflows": `{"workflows": [{"project": "shop", ` + order[1:] + `, {"project": "shop", ` +
				refund[1:] + `, {"project": "billing", ` + draft[1:] + `]}`}},
		{name: "workflow-list-empty", line: "workflow list -p shop", answers: answers{"ListWorkflows": `{}`}},
		{name: "workflow-show", line: "workflow show shop/order",
			answers: answers{"GetWorkflow": `{"workflow": ` + order + `, ` + version +
				`, "timer": {"cron": "0 4 * * *", "timeZone": "Europe/Berlin", "overlap": "skip", "jitter": "30s", "catchUp": "7200s", "nextTimes": ["2026-11-25T03:00:00Z", "2026-11-26T03:00:00Z", "2026-11-27T03:00:00Z"], "lastTime": "2026-11-24T03:00:00Z", "fired": "12", "missed": "1", "skipped": "2"}}`}},
		{name: "workflow-show-without-runs", line: "workflow show shop/refund-of-orders-of-the-previous-business-year",
			answers: answers{
				"GetWorkflow": `{"workflow": ` + refund + `, ` + version +
					`, "timer": {"every": "90s", "unknownBecause": "the workflow is paused"}}`,
			}},
		{name: "workflow-show-draft", line: "workflow show shop/new --draft",
			answers: answers{"GetWorkflow": `{"workflow": ` + draft + `, "draftSource": "` + source + `"}`}},
		{name: "workflow-show-resources", line: "workflow show shop/order --resources", answers: answers{
			"GetWorkflow": `{"workflow": {"name": "shop/order"}, "version": {"version": "1.2.0", "resources": [
				{"uri": "https://example.com/functions/price/1.0.0/function.yaml", "hash": "sha256:5f2b0c1d", "size": "1834",
					"loadTime": "2026-03-01T11:00:00Z"},
				{"uri": "schemas/order.json", "hash": "sha256:77aa01", "size": "212", "loadTime": "2026-03-01T11:00:00Z"}]}}`}},
		{name: "workflow-show-source", line: "workflow show shop/order --source",
			answers: answers{"GetWorkflow": `{"workflow": ` + order + `, ` + version + `}`}},
		{name: "workflow-show-missing", line: "workflow show shop/ordr",
			answers: answers{"GetWorkflow": `!not_found WORKFLOW_NOT_FOUND project "default" has no workflow "shop/ordr"`}},
		{name: "workflow-versions", line: "workflow versions shop/order",
			answers: answers{"ListVersions": `{"versions": [{"version": "1.2.0", "hash": "sha256:5f0c", "publisher": "ada", "publishTime": "2026-11-20T08:00:00Z"}, {"version": "1.1.0", "hash": "sha256:aa01"}]}`}},
		{name: "workflow-versions-name", line: "workflow versions shop/order -o name",
			answers: answers{"ListVersions": `{"versions": [{"version": "1.2.0", "hash": "sha256:5f0c"}, {"version": "1.1.0", "hash": "sha256:aa01"}]}`}},
		{name: "workflow-versions-empty", line: "workflow versions shop/new", answers: answers{"ListVersions": `{}`}},
		{name: "workflow-diff", line: "workflow diff shop/order 1.1.0 1.2.0",
			answers: answers{"DiffVersions": `{"unified": "--- 1.1.0\n+++ 1.2.0\n@@ -5 +5 @@\n-  version: 1.1.0\n+  version: 1.2.0\n"}`}},
		{name: "workflow-diff-file", line: "workflow diff FILE",
			file:    strings.Replace(testedDocument, "do:\n", "do:\n  - rest: {do: [{nap: {wait: {seconds: 2}}}]}\n", 1),
			answers: answers{"GetWorkflow": `{"workflow": ` + order + `, ` + version + `}`}},
		{name: "workflow-diff-file-equal", line: "workflow diff FILE 1.2.0", file: validDocument,
			answers: answers{"GetWorkflow": `{"workflow": ` + order + `, ` + version + `}`}},
		{name: "workflow-lint", line: "workflow lint FILE", file: validDocument + "use: {timeouts: {spare: {after: PT1S}}}\n"},
		{name: "workflow-format", line: "workflow format FILE", file: "do:\n- a:\n     wait:   PT1S   # a second\n"},
		{name: "workflow-format-check", line: "workflow format --check FILE", file: "do:\n- a:\n     wait:   PT1S\n"},
		{name: "workflow-diff-equal", line: "workflow diff shop/order 1.1.0 1.2.0", answers: answers{"DiffVersions": `{}`}},
		{name: "workflow-graph", line: "workflow graph shop/order",
			answers: answers{"GetVersionGraph": `{"workflow": "shop/order", "version": "1.2.0", "nodes": [{"id": "/", "kind": "start"}, {"id": "/do/0/choose", "name": "choose", "kind": "switch", "label": "choose", "line": 7, "column": 5}, {"id": "/do/1/pay", "name": "pay", "kind": "call", "label": "pay"}],
			"edges": [{"from": "/", "to": "/do/0/choose", "kind": "next"}, {"from": "/do/0/choose", "to": "/do/1/pay", "kind": "case", "label": ".amount > 0"}, {"from": "/do/0/choose", "to": "/end", "kind": "default"}]}`}},
		{name: "workflow-graph-file", line: "workflow graph FILE", file: testedDocument},
		{name: "workflow-graph-text", line: "workflow graph FILE --as text", file: testedDocument},
		{name: "workflow-graph-mermaid", line: "workflow graph FILE --as mermaid", file: testedDocument},
		{name: "workflow-grid", line: "workflow grid shop/order",
			answers: answers{"GetWorkflowGrid": `{"tasks": [{"task": "prepare"}, {"task": "pay"}], "runs": [{"id": "` + openID +
				`", "version": "1.2.0", "status": "waiting"}, {"id": "` + doneID +
				`", "version": "1.2.0", "status": "completed", "duration": "1.5s", "partial": true}],
			"cells": [{"run": 0, "task": 0, "status": "completed", "count": "1"}, {"run": 1, "task": 0, "status": "completed", "count": "3"}, {"run": 1, "task": 1, "status": "failed", "count": "1"}]}`}},
		{name: "workflow-grid-empty", line: "workflow grid shop/order", answers: answers{"GetWorkflowGrid": `{}`}},
		{name: "workflow-pause", line: "workflow pause shop/order", answers: one("PauseWorkflow", refund)},
		{name: "workflow-unpause", line: "workflow unpause shop/order", answers: one("UnpauseWorkflow", order)},
		{name: "workflow-set", line: "workflow set shop/order --overlap skip --pause-until 2h",
			answers: answers{"GetWorkflow": `{"workflow": ` + order + `, ` + version + `}`,
				"SetSchedule": `{"timer": {"cron": "0 6 * * *", "timeZone": "UTC", "overlap": "skip", "jitter": "0s", "catchUp": "600s",
				"settings": {"overlap": "skip", "pausedUntil": "2026-11-24T05:00:00Z"}, "nextTimes": ["2026-11-24T06:00:00Z"]}}`}},
		{name: "workflow-set-nothing", line: "workflow set shop/order",
			answers: answers{"GetWorkflow": `{"workflow": ` + order + `}`}},
		{name: "workflow-times", line: "workflow times shop/order --since 7d",
			answers: answers{"ListDueTimes": `{"dueTimes": [{"time": "2026-11-24T02:00:00Z", "outcome": "fired", "position": "71"},
			{"time": "2026-11-24T01:00:00Z", "outcome": "skipped", "reason": "run ` + openID + ` was open"},
			{"time": "2026-11-24T00:00:00Z", "outcome": "paused", "reason": "the workflow was paused"}]}`}},
		{name: "workflow-backfill", line: "workflow backfill shop/order --since 7d --dry-run",
			answers: answers{"BackfillWorkflow": `{"dueTimes": [{"time": "2026-11-24T00:00:00Z", "outcome": "missed",
			"reason": "Temporal did not fire the schedule, and the time was not caught up within 10m0s"}]}`}},
		{name: "workflow-backfill-nothing", line: "workflow backfill shop/order --since 7d",
			answers: answers{"BackfillWorkflow": `{}`}},
		{name: "workflow-stop", line: "workflow stop shop/order -r prices --request-id stop-1",
			answers: answers{"StopWorkflow": stop}},
		{name: "workflow-stop-dry-run", line: "workflow stop shop/order --dry-run", answers: answers{"StopWorkflow": stop}},
		{name: "workflow-stop-asks", line: "workflow stop shop/order -r prices --request-id stop-1", asks: true, stdin: "n\n",
			answers: answers{"StopWorkflow": stop}},
		{name: "workflow-delete", line: "workflow delete shop/order", asks: true, stdin: "y\n",
			answers: answers{"DeleteWorkflow": `{}`}},
		{name: "workflow-delete-refused", line: "workflow delete shop/order",
			answers: answers{"DeleteWorkflow": `!failed_precondition WORKFLOW_HAS_OPEN_RUNS workflow "shop/order" has 3 open runs`}},
		{name: "workflow-save", line: "workflow save FILE", file: validDocument,
			answers: answers{"SaveDraft": `{"workflow": ` + order +
				`, "violations": [{"severity": "warning", "code": "UNUSED", "message": "the task nap changes nothing", "path": "/do/0/nap", "line": 7, "column": 5, "suggestion": "delete it"}]}`}},
		{name: "workflow-publish", line: "workflow publish FILE", file: validDocument,
			answers: answers{"PublishWorkflow": `{"workflow": ` + order + `, ` + version + `}`}},
		{name: "workflow-publish-several", line: "workflow publish FILE FILE", file: validDocument,
			answers: answers{"PublishWorkflow": `{"workflow": ` + order + `, ` + version + `}`}},
		{name: "workflow-publish-taken", line: "workflow publish FILE", file: validDocument,
			answers: answers{"PublishWorkflow": `!already_exists VERSION_TAKEN version 1.2.0 of "shop/order" is published with other content; give the document another version`}},
		{name: "workflow-publish-nothing", line: "workflow publish"},
		{name: "workflow-run", line: "workflow run FILE --detach", file: validDocument,
			answers: answers{"PublishWorkflow": `{"workflow": ` + order + `, "created": true, ` + version + `}`,
				"StartRun": `{"run": ` + doneRun + `, "created": true}`}},
		{name: "workflow-validate", line: "workflow validate FILE", file: validDocument},
		{name: "workflow-validate-wrong", line: "workflow validate FILE",
			file: "document:\n  dsl: 1.0.0\n  namespace: shop\n  name: order\ndo:\n  - nap:\n      wiat: 1\n"},
		{name: "workflow-eval", line: "workflow eval .amount+1 --input {\"amount\":41}"},
		{name: "workflow-eval-wrong", line: "workflow eval .amount+$contxt"},
		{name: "workflow-eval-step", line: "workflow eval .id --run " + doneID + " --step 1",
			answers: answers{"GetStep": `{"step": {"number": "1", "input": {"json": "{\"id\": \"o-1\"}"}}}`}},
		{name: "workflow-test", line: "workflow test FILE --coverage", file: validDocument,
			tests: "cases: [{name: naps, expect: {duration: PT1S}}]\n"},
		{name: "workflow-test-failed", line: "workflow test FILE --min-coverage 90", file: testedDocument,
			tests: `
cases:
  - name: pays
    input: {id: o-1}
    mocks: [{task: pay, respond: {body: {id: p-1}}}]
    expect: {output: {id: p-2}, attempts: {pay: 2}}
  - name: pays without a mock
    input: {id: o-1}
    expect: {status: completed}
`},
		{name: "workflow-test-tap", line: "workflow test FILE --tap", file: testedDocument,
			tests: "cases: [{name: pays, mocks: [{respond: {status: 500}}], expect: {output: 1}}]\n"},
		{name: "workflow-test-wrong", line: "workflow test FILE", file: validDocument,
			tests: "cases:\n  - name: naps\n    expct: {}\n  - name: sleeps\n"},
		{name: "workflow-test-missing", line: "workflow test FILE", file: validDocument},
		{name: "workflow-init", line: "workflow init FILE", file: ""},
		{name: "workflow-init-exists", line: "workflow init FILE", file: validDocument},
	}
}

func functionExamples() []example {
	function := `{"name": "price", "version": "1.0.0", "hash": "sha256:5f0c", "size": "1834", "publisher": "ada",
		"publishTime": "2026-11-20T08:00:00Z"}`
	return []example{
		{name: "function-list", line: "function list", answers: answers{"ListFunctions": `{"functions": [` + function + `]}`}},
		{name: "function-list-empty", line: "function list -p shop", answers: answers{"ListFunctions": `{}`}},
		{name: "function-show", line: "function show price:1.0.0", answers: answers{"GetFunction": `{"function": ` + function +
			`, "source": "set: {amount: 1}\n", "usedBy": [{"workflow": "shop/order", "version": "1.2.0", "latest": true},
			{"workflow": "shop/order", "version": "1.1.0"}], "inputSchema": {"json": "{\"type\":\"object\"}"}}`}},
		{name: "function-show-unused", line: "function show price:1.0.0", answers: answers{
			"GetFunction": `{"function": ` + function + `, "source": "set: {amount: 1}\n"}`}},
		{name: "function-show-missing", line: "function show price", answers: answers{
			"GetFunction": `!not_found FUNCTION_NOT_FOUND the catalog of project "default" has no function "price"`}},
		{name: "function-publish", line: "function publish price:1.0.0 FILE", file: "set: {amount: 1}\n",
			answers: answers{"PublishFunction": `{"created": true, "function": ` + function + `}`}},
		{name: "function-publish-without-version", line: "function publish price -"},
		{name: "function-delete", line: "function delete price:1.0.0 --yes", answers: answers{"DeleteFunction": `{}`}},
	}
}
