package language_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// most is the size limit of a history, regardless of the size of its run's values.
const most = 1 << 20

// newLargeValueStack starts a server that accepts values up to the limit of 16 MiB.
func newLargeValueStack(t *testing.T) *stack {
	t.Helper()
	temporal := platform.StartTemporal(t)
	options := platform.ServerOptions{
		Temporal: temporal.Address, Store: platform.SQLite(t), Port: platform.FreePort(t),
		Env: []string{
			"SIGNALBOX_API_MAX_REQUEST_BYTES=40MiB", "SIGNALBOX_RUNS_MAX_INPUT_BYTES=16MiB",
			"SIGNALBOX_CALLS_MAX_RESPONSE_BYTES=16MiB",
			"SIGNALBOX_EVENTS_MAX_DATA_BYTES=16MiB",
		},
	}
	return &stack{Server: platform.StartServer(t, options), temporal: temporal, options: options}
}

// requireSmallHistory requires that the histories of all executions of a run are small, by Temporal's count.
func requireSmallHistory(t *testing.T, s *stack, id string) {
	t.Helper()
	c := platform.DialTemporal(t, s.temporal.Address)
	all := 0
	for _, history := range platform.Histories(t, c, id) {
		all += proto.Size(history)
	}
	require.Less(t, all, most, "the histories of run %s", id)
	described, err := c.DescribeWorkflowExecution(t.Context(), id, "")
	require.NoError(t, err)
	require.Less(t, described.GetWorkflowExecutionInfo().GetHistorySizeBytes(), int64(most))
}

// A value of 3 MB, which exceeds Temporal's limit of a payload, and one of 15 MiB pass wherever a run sends or receives
// a value.
func TestLargeValuesAreAcceptedEverywhere(t *testing.T) {
	t.Parallel()
	s := newLargeValueStack(t)
	o := origin.New(t)
	child := s.Publish(t, platform.Document("large-child", "  - give: {set: '${ . }'}\n"))
	namespace, name, _ := strings.Cut(child, "/")
	for _, size := range []int{3_000_000, 15 << 20} {
		made := fmt.Sprintf(`{set: {v: '${ "a" * %d }'}}`, size)
		o.Answer(fmt.Sprintf("GET /large/%d", size), 200, `"`+strings.Repeat("b", size)+`"`)
		o.Answer(fmt.Sprintf("POST /large/%d", size), 200, `{"ok":true}`)
		for place, tasks := range map[string]string{
			"output": "  - make: " + made + "\n",
			"snapshot": "  - make: " + made +
				"\n  - rest: {wait: {milliseconds: 10}}\n  - small: {set: '${ {n: (.v | length)} }'}\n",
			"emit": "  - make: " + made +
				"\n  - tell: {emit: {event: {with: {type: large, source: 'https://x', data: '${ .v }'}}}}\n" +
				"  - small: {set: {n: 1}}\n",
			"child": "  - make: " + made + "\n  - run: {run: {workflow: {namespace: " + namespace + ", name: " + name +
				", version: '1.0.0', input: {v: '${ .v }'}}}}\n  - small: {set: '${ {n: (.v | length)} }'}\n",
			"request": "  - make: " + made + fmt.Sprintf("\n  - post: {call: http, with: {method: post, endpoint: "+
				"%s/large/%d, body: '${ . }'}}\n", o.URL, size),
			"answer": fmt.Sprintf("  - get: {call: http, with: {method: get, endpoint: %s/large/%d}}\n  - small: {set: '${ "+
				"{n: length} }'}\n", o.URL, size),
			"expect": "  - make: " + made + "\n  - hear: {listen: {to: {one: {with: {type: never}, correlate: {key: {from: " +
				".data, expect: '${ .v }'}}}}}, timeout: {after: {milliseconds: 100}}}\n",
		} {
			t.Run(fmt.Sprintf("%s of %d bytes", place, size), func(t *testing.T) {
				id := s.Start(t, s.Publish(t, platform.Document(place, tasks)), "{}").GetId()
				if place == "expect" {
					problem := s.Await(t, id, soon, "failed").GetError()
					require.True(t, strings.HasSuffix(problem.GetType(), "/timeout"), "%v", problem)
				} else {
					run := s.Await(t, id, soon, "completed")
					if strings.Contains(tasks, "length") {
						require.JSONEq(t, fmt.Sprintf(`{"n":%d}`, size), run.GetOutput().GetJson())
					}
				}
				requireSmallHistory(t, s, id)
			})
		}
		t.Run(fmt.Sprintf("input of %d bytes", size), func(t *testing.T) {
			id := s.Start(t, s.Publish(t, platform.Document("input", "  - small: {set: '${ {n: (.v | length)} }'}\n")),
				`{"v":"`+strings.Repeat("c", size)+`"}`).GetId()
			require.JSONEq(t, fmt.Sprintf(`{"n":%d}`, size), s.Await(t, id, soon, "completed").GetOutput().GetJson())
			requireSmallHistory(t, s, id)
		})
	}
}

