package interp_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

// TestComputedDeadlinesAreRecorded: a deadline that follows from the document is not in the records, one that an
// expression gives is, and with it the earliest of all that hold.
func TestComputedDeadlinesAreRecorded(t *testing.T) {
	t.Parallel()
	const wait = "[{w: {wait: {hours: 1}}}]"
	for name, tt := range map[string]struct {
		document string
		deadline time.Duration // of the innermost step, from the start; 0: not recorded
		by       string
	}{
		"fixed": {"timeout: {after: PT1M}\ndo: [{t: {timeout: {after: PT2M}, do: " + wait + "}}]", 0, ""},
		"of the run": {"timeout: {after: '${ .limit }'}\ndo: [{t: {timeout: {after: PT2M}, do: " + wait + "}}]",
			time.Minute, "/timeout"},
		"of a task around": {"timeout: {after: PT2M}\ndo: [{t: {timeout: {after: '${ .limit }'}, do: " + wait + "}}]",
			time.Minute, "/do/0/t"},
		"of the task": {"do: [{t: {do: [{w: {timeout: {after: '${ .limit }'}, wait: {hours: 1}}}]}}]", time.Minute,
			"/do/0/t/do/0/w"},
		"a fixed one that is earlier": {
			"timeout: {after: '${ .limit }'}\ndo: [{t: {timeout: {after: PT10S}, do: " + wait +
				"}}]", 10 * time.Second, "/do/0/t",
		},
		"of an attempt": {
			"do: [{t: {try: [{w: {wait: PT30S}}], catch: {retry: {limit: {attempt: {count: 1, duration: '${ .limit " +
				"}'}}}}}}]", time.Minute, "/do/0/t",
		},
		"of an attempt that is over": {
			"do: [{t: {try: [{x: {raise: {error: {type: https://x, status: 400}}}}], catch: {retry: {limit: {attempt: {count: " +
				"1, duration: '${ .limit }'}}}, do: " + wait + "}}}]", 0, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newDriver(t, document(tt.document), `{"limit": {"minutes": 1}}`)
			seen := false
			w.between = func(w *driver) {
				for _, s := range w.steps {
					if s.Task != "w" || s.EndedAt != nil {
						continue
					}
					seen = true
					require.Equal(t, tt.by, s.DeadlineBy)
					require.Equal(t, tt.deadline != 0, s.Deadline != nil)
					if s.Deadline != nil {
						require.Equal(t, epoch.Add(tt.deadline), *s.Deadline)
					}
				}
				w.restore()
			}
			w.run()
			require.True(t, seen)
			for _, s := range w.steps {
				require.Nil(t, s.Deadline, "of a step that has ended")
			}
		})
	}
}

