package golden_test

func examples() []example {
	var all []example
	for _, some := range [][]example{
		runExamples(), workflowExamples(), functionExamples(), batchExamples(), problemExamples(), dispatcherExamples(), eventExamples(),
		systemExamples(),
		projectExamples(), tokenExamples(), webhookExamples(), localExamples(),
	} {
		all = append(all, some...)
	}
	return all
}

func projectExamples() []example {
	project := `{"name": "shop", "description": "orders and payments", "taskQueue": "signalbox-shop", "createTime": "2026-10-01T08:00:00Z", "parkTime": "2026-11-20T07:30:00Z", "settings": {"maxSteps": "50000", "endPoison": true}, "roles": ["operator", "viewer"]}`
	quota := `"quota": {"concurrentRuns": "20", "steps": "100000", "periodSeconds": "86400"}`
	view := `{"id": "0199a4f5-0000-7c54-8a3c-5a0d1e0b7f31", "project": "shop", "name": "failed-orders", "shared": true, "owner": "ada", "mine": true, "revision": "2", "updateTime": "2026-11-22T03:00:00Z", "updater": "bob",
		"query": {"filter": {"statuses": ["failed", "timed_out"], "workflow": "shop/order"}, "period": "86400s", "order": "oldest", "columns": ["id", "error"]}}`
	return []example{
		{name: "project-list", line: "project list",
			answers: answers{"ListProjects": `{"projects": [` + project + `, {"name": "default"}]}`}},
		{name: "project-list-empty", line: "project list", answers: answers{"ListProjects": `{}`}},
		{name: "project-show", line: "project show shop", answers: answers{"GetProject": `{"project": ` + project + `}`}},
		{name: "project-show-missing", line: "project show shp",
			answers: answers{"GetProject": `!not_found PROJECT_NOT_FOUND there is no project "shp"`}},
		{name: "project-create", line: "project create shop",
			answers: answers{"CreateProject": `{"project": {"name": "shop", "taskQueue": "signalbox-shop", "settings": {}}}`}},
		{name: "project-create-exists", line: "project create shop",
			answers: answers{"CreateProject": `!already_exists PROJECT_EXISTS project "shop" exists; choose another name`}},
		{name: "project-set", line: "project set shop --end-poison",
			answers: answers{"UpdateProject": `{"project": ` + project + `}`}},
		{name: "project-set-nothing", line: "project set shop"},
		{name: "project-annotations", line: "project annotations -p shop",
			answers: answers{"ListAnnotations": `{"more": ["publish"], "annotations": [{"kind": "outage", "start": "2026-11-24T02:50:00Z", "title": "Temporal was unavailable", "subject": "temporal", "detail": "connection refused, 2 servers"},
			{"kind": "publish", "start": "2026-11-23T08:00:00Z", "end": "2026-11-23T08:00:00Z", "title": "shop/order 1.2.0 was published", "detail": "by ada"}]}`}},
		{name: "project-annotations-empty", line: "project annotations -p shop", answers: answers{"ListAnnotations": `{}`}},
		{name: "quota-show", line: "quota show -p shop",
			answers: answers{"GetQuota": `{` + quota +
				`, "admittedRuns": "20", "queuedRuns": "3", "usedSteps": "100000", "resetTime": "2026-11-25T00:00:00Z", "waitingRuns": "1"}`}},
		{name: "quota-show-none", line: "quota show -p shop",
			answers: answers{"GetQuota": `{"quota": {}, "admittedRuns": "4"}`}},
		{name: "quota-set", line: "quota set -p shop --steps 100000 --period 24h",
			answers: answers{"GetQuota": `{"quota": {}}`, "SetQuota": `{` + quota + `}`}},
		{name: "quota-set-wrong", line: "quota set -p shop --steps many", answers: answers{"GetQuota": `{"quota": {}}`}},
		{name: "quota-resume", line: "quota resume -p shop", answers: answers{"ResumeQuota": `{"resumed": "1"}`}},
		{name: "view-list", line: "view list -p shop",
			answers: answers{"ListViews": `{"views": [` + view +
				`, {"id": "v2", "name": "all", "owner": "bob", "revision": "1", "query": {}}]}`}},
		{name: "view-list-empty", line: "view list -p shop", answers: answers{"ListViews": `{}`}},
		{name: "view-save", line: "view save failed-orders -p shop --status failed",
			answers: answers{"SaveView": `{"view": ` + view + `}`}},
		{name: "view-delete", line: "view delete failed-orders -p shop", asks: true, stdin: "yes\n",
			answers: answers{"ListViews": `{"views": [` + view + `]}`, "DeleteView": `{}`}},
		{name: "view-delete-missing", line: "view delete none -p shop", answers: answers{"ListViews": `{}`}},
		{name: "audit-list", line: "audit list -p shop",
			answers: answers{"ListAudit": `{"entries": [{"id": "12", "time": "2026-11-24T02:59:00Z", "actorKind": "token", "actor": "ada", "action": "run.cancel", "subject": "` + openID + `", "reason": "ordered twice", "project": "shop"},
			{"id": "11", "time": "2026-11-24T02:00:00Z", "actorKind": "system", "actor": "reconciler", "action": "run.correct", "subject": "` + failedID + `", "project": "shop", "detail": {"json": "{\"kind\": \"missing\"}"}}]}`}},
		{name: "audit-list-empty", line: "audit list -p shop", answers: answers{"ListAudit": `{}`}},
		{name: "audit-export", line: "audit export -p shop",
			answers: answers{"ExportAudit": "id,time,actor\n12,2026-11-24T02:59:00Z,ada\n"}},
	}
}