// A value over 16 MiB is an error of the task that would send it. The error names size and limit, and a try catches it.
func TestTooLargeValuesAreErrors(t *testing.T) {
	t.Parallel()
	s := newLargeValueStack(t)
	child := s.Publish(t, platform.Document("too-large-child", "  - give: {set: {n: 1}}\n"))
	namespace, name, _ := strings.Cut(child, "/")
	half := `'${ "a" * 9000000 }'`
	makes := "  - make: {set: {v: " + half + ", w: " + half + "}}\n"
	for place, task := range map[string]string{
		"emit": "{emit: {event: {with: {type: large, source: 'https://x', data: {v: '${ .v }', w: '${ .w }'}}}}}",
		"child": "{run: {workflow: {namespace: " + namespace + ", name: " + name +
			", version: '1.0.0', input: {v: '${ .v }', w: '${ .w }'}}}}",
		"request": "{call: http, with: {method: post, endpoint: 'http://127.0.0.1:1/', body: {v: '${ .v }', w: '${ .w }'}}}",
		"expect": "{listen: {to: {all: [{with: {type: a}, correlate: {k: {from: .data, expect: '${ .v }'}}}, {with: " +
			"{type: b}, correlate: {k: {from: .data, expect: '${ .w }'}}}]}}}",
	} {
		t.Run(place, func(t *testing.T) {
			tasks := makes + "  - attempt:\n      try: [{send: " + task + "}]\n" +
				"      catch: {errors: {with: {status: 413}}, as: e, do: [{note: {set: {caught: '${ $e.detail }'}}}]}\n"
			run := s.Await(t, s.Start(t, s.Publish(t, platform.Document(place, tasks)), "{}").GetId(), soon, "completed")
			require.Contains(t, run.GetOutput().GetJson(), "more than the limit of 16777216")
		})
	}
	run := s.Await(t, s.Start(t, s.Publish(t, platform.Document("output", makes)), "{}").GetId(), soon, "failed")
	require.Contains(t, run.GetError().GetDetail(),
		"the output of the run has 18000015 bytes as JSON, more than the limit of 16777216")
	require.Equal(t, "/output", run.GetError().GetInstance())
}

// The error of a failed run is bounded, however long the text that its document generates.
func TestErrorDetailsAreTruncated(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	id := s.Start(t, s.Publish(t,
		platform.Document("long",
			`  - fail: {raise: {error: {type: 'https://x/long', status: 400, detail: '${ "d" * 3000000 }'}}}
`)), "{}").GetId()
	problem := s.Await(t, id, soon, "failed").GetError()
	require.Less(t, len(problem.GetDetail()), 9<<10)
	require.Contains(t, problem.GetDetail(), "[cut: 3000000 bytes in all]")
	require.Equal(t, "https://x/long", problem.GetType())
	requireSmallHistory(t, s, id)
}

// Many answers of a moderate size keep the history small, too, and after a worker was killed the next one reads the
// payloads that the first stored.
func TestManyAnswersKeepHistorySmall(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	o := origin.New(t)
	for route, size := range map[string]int{"GET /some": 120_000, "GET /many": 10_000} {
		o.Answer(route, 200, `{"text":"`+strings.Repeat("x", size)+`"}`)
	}
	calls := func(route string, n int) string {
		return s.Publish(t, platform.Document("calls", fmt.Sprintf(`  - each:
      for: {each: n, in: '${ [range(%d)] }'}
      do:
        - get: {call: http, with: {method: get, endpoint: %s%s}}
        - keep: {set: '${ .text | length }'}
`, n, o.URL, route)))
	}
	some, many := calls("/some", 20), calls("/many", 1000)
	ids := []string{s.Start(t, some, "{}").GetId(), s.Start(t, many, "{}").GetId()}
	require.Eventually(t, func() bool { return len(o.Calls("GET /many")) >= 100 }, soon, 10*time.Millisecond)
	s.restart(t)
	for i, want := range []string{"120000", "10000"} {
		require.JSONEq(t, want, s.Await(t, ids[i], soon, "completed").GetOutput().GetJson())
		requireSmallHistory(t, s, ids[i])
	}
}

// The replay of a run with a large input has that input, and rows are rebuilt from a history with references.
func TestLargeValuesAreReplayed(t *testing.T) {
	t.Parallel()
	s := newLargeValueStack(t)
	id := s.Start(t, s.Publish(t, platform.Document("again", "  - small: {set: '${ {n: (.v | length)} }'}\n")),
		`{"v":"`+strings.Repeat("c", 3_000_000)+`"}`).GetId()
	s.Await(t, id, soon, "completed")
	replayed, err := s.Control(t.Context(), "replay", id, "once more")
	require.NoError(t, err)
	run := s.Await(t, replayed.GetId(), soon, "completed")
	require.JSONEq(t, `{"n":3000000}`, run.GetOutput().GetJson())
}

// The answers of parallel calls arrive in one workflow task, which decodes them all, on a server that gets only a part
// of a processor.
func TestLargeAnswersArriveTogether(t *testing.T) {
	t.Parallel()
	if !platform.Throttled() {
		t.Skip("`make throttled` runs it on slow servers")
	}
	s := newLargeValueStack(t)
	o := origin.New(t)
	const size, branches = 15 << 20, 8
	o.Answer("POST /large", 200, `{"v":"`+strings.Repeat("b", size)+`"}`)
	tasks := "  - all:\n      fork:\n        branches:\n"
	var lengths []string
	for i := range branches {
		name := fmt.Sprintf("b%d", i)
		tasks += "          - " + name + ":\n              call: http\n              with: {method: post, endpoint: " +
			o.URL + "/large}\n" +
			"              output: {as: '${ {n: (.v | length)} }'}\n"
		lengths = append(lengths, fmt.Sprintf(`{"n":%d}`, size))
	}
	id := s.Start(t, s.Publish(t, platform.Document("together", tasks)), "{}").GetId()
	require.JSONEq(t, "["+strings.Join(lengths, ",")+"]", s.Await(t, id, 5*time.Minute, "completed").GetOutput().GetJson())
}
