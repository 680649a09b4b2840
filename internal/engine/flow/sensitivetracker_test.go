package flow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// twentySteps passes its input through 20 steps, each of which creates a new value from it.
func twentySteps(t testing.TB) *dsl.Document {
	t.Helper()
	var text strings.Builder
	text.WriteString("document: {dsl: '1.0.0', namespace: test, name: test, version: '1.0.0'}\ndo:\n")
	for n := range 20 {
		fmt.Fprintf(&text, "  - s%d: {set: '${ . + {n: %d} }'}\n", n, n)
	}
	doc, violations := dsl.Parse([]byte(text.String()))
	require.False(t, violations.HasErrors(), "%v", violations)
	return doc
}

// hundredKilobytes returns an input of 100 kB: a thousand objects.
func hundredKilobytes(t testing.TB, last string) json.RawMessage {
	t.Helper()
	items := make([]any, 1000)
	for n := range items {
		items[n] = map[string]any{"id": n, "name": "item number " + fmt.Sprint(n), "note": strings.Repeat("x", 50)}
	}
	data, err := jq.EncodeJSON(map[string]any{"items": items, "last": map[string]any{last: "planted-in-the-input"}})
	require.NoError(t, err)
	require.Greater(t, len(data), 90_000)
	return data
}

// BenchmarkTwentySteps measures 100 kB through 20 steps: the machine alone, with the search without sensitive values,
// and with a sensitive value.
func BenchmarkTwentySteps(b *testing.B) {
	doc := twentySteps(b)
	for name, last := range map[string]string{"machine": "", "nothing sensitive": "note", "sensitive": "password"} {
		input := hundredKilobytes(b, last)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				run(b, doc, input, last != "")
			}
		})
	}
}

// run interprets a document to its end, and returns the published records of its steps.
func run(t testing.TB, doc *dsl.Document, input json.RawMessage, search bool) []interp.StepRecord {
	t.Helper()
	value, err := jq.DecodeJSON(input)
	require.NoError(t, err)
	now := time.Unix(0, 0)
	m := interp.New(doc, interp.Start{RunID: "run", At: now, Input: value, Interpreter: interp.Version},
		interp.DefaultLimits())
	l := flow.NewSensitiveTracker(redact.For(doc), redact.Inherited{})
	l.Input(input)
	var all []interp.StepRecord
	for {
		m.Advance(now)
		state, steps := m.TakeRecords()
		if search {
			l.Observe(state, steps)
		}
		all = append(all, steps...)
		if outcome, done := m.Done(); done {
			require.Equal(t, interp.StatusCompleted, outcome.Status)
			return all
		}
		require.True(t, m.Yielded(), "nothing is in flight")
	}
}

// The search encodes no large value if nothing is sensitive.
func TestSearchWithoutSensitiveValuesEncodesNothing(t *testing.T) { //nolint:paralleltest // it counts allocations
	doc := twentySteps(t)
	steps := run(t, doc, hundredKilobytes(t, "note"), false)
	l := flow.NewSensitiveTracker(redact.For(doc), redact.Inherited{})
	allocated := testing.AllocsPerRun(3, func() { l.Observe(nil, steps) })
	require.Less(t, allocated, 2000.0, "one encoding of the input alone allocates more")
}

// Sensitive texts of a large value are redacted in its recorded beginning.
func TestSensitiveTextsOfLargeValuesAreRedacted(t *testing.T) {
	t.Parallel()
	doc := twentySteps(t)
	steps := run(t, doc, hundredKilobytes(t, "password"), true)
	require.NotEmpty(t, steps)
	for _, s := range steps {
		require.NotNil(t, s.InputShown, s.Path)
		require.NotContains(t, string(s.InputShown), "planted-in-the-input")
	}
}
