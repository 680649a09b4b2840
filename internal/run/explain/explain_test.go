package explain_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/explain"
)

func parse(t *testing.T, tasks string) *dsl.Document {
	t.Helper()
	doc, problems := dsl.Parse(
		[]byte("document: {dsl: '1.0.3', namespace: test, name: explained, version: '1.0.0'}\n" + tasks))
	for _, p := range problems {
		require.Equal(t, dsl.SeverityWarning, p.Severity, p.Message)
	}
	return doc
}

func at(seconds int) time.Time { return time.Unix(1_767_225_600+int64(seconds), 0).UTC() }

func key(_, path string) string { return "key of " + path }

// open returns an open step of a task in the workflow's list. An empty kind is a step that runs, any other one a step
// that waits.
func open(number int64, path string, task dsl.Kind, kind string) run.Step {
	s := run.Step{Number: number, Path: path, Pointer: path, Task: "t", Kind: string(task), Status: "running",
		StartedAt: at(int(number))}
	if kind != "" {
		s.Status, s.WaitingKind = "waiting", kind
	}
	return s
}

// running returns a run that began at 0.
func running(status run.Status, kind string) run.Run {
	return run.Run{ID: "r", Project: "p", Status: status, WaitingKind: kind, StartedAt: at(0), StatusAt: at(9)}
}

// awaiting returns a run with waiting steps.
func awaiting(t *testing.T, tasks, kind string, steps ...run.Step) explain.State {
	t.Helper()
	return explain.State{Run: running(run.Waiting, kind), Document: parse(t, tasks), Rows: explain.Rows{Steps: steps},
		Key: key}
}

func listener(path string, keys ...map[string]event.Key) event.Listener {
	l := event.Listener{ID: key("", path)}
	for _, k := range keys {
		l.Spec.Filters = append(l.Spec.Filters, event.Filter{Correlate: k})
	}
	return l
}

const paid = `do:
  - t:
      listen:
        to:
          one:
            with: {type: com.example.paid, source: /shop}
            correlate:
              orderId: {from: '${ .data.order }', expect: '${ .order }'}
              region: {from: '${ .data.region }'}
`

func TestWaitsForEvents(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		tasks     string
		listeners []event.Listener
		what      string
	}{
		"one event, with the expected value of a key": {
			paid, []event.Listener{listener("/do/0/t",
				map[string]event.Key{"orderId": {Expect: json.RawMessage(`4711`)}, "region": {}})},
			`event com.example.paid (source "/shop") with orderId = 4711, region = the value of the first event`,
		},
		"a listener that is not stored": {
			paid, nil, `event com.example.paid (source "/shop") with orderId = unknown, region = the value of the first event`,
		},
		"a value that does not open": {
			paid, []event.Listener{listener("/do/0/t", map[string]event.Key{"orderId": {}, "region": {}})},
			`event com.example.paid (source "/shop") with orderId = unknown, region = the value of the first event`,
		},
		"any event": {"do:\n  - t: {listen: {to: {any: [], until: '${ length > 3 }'}}}\n", nil,
			"any event; ends when length > 3"},
		"one of several, until another": {
			`do:
  - t:
      listen:
        to:
          any: [{with: {type: a}}, {with: {source: /s}}]
          until: {one: {with: {type: stop}, correlate: {id: {from: '${ .id }', expect: x}}}}
`, []event.Listener{listener("/do/0/t", nil, nil, map[string]event.Key{"id": {Expect: json.RawMessage(`"x"`)}})},
			`one of: event a; event of any type (source "/s"); ends with event stop with id = "x"`,
		},
		"a pattern, in the words of the document": {
			"do:\n  - t: {listen: {to: {one: {with: {type: 'com[.]example[.].*'}}}}}\n", []event.Listener{
				listener("/do/0/t", nil)},
			"event com[.]example[.].*",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := awaiting(t, tt.tasks, run.WaitingEvent, open(1, "/do/0/t", dsl.KindListen, run.WaitingEvent))
			s.Rows.Listeners = tt.listeners
			waits := explain.Waits(s)
			require.Len(t, waits, 1)
			require.Equal(t, tt.what, waits[0].What)
			require.Equal(t, []any{run.WaitingEvent, int64(1), "/do/0/t", at(1)},
				[]any{waits[0].Kind, waits[0].Step, waits[0].Path, waits[0].Since})
		})
	}
}

