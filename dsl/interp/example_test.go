package interp_test

import (
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

// The driver of a machine performs its effects and reports their results. The machine itself reads no clock and does no
// I/O.
func ExampleMachine() {
	doc, violations := dsl.Parse([]byte(`
document: {dsl: 1.0.3, namespace: shop, name: order, version: 1.0.0}
do:
  - pause: {wait: {seconds: 30}}
  - stock: {call: http, with: {method: get, endpoint: 'https://shop.example/stock/{id}'}}
`))
	if violations.HasErrors() {
		fmt.Println(violations)
		return
	}
	now := time.Date(2026, time.January, 31, 8, 0, 0, 0, time.UTC)
	m := interp.New(doc, interp.Start{RunID: "r1", Input: map[string]any{"id": "a7"}, At: now}, interp.DefaultLimits())
	for {
		for _, effect := range m.Advance(now) {
			switch e := effect.(type) {
			case interp.StartTimer:
				fmt.Println("timer", e.Deadline.Sub(now))
				now = e.Deadline
				m.Fire(e.ID, now)
			case interp.Call:
				fmt.Println("call", e.HTTP.Method, e.HTTP.URL)
				m.Complete(e.ID, interp.Result{Value: map[string]any{"left": 3}}, now)
			}
		}
		_, steps := m.TakeRecords()
		for _, s := range steps {
			fmt.Println("step", s.Path, s.Status)
		}
		if outcome, done := m.Done(); done {
			fmt.Println(outcome.Status, string(outcome.JSON))
			return
		}
	}
	// Output:
	// timer 30s
	// step /do/0/pause completed
	// call GET https://shop.example/stock/a7
	// step /do/1/stock completed
	// completed {"left":3}
}
