package language_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"

	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

func TestFailedCallsAreRetried(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	o := origin.New(t)
	o.Sequence("POST /pay", origin.Answer{Status: 503}, origin.Answer{Status: 503},
		origin.Answer{Status: 200, Body: `{"paid":true}`})
	id := s.Start(t, s.Publish(t, platform.Document("retries", `  - attempt:
      try:
        - pay:
            call: http
            with: {method: post, endpoint: `+o.URL+`/pay}
      catch:
        errors:
          with: {status: 503}
        retry:
          delay: {milliseconds: 300}
          backoff: {exponential: {}}
          limit: {attempt: {count: 5}}
`)), "{}").GetId()
	began := time.Now()
	run := s.Await(t, id, soon, "completed")
	require.JSONEq(t, `{"paid":true}`, run.GetOutput().GetJson())
	require.GreaterOrEqual(t, time.Since(began), 500*time.Millisecond, "it waits before the retry")
	calls := o.Calls("POST /pay")
	require.Len(t, calls, 3)
	require.NotEqual(t, calls[0].IdempotencyKey, calls[1].IdempotencyKey, "a retry after an answer is another request")

	steps := s.Steps(t, id)
	requireOnce(t, steps)
	require.Equal(t, []string{"attempt:completed", "pay:failed", "pay:failed", "pay:completed"}, platform.Statuses(steps))
	require.Len(t, steps[0].GetAttempts(), 3)
	require.EqualValues(t, 503, steps[0].GetAttempts()[0].GetError().GetStatus())
}

func TestExhaustedRetriesFailTheRun(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	o := origin.New(t)
	o.Answer("GET /gone", 410, `{}`)
	id := s.Start(t, s.Publish(t, platform.Document("exhausted", `  - attempt:
      try:
        - get:
            call: http
            with: {method: get, endpoint: `+o.URL+`/gone}
      catch:
        retry:
          delay: {milliseconds: 10}
          limit: {attempt: {count: 3}}
`)), "{}").GetId()
	problem := s.Await(t, id, soon, "failed").GetError()
	require.EqualValues(t, 410, problem.GetStatus())
	require.True(t, strings.HasSuffix(problem.GetType(), "/communication"), problem.GetType())
	require.Equal(t, "/do/0/attempt/try/0/get", problem.GetInstance())
	require.NotEmpty(t, problem.GetTitle())
	require.Greater(t, len(o.Calls("GET /gone")), 1)
}

func TestTimersFireOnTime(t *testing.T) {
	t.Parallel()
	s := newStack(t) // of its own: the load of other tests would affect the times
	branches := "  - all:\n      fork:\n        branches:\n"
	for n := range 25 { // run in sequence they would take 20 s
		branches += fmt.Sprintf("          - rest%d: {wait: {milliseconds: 800}}\n", n)
	}
	name := s.Publish(t, platform.Document("timers", branches))
	id := s.Start(t, name, "{}").GetId()
	run := s.Await(t, id, soon, "completed")
	took := run.GetEndTime().AsTime().Sub(run.GetStartTime().AsTime())
	require.GreaterOrEqual(t, took, 800*time.Millisecond)
	promise.Within(t, "25 waits of 800 ms at once", took, 1600*time.Millisecond)
	require.Equal(t, 25, mostTimers(platform.History(t, platform.DialTemporal(t, s.temporal.Address), id)),
		"branches wait in parallel")
}

// mostTimers returns how many timers ran at once.
func mostTimers(h *history.History) int {
	most, running := 0, 0
	for _, e := range h.GetEvents() {
		switch e.GetEventType() {
		case enums.EVENT_TYPE_TIMER_STARTED:
			running++
		case enums.EVENT_TYPE_TIMER_FIRED:
			running--
		default:
		}
		most = max(most, running)
	}
	return most
}

// timers returns how long each timer of a run ran.
func timers(t *testing.T, s *stack, id string) []time.Duration {
	t.Helper()
	var all []time.Duration
	for _, h := range platform.Histories(t, platform.DialTemporal(t, s.temporal.Address), id) {
		for _, e := range h.GetEvents() {
			if fired := e.GetTimerFiredEventAttributes(); fired != nil {
				started := h.GetEvents()[fired.GetStartedEventId()-1]
				all = append(all, e.GetEventTime().AsTime().Sub(started.GetEventTime().AsTime()))
			}
		}
	}
	return all
}

