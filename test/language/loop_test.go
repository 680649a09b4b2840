package language_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
)

const count = "        - add:\n            set: {sum: \"${ (.sum // 0) + $n }\"}\n"

// P-L5: history grows with effects, not with steps.
func TestPureStepsLeaveNoHistory(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	var tasks strings.Builder
	for i := range 100 {
		tasks.WriteString("  - step" + itoa(i) + ":\n      set: {n: \"${ (.n // 0) + 1 }\"}\n")
	}
	id := s.Start(t, s.Publish(t, platform.Document("hundred", tasks.String())), "{}").GetId()
	require.JSONEq(t, `{"n":100}`, s.Await(t, id, soon, "completed").GetOutput().GetJson())
	require.LessOrEqual(t, events(t, s, id), 8)
	requireOnce(t, s.Steps(t, id))
	require.Len(t, s.Steps(t, id), 100)
}

// P-L4 for loops that compute: any length, continuing as new before replaying an execution would take too much compute.
func TestLongLoopCompletes(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	n := size(20_000, 100_000)
	id := s.Start(t, s.Publish(t, platform.Document("long", loop(n, count))), "{}").GetId()
	began := time.Now()
	run := s.Await(t, id, 15*time.Minute, "completed")
	t.Logf("%d items in %s", n, time.Since(began).Round(time.Millisecond))
	require.JSONEq(t, `{"sum":`+itoa(n*(n-1)/2)+`}`, run.GetOutput().GetJson())
	requireRecorded(t, s, id, n+1)
}

// P-L4 for loops with safe calls.
func TestLoopOfSafeCallsCompletes(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	o := origin.New(t)
	o.Answer("GET /item", 200, `{"ok":true}`)
	n := size(1_000, 100_000)
	id := s.Start(t, s.Publish(t, platform.Document("safe", loop(n, call("get", o.URL+"/item")))), "{}").GetId()
	began := time.Now()
	run := s.Await(t, id, 15*time.Minute, "completed")
	t.Logf("%d safe calls in %s", n, time.Since(began).Round(time.Millisecond))
	require.EqualValues(t, n+1, run.GetStepsDone())
	// A local activity is repeated if its workflow task was lost, which safe methods permit.
	require.GreaterOrEqual(t, len(o.Calls("GET /item")), n)
}

// An execution with many events continues as new, and no call is lost or repeated.
func TestEveryCallIsMadeOnceAcrossContinueAsNew(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	o := origin.New(t)
	o.Handle("POST /item", func(c origin.Call) origin.Answer { return origin.Answer{Status: 200, Body: c.Body} })
	n := size(1_500, 20_000)
	tasks := strings.TrimSuffix(call("post", o.URL+"/item"), "\n") + "\n              body: {n: \"${ $n }\"}\n"
	last := "  - last:\n      set: {last: \"${ .n }\"}\n"
	id := s.Start(t, s.Publish(t, platform.Document("continued", loop(n, tasks)+last)), "{}").GetId()
	began := time.Now()
	run := s.Await(t, id, 15*time.Minute, "completed")
	t.Logf("%d calls in %s", n, time.Since(began).Round(time.Millisecond))
	require.JSONEq(t, `{"last":`+itoa(n-1)+`}`, run.GetOutput().GetJson())

	require.Greater(t, len(platform.Histories(t, platform.DialTemporal(t, s.temporal.Address), id)), 1)
	calls := o.Calls("POST /item")
	require.Len(t, calls, n)
	keys := map[string]bool{}
	for i, c := range calls {
		require.JSONEq(t, `{"n":`+itoa(i)+`}`, c.Body)
		require.False(t, keys[c.IdempotencyKey], "the key %q was used twice", c.IdempotencyKey)
		keys[c.IdempotencyKey] = true
	}
	requireRecorded(t, s, id, n+2)
}

func TestLoopContinuesAfterWorkerKill(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	o := origin.New(t)
	reached := make(chan struct{}, 1000)
	o.Handle("POST /item", func(c origin.Call) origin.Answer {
		reached <- struct{}{}
		return origin.Answer{Status: 200, Body: c.Body}
	})
	const n = 150
	tasks := strings.TrimSuffix(call("post", o.URL+"/item"), "\n") + "\n              body: {n: \"${ $n }\"}\n"
	id := s.Start(t, s.Publish(t, platform.Document("killed", loop(n, tasks))), "{}").GetId()
	for _, after := range []int{30, 50} {
		for range after {
			<-reached
		}
		s.restart(t)
	}
	s.Await(t, id, soon, "completed")
	steps := s.Steps(t, id)
	require.Len(t, steps, n+1)
	requireOnce(t, steps)
	bodies := map[string]string{}
	for _, c := range o.Calls("POST /item") {
		if body, again := bodies[c.IdempotencyKey]; again {
			require.Equal(t, body, c.Body, "two requests have the same key")
		}
		bodies[c.IdempotencyKey] = c.Body
	}
	require.Len(t, bodies, n, "each item under one key, however often it was sent")
}

func TestLoopIsCanceled(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	o := origin.New(t)
	reached := make(chan struct{}, 1_000_000)
	o.Handle("POST /item", func(origin.Call) origin.Answer {
		reached <- struct{}{}
		return origin.Answer{Status: 200, Body: `{}`}
	})
	id := s.Start(t, s.Publish(t, platform.Document("stopped", loop(100_000, call("post", o.URL+"/item")))), "{}").GetId()
	for range 20 {
		<-reached
	}
	require.Equal(t, platform.ExitOK, s.CLI(t, "run", "cancel", id, "--reason", "enough").Code)
	s.Await(t, id, soon, "canceled")
	made := len(o.Calls("POST /item"))
	require.Less(t, made, 10_000)
	platform.Eventually(t, soon, func() string { // steps in flight end after the run
		for _, step := range s.Steps(t, id) {
			if status := step.GetStatus(); status != "completed" && status != "canceled" {
				return step.GetPath() + " is " + status
			}
		}
		return ""
	})
}