func tokenExamples() []example {
	token := `{"id": "k5x2m7qdw3a4ebfz", "name": "ci", "roles": {"shop": "operator", "*": "viewer"}, "creator": "ada", "createTime": "2026-10-01T08:00:00Z", "expireTime": "2026-12-01T08:00:00Z", "lastUsedTime": "2026-11-24T02:59:00Z"}`
	revoked := `{"id": "a5x2m7qdw3a4ebfz", "name": "old", "roles": {"shop": "viewer"}, "creator": "ada", "createTime": "2026-10-01T08:00:00Z", "revokeTime": "2026-11-24T02:59:00Z"}`
	return []example{
		{name: "token-list", line: "token list",
			answers: answers{"ListTokens": `{"tokens": [` + token + "," + revoked + `]}`}},
		{name: "token-list-empty", line: "token list", answers: answers{"ListTokens": `{}`}},
		{name: "token-create", line: "token create --name ci --role shop=operator",
			answers: answers{"CreateToken": `{"secret": "sbx_secret", "token": ` + token + `}`}},
		{name: "token-create-nothing", line: "token create --name ci"},
		{name: "token-revoke", line: "token revoke a5x2m7qdw3a4ebfz", asks: true, stdin: "y\n",
			answers: answers{"RevokeToken": `{"token": ` + revoked + `}`}},
		{name: "token-sessions", line: "token sessions",
			answers: answers{"ListSessions": `{"sessions": [{"id": "s5x2m7qdw3a4ebfz", "tokenId": "k5x2m7qdw3a4ebfz", "tokenName": "ada", "createTime": "2026-11-24T01:00:00Z", "lastUsedTime": "2026-11-24T02:59:00Z", "idleExpireTime": "2026-11-24T14:59:00Z", "expireTime": "2026-12-01T01:00:00Z"}]}`}},
		{name: "token-sessions-empty", line: "token sessions", answers: answers{"ListSessions": `{}`}},
		{name: "token-revoke-session", line: "token revoke-session s5x2m7qdw3a4ebfz",
			answers: answers{"RevokeSession": `{"session": {"id": "s5x2m7qdw3a4ebfz", "tokenId": "k5x2m7qdw3a4ebfz", "tokenName": "ada", "endTime": "2026-11-24T03:00:00Z"}}`}},
		{name: "whoami", line: "whoami",
			answers: answers{"WhoAmI": `{"kind": "token", "name": "ada", "roles": {"*": "admin"}}`}},
		{name: "whoami-without-roles", line: "whoami", answers: answers{"WhoAmI": `{"kind": "token", "name": "ada"}`}},
		{name: "whoami-unauthenticated", line: "whoami",
			answers: answers{"WhoAmI": `!unauthenticated UNAUTHENTICATED the request has no token; give one with --token or SIGNALBOX_TOKEN`}},
	}
}