func TestWaitsShowWhichOfAllEventsHaveCome(t *testing.T) {
	t.Parallel()
	const both = "do:\n  - t: {listen: {to: {all: [{with: {type: a}}, {with: {type: b}}]}}}\n"
	const ends = "do:\n  - t: {listen: {to: {any: [{with: {type: a}}], until: {all: [{with: {type: b}}, {with: {type: " +
		"c}}]}}}}\n"
	const seven = "do:\n  - t: {listen: {to: {all: [{with: {type: a}}, {with: {type: b}}, {with: {type: c}}, {with: " +
		"{type: d}}, {with: {type: e}}, {with: {type: f}}, {with: {type: g}}]}}}\n"
	taken := func(filters ...int) *run.StepWait {
		w := &run.StepWait{}
		for _, f := range filters {
			w.Taken = append(w.Taken, run.TakenEvent{Filter: f, At: at(10 + f)})
		}
		return w
	}
	tests := map[string]struct {
		tasks string
		wait  *run.StepWait
		what  string
		came  []bool
	}{
		"none": {both, nil, "each of: event a (awaited); event b (awaited)", []bool{false, false}},
		"one":  {both, taken(1), "each of: event a (awaited); event b (came at 2026-01-01T00:00:11Z)", []bool{false, true}},
		"one, without its time": {
			both, &run.StepWait{Taken: []run.TakenEvent{{Filter: 0}}}, "each of: event a (has come); event b (awaited)",
			[]bool{true, false},
		},
		"of those that end it": {
			ends, taken(2), "event a; ends with each of: event b (awaited); event c (came at 2026-01-01T00:00:12Z)",
			[]bool{false, false, true},
		},
		"of more than a line has": {
			seven, taken(0, 5),
			"each of: event a (came at 2026-01-01T00:00:10Z); event b (awaited); event c (awaited); event d (awaited); event " +
				"e (awaited); and 2 more, 1 of them awaited",
			[]bool{true, false, false, false, false, true, false},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step := open(1, "/do/0/t", dsl.KindListen, run.WaitingEvent)
			step.Wait = tt.wait
			s := awaiting(t, tt.tasks, run.WaitingEvent, step)
			waits := explain.Waits(s)
			require.Len(t, waits, 1)
			require.Equal(t, tt.what, waits[0].What)
			for i, e := range waits[0].Events {
				require.Equal(t, tt.came[i], e.Came)
				if e.Came && !tt.wait.Taken[0].At.IsZero() {
					require.Equal(t, at(10+i), e.CameAt)
				}
			}
		})
	}
}

func TestWaitsHaveTheRecordedDeadline(t *testing.T) {
	t.Parallel()
	const tasks = "timeout: {after: '${ .limit }'}\ndo:\n  - l:\n      do: [{t: {wait: PT1H, timeout: {after: PT5M}}}]\n"
	list, inList := open(1, "/do/0/l", dsl.KindDo, ""), open(2, "/do/0/l/do/0/t", dsl.KindWait, run.WaitingTimer)
	inList.Wait = &run.StepWait{Deadline: at(40), DeadlineBy: "/timeout"}
	state := awaiting(t, tasks, run.WaitingPaused, list, inList)
	waits := explain.Waits(state)
	require.Len(t, waits, 2, "the pause, and the timer")
	for _, w := range waits {
		require.Equal(t, []any{at(40), "/timeout", false}, []any{w.Deadline, w.DeadlineBy, w.DeadlineUnknown})
	}
	inList.Wait = &run.StepWait{Deadline: at(30), DeadlineBy: "/do/0/l/do/0/t"}
	waits = explain.Waits(awaiting(t, tasks, run.WaitingPaused, list, inList))
	require.Equal(t, []any{at(30), "/do/0/l/do/0/t", false},
		[]any{waits[1].Deadline, waits[1].DeadlineBy, waits[1].DeadlineUnknown})
	require.True(t, waits[0].DeadlineUnknown, "when the run ends does not follow from what is recorded")
}