func TestPathsAndStatuses(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - l:
      for: {each: x, in: '[1, 2]'}
      do: [{skip: {if: $x == 1, set: {x: '${ $x }'}}}]
  - t:
      try: [{r: {raise: {error: {type: 'https://e/x', status: 500, title: X}}}}]
      catch: {retry: {limit: {attempt: {count: 1}}}, do: [{h: {set: {n: 0}}}]}
  - again: {set: {n: '${ .n + 1 }'}}
  - more: {switch: [{yes: {when: .n < 2, then: again}}]}`), `{}`)
	w.completes(`{"n": 2}`)
	require.Equal(t, []string{
		"/do/0/l completed", "/do/0/l/for/0/do/0/skip completed", "/do/0/l/for/1/do/0/skip skipped",
		"/do/1/t completed", "/do/1/t/try/0/r failed", "/do/1/t/retry/2/try/0/r failed", "/do/1/t/catch/do/0/h completed",
		"/do/2/again completed", "/do/3/more completed", "/do/2/again#2 completed", "/do/3/more#2 completed",
	}, w.trace())
	retried := w.step("/do/1/t/retry/2/try/0/r")
	require.Equal(t, "/do/1/t/try/0/r", retried.Pointer)
	require.Equal(t, 2, retried.Attempt)
	require.Equal(t, 2, w.step("/do/1/t").Attempt)
	require.Equal(t, "X", w.step("/do/1/t").Attempts[0].Error.Title)
	require.Equal(t, "raise", retried.Kind)
	require.Equal(t, "r", retried.Task)
	last := w.runs[len(w.runs)-1]
	require.Equal(t, int64(11), last.StepsTotal)
	require.Equal(t, int64(11), last.StepsDone)
}

func TestStepRecord(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`do: [{a: {input: {from: .in}, set: {v: '${ .n }'}, output: {as: .v}}}]`),
		`{"in": {"n": 5}}`)
	w.completes(`5`)
	ended := epoch
	require.Equal(t, interp.StepRecord{
		Number: 1, Path: "/do/0/a", Pointer: "/do/0/a", Task: "a", Kind: "set", Status: interp.StatusCompleted, Attempt: 1,
		StartedAt: epoch, EndedAt: &ended, Input: json.RawMessage(`{"n":5}`), Output: json.RawMessage(`5`),
	}, w.steps[1])
}

func TestRunWaitsWhenEveryBranchWaits(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - f:
      fork:
        branches:
          - c: {call: http, with: {method: get, endpoint: 'http://x'}}
          - w: {wait: {seconds: 10}}
          - t:
              try: [{r: {if: $context == null, raise: {error: {type: 'https://e/x', status: 500}}}}]
              catch: {retry: {delay: {seconds: 4}, limit: {attempt: {count: 1}}}, do: [{h: {wait: {seconds: 1}}}]}`), ``)
	w.origin = func(interp.Call) answer { return answer{Result: ok(1).Result, after: 2 * time.Second} }
	var waiting interp.StepRecord
	w.between = func(w *driver) {
		if s, seen := w.steps[4]; seen && s.Status == interp.StatusWaiting {
			waiting = s
		}
	}
	w.run()
	type state struct {
		status interp.Status
		kind   string
		since  time.Duration
	}
	var got []state
	for _, r := range w.runs {
		s := state{r.Status, r.WaitKind, r.Since.Sub(epoch)}
		if len(got) == 0 || got[len(got)-1] != s {
			got = append(got, s)
		}
	}
	require.Equal(t, []state{
		{interp.StatusRunning, "", 0},
		{interp.StatusWaiting, interp.WaitRetry, 2 * time.Second}, // the call is back
		{interp.StatusWaiting, interp.WaitTimer, 4 * time.Second}, // the retry failed, its handler waits
		{interp.StatusCompleted, "", 10 * time.Second},
	}, got)
	require.Equal(t, interp.WaitRetry, waiting.WaitKind)
	require.Equal(t, epoch.Add(4*time.Second), *waiting.WaitUntil)
	require.Nil(t, w.step("/do/0/f/fork/branches/2/t").WaitUntil, "nothing is left of the wait")
}

func TestFailingStepInsideATryDoesNotShowInTheRun(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do: [{t: {try: [{r: {raise: {error: {type: 'https://e/x', status: 500}}}}], catch: {do: [{w: {wait: {seconds: 1}}}]}}}]`), `{}`)
	w.run()
	for _, r := range w.runs {
		require.NotEqual(t, interp.StatusFailed, r.Status)
		require.Nil(t, r.Error)
	}
	require.Equal(t, interp.StatusFailed, w.step("/do/0/t/try/0/r").Status)
}

func TestFailureShowsInEveryTaskAround(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do: [{o: {do: [{f: {fork: {branches: [{r: {raise: {error: {type: 'https://e/x', status: 500}}}}, {w: {wait: {seconds: 1}}}]}}}]}}]`), `{}`)
	runError := w.fails()
	require.Equal(t, []string{
		"/do/0/o failed", "/do/0/o/do/0/f failed", "/do/0/o/do/0/f/fork/branches/0/r failed",
		"/do/0/o/do/0/f/fork/branches/1/w canceled",
	}, w.trace())
	require.Equal(t, &runError, w.steps[1].Error)
	require.Equal(t, &runError, w.runs[len(w.runs)-1].Error)
}

