package match

import "github.com/signalbox-dev/signalbox/internal/event"

// Search returns how listeners look through up to limit earlier events of one type.
func (m *Matcher) Search(limit int) event.Earlier {
	return event.Earlier{Match: m.earlier, Limit: limit}
}

// earlier returns the deliveries of events to a listener that was committed after them, in their order, and the compute
// that their filters have used.
func (m *Matcher) earlier(l event.Listener, events []event.Event) (deliveries []event.Delivery, fuel int64) {
	l.Since = 0
	for len(events) > 0 {
		e := m.Evaluate(event.Batch{Events: events, Listeners: []event.Listener{l}})
		routings := e.Routings(event.Found{})
		for i, r := range routings {
			deliveries = append(deliveries, r.Deliveries...)
			fuel += e.events[i].fuel
		}
		events = events[len(routings):]
	}
	return deliveries, fuel
}
