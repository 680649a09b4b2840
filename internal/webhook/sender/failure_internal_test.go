package sender

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/webhook"
)

const (
	failed = `{"specversion":"1.0","id":"r1-failed","source":"/projects/shop/runs","type":"io.signalbox.run.failed","subject":"r1","time":"2026-03-01T12:00:00Z",
"data":{"project":"shop","runId":"r1","workflow":"shop/order","version":"1.0.0","status":"failed","error":{"type":"x","status":503,"title":"Service <away>"},
"task":{"name":"charge","pointer":"/do/0/charge"},"url":"https://signalbox.example.com/runs/r1"}}`
	again = `{"specversion":"1.0","id":"r2-failed","source":"/projects/shop/runs","type":"io.signalbox.run.failed","subject":"r2","time":"2026-03-01T12:01:00Z",
"data":{"project":"shop","runId":"r2","workflow":"shop/order","error":{"type":"x","status":0}}}`
	timedOut = `{"specversion":"1.0","id":"r3-timed_out","source":"/projects/shop/runs","type":"io.signalbox.run.timed_out","time":"2026-03-01T12:00:00Z",
"data":{"project":"shop","runId":"r3","workflow":"shop/order"}}`
	dead = `{"specversion":"1.0","id":"d","source":"/projects/shop/deliveries","type":"io.signalbox.delivery.dead_lettered","time":"2026-03-01T12:00:00Z",
"data":{"project":"shop","deliveryId":"d1","kind":"start","workflow":"shop/order","attempts":1,"reason":"refused","events":[]}}`
)

func TestBodiesOfFailures(t *testing.T) {
	t.Parallel()
	require.JSONEq(t, `[{"labels":{"alertname":"SignalboxRunFailed","project":"shop","severity":"warning","event_type":"io.signalbox.run.failed","workflow":"shop/order"},
"annotations":{"summary":"A run of workflow shop/order in project shop failed","description":"Run r1, task charge: Service <away> (status 503)"},
"startsAt":"2026-03-01T12:00:00Z","generatorURL":"https://signalbox.example.com/runs/r1"}]`, body(t, webhook.Alertmanager, failed))
	require.JSONEq(t, `{"text":"A run of workflow shop/order in project shop failed","blocks":[
{"type":"section","text":{"type":"mrkdwn","text":"*A run of workflow shop/order in project shop failed*\nRun r1, task charge: Service &lt;away&gt; (status 503)\n<https://signalbox.example.com/runs/r1|Open in Signalbox>"}},
{"type":"context","elements":[{"type":"mrkdwn","text":"project shop · io.signalbox.run.failed · 2026-03-01T12:00:00Z"}]}]}`, body(t, webhook.Slack, failed))
	page := body(t, webhook.PagerDuty, failed)
	require.Contains(t, page, `"links":[{"href":"https://signalbox.example.com/runs/r1","text":"Open in Signalbox"}]`)

	// The failures of a workflow are one condition.
	const key = `"dedup_key":"signalbox/shop/SignalboxRunFailed/shop/order"`
	require.Contains(t, page, key)
	require.Contains(t, body(t, webhook.PagerDuty, again), key)
	require.Contains(t, body(t, webhook.Slack, again), `Run r2: x"`)
	require.Contains(t, body(t, webhook.Slack, timedOut),
		"A run of workflow shop/order in project shop reached its timeout")
	require.Contains(t, body(t, webhook.Slack, dead),
		`Events of project shop did not start workflow shop/order*\nDelivery d1, attempts: 1: refused`)
	require.Contains(t, body(t, webhook.Alertmanager, dead), `"alertname":"SignalboxDeliveryDeadLettered"`)
}