func TestEndShowsInEveryTaskAround(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do: [{o: {do: [{f: {fork: {branches: [{w: {wait: {seconds: 1}}}, {e: {set: {x: 1}, then: end}}]}}}]}}]`), `{}`)
	w.completes(`{"x": 1}`)
	require.Equal(t, []string{
		"/do/0/o completed", "/do/0/o/do/0/f completed", "/do/0/o/do/0/f/fork/branches/0/w canceled",
		"/do/0/o/do/0/f/fork/branches/1/e completed",
	}, w.trace())
	require.JSONEq(t, `{"x": 1}`, string(w.steps[1].Output))
}

func TestLargePayloadsAreCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", interp.MaxRecordedPayload)
	w := newDriver(t, document(`do: [{a: {set: {text: '${ .text }', short: 1}}}, {b: {set: '${ .short }'}}]`),
		`{"text": "`+long+`"}`)
	w.completes(`1`)
	size := len(`{"text":""}`) + len(long)
	require.Equal(t, size, w.steps[1].InputSize)
	require.Equal(t, size+len(`"short":1,`), w.steps[1].OutputSize)
	var input struct{ Text string }
	require.NoError(t, json.Unmarshal(w.steps[1].Input, &input))
	require.True(t, strings.HasPrefix(input.Text, "éé"), input.Text)
	require.True(t, strings.HasSuffix(input.Text, "é … [cut: 32768 bytes in all]"), input.Text)
	require.LessOrEqual(t, len(w.steps[1].Input), 2048)
	var output map[string]any
	require.NoError(t, json.Unmarshal(w.steps[1].Output, &output))
	require.InEpsilon(t, 1, output["short"], 0)
	first := w.steps[1]
	whole, _ := first.FullPayloads()
	require.Equal(t, map[string]any{"text": long}, whole)
	require.Equal(t, size+len(`"short":1,`), w.steps[2].InputSize)
	require.Zero(t, w.steps[2].OutputSize)
	require.JSONEq(t, "1", string(w.steps[2].Output))
}

func TestManyAttemptsKeepTheLatest(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do: [{t: {try: [{r: {raise: {error: {type: 'https://e/x', status: 500}}}}], catch: {retry: {delay: {seconds: 1}, limit: {attempt: {count: 120}}}}}}]`), ``)
	w.fails()
	s := w.step("/do/0/t")
	require.Equal(t, 121, s.Attempt)
	require.Len(t, s.Attempts, 50)
	require.Equal(t, 121, s.Attempts[49].Number)
	require.Equal(t, dsl.Error{Type: "https://e/x", Status: 500, Instance: "/do/0/t/try/0/r"}, *s.Attempts[49].Error)
}

func TestRecordsAreTheSameEveryTime(t *testing.T) {
	t.Parallel()
	source := document(`
do:
  - f:
      fork:
        branches:
          - a: {for: {each: x, in: '[range(20)]'}, do: [{c: {call: http, with: {method: get, endpoint: 'http://x'}}}]}
          - b: {for: {each: x, in: '[range(20)]'}, do: [{s: {set: {k1: 1, k2: 2, k3: '${ $x }'}}}]}`)
	records := func() string {
		w := newDriver(t, source, `{"b": 1, "a": 2}`)
		w.origin = func(interp.Call) answer { return ok(map[string]any{"z": 1, "y": 2, "x": 3}) }
		_, steps, run := outcomeOf(w)
		data, err := json.Marshal([]any{steps, run})
		require.NoError(t, err)
		return string(data)
	}
	first := records()
	for range 5 {
		require.Equal(t, first, records())
	}
}
