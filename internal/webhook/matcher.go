package webhook

import (
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/cloudevents"
)

// Matcher matches events with webhooks. It is pure.
type Matcher struct{ targets []target }

type target struct {
	webhook Webhook
	// filter is nil where any event of the types matches.
	filter *eventfilter.Matcher
}

// NewMatcher returns a matcher for the active ones among webhooks. A webhook whose conditions do not compile matches
// nothing; the service refuses such conditions.
func NewMatcher(list []Webhook) *Matcher {
	m, compiler := &Matcher{}, jq.NewCompiler()
	for _, w := range list {
		if w.Paused() {
			continue
		}
		t := target{webhook: w}
		if len(w.Filter.Conditions) > 0 {
			filter, err := eventfilter.Compile(eventfilter.Filter{With: w.Filter.Conditions}, compiler)
			if err != nil {
				continue
			}
			t.filter = filter
		}
		m.targets = append(m.targets, t)
	}
	return m
}

// Wants reports whether an event of a type can match.
func (m *Matcher) Wants(typ string) bool {
	for _, t := range m.targets {
		if t.webhook.Filter.MatchesType(typ) {
			return true
		}
	}
	return false
}

// Match returns the deliveries of an event.
func (m *Matcher) Match(e event.Event) (list []Delivery) {
	text := cloudevents.JSON(e)
	var plain map[string]any
	for _, t := range m.targets {
		if e.Position <= t.webhook.Since || !t.webhook.Filter.MatchesType(e.Type) {
			continue
		}
		if t.filter != nil {
			if plain == nil {
				value, err := jq.DecodeJSON(text)
				if err != nil {
					return nil // the dispatcher rejects the event with this reason
				}
				plain, _ = value.(map[string]any)
			}
			if !t.filter.Match(plain).OK {
				continue
			}
		}
		list = append(list, Delivery{
			ID: DeliveryID(t.webhook.ID, e.Position), Project: e.Project, Webhook: t.webhook.ID, Position: e.Position,
			EventID:     e.ID,
			EventSource: e.Source, EventType: e.Type, Status: Pending, Event: text,
		})
	}
	return list
}

// MatchesType reports whether one of the types of the filter matches.
func (f Filter) MatchesType(typ string) bool {
	for _, want := range f.Types {
		if prefix, open := strings.CutSuffix(want, "*"); want == typ || open && strings.HasPrefix(typ, prefix) {
			return true
		}
	}
	return false
}
