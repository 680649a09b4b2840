package interp_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl/interp"
)

// An event that was accepted before its listen task is taken by it, in order, and by one task only.
func TestEarlierEvents(t *testing.T) {
	t.Parallel()
	a, b := `{"type": "a", "data": `, `{"type": "b", "data": `
	for name, tt := range map[string]struct{ source, want string }{
		"one": {`[{w: {wait: PT5S}}, {l: {listen: {to: {one: {with: {type: a}}}}}}]`, `[1]`},
		"two tasks take one each": {
			`[{w: {wait: PT5S}}, {k: {listen: {to: {one: {with: {type: a}}}}, output: {as: '{k: .}'}}},
			{l: {listen: {to: {one: {with: {type: a}}}}, input: {from: .k}, output: {as: '. + $input'}}}]`, `[3, 1]`},
		"what an earlier task left": {
			`[{w: {wait: PT5S}}, {k: {listen: {to: {one: {with: {type: b}}}}}}, {l: {listen: {to: {one: {with: {type: a}}}}}}]`, `[1]`},
		"since the task": {`[{w: {wait: PT5S}}, {l: {listen: {to: {one: {with: {type: a}}}}, metadata: {signalbox.since: listen}}}]`, `[6]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newDriver(t, document("do: "+tt.source), `{}`)
			w.publish(second, a+"1}")
			w.publish(2*second, b+"2}")
			w.publish(3*second, a+"3}")
			w.publish(6*second, a+"6}")
			w.completes(tt.want)
		})
	}
}

// A run reports the events that it has taken once, with the next listener that is committed.
func TestTakenEventsAreReported(t *testing.T) {
	t.Parallel()
	w := newDriver(t, document(`
do:
  - loop:
      for: {in: '[range(4)]'}
      do: [{l: {listen: {to: {any: [{with: {type: a}}], until: length == 3}}}}]`), `{}`)
	w.between = func(w *driver) {
		if w.m.InFlight() == 0 {
			w.restore()
		}
	}
	for i := range 12 {
		w.publish(time.Duration(i)*second, `{"type": "a", "data": 1}`)
	}
	w.run()
	var reports []string
	for _, e := range w.effects {
		if l, ok := e.(interp.Listen); ok {
			reports = append(reports, fmt.Sprint(l.Taken, l.After))
		}
	}
	require.Equal(t, []string{"[] 0", "[1 2 3] 0", "[4 5 6] 0", "[7 8 9] 0"}, reports)
}

// A listener that is committed again, because the database was restored from a backup, has all events that the run has
// taken.
func TestListenersHaveAllTakenEvents(t *testing.T) {
	t.Parallel()
	for _, restored := range []bool{false, true} {
		w := newDriver(t, document(`
do:
  - a: {listen: {to: {one: {with: {type: a}}}}}
  - b: {listen: {to: {one: {with: {type: a}}}}}
  - c: {listen: {to: {one: {with: {type: a}}}}}`), `{}`)
		w.publish(time.Second, `{"type": "a", "data": 1}`)
		w.publish(2*time.Second, `{"type": "a", "data": 2}`)
		w.publish(time.Hour, `{"type": "a", "data": 3}`)
		var seen []int64
		w.between = func(w *driver) {
			if restored && w.m.InFlight() == 0 {
				w.restore()
			}
			list, err := w.m.Listeners()
			require.NoError(t, err)
			for _, l := range list {
				seen = l.Taken
			}
		}
		w.completes(`[3]`)
		require.Equal(t, []int64{1, 2}, seen)
	}
}

// Beyond a maximum, a run reports only the newest events that it has taken, and the position of the others.
func TestTakenEventsAreBounded(t *testing.T) {
	t.Parallel()
	const events = 2005
	w := newDriver(t, document(`
do:
  - many: {listen: {to: {any: [{with: {type: a}}], until: length == `+strconv.Itoa(events)+`}}, output: {as: '${ null }'}}
  - last: {listen: {to: {one: {with: {type: b}}}}}`), `{}`)
	for range events {
		w.publish(second, `{"type": "a", "data": 1}`)
	}
	w.publish(2*second, `{"type": "b", "data": 2}`)
	w.completes(`[2]`)
	last, _ := w.effects[slices.IndexFunc(w.effects, func(e interp.Effect) bool {
		l, ok := e.(interp.Listen)
		return ok && l.Taken != nil
	})].(interp.Listen)
	require.Len(t, last.Taken, 2000)
	require.Equal(t, int64(5), last.After)
}

// modelEvent is an event of the simulation.
type modelEvent struct {
	typ string
	key int
	n   int
}

// modelTask is a listen task of the simulation: its source, and which of the events that are left it takes, by index,
// with its output.
type modelTask struct {
	source string // of its listen, and of the properties beside it
	take   func(left []modelEvent) (taken []int, output []int)
}

// first returns the task that takes the first event for which a condition holds.
func first(source string, holds func(modelEvent) bool) modelTask {
	return modelTask{source, func(left []modelEvent) ([]int, []int) {
		i := slices.IndexFunc(left, holds)
		return []int{i}, []int{left[i].n}
	}}
}

// modelTasks returns one task for each strategy of listen tasks, with random arguments.
func modelTasks(r *rand.Rand) []modelTask {
	x, y := string(rune('a'+r.IntN(3))), string(rune('a'+r.IntN(3)))
	key, count := r.IntN(3), 1+r.IntN(3)
	of := func(typ string) func(modelEvent) bool { return func(e modelEvent) bool { return e.typ == typ } }
	until := func(left []modelEvent) (taken, output []int) {
		for i, e := range left {
			if e.typ == x {
				taken, output = append(taken, i), append(output, e.n)
			}
			if len(output) == count {
				break
			}
		}
		return taken, output
	}
	return []modelTask{
		first(`listen: {to: {any: []}}`, func(modelEvent) bool { return true }),
		first(`listen: {to: {one: {with: {type: `+x+`}}}}`, of(x)),
		first(`listen: {to: {any: [{with: {type: `+x+`}}, {with: {type: `+y+`}}]}}`, func(e modelEvent) bool {
			return e.typ == x || e.typ == y
		}),
		first(fmt.Sprintf(`listen: {to: {one: {with: {type: %s}, correlate: {k: {from: .key, expect: '${ %d }'}}}}}`, x, key),
			func(e modelEvent) bool { return e.typ == x && e.key == key }),
		{`listen: {to: {all: [{with: {type: ` + x + `}, correlate: {k: {from: .key}}}, {with: {type: ` + y +
			`}, correlate: {k: {from: .key}}}]}}`,
			func(left []modelEvent) (taken, output []int) {
				met, fixed := []bool{false, false}, -1
				for i, e := range left {
					for f, typ := range []string{x, y} {
						if !met[f] && e.typ == typ && (fixed < 0 || e.key == fixed) {
							met[f], fixed = true, e.key
							taken, output = append(taken, i), append(output, e.n)
							break
						}
					}
					if met[0] && met[1] {
						break
					}
				}
				return taken, output
			}},
		{fmt.Sprintf(`listen: {to: {any: [{with: {type: %s}}], until: length == %d}}`, x, count), until},
		{fmt.Sprintf(`listen: {to: {any: [{with: {type: %s}}], until: length == %d}}, foreach: {item: e, do: [{w: {wait: PT1S}}, {s: {set: '${ $e }'}}]}`, x, count), until},
		{`listen: {to: {any: [{with: {type: ` + x + `}}], until: {one: {with: {type: end}}}}}`,
			func(left []modelEvent) (taken, output []int) {
				for i, e := range left {
					if e.typ == x || e.typ == "end" {
						taken = append(taken, i)
					}
					if e.typ == "end" {
						break
					}
					if e.typ == x {
						output = append(output, e.n)
					}
				}
				return taken, output
			}},
	}
}

// TestSimulatedListening compares runs with a model: whenever events arrive, before or after the tasks that listen for
// them, whatever is delivered twice, and however often the run is restored, each task takes the first events that it
// wants of those that the run has not taken. SIGNALBOX_CHAOS_MINUTES and SIGNALBOX_CHAOS_SEED make it longer and repeat
// it.
func TestSimulatedListening(t *testing.T) {
	t.Parallel()
	seed, err := strconv.ParseUint(os.Getenv("SIGNALBOX_CHAOS_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	minutes, _ := strconv.Atoi(os.Getenv("SIGNALBOX_CHAOS_MINUTES"))
	end := time.Now().Add(time.Duration(minutes) * time.Minute)
	t.Logf("seed %d", seed)
	for round := range uint64(1 << 40) {
		if round >= 60 && time.Now().After(end) {
			break
		}
		simulateListening(t, rand.New(rand.NewPCG(seed, round)), fmt.Sprintf("seed %d, round %d", seed, round))
	}
}

func simulateListening(t *testing.T, r *rand.Rand, name string) {
	t.Helper()
	var events []modelEvent
	for n := range 8 + r.IntN(12) {
		events = append(events, modelEvent{string(rune('a' + r.IntN(3))), r.IntN(3), n})
	}
	// Enough of each follows, so that every task ends.
	for range 6 {
		for key := range 3 {
			for _, typ := range []string{"a", "b", "c", "end"} {
				events = append(events, modelEvent{typ, key, len(events)})
			}
		}
	}
	var source []string
	var want [][]int
	left := slices.Clone(events)
	for i := range 1 + r.IntN(5) {
		tasks := modelTasks(r)
		task := tasks[r.IntN(len(tasks))]
		taken, output := task.take(left)
		for _, at := range slices.Backward(taken) {
			left = slices.Delete(left, at, at+1)
		}
		want = append(want, output)
		source = append(source, fmt.Sprintf(`  - w%d: {wait: {milliseconds: %d}}`, i, r.IntN(3000)),
			fmt.Sprintf(`  - l%d: {%s, export: {as: '{list: ($context.list + [$output])}'}}`, i, task.source))
	}
	w := newDriver(t, document("do:\n"+strings.Join(source, "\n")+"\n  - end: {set: '${ $context.list }'}"), `{}`)
	w.earlyFirst, w.listening = r.IntN(2) == 0, time.Duration(r.IntN(1500))*time.Millisecond
	at := time.Duration(0)
	for _, e := range events {
		if r.IntN(3) == 0 {
			at += time.Duration(r.IntN(2500)) * time.Millisecond
		}
		w.publish(at, fmt.Sprintf(`{"id": "%d", "type": %q, "key": %d, "data": %d}`, e.n, e.typ, e.key, e.n))
	}
	w.between = func(w *driver) {
		if w.m.InFlight() == 0 && r.IntN(4) == 0 {
			w.restore()
		}
	}
	outcome := w.run()
	require.Nil(t, outcome.Error, "%s\n%s", name, strings.Join(source, "\n"))
	got, err := json.Marshal(outcome.Output)
	require.NoError(t, err)
	expected, err := json.Marshal(want)
	require.NoError(t, err)
	require.JSONEq(t, strings.ReplaceAll(string(expected), "null", "[]"), string(got), "%s\n%s", name,
		strings.Join(source, "\n"))
}