func TestShortTimersAreNotRoundedUp(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	id := s.Start(t, s.Publish(t, platform.Document("short", loop(40, "        - rest: {wait: {milliseconds: 1}}\n"))),
		"{}").GetId()
	s.Await(t, id, soon, "completed")
	// Temporal's default would round each timer up to a second; a busy machine makes some of them late.
	took := timers(t, s, id)
	require.Len(t, took, 40)
	require.Less(t, slices.Min(took), 900*time.Millisecond)
}

func TestRaceCancelsTheLoser(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	o := origin.New(t)
	o.Hold("POST /slow", 200, `{"who":"slow"}`)
	o.Answer("POST /fast", 200, `{"who":"fast"}`)
	branch := func(name string) string {
		return "          - " + name + ":\n              call: http\n              with: {method: post, endpoint: " + o.URL +
			"/" + name + "}\n"
	}
	id := s.Start(t, s.Publish(t,
		platform.Document("race", "  - race:\n      fork:\n        compete: true\n        branches:\n"+
			branch("slow")+branch("fast"))), "{}").GetId()
	require.JSONEq(t, `{"who":"fast"}`, s.Await(t, id, soon, "completed").GetOutput().GetJson())
	require.Equal(t, []string{"race:completed", "slow:canceled", "fast:completed"}, platform.Statuses(s.Steps(t, id)))
}

func TestTimeoutIsCaught(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	o := origin.New(t)
	o.Hold("POST /slow", 200, `{}`)
	id := s.Start(t, s.Publish(t, platform.Document("caught", `  - attempt:
      try:
        - ask:
            call: http
            with: {method: post, endpoint: `+o.URL+`/slow}
            timeout: {after: {milliseconds: 300}}
      catch:
        as: problem
        do:
          - note: {set: {status: "${ $problem.status }", instance: "${ $problem.instance }"}}
`)), "{}").GetId()
	require.JSONEq(t, `{"status":408,"instance":"/do/0/attempt/try/0/ask"}`,
		s.Await(t, id, soon, "completed").GetOutput().GetJson())
}

// One run receives twenty answers of 120 kB, although one workflow task could not hold them.
func TestRunReceivesManyLargeAnswers(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	o := origin.New(t)
	o.Answer("GET /large", 200, `{"data":"`+strings.Repeat("x", 120_000)+`"}`)
	o.Answer("POST /large", 200, `{"data":"`+strings.Repeat("y", 120_000)+`"}`)
	for _, method := range []string{"get", "post"} {
		tasks := call(method, o.URL+"/large") + "        - measure:\n            set: {length: \"${ .data | length }\"}\n"
		id := s.Start(t, s.Publish(t, platform.Document("large-"+method, loop(40, tasks))), "{}").GetId()
		require.JSONEq(t, `{"length":120000}`, s.Await(t, id, 2*soon, "completed").GetOutput().GetJson())
	}
}

func TestTwentySafeCallsUseFewEvents(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	o := origin.New(t)
	o.Answer("GET /item", 200, `{}`)
	id := s.Start(t, s.Publish(t, platform.Document("twenty", loop(40, call("get", o.URL+"/item")))), "{}").GetId()
	s.Await(t, id, soon, "completed")
	// One marker per call and a few events around them, and three more for each further workflow task that a busy machine
	// needs; activities would leave six per call, and more than a hundred in all.
	require.LessOrEqual(t, events(t, s, id), 60)
	for _, c := range o.Calls("GET /item") {
		require.Empty(t, c.IdempotencyKey)
	}
}

func TestExpressionsAreInterrupted(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	for _, expression := range []string{"[range(1e9)] | length", "def f: f; f", "[limit(1e8; repeat(1))] | add"} {
		id := s.Start(t, s.Publish(t, platform.Document("hang", "  - loop:\n      set: {n: '${ "+expression+" }'}\n")),
			"{}").GetId()
		problem := s.Await(t, id, 2*soon, "failed").GetError()
		require.True(t, strings.HasSuffix(problem.GetType(), "/expression"), problem.GetType())
		require.Equal(t, "/do/0/loop", problem.GetInstance())
	}
}
