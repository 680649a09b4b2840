package interp_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// restore replaces the machine by one from its snapshot, as continue-as-new does: no timer survives.
func (w *driver) restore() {
	w.t.Helper()
	if _, done := w.m.Done(); done {
		return
	}
	w.take()
	snapshot, err := w.m.Snapshot()
	require.NoError(w.t, err)
	w.m, err = interp.Restore(w.doc, snapshot, w.limits)
	require.NoError(w.t, err)
	w.events = slices.DeleteFunc(w.events, func(e event) bool { return e.published == "" && e.act == nil })
}

// program draws a document of random tasks. Every run of it ends.
type program struct {
	t     *rapid.T
	names int
}

func (p *program) tasks(depth int, indent string) string {
	var b strings.Builder
	for range rapid.IntRange(1, 3).Draw(p.t, "tasks") {
		p.names++
		fmt.Fprintf(&b, "%s- t%d:\n%s", indent, p.names, p.task(depth, indent+"    "))
	}
	return b.String()
}

func (p *program) task(depth int, in string) string {
	leaves := []string{"set", "call", "wait", "raise", "switch", "listen", "listen", "consume", "emit", "run", "checked"}
	if depth > 0 {
		leaves = append(leaves, "do", "for", "fork", "competing fork", "try", "try", "timeout")
	}
	one := func() string {
		p.names++
		return fmt.Sprintf("%s    - b%d:\n%s", in, p.names, p.task(depth-1, in+"        "))
	}
	switch rapid.SampledFrom(leaves).Draw(p.t, "kind") {
	case "set":
		return in + "set: {n: '${ ((.n? // 0) + 1) % 1000 }', c: '${ $context.n? }'}\n" + in +
			"export: {as: '{ n: (($context.n? // 0) + 1) }'}\n"
	case "call":
		return in + "call: http\n" + in + "with: {method: post, endpoint: 'http://x', body: '${ . }'}\n"
	case "wait":
		return in + fmt.Sprintf("wait: {seconds: %d}\n", rapid.IntRange(0, 5).Draw(p.t, "seconds"))
	case "raise":
		return in + fmt.Sprintf("if: '((.n? // 0) | tostring | length) %% 2 == %d'\n",
			rapid.IntRange(0, 1).Draw(p.t, "parity")) +
			in + "raise: {error: {type: 'https://e/x', status: 500, title: X}}\n"
	case "switch":
		return in + fmt.Sprintf("switch: [{a: {when: '(.n? // 0) > %d', then: exit}}]\n",
			rapid.IntRange(0, 3).Draw(p.t, "over"))
	case "listen":
		return in + "timeout: {after: {seconds: 4}}\n" + in + "listen: {to: " +
			p.strategy(rapid.SampledFrom([]string{"one", "any", "all", "until", "events"}).Draw(p.t, "strategy")) + "}\n"
	case "consume":
		return in + "timeout: {after: {seconds: 9}}\n" + in + "listen: {to: " + p.strategy("until") + ", read: envelope}\n" +
			in + "foreach:\n" + in + "  output: {as: '{o: ., id: $item.id, i: $index}'}\n" + in +
			"  export: {as: '{n: ($index + 1)}'}\n" +
			in + "  do:\n" + p.tasks(max(depth-1, 0), in+"    ")
	case "checked":
		late := func(when string) string { return "schema: {resource: {endpoint: '${ " + when + " }'}}" }
		return in + "input: {" + late(`"http://" + (.n? // 0 | tostring)`) + "}\n" +
			in + "output: {" + late(`"http://" + ($input.n? // 0 | tostring)`) + "}\n" +
			in + "export: {as: '{n: ($context.n? // 0 | . + 1)}', " + late(`"http://" + (.n | tostring)`) + "}\n" +
			in + "call: http\n" + in + "with: {method: post, endpoint: 'http://x', body: '${ . }'}\n"
	case "emit":
		return in + "emit: {event: {with: {type: told, data: '${ .n? }'}}}\n"
	case "run":
		return in + "timeout: {after: {seconds: 3}}\n" + in +
			"run: {workflow: {namespace: n, name: child, version: latest, input: {n: '${ .n? }'}}}\n"
	case "for":
		return in + fmt.Sprintf("for: {each: x, in: '[range(%d)]'}\n", rapid.IntRange(0, 3).Draw(p.t, "items")) +
			in + "do:\n" + p.tasks(depth-1, in+"  ")
	case "fork":
		return in + "fork:\n" + in + "  branches:\n" + one() + one()
	case "competing fork":
		return in + "fork:\n" + in + "  compete: true\n" + in + "  branches:\n" + one() + one()
	case "try":
		return in + "try:\n" + p.tasks(depth-1, in+"  ") + in + "catch:\n" + in +
			"  retry: {delay: {seconds: 1}, backoff: {exponential: {}}, jitter: {from: {seconds: 0}, to: {seconds: 2}}, " +
			"limit: {attempt: {count: 2}}}\n" +
			in + "  do:\n" + p.tasks(depth-1, in+"    ")
	case "timeout":
		return in + fmt.Sprintf("timeout: {after: {seconds: %d}}\n", rapid.IntRange(1, 6).Draw(p.t, "after")) + in + "do:\n" +
			p.tasks(depth-1, in+"  ")
	}
	return in + "do:\n" + p.tasks(depth-1, in+"  ")
}