func TestWaitsHaveTheEarliestDeadline(t *testing.T) {
	t.Parallel()
	const inner = "      do:\n        - t:\n            wait: PT1H\n            timeout: {after: PT5M}\n"
	inList := open(2, "/do/0/l/do/0/t", dsl.KindWait, run.WaitingTimer)
	inList.WaitUntil = at(3602)
	attempt := func(path string, number int) []run.Step {
		around := open(1, "/do/0/l", dsl.KindTry, "")
		around.Attempts = []run.Attempt{{Number: number, StartedAt: at(100)}}
		return []run.Step{around, {
			Number: 2, Path: path, Pointer: "/do/0/l/try/0/t", Kind: "wait", Status: "waiting", WaitingKind: run.WaitingTimer,
			StartedAt: at(100),
		}}
	}
	const limited = "do:\n  - l:\n      try: [{t: {wait: PT1H}}]\n      catch: {retry: {limit: {attempt: {count: 3, " +
		"duration: PT10S}}}, do: [{h: {wait: PT1H}}]}\n"
	tests := map[string]struct {
		tasks    string
		steps    []run.Step
		deadline time.Time
		by       string
		unknown  bool
	}{
		"no timeout": {"do:\n  - l:\n      do: [{t: {wait: PT1H}}]\n",
			[]run.Step{open(1, "/do/0/l", dsl.KindDo, ""), inList}, time.Time{}, "", false},
		"of the task": {"do:\n  - l:\n" + inner, []run.Step{open(1, "/do/0/l", dsl.KindDo, ""), inList}, at(2 + 300),
			"/do/0/l/do/0/t", false},
		"of a task around": {"do:\n  - l:\n      timeout: {after: PT1M}\n" + inner,
			[]run.Step{open(1, "/do/0/l", dsl.KindDo, ""), inList}, at(1 + 60), "/do/0/l", false},
		"of the run": {"timeout: {after: PT30S}\ndo:\n  - l:\n" + inner,
			[]run.Step{open(1, "/do/0/l", dsl.KindDo, ""), inList}, at(30), "/timeout", false},
		"of an expression": {
			"do:\n  - l:\n      timeout: {after: '${ .limit }'}\n" +
				inner, []run.Step{open(1, "/do/0/l", dsl.KindDo, ""), inList}, at(2 + 300), "/do/0/l/do/0/t", true,
		},
		"of an attempt":      {limited, attempt("/do/0/l/try/0/t", 1), at(110), "/do/0/l", false},
		"of a later attempt": {limited, attempt("/do/0/l/retry/2/try/0/t", 2), at(110), "/do/0/l", false},
		"not of the handler": {limited, attempt("/do/0/l/catch/do/0/h", 1), time.Time{}, "", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waits := explain.Waits(awaiting(t, tt.tasks, run.WaitingTimer, tt.steps...))
			require.Len(t, waits, 1, "the step around waits for the one in it")
			require.Equal(t, []any{tt.deadline, tt.by, tt.unknown},
				[]any{waits[0].Deadline, waits[0].DeadlineBy, waits[0].DeadlineUnknown})
		})
	}
}

