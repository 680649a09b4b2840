package interp_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/signalbox-dev/signalbox/dsl/interp"
)

// limited runs a document to its end with limits on its records. move reports before each Advance whether the machine
// is restored.
func limited(w *driver, limits interp.RecordLimits, move func(w *driver) bool) *driver {
	w.t.Helper()
	w.limits.Records = limits
	w.m = interp.New(w.doc, interp.Start{RunID: "r", Input: map[string]any{"n": 1}, At: epoch}, w.limits)
	w.between = func(w *driver) {
		if w.m.InFlight() == 0 && move(w) {
			w.restore()
		}
	}
	w.run()
	return w
}

// summarized returns the number of steps without a record.
func (w *driver) summarized() (n int64) {
	for _, t := range w.summary.Tasks {
		n += t.Count
	}
	return n
}

// numbers returns the numbers of the steps that have records.
func (w *driver) numbers() []int64 { return slices.Sorted(maps.Keys(w.steps)) }

func (w *driver) lastRun() interp.RunRecord { return w.runs[len(w.runs)-1] }

func never(*driver) bool { return false }

const nested = `
do:
  - f:
      for: {in: '[range(10)]'}
      do: [{g: {for: {in: '[range(10)]', each: j}, do: [{s: {if: '$j != 3', set: {x: 1}}}]}}]`

func TestStepsBetweenTheFirstAndTheLastAreSummarized(t *testing.T) {
	t.Parallel()
	y := limited(newDriver(t, document(nested), ``), interp.RecordLimits{First: 5, Last: 4, Failures: 2, Pending: 2},
		never)
	require.Equal(t, []int64{1, 2, 3, 4, 5, 108, 109, 110, 111}, y.numbers())
	require.Equal(t, int64(111), y.lastRun().StepsTotal)
	require.Equal(t, int64(111), y.lastRun().StepsDone)
	require.Equal(t, int64(6), y.summary.From)
	require.Equal(t, int64(107), y.summary.To)
	require.Equal(t, []interp.TaskSummary{
		{Pointer: "/do/0/f/do/0/g", Task: "g", Kind: "for", Count: 9, Completed: 9},
		{Pointer: "/do/0/f/do/0/g/do/0/s", Task: "s", Kind: "set", Count: 93, Completed: 83, Skipped: 10},
	}, y.summary.Tasks)
}

func TestTheFirstFailuresKeepTheirRecords(t *testing.T) {
	t.Parallel()
	y := limited(newDriver(t, document(`
do:
  - f:
      for: {in: '[range(20)]'}
      do: [{t: {try: [{r: {raise: {error: {type: 'https://e/x', status: 500}}}}], catch: {do: [{h: {set: {x: 1}}}]}}}]`), ``),
		interp.RecordLimits{First: 2, Last: 3, Failures: 4, Pending: 2}, never)
	require.Equal(t, []int64{1, 2, 3, 6, 9, 12, 59, 60, 61}, y.numbers())
	require.Equal(t, interp.StatusFailed, y.steps[12].Status)
	require.True(t, y.steps[12].Kept)
	require.Equal(t, int64(15), y.summary.Tasks[slices.IndexFunc(y.summary.Tasks, func(s interp.TaskSummary) bool {
		return s.Task == "r"
	})].Failed)
	require.Equal(t, int64(61), int64(len(y.steps))+y.summarized())
}

func TestAStepThatIsOpenKeepsItsRecordUntilItEnds(t *testing.T) {
	t.Parallel()
	limits := interp.RecordLimits{First: 1, Last: 3, Failures: 1, Pending: 2}
	w := newDriver(t, document(`
do:
  - f:
      fork:
        branches:
          - w: {wait: {seconds: 5}}
          - l: {for: {in: '[range(6)]'}, do: [{s: {wait: {seconds: 1}}}]}`), ``)
	y := limited(w, limits, func(w *driver) bool {
		if w.now.Sub(epoch) == 4*time.Second && len(w.m.Advance(w.now)) > 0 {
			w.take()
		}
		return false
	})
	open := w.taken[slices.IndexFunc(w.taken, func(s interp.StepRecord) bool { return s.Task == "w" && s.Kept })]
	require.Equal(t, interp.StatusWaiting, open.Status,
		"the record is taken again when the step is not among the last any more")
	require.Equal(t, []int64{1, 7, 8, 9}, y.numbers())
	i := slices.IndexFunc(y.summary.Tasks, func(s interp.TaskSummary) bool { return s.Task == "w" })
	require.Equal(t, interp.TaskSummary{
		Pointer: "/do/0/f/fork/branches/0/w", Task: "w", Kind: "wait", Count: 1, Completed: 1,
		Shortest: 5 * time.Second, Longest: 5 * time.Second, Total: 5 * time.Second,
	}, y.summary.Tasks[i])
	require.Empty(t, y.summary.Open)
}

// A run with a machine that was restored at any time has the same records, and all of its steps are counted.
func TestRestoringChangesNoSummary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := &program{t: t}
		source := document("timeout: {after: {minutes: 5}}\ndo:\n" + p.tasks(2, "  "))
		limits := interp.RecordLimits{
			First: rapid.Int64Range(0, 5).Draw(t, "first"), Last: rapid.Int64Range(2, 6).Draw(t, "last"),
			Failures: rapid.Int64Range(0, 3).Draw(t, "failures"), Pending: rapid.IntRange(1, 2).Draw(t, "pending"),
		}
		publish := publications(t)
		run := func(move func(*driver) bool) *driver {
			w := newDriver(t, source, `{"n": 1}`)
			w.origin, w.child = answerOf, endOf
			publish(w)
			return limited(w, limits, move)
		}
		still := run(never)
		require.Equal(t, still.lastRun().StepsTotal, int64(len(still.steps))+still.summarized(),
			"each step has a record or is counted")
		failures := int64(0)
		for n, s := range still.steps {
			if n > limits.First && n <= still.lastRun().StepsTotal-limits.Last {
				failures++
				require.Equal(t, interp.StatusFailed, s.Status)
			}
		}
		require.LessOrEqual(t, failures, limits.Failures)
		moved := run(func(*driver) bool { return true })
		require.Equal(t, still.steps, moved.steps, source)
		require.Equal(t, still.summary, moved.summary, source)
	})
}
