package store_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

// benchBatch is the number of events that are published and routed at once.
const benchBatch = 500

func benchEvents(first, n int) []event.Event {
	list := make([]event.Event, n)
	for i := range list {
		list[i] = event.Event{
			ID: fmt.Sprintf("0197a6a0-%08d-7000", (first+i)*7919%100_000_007), Source: "https://example.com/shop/orders",
			Type:    "com.example.order.placed",
			Subject: "order", DataContentType: "application/json", Time: time.Unix(1767225600, 0), Actor: "ada",
			Data: json.RawMessage(`{"order":12345,"customer":{"name":"Ada","email":"ada@example.com"},"items":[{"sku":"a-1","count":2},{"sku":"b-2","count":1}]}`),
		}
	}
	return list
}

func benchOwner(b testing.TB, s *storetest.Plain) inbox.Owner {
	o, err := s.Events().Fence(b.Context(), "default", "signalbox-default", "host-1", 0)
	require.NoError(b, err)
	return o
}

func benchPublish(b testing.TB, s *storetest.Plain, first, n int) {
	accepted, _, err := s.Events().Publish(b.Context(), "default", benchEvents(first, n))
	require.NoError(b, err)
	require.Len(b, accepted, n)
}

// benchRoute routes all events; deliver returns the deliveries of each.
func benchRoute(b testing.TB, s *storetest.Plain, o inbox.Owner, deliver func(event.Event) []event.Delivery) int {
	batch, err := s.Events().Unrouted(b.Context(), "default", benchBatch)
	require.NoError(b, err)
	routings := make([]event.Routing, len(batch.Events))
	for i, e := range batch.Events {
		routings[i] = event.Routing{Position: e.Position, Status: event.Unmatched, Deliveries: deliver(e)}
		if len(routings[i].Deliveries) > 0 {
			routings[i].Status = event.Routed
		}
	}
	require.NoError(b, s.Events().CommitRouting(b.Context(), "default", o, routings))
	return len(routings)
}

func noDeliveries(event.Event) []event.Delivery { return nil }

// BenchmarkEvents publishes and routes events without subscriptions, in batches.
func BenchmarkEvents(b *testing.B) {
	for name, options := range databases() {
		b.Run(name, func(b *testing.B) {
			s := start(b, options(b))
			o := benchOwner(b, s)
			var publishing, routing time.Duration
			count := 0
			for b.Loop() {
				begin := time.Now()
				benchPublish(b, s, count, benchBatch)
				published := time.Now()
				count += benchBatch
				require.Equal(b, benchBatch, benchRoute(b, s, o, noDeliveries))
				publishing += published.Sub(begin)
				routing += time.Since(published)
			}
			b.ReportMetric(float64(count)/publishing.Seconds(), "published/s")
			b.ReportMetric(float64(count)/routing.Seconds(), "routed/s")
			b.ReportMetric(float64(count)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkDeliveries routes, claims and delivers events of which each starts one run, or wakes one of a hundred.
func BenchmarkDeliveries(b *testing.B) {
	for name, options := range databases() {
		for _, kind := range []event.Kind{event.Start, event.Wake} {
			b.Run(name+"/"+string(kind), func(b *testing.B) {
				s := start(b, options(b))
				o := benchOwner(b, s)
				count := 0
				for b.Loop() {
					benchPublish(b, s, count, benchBatch)
					count += benchBatch
					benchRoute(b, s, o, func(e event.Event) []event.Delivery {
						return []event.Delivery{{
							ID: fmt.Sprint(e.Position, "-", kind), Position: e.Position, Kind: kind,
							RunID: fmt.Sprint("run-", e.Position%100), Workflow: "examples/order",
							Positions: []int64{e.Position},
						}}
					})
					for left := benchBatch; left > 0; {
						list, err := s.Events().Due(b.Context(), "default", o, 200, time.Minute)
						require.NoError(b, err)
						require.NotEmpty(b, list)
						outcomes := make([]inbox.DeliveryOutcome, len(list))
						for i, d := range list {
							outcomes[i] = inbox.DeliveryOutcome{ID: d.ID, Outcome: inbox.Outcome{Result: inbox.Done}}
						}
						require.NoError(b, s.Events().RecordOutcomes(b.Context(), "default", o, outcomes))
						left -= len(list)
					}
				}
				b.ReportMetric(float64(count)/b.Elapsed().Seconds(), "deliveries/s")
			})
		}
	}
}

// BenchmarkListEvents reads pages out of 200,000 events, of which some are of rare kinds.
func BenchmarkListEvents(b *testing.B) {
	const total = 200_000
	for name, options := range databases() {
		b.Run(name, func(b *testing.B) {
			s := start(b, options(b))
			o := benchOwner(b, s)
			for i := 0; i < total; i += benchBatch {
				list := benchEvents(i, benchBatch)
				list[7].Type, list[8].Source = "com.example.rare", "https://example.com/rare"
				_, _, err := s.Events().Publish(b.Context(), "default", list)
				require.NoError(b, err)
				benchRoute(b, s, o, func(e event.Event) []event.Delivery {
					if e.Position%1000 != 9 {
						return nil
					}
					return []event.Delivery{{
						ID: fmt.Sprint(e.Position), Position: e.Position, Kind: event.Start, RunID: "r", Positions: []int64{e.Position}}}
				})
			}
			middle, err := s.Events().GetEvent(b.Context(), "default", total/2)
			require.NoError(b, err)
			for _, f := range []struct {
				name   string
				filter event.ListFilter
			}{
				{"newest", event.ListFilter{}},
				{"middle", event.ListFilter{Before: total / 2}},
				{"type", event.ListFilter{Type: "com.example.rare"}},
				{"source", event.ListFilter{Source: "https://example.com/rare"}},
				{"id", event.ListFilter{ID: middle.ID}},
				{"routed", event.ListFilter{Statuses: []event.Status{event.Routed}}},
				{"rejected", event.ListFilter{Statuses: []event.Status{event.Rejected}}},
				{"pending", event.ListFilter{Statuses: []event.Status{event.Pending}}},
				{"unmatched-middle", event.ListFilter{Statuses: []event.Status{event.Unmatched}, Before: total / 2}},
				{"unmatched-type", event.ListFilter{Statuses: []event.Status{event.Unmatched}, Type: "com.example.rare"}},
				{"dead", event.ListFilter{Dead: true}},
				{"since", event.ListFilter{Since: middle.ReceivedAt}},
				{"until", event.ListFilter{Until: middle.ReceivedAt}},
				{"until-type", event.ListFilter{Until: middle.ReceivedAt, Type: "com.example.rare"}},
			} {
				b.Run(f.name, func(b *testing.B) {
					f.filter.Project, f.filter.Limit = "default", 50
					for b.Loop() {
						_, err := s.Events().ListEvents(b.Context(), f.filter)
						require.NoError(b, err)
					}
				})
			}
		})
	}
}
