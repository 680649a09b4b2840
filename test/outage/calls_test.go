package outage_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/database"
	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// A large answer arrives while the database is down, for longer than writes are retried: the answer is kept until the
// database is back, and the request is sent once. The call runs in a local activity, has been handed over to an
// activity, or is an activity from the start.
func TestLargeAnswerArrivesWhileDatabaseIsDown(t *testing.T) {
	t.Parallel()
	p := database.StartPostgres(t, t.Skip)
	x := build(t, p.Store())
	type call struct {
		id, route string
		gate      *origin.Gate
		origin    *origin.Origin
	}
	var calls []call
	for method, inward := range map[string]time.Duration{"get": 0, "post": 0, "handed over": 2 * time.Second} {
		verb, handed := method, inward > 0
		if handed {
			verb = "get"
		}
		o := origin.New(t)
		route := strings.ToUpper(verb) + " /large"
		gate := o.Hold(route, 200, `"`+strings.Repeat("x", 40<<10)+`"`)
		name := x.Publish(t, platform.Document("large", fmt.Sprintf("  - c: {call: http, with: {method: %s, endpoint: "+
			"%s/large}}\n  - n: {set: {n: '${ length }'}}\n", verb, o.URL)))
		id := x.Start(t, name, "{}").GetId()
		<-gate.Arrived
		if handed {
			waitFor(t, inward)
		}
		calls = append(calls, call{id, route, gate, o})
	}
	p.Freeze()
	for _, c := range calls {
		c.gate.Open()
	}
	waitFor(t, 12*time.Second)
	p.Thaw()
	for _, c := range calls {
		require.JSONEq(t, `{"n":40960}`, x.Await(t, c.id, soon, "completed").GetOutput().GetJson())
		require.Len(t, c.origin.Calls(c.route), 1, c.route)
		step := x.Steps(t, c.id)[0]
		require.Len(t, step.GetAttempts(), 1, c.route)
		require.Equal(t, "answered", step.GetAttempts()[0].GetOutcome())
	}
}