func webhookExamples() []example {
	hook := `{"id": "1", "project": "shop", "name": "orders", "url": "https://example.com/hook", "format": "cloudevents", "status": "failing", "filter": {"types": ["com.example.order.*"]}, "failingTime": "2026-11-24T02:00:00Z", "lastSuccessTime": "2026-11-24T01:59:00Z", "lastError": "503 Service Unavailable", "pending": "12", "oldestPendingTime": "2026-11-24T02:00:00Z",
		"creator": "ada", "createTime": "2026-10-01T08:00:00Z", "updater": "bob", "updateTime": "2026-11-01T08:00:00Z"}`
	delivery := `{"id": "0199a4f2-9e07-7c54-8a3c-5a0d1e0b7f51", "webhook": "orders", "position": "4711", "eventId": "e1", "eventSource": "/shop", "eventType": "com.example.order.created", "status": "pending", "attempts": 2, "nextTime": "2026-11-24T03:01:00Z", "reason": "503 Service Unavailable", "httpStatus": 503, "createTime": "2026-11-24T02:00:00Z",
		"history": [{"time": "2026-11-24T02:00:00Z", "duration": "5s", "error": "no answer in time"}, {"time": "2026-11-24T02:01:00Z", "duration": "0.05s", "httpStatus": 503, "error": "503 Service Unavailable"}]}`
	dead := `{"id": "0199a4f2-9e07-7c54-8a3c-5a0d1e0b7f52", "webhook": "orders", "position": "4710", "eventId": "e0", "eventSource": "/shop", "eventType": "com.example.order.created", "status": "dead", "attempts": 15, "reason": "no answer in time", "createTime": "2026-11-22T02:00:00Z"}`
	one := func(method string) answers { return answers{method: `{"webhook": ` + hook + `}`} }
	return []example{
		{name: "webhook-list", line: "webhook list -p shop",
			answers: answers{"ListWebhooks": `{"webhooks": [` + hook + `]}`}},
		{name: "webhook-list-empty", line: "webhook list -p shop", answers: answers{"ListWebhooks": `{}`}},
		{name: "webhook-show", line: "webhook show orders", answers: one("GetWebhook")},
		{name: "webhook-create", line: "webhook create orders --url https://example.com/hook --type com.example.*",
			answers: answers{"CreateWebhook": `{"webhook": ` + hook + `, "secret": "whsec_secret"}`}},
		{name: "webhook-update", line: "webhook update orders --url https://example.com/hook", answers: one("UpdateWebhook")},
		{name: "webhook-pause", line: "webhook pause orders",
			answers: answers{"PauseWebhook": `{"webhook": {"name": "orders", "url": "https://example.com/hook", "format": "slack", "status": "paused", "pauseReason": "maintenance", "pauseTime": "2026-11-24T03:00:00Z"}}`}},
		{name: "webhook-unpause", line: "webhook unpause orders", answers: one("UnpauseWebhook")},
		{name: "webhook-rotate-secret", line: "webhook rotate-secret orders",
			answers: answers{"RotateWebhookSecret": `{"webhook": ` + hook + `, "secret": "whsec_new"}`}},
		{name: "webhook-test", line: "webhook test orders", answers: answers{"TestWebhook": `{"delivery": ` + dead + `}`}},
		{name: "webhook-delete", line: "webhook delete orders", asks: true, stdin: "y\n",
			answers: answers{"DeleteWebhook": `{}`}},
		{name: "webhook-deliveries", line: "webhook deliveries orders",
			answers: answers{"ListWebhookDeliveries": `{"deliveries": [` + delivery + "," + dead + `]}`}},
		{name: "webhook-deliveries-empty", line: "webhook deliveries orders",
			answers: answers{"ListWebhookDeliveries": `{}`}},
		{name: "webhook-delivery", line: "webhook delivery 0199a4f2",
			answers: answers{"GetWebhookDelivery": `{"delivery": ` + delivery + `}`}},
		{name: "webhook-redeliver", line: "webhook redeliver 0199a4f2",
			answers: answers{"RedeliverWebhookDelivery": `{"delivery": ` + delivery + `}`}},
	}
}

func localExamples() []example {
	contexts := "current: prod\ncontexts:\n  prod: {address: https://signalbox.example.com, project: shop}\n  test: " +
		"{address: \"127.0.0.1:8080\"}\n"
	return []example{
		{name: "context-list", line: "context list", contexts: contexts},
		{name: "context-list-empty", line: "context list"},
		{name: "context-use", line: "context use test", contexts: contexts},
		{name: "context-use-missing", line: "context use none", contexts: contexts},
		{name: "context-set", line: "context set new --address h:1"},
		{name: "context-set-wrong", line: "context set new"},
		{name: "context-delete", line: "context delete test", contexts: contexts, asks: true, stdin: "n\n"},
		{name: "check-config", line: "check-config --config FILE", file: "listen: nonsense\n"},
		{name: "unknown-command", line: "run lst"},
		{name: "unknown-flag", line: "run list --statsu failed"},
		{name: "too-many-arguments", line: "run show a b"},
	}
}
