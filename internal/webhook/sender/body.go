package sender

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/webhook"
)

const (
	jsonType = "application/json"
	// openFor is the end of an alert that an event of its own resolves: Alertmanager ends an alert without an end after
	// minutes.
	openFor = 24 * time.Hour
	// maxSummary is the longest summary that PagerDuty accepts, maxText the longest text of a block of Slack, in bytes.
	maxSummary = 1024
	maxText    = 2900
)

// bodyOf returns the body of the request for a delivery, in the format of its webhook, and its media type. The format
// cloudevents sends the event itself. The others send a notice: a summary, a severity and a key by which the receiver
// recognises that two events are about the same condition. Events of the platform have notices of their own; all other
// events get one that names their type and source.
func bodyOf(w webhook.Webhook, t webhook.Target, d webhook.Delivery) (body []byte, contentType string, err error) {
	if w.Format == webhook.CloudEvents {
		return d.Event, "application/cloudevents+json", nil
	}
	n, err := noticeOf(w.Project, d)
	if err != nil {
		return nil, "", err
	}
	var value any
	switch w.Format {
	case webhook.Alertmanager:
		value = []any{alert(n)}
	case webhook.PagerDuty:
		value = pagerDuty(n, t.RoutingKey)
	case webhook.Slack:
		value = slack(n)
	case webhook.CloudEvents:
	}
	if value == nil {
		return nil, "", fmt.Errorf("the format %q is not supported", w.Format)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, "", fmt.Errorf("encode the body for %s: %w", w.Format, err)
	}
	return bytes.TrimSpace(b.Bytes()), jsonType, nil
}

// alert returns an alert of Alertmanager's API v2.
func alert(n notice) map[string]any {
	labels := map[string]string{"alertname": n.alert, "project": n.project, "severity": n.severity}
	if !n.resolvable {
		labels["event_type"] = n.event.Type // the events of a condition have the same labels
	}
	for name, value := range n.labels {
		if value != "" {
			labels[name] = value
		}
	}
	annotations := map[string]string{"summary": n.summary}
	if n.detail != "" {
		annotations["description"] = n.detail
	}
	a := map[string]any{"labels": labels, "annotations": annotations, "startsAt": n.since.Format(time.RFC3339Nano)}
	if n.link != "" {
		a["generatorURL"] = n.link
	}
	switch {
	case n.resolves:
		a["endsAt"] = n.event.Time.Format(time.RFC3339Nano)
	case n.resolvable:
		a["endsAt"] = n.since.Add(openFor).Format(time.RFC3339Nano)
	}
	return a
}

// pagerDuty returns an event of PagerDuty's Events API v2.
func pagerDuty(n notice, routingKey string) map[string]any {
	e := map[string]any{"routing_key": routingKey, "event_action": "trigger", "dedup_key": n.key, "client": "Signalbox"}
	if n.resolves {
		e["event_action"] = "resolve"
		return e
	}
	p := map[string]any{
		"summary": apperror.Excerpt(n.summary, maxSummary), "source": n.event.Source, "severity": n.severity,
		"timestamp": n.event.Time.Format(time.RFC3339Nano),
		"group":     n.project, "class": n.event.Type,
	}
	if len(n.event.Data) > 0 {
		p["custom_details"] = n.event.Data
	}
	e["payload"] = p
	if n.link != "" {
		e["links"] = []any{map[string]string{"href": n.link, "text": "Open in Signalbox"}}
	}
	return e
}

// slack returns a message of Slack's incoming webhooks.
func slack(n notice) map[string]any {
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace
	text := "*" + escape(n.summary) + "*"
	if n.detail != "" {
		text += "\n" + escape(n.detail)
	}
	if n.link != "" {
		text += "\n<" + escape(n.link) + "|Open in Signalbox>"
	}
	markdown := func(text string) map[string]string {
		return map[string]string{"type": "mrkdwn", "text": apperror.Excerpt(text, maxText)}
	}
	return map[string]any{
		"text": escape(apperror.Excerpt(n.summary, maxText)),
		"blocks": []any{
			map[string]any{"type": "section", "text": markdown(text)},
			map[string]any{"type": "context", "elements": []any{
				markdown(escape(fmt.Sprintf("project %s · %s · %s", n.project, n.event.Type, n.event.Time.Format(time.RFC3339)))),
			}},
		},
	}
}