// strategy draws a consumption strategy over the events of publications.
func (p *program) strategy(kind string) string {
	filter := func() string {
		return fmt.Sprintf("{with: {type: t%d}, correlate: {k: {from: .k}}}", rapid.IntRange(0, 2).Draw(p.t, "type"))
	}
	switch kind {
	case "one":
		return "{one: " + filter() + "}"
	case "any":
		return "{any: [" + filter() + ", {with: {data: '${ . == 1 }'}}]}"
	case "all":
		return "{all: [" + filter() + ", " + filter() + "]}"
	case "events":
		return "{any: [], until: {all: [" + filter() + ", " + filter() + "]}}"
	}
	return "{any: [], until: 'length > 2'}"
}

// publications draws events that are published while the run is open.
func publications(t *rapid.T) func(w *driver) {
	type one struct {
		after time.Duration
		text  string
	}
	var all []one
	for i := range rapid.IntRange(0, 12).Draw(t, "events") {
		all = append(all, one{
			after: time.Duration(rapid.IntRange(0, 20).Draw(t, "after")) * time.Second,
			text: fmt.Sprintf(`{"id": "%d", "type": "t%d", "k": %d, "data": %d}`, i,
				rapid.IntRange(0, 2).Draw(t, "type"), rapid.IntRange(0, 1).Draw(t, "key"), rapid.IntRange(0, 2).Draw(t, "data")),
		})
	}
	return func(w *driver) {
		for _, e := range all {
			w.publish(e.after, e.text)
		}
	}
}

// answerOf derives the answer of a call from its key alone, so that the time of the call does not matter.
func answerOf(c interp.Call) answer {
	sum := 0
	for _, b := range []byte(c.Key) {
		sum = sum*31 + int(b)
		sum %= 1 << 20
	}
	a := ok(map[string]any{"n": sum % 7})
	if c.HTTP != nil && c.HTTP.Output == dsl.OutputRaw {
		a = ok(base64.StdEncoding.EncodeToString([]byte("true")))
	}
	if sum%3 == 0 {
		a = answer{Result: answered(500 + sum%4)}
		a.Unanswered = sum%2 == 0
	}
	a.after = time.Duration(sum%4) * time.Second
	return a
}

// endOf derives the end of a child from its key alone, at times later than the timeout of its task.
func endOf(c interp.StartChild) answer {
	a := answerOf(interp.Call{Key: c.Key})
	a.after += time.Second
	return a
}

