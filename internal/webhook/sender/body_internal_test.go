package sender

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/webhook"
)

const (
	evicted = `{"specversion":"1.0","id":"e1","source":"/projects/shop/dispatchers/q","type":"io.signalbox.worker.evicted","time":"2026-03-01T12:00:00Z",
"data":{"project":"shop","taskQueue":"q","evicted":["<w1>"],"by":"w2"}}`
	down = `{"specversion":"1.0","id":"d","source":"/projects/shop/connection","type":"io.signalbox.connection.down","time":"2026-03-01T12:00:05Z",
"data":{"project":"shop","since":"2026-03-01T12:00:00Z","kind":"unreachable"}}`
	up = `{"specversion":"1.0","id":"u","source":"/projects/shop/connection","type":"io.signalbox.connection.up","time":"2026-03-01T12:01:00Z",
"data":{"project":"shop","since":"2026-03-01T12:00:00Z","durationSeconds":60}}`
	foreign = `{"specversion":"1.0","id":"7","source":"/orders","type":"com.example.paid","subject":"o-7","data":[1]}`
)

func body(t *testing.T, format webhook.Format, event string) string {
	t.Helper()
	text, contentType, err := bodyOf(webhook.Webhook{Project: "shop", Format: format},
		webhook.Target{RoutingKey: "key"},
		webhook.Delivery{Event: []byte(event), CreatedAt: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)})
	require.NoError(t, err)
	want := "application/json"
	if format == webhook.CloudEvents {
		want = "application/cloudevents+json"
	}
	require.Equal(t, want, contentType)
	return string(text)
}

func TestBodies(t *testing.T) {
	t.Parallel()
	require.Equal(t, evicted, body(t, webhook.CloudEvents, evicted))

	require.JSONEq(t, `[{"labels":{"alertname":"SignalboxWorkerEvicted","project":"shop","severity":"warning","event_type":"io.signalbox.worker.evicted","task_queue":"q"},
"annotations":{"summary":"Worker <w1> of project shop stopped sending heartbeats"},"startsAt":"2026-03-01T12:00:00Z"}]`, body(t, webhook.Alertmanager, evicted))
	require.JSONEq(t, `{"routing_key":"key","event_action":"trigger","dedup_key":"signalbox/shop/projects/shop/dispatchers/q/e1","client":"Signalbox","payload":{
"summary":"Worker <w1> of project shop stopped sending heartbeats","source":"/projects/shop/dispatchers/q","severity":"warning","timestamp":"2026-03-01T12:00:00Z",
"group":"shop","class":"io.signalbox.worker.evicted","custom_details":{"project":"shop","taskQueue":"q","evicted":["<w1>"],"by":"w2"}}}`, body(t, webhook.PagerDuty, evicted))
	require.JSONEq(t, `{"text":"Worker &lt;w1&gt; of project shop stopped sending heartbeats","blocks":[
{"type":"section","text":{"type":"mrkdwn","text":"*Worker &lt;w1&gt; of project shop stopped sending heartbeats*"}},
{"type":"context","elements":[{"type":"mrkdwn","text":"project shop · io.signalbox.worker.evicted · 2026-03-01T12:00:00Z"}]}]}`, body(t, webhook.Slack, evicted))
	require.JSONEq(t, `{"text":"com.example.paid from /orders (o-7)","blocks":[
{"type":"section","text":{"type":"mrkdwn","text":"*com.example.paid from /orders (o-7)*"}},
{"type":"context","elements":[{"type":"mrkdwn","text":"project shop · com.example.paid · 2026-03-01T00:00:00Z"}]}]}`, body(t, webhook.Slack, foreign))
}

// The end of an outage resolves what its beginning triggered: the labels, or the key, are the same.
func TestEndOfAnOutageResolvesItsBeginning(t *testing.T) {
	t.Parallel()
	require.JSONEq(t, `[{"labels":{"alertname":"SignalboxTemporalDisconnected","project":"shop","severity":"critical"},
"annotations":{"summary":"Temporal is unavailable to project shop","description":"Since 2026-03-01T12:00:00Z: unreachable"},
"startsAt":"2026-03-01T12:00:00Z","endsAt":"2026-03-02T12:00:00Z"}]`, body(t, webhook.Alertmanager, down))
	require.JSONEq(t, `[{"labels":{"alertname":"SignalboxTemporalDisconnected","project":"shop","severity":"critical"},
"annotations":{"summary":"Temporal is available again to project shop","description":"It was unavailable for 1m0s"},
"startsAt":"2026-03-01T12:00:00Z","endsAt":"2026-03-01T12:01:00Z"}]`, body(t, webhook.Alertmanager, up))
	require.Contains(t, body(t, webhook.PagerDuty, down), `"event_action":"trigger"`)
	require.JSONEq(t, `{"routing_key":"key","event_action":"resolve","dedup_key":"signalbox/shop/connection","client":"Signalbox"}`, body(t, webhook.PagerDuty, up))
	require.Contains(t, body(t, webhook.PagerDuty, down), `"dedup_key":"signalbox/shop/connection"`)
}