func TestWaitsOfEachKind(t *testing.T) {
	t.Parallel()
	const child = "do:\n  - t: {run: {workflow: {namespace: shop, name: pay, version: latest}}}\n"
	const retries = "do:\n  - t:\n      try: [{c: {call: http, with: {method: get, endpoint: 'http://x/'}}}]\n      " +
		"catch: {retry: {delay: PT1M}}\n"
	const foreach = "do:\n  - t:\n      listen: {to: {any: [], until: '${ false }'}}\n      foreach: {item: x, do: [{w: " +
		"{wait: PT1M}}]}\n"
	inItem := open(2, "/do/0/t/foreach/0/do/0/w", dsl.KindWait, run.WaitingTimer)
	timer, retry := open(1, "/do/0/t", dsl.KindWait, run.WaitingTimer), open(1, "/do/0/t", dsl.KindTry, run.WaitingRetry)
	timer.WaitUntil, retry.WaitUntil = at(60), at(70)
	away := &run.Error{Status: 503, Title: "away"}
	retry.Attempts = []run.Attempt{{Number: 1}, {Number: 2, EndedAt: new(at(5)), Error: away}}
	third, call := open(1, "/do/0/t", dsl.KindTry, ""), open(2, "/do/0/t/retry/3/try/0/c", dsl.KindCall, "")
	third.Attempts = append(slices.Clone(retry.Attempts), run.Attempt{Number: 3})
	failedTwice := &explain.Retry{Step: 1, Task: "t", Failed: 2, Since: at(1), LastError: away}
	called := open(1, "/do/0/t", dsl.KindCall, "")
	called.Attempts = []run.Attempt{{Number: 1}, {Number: 2}}
	accepted := awaiting(t, child, run.WaitingChild, open(1, "/do/0/t", dsl.KindRun, run.WaitingChild))
	accepted.Rows.Children = []explain.Child{
		{Key: "another", RunID: "x"},
		{Key: "key of /do/0/t", RunID: "k", Workflow: "shop/pay", Version: "1.0.0", Status: run.Waiting,
			WaitingKind: run.WaitingEvent},
	}
	paused := awaiting(t, "do:\n  - t: {wait: PT1M}\n", run.WaitingPaused, timer)
	short := awaiting(t, "timeout: {after: PT2H}\ndo:\n  - t: {wait: PT1M}\n", run.WaitingQuota)
	short.Run.Quota = &run.QuotaUsage{Used: 100, Limit: 100, ResetAt: at(3600)}
	imported := awaiting(t, "do:\n  - t: {wait: PT1M}\n", run.WaitingEvent, open(1, "/a", "legacy", run.WaitingEvent))
	imported.Document = nil
	inFlight := awaiting(t, "do:\n  - t: {call: http, with: {method: get, endpoint: 'http://x/{id}'}}\n", "", called)
	inFlight.Run.Status = run.Running
	tests := map[string]struct {
		state explain.State
		want  []explain.Wait
	}{
		"timer": {awaiting(t, "do:\n  - t: {wait: PT1M}\n", run.WaitingTimer, timer), []explain.Wait{
			{Kind: "timer", What: "timer", Step: 1, Since: at(1), Due: at(60)},
		}},
		"retry": {awaiting(t, retries, run.WaitingRetry, retry), []explain.Wait{
			{Kind: "retry", What: "attempt 3", Step: 1, Since: at(5), Due: at(70), Retry: failedTwice},
		}},
		"attempt in progress": {awaiting(t, retries, "", third, call), []explain.Wait{
			{Kind: "call", What: "answer", Step: 2, Since: at(2), Retry: failedTwice},
		}},
		"child": {accepted, []explain.Wait{
			{Kind: "child", What: "child run k of shop/pay 1.0.0, which is waiting (event)", Step: 1, Since: at(1),
				Child: &accepted.Rows.Children[1]},
		}},
		"unknown child": {awaiting(t, child, run.WaitingChild, open(1, "/do/0/t", dsl.KindRun, run.WaitingChild)),
			[]explain.Wait{
				{Kind: "child", What: "child run of shop/pay, whose ID is unknown", Step: 1, Since: at(1)},
			}},
		"call": {inFlight, []explain.Wait{
			{Kind: "call", What: "answer of GET http://x/{id}, attempt 2", Step: 1, Since: at(1)}}},
		"paused, with a timer": {paused, []explain.Wait{
			{Kind: "paused", What: "unpause: the run is paused", Since: at(9)},
			{Kind: "timer", What: "timer", Step: 1, Since: at(1), Due: at(60)},
		}},
		"quota of steps": {short, []explain.Wait{{
			Kind: "quota", What: "quota of steps of project p: 100 of 100 used in this period", Since: at(9), Due: at(3600),
			Deadline: at(7200), DeadlineBy: "/timeout",
		}}},
		"a task for each event": {
			awaiting(t, foreach, run.WaitingTimer, open(1, "/do/0/t", dsl.KindListen, ""), inItem), []explain.Wait{
				{Kind: "timer", What: "timer", Step: 2, Since: at(2)},
			}},
		"no document": {imported,
			[]explain.Wait{{Kind: "event", What: "event, which is unknown", Step: 1, Since: at(1), DeadlineUnknown: true}}},
		"no step": {awaiting(t, "do:\n  - t: {wait: PT1M}\n", run.WaitingTimer), []explain.Wait{
			{Kind: "timer", What: "unknown: no open step is recorded", Since: at(9)},
		}},
		"ended": {explain.State{Run: running(run.Failed, "")}, nil},
		"queued for admission": {
			explain.State{Run: run.Run{
				Project: "p", Status: run.Queued, QueuedReason: "admission", StatusAt: at(1), QueuePosition: 3}},
			[]explain.Wait{{Kind: "quota", What: "quota of concurrent runs of project p, position 3 in the queue",
				Since: at(1)}}},
		"queued for Temporal": {explain.State{
			Run: run.Run{Status: run.Queued, QueuedReason: "engine", StatusAt: at(1), ExpiresAt: at(9)}},
			[]explain.Wait{{Kind: "engine", What: "Temporal, which could not be reached", Since: at(1), Deadline: at(9)}}},
		"queued for a worker": {explain.State{Run: run.Run{Status: run.Queued, QueuedReason: "worker", StatusAt: at(1)}},
			[]explain.Wait{{Kind: "worker", What: "a worker that takes the first workflow task", Since: at(1)}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := explain.Waits(tt.state)
			for i := range got { // the others say where; another test looks at these
				got[i].Task, got[i].Pointer, got[i].Path = "", "", ""
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestUncaught(t *testing.T) {
	t.Parallel()
	const pointer = "/do/0/t"
	communication := run.Error{
		Type: dsl.ErrorTypeCommunication, Status: 503, Title: "Communication failed", Instance: "/do/0/t/try/0/c"}
	redacted := communication
	redacted.Title = "no answer for " + redact.Mark
	handler := run.Error{Type: dsl.ErrorTypeRuntime, Status: 500, Instance: "/do/0/t/catch/do/0/h"}
	timeout := run.Error{Type: dsl.ErrorTypeTimeout, Status: 408, Instance: pointer}
	tests := map[string]struct {
		rest           string
		raised, failed run.Error
		attempts       int
		why            string
	}{
		"the short name of a type": {
			"catch: {errors: {with: {type: communication}}}", communication, communication, 1,
			`catch did not match: errors.with.type is "communication", that of the error "` + dsl.ErrorTypeCommunication + `"`,
		},
		"type and status": {
			"catch: {errors: {with: {type: https://example.com/x, status: 500}}}", communication, communication, 1,
			`catch did not match: errors.with.type is "https://example.com/x", that of the error "` +
				dsl.ErrorTypeCommunication +
				`"; errors.with.status is "500", that of the error "503"`,
		},
		"a redacted title": {
			"catch: {errors: {with: {title: no answer for 4711}}}", redacted, redacted, 1,
			`whether catch matched is unknown: errors.with.title is "no answer for 4711", that of the error is redacted and cannot be compared`,
		},
		"a condition": {
			"catch: {when: '${ false }'}", communication, communication, 1, "the filter of catch matched, but catch.when was " +
				"not true",
		},
		"no more retries": {
			"catch: {retry: {limit: {attempt: {count: 2}}}}", communication, communication, 3,
			"the filter of catch matched, but 3 attempts were made, catch.retry allowed no further one, and there is no " +
				"handler (catch.do)",
		},
		"one of several": {
			"catch: {exceptWhen: '${ true }', retry: {limit: {attempt: {count: 1}}}}", communication, communication, 1,
			"the filter of catch matched, but either catch.exceptWhen was true, or 1 attempt was made, catch.retry allowed no " +
				"further one, and there is no handler (catch.do)",
		},
		"the handler": {
			"catch: {do: [{h: {set: {a: b}}}]}", communication, handler, 1, "catch matched, and a task of its handler failed",
		},
		"its own timeout": {
			"timeout: {after: PT1S}\n      catch: {}", timeout, timeout, 1, "the task's own timeout ended it, which its catch " +
				"cannot handle",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := parse(t, "do:\n  - t:\n      try: [{c: {call: http, with: {method: get, endpoint: 'http://x/'}}}]\n      "+
				tt.rest+"\n")
			step := run.Step{Number: 7, Pointer: pointer, Kind: "try", Status: "failed", Error: &tt.failed,
				Attempts: make([]run.Attempt, tt.attempts)}
			step.Attempts[tt.attempts-1].Error = &tt.raised
			require.Equal(t, tt.why, explain.Uncaught(doc.Do[0], &step))

			service := explain.New(explain.Options{Documents: documents{"h": doc}})
			steps := []run.Step{{Number: 6, Kind: "try", Status: "completed"}, step}
			require.Equal(t, map[int64]string{7: tt.why}, service.Uncaught(t.Context(), run.Run{DocumentHash: "h"}, steps))
			require.Empty(t, service.Uncaught(t.Context(), run.Run{DocumentHash: "gone"}, steps))
		})
	}
	step := run.Step{Pointer: pointer, Kind: "try", Status: "failed", Error: &communication, Attempts: []run.Attempt{{}}}
	require.Empty(t, explain.Uncaught(parse(t, "do:\n  - t: {set: {a: b}}\n").Do[0], &step), "it is no try")
	require.Empty(t, explain.Uncaught(nil, &step))
}

// documents is a source of documents.
type documents map[string]*dsl.Document

func (d documents) Document(_ context.Context, hash string) (*dsl.Document, error) {
	if doc := d[hash]; doc != nil {
		return doc, nil
	}
	return nil, apperror.New(apperror.NotFound, apperror.WorkflowNotFound, "no document")
}

// stored is a store with the data of one run.
type stored explain.Rows

func (s stored) Pending(context.Context, string, string, explain.Page) (explain.Rows, error) {
	return explain.Rows(s), nil
}

func (s stored) Listening(context.Context, string, string, int) ([]explain.Listening, error) {
	return nil, nil
}

func (s stored) NotTaken(context.Context, string, string, []string, int) ([]event.Event, int64, error) {
	return nil, 0, nil
}

func (s stored) EventsAt(context.Context, string, []int64) ([]event.Event, error) { return nil, nil }

// redactor returns listeners unchanged, or fails.
type redactor struct{ err error }

func (r redactor) Listeners(_ context.Context, _ string, list []event.Listener) ([]event.Listener, error) {
	return list, r.err
}

func (r redactor) OpenToCompare(events []event.Event, listeners []event.Listener) ([]event.Event, []event.Listener) {
	return events, listeners
}

func TestRunIsExplainedWhenDataCannotBeRead(t *testing.T) {
	t.Parallel()
	rows := stored{
		Steps: []run.Step{open(1, "/do/0/t", dsl.KindListen, run.WaitingEvent)},
		Listeners: []event.Listener{
			listener("/do/0/t", map[string]event.Key{"orderId": {Expect: json.RawMessage(`4711`)}, "region": {}})},
	}
	known := documents{"h": parse(t, paid)}
	for name, tt := range map[string]struct {
		documents documents
		redactor  redactor
		what      string
	}{
		"all can be read": {known, redactor{},
			`event com.example.paid (source "/shop") with orderId = 4711, region = the value of the first event`},
		"no listeners": {
			known, redactor{errors.New("no key")},
			`event com.example.paid (source "/shop") with orderId = unknown, region = the value of the first event`,
		},
		"no document": {documents{}, redactor{}, "event, which is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := explain.New(explain.Options{
				Store: rows, Events: rows, Redactor: tt.redactor, Documents: tt.documents, Key: key})
			r := running(run.Waiting, run.WaitingEvent)
			r.DocumentHash = "h"
			waits, last, err := service.Waits(t.Context(), r, 0, explain.Most)
			require.NoError(t, err)
			require.Zero(t, last)
			require.Len(t, waits, 1)
			require.Equal(t, tt.what, waits[0].What)
		})
	}
}

func TestWaitsContinueAfterAStep(t *testing.T) {
	t.Parallel()
	s := awaiting(t, "do:\n  - t: {try: [{w: {wait: PT1M}}], catch: {}, timeout: {after: PT9S}}\n", run.WaitingPaused,
		open(2, "/do/0/t/try/0/w", dsl.KindWait, run.WaitingTimer))
	s.Rows.Around = []run.Step{open(1, "/do/0/t", dsl.KindTry, "")}
	require.Len(t, explain.Waits(s), 2, "the pause and the timer")
	s.After = 1
	waits := explain.Waits(s)
	require.Len(t, waits, 1, "what holds the run as a whole is on the first page")
	require.Equal(t, []any{run.WaitingTimer, "/do/0/t"}, []any{waits[0].Kind, waits[0].DeadlineBy},
		"the timeout of a step of the first page counts")
	s.Rows.Steps = nil
	require.Empty(t, explain.Waits(s), "the last page may be empty")
}