func outcomeOf(w *driver) (string, []interp.StepRecord, interp.RunRecord) {
	o := w.run()
	text := string(o.Status)
	if o.Error != nil {
		text += " " + o.Error.Error()
	}
	data, err := jq.EncodeJSON(o.Output)
	require.NoError(w.t, err)
	var steps []interp.StepRecord
	for n := int64(1); n <= int64(len(w.steps)); n++ {
		steps = append(steps, w.steps[n])
	}
	return text + " " + string(data), steps, w.runs[len(w.runs)-1]
}

// TestSnapshotsPreserveOutcomeAndRecords continues random runs from a snapshot at every point where it is possible, and
// at random ones: the outcome and the records must be those of a run without snapshots.
func TestSnapshotsPreserveOutcomeAndRecords(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := &program{t: t}
		source := document("timeout: {after: {minutes: 5}}\ndo:\n" + p.tasks(2, "  "))
		publish := publications(t)
		snapshotsPreserve(t, source, rapid.IntRange(0, 3).Draw(t, "seldom"), func(w *driver) {
			w.origin, w.child = answerOf, endOf
			publish(w)
		})
	})
}

// Here a child ends at the time of an event, while a timer is open that a snapshot removes.
func TestSnapshotsPreserveTheOrderOfSimultaneousEvents(t *testing.T) {
	t.Parallel()
	for events := range 4 {
		snapshotsPreserve(t, document(`
timeout: {after: {minutes: 5}}
do:
  - f:
      fork:
        branches:
          - a: {do: [{w: {wait: {seconds: 1}}}, {r: {`+runTask("order", "")+`}}, {s: {set: {a: 1}}}]}
          - l: {listen: {to: {any: [], until: 'length > `+strconv.Itoa(events)+`'}}, foreach: {do: [{s: {set: {a: 1}}}]}}`),
			0, func(w *driver) {
				w.child = ends(nil, time.Second)
				for range events {
					w.publish(0, `{"id": "0", "type": "t"}`)
				}
				w.publish(2*time.Second, `{"id": "1", "type": "t"}`)
			})
	}
}

// snapshotsPreserve compares a run without snapshots with runs that continue from a snapshot at every n-th point where
// it is possible, n being seldom+1, and at every such point of a computation that yields after each turn.
func snapshotsPreserve(t tb, source string, seldom int, prepare func(w *driver)) {
	t.Helper()
	still := newDriver(t, source, `{"n": 1}`)
	prepare(still)
	wantOutcome, wantSteps, wantRun := outcomeOf(still)

	compare := func(budget int64, seldom int) {
		t.Helper()
		moved, count := newDriver(t, source, `{"n": 1}`), 0
		prepare(moved)
		moved.limits.AdvanceFuel = budget
		moved.between = func(w *driver) {
			if count++; w.m.InFlight() == 0 && count%(seldom+1) == 0 {
				w.restore()
			}
		}
		gotOutcome, gotSteps, gotRun := outcomeOf(moved)
		require.Equal(t, wantOutcome, gotOutcome, source)
		require.Equal(t, wantSteps, gotSteps, source)
		require.Equal(t, wantRun, gotRun, source)
	}
	compare(still.limits.AdvanceFuel, seldom)
	compare(1, 0)
}

func TestSnapshotIsRefused(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`do: [{c: {call: http, with: {method: get, endpoint: 'http://x'}}}]`), ``)
	w.origin = func(interp.Call) answer { return ok(1) }
	w.perform(w.m.Advance(w.now))
	_, err := w.m.Snapshot()
	require.ErrorIs(t, err, interp.ErrInFlight)
	w.next()
	w.m.Advance(w.now)
	_, err = w.m.Snapshot()
	require.ErrorContains(t, err, "has ended")
}

func TestRestoreIsRefused(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`do: [{w: {wait: PT1S}}]`), ``)
	w.m.Advance(w.now)
	snapshot, err := w.m.Snapshot()
	require.NoError(t, err)
	_, err = interp.Restore(w.doc, snapshot[:len(snapshot)/2], w.limits)
	require.Error(t, err)
	_, err = interp.Restore(parse(t, document(`do: [{w: {wait: PT2S}}]`)), snapshot, w.limits)
	require.ErrorContains(t, err, "is of document")
}
