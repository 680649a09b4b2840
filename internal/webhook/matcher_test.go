package webhook_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/webhook"
)

// TestMatcherSelectsWebhooks has webhooks that differ in one condition from one that matches.
func TestMatcherSelectsWebhooks(t *testing.T) {
	t.Parallel()
	with := func(text string) webhook.Filter {
		conditions, _ := dsl.ParseEventPattern(json.RawMessage(text))
		require.NotEmpty(t, conditions)
		return webhook.Filter{Types: []string{"shop.*"}, Conditions: conditions}
	}
	types := func(list ...string) webhook.Filter { return webhook.Filter{Types: list} }
	e := event.Event{Project: here, ID: "e1", Source: "/shop", Type: "shop.paid", Subject: "o-7", Position: 5,
		Data: json.RawMessage(`{"n": 1}`)}
	for name, c := range map[string]struct {
		hook    webhook.Webhook
		matches bool
	}{
		"type":                  {webhook.Webhook{Filter: types("other", "shop.paid")}, true},
		"another type":          {webhook.Webhook{Filter: types("shop.pai", "shop.paid.more", "hop.paid")}, false},
		"beginning of types":    {webhook.Webhook{Filter: types("shop.*")}, true},
		"another beginning":     {webhook.Webhook{Filter: types("hop.*", "shop.paid.*")}, false},
		"all types":             {webhook.Webhook{Filter: types("*")}, true},
		"a beginning needs a *": {webhook.Webhook{Filter: types("shop.")}, false},
		"before the event":      {webhook.Webhook{Filter: types("*"), Since: 4}, true},
		"since the event":       {webhook.Webhook{Filter: types("*"), Since: 5}, false},
		"paused":                {webhook.Webhook{Filter: types("*"), PausedAt: time.Unix(1, 0)}, false},
		"condition":             {webhook.Webhook{Filter: with(`{"subject": "o-7"}`)}, true},
		"condition on data":     {webhook.Webhook{Filter: with(`{"data": "${ .n == 1 }"}`)}, true},
		"another condition":     {webhook.Webhook{Filter: with(`{"subject": "o-8"}`)}, false},
		"condition, another type": {
			webhook.Webhook{Filter: webhook.Filter{Types: []string{"other"}, Conditions: with(`{"subject": "o-7"}`).Conditions}},
			false},
		"condition that does not compile": {webhook.Webhook{Filter: webhook.Filter{Types: []string{"shop.*"},
			Conditions: map[string]eventfilter.Value{"subject": {Expr: "("}}}}, false},
	} {
		c.hook.ID = name
		m := webhook.NewMatcher([]webhook.Webhook{
			{ID: "other", Filter: types("other")}, c.hook, {ID: "last", Filter: types("shop.paid")}})
		var got []string
		for _, d := range m.Match(e) {
			got = append(got, d.Webhook)
			require.Equal(t, []any{webhook.DeliveryID(d.Webhook, 5), here, int64(5), "e1", "/shop", "shop.paid",
				webhook.Pending},
				[]any{d.ID, d.Project, d.Position, d.EventID, d.EventSource, d.EventType, d.Status})
			require.Contains(t, string(d.Event), `"o-7"`)
		}
		if c.matches {
			require.Equal(t, []string{name, "last"}, got, name)
		} else {
			require.Equal(t, []string{"last"}, got, name)
		}
	}
	m := webhook.NewMatcher([]webhook.Webhook{
		{Filter: types("a", "b.*")}, {Filter: types("c"), PausedAt: time.Unix(1, 0)}})
	for typ, wanted := range map[string]bool{"a": true, "b.x": true, "b": false, "c": false} {
		require.Equal(t, wanted, m.Wants(typ), typ)
	}
}

// TestDeliveryIDsAreDerived pins the ID, which is the same in every process and release.
func TestDeliveryIDsAreDerived(t *testing.T) {
	t.Parallel()
	id := webhook.DeliveryID("w", 12)
	require.Equal(t, id, webhook.DeliveryID("w", 12))
	require.Regexp(t, `^msg_[0-9a-f]{32}$`, id)
	require.NotEqual(t, id, webhook.DeliveryID("w", 13))
	require.NotEqual(t, id, webhook.DeliveryID("w1", 2))
}
