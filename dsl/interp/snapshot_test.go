package interp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// restore replaces the machine by one made of its snapshot, as continue-as-new does: no timer survives.
func (w *world) restore() {
	w.t.Helper()
	if _, done := w.m.Done(); done {
		return
	}
	w.take()
	snapshot, err := w.m.Snapshot()
	require.NoError(w.t, err)
	w.m, err = interp.Restore(w.doc, snapshot, w.limits)
	require.NoError(w.t, err)
	w.events = nil
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
	leaves := []string{"set", "call", "wait", "raise", "switch"}
	if depth > 0 {
		leaves = append(leaves, "do", "for", "fork", "race", "try", "try", "timeout")
	}
	one := func() string {
		p.names++
		return fmt.Sprintf("%s    - b%d:\n%s", in, p.names, p.task(depth-1, in+"        "))
	}
	switch rapid.SampledFrom(leaves).Draw(p.t, "kind") {
	case "set":
		return in + "set: {n: '${ ((.n? // 0) + 1) % 1000 }', c: '${ $context.n? }'}\n" + in + "export: {as: '{ n: (($context.n? // 0) + 1) }'}\n"
	case "call":
		return in + "call: http\n" + in + "with: {method: post, endpoint: 'http://x', body: '${ . }'}\n"
	case "wait":
		return in + fmt.Sprintf("wait: {seconds: %d}\n", rapid.IntRange(0, 5).Draw(p.t, "seconds"))
	case "raise":
		return in + fmt.Sprintf("if: '((.n? // 0) | tostring | length) %% 2 == %d'\n", rapid.IntRange(0, 1).Draw(p.t, "parity")) +
			in + "raise: {error: {type: 'https://e/x', status: 500, title: X}}\n"
	case "switch":
		return in + fmt.Sprintf("switch: [{a: {when: '(.n? // 0) > %d', then: exit}}]\n", rapid.IntRange(0, 3).Draw(p.t, "over"))
	case "for":
		return in + fmt.Sprintf("for: {each: x, in: '[range(%d)]'}\n", rapid.IntRange(0, 3).Draw(p.t, "items")) +
			in + "do:\n" + p.tasks(depth-1, in+"  ")
	case "fork":
		return in + "fork:\n" + in + "  branches:\n" + one() + one()
	case "race":
		return in + "fork:\n" + in + "  compete: true\n" + in + "  branches:\n" + one() + one()
	case "try":
		return in + "try:\n" + p.tasks(depth-1, in+"  ") + in + "catch:\n" + in +
			"  retry: {delay: {seconds: 1}, backoff: {exponential: {}}, jitter: {from: {seconds: 0}, to: {seconds: 2}}, limit: {attempt: {count: 2}}}\n" +
			in + "  do:\n" + p.tasks(depth-1, in+"    ")
	case "timeout":
		return in + fmt.Sprintf("timeout: {after: {seconds: %d}}\n", rapid.IntRange(1, 6).Draw(p.t, "after")) + in + "do:\n" + p.tasks(depth-1, in+"  ")
	}
	return in + "do:\n" + p.tasks(depth-1, in+"  ")
}

// answerOf answers a call by its key alone, so that it does not matter when it is asked.
func answerOf(c interp.Call) answer {
	sum := 0
	for _, b := range []byte(c.Key) {
		sum = sum*31 + int(b)
		sum %= 1 << 20
	}
	a := ok(map[string]any{"n": sum % 7})
	if sum%3 == 0 {
		a = answer{Result: answered(500 + sum%4)}
		a.Unanswered = sum%2 == 0
	}
	a.after = time.Duration(sum%4) * time.Second
	return a
}

func outcomeOf(w *world) (string, []interp.StepRecord, interp.RunRecord) {
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

// TestMovingChangesNothing continues random runs as new at every point where it is possible, and at random ones: the
// outcome and the records must be those of a run that was never moved.
func TestMovingChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := &program{t: t}
		source := document("timeout: {after: {minutes: 5}}\ndo:\n" + p.tasks(2, "  "))
		still := newWorld(t, source, `{"n": 1}`)
		still.origin = answerOf
		wantOutcome, wantSteps, wantRun := outcomeOf(still)

		seldom := rapid.IntRange(0, 3).Draw(t, "seldom")
		moved, count := newWorld(t, source, `{"n": 1}`), 0
		moved.origin = answerOf
		moved.between = func(w *world) {
			if count++; w.m.InFlight() == 0 && (seldom == 0 || count%(seldom+1) == 0) {
				w.restore()
			}
		}
		gotOutcome, gotSteps, gotRun := outcomeOf(moved)
		require.Equal(t, wantOutcome, gotOutcome, source)
		require.Equal(t, wantSteps, gotSteps, source)
		require.Equal(t, wantRun, gotRun, source)

		// and once more with a tiny budget, moved in the middle of computing
		yielding, count := newWorld(t, source, `{"n": 1}`), 0
		yielding.origin = answerOf
		yielding.limits.AdvanceFuel = 1
		yielding.between = func(w *world) {
			if count++; w.m.InFlight() == 0 {
				w.restore()
			}
		}
		gotOutcome, gotSteps, gotRun = outcomeOf(yielding)
		require.Equal(t, wantOutcome, gotOutcome, source)
		require.Equal(t, wantSteps, gotSteps, source)
		require.Equal(t, wantRun, gotRun, source)
	})
}

func TestSnapshotIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, document(`do: [{c: {call: http, with: {method: get, endpoint: 'http://x'}}}]`), ``)
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
	w := newWorld(t, document(`do: [{w: {wait: PT1S}}]`), ``)
	w.m.Advance(w.now)
	snapshot, err := w.m.Snapshot()
	require.NoError(t, err)
	_, err = interp.Restore(w.doc, snapshot[:len(snapshot)/2], w.limits)
	require.Error(t, err)
	_, err = interp.Restore(parse(t, document(`do: [{w: {wait: PT2S}}]`)), snapshot, w.limits)
	require.ErrorContains(t, err, "is of document")
}
