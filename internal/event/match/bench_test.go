package match_test

import (
	"fmt"
	"testing"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/match"
)

// BenchmarkMatch matches batches of 200 events with 100 workflows and 10,000 waiting runs.
func BenchmarkMatch(b *testing.B) {
	spread := func(i int) event.Listener { // ten runs wait for each type
		return listener(fmt.Sprint("l-", i), event.One, wants(fmt.Sprint("type-", i%1000), ".n > 0"))
	}
	same := func(i int) event.Listener { // all runs wait for one type and differ in the expected key
		return listener(fmt.Sprint("l-", i), event.One, by(wants("type-1", ".n > 0"), "order", ".data.order", fmt.Sprint(i)))
	}
	for name, wait := range map[string]func(int) event.Listener{"spread": spread, "same": same} {
		b.Run(name, func(b *testing.B) {
			var batch event.Batch
			for i := range 100 {
				batch.Triggers = append(batch.Triggers,
					trigger(fmt.Sprint("a/w", i), event.One, wants(fmt.Sprint("start-", i), ".n > 0")))
			}
			for i := range 10_000 {
				batch.Listeners = append(batch.Listeners, wait(i))
			}
			for i := range 200 {
				typ := fmt.Sprint("type-", i%2*1+i/50*997)
				batch.Events = append(batch.Events,
					ev(int64(i+1), typ, fmt.Sprintf(`{"n":%d,"order":%d,"text":"some text in the payload"}`, i%2, i)))
			}
			m := match.New(match.Options{})
			for b.Loop() {
				if got := evaluated(m, batch); len(got) != len(batch.Events) {
					b.Fatal(len(got))
				}
			}
			b.ReportMetric(float64(len(batch.Events)*b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
