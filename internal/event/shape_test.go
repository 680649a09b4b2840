package event_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/event"
)

func decodeFilter(t *testing.T, text string) (f event.Filter) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &f))
	return f
}

func TestShapes(t *testing.T) {
	t.Parallel()
	base := `{"with": {"type": {"literal": "paid"}}, "correlate": {"order": {"from": ".data.order", "expect": 7}, "who": {"from": ".source"}}}`
	s, values, err := event.ShapeOf(decodeFilter(t, base))
	require.NoError(t, err)
	require.Equal(t, "paid", s.Type)
	require.Equal(t, []string{"order"}, s.Expects)
	require.Nil(t, s.Filter.Correlate["order"].Expect)
	require.Equal(t, "7\n", values)
	// The hash is stored: a change requires another version.
	require.Equal(t, "wunkgev0wX2lyeP2vLQtAw", s.Hash)

	for text, want := range map[string]struct {
		shape  bool
		values string
	}{
		`{"with": {"type": {"literal": "paid"}}, "correlate": {"order": {"from": ".data.order", "expect": 8}, "who": {"from": ".source"}}}`:                       {true, "8\n"},
		`{"with": {"type": {"literal": "paid"}}, "correlate": {"order": {"from": ".data.order", "expect": 7.0}, "who": {"from": ".source"}}}`:                     {true, "7\n"},
		`{"with": {"type": {"literal": "paid"}}, "correlate": {"order": {"from": ".data.order", "expect": null}, "who": {"from": ".source"}}}`:                    {true, "null\n"},
		`{"with": {"type": {"literal": "paid"}}, "correlate": {"order": {"from": ".data.order"}, "who": {"from": ".source", "expect": 7}}}`:                       {false, "7\n"},
		`{"with": {"type": {"literal": "paid"}}, "correlate": {"order": {"from": ".data.n", "expect": 7}, "who": {"from": ".source"}}}`:                           {false, "7\n"},
		`{"with": {"type": {"literal": "paid"}}, "correlate": {"order": {"from": ".data.order", "expect": 7}, "who": {"from": ".source"}}, "vars": {"input": 1}}`: {false, "7\n"},
		`{"with": {"type": {"expr": ". == \"paid\""}}, "correlate": {"order": {"from": ".data.order", "expect": 7}, "who": {"from": ".source"}}}`:                 {false, "7\n"},
		`{"with": {"type": {"literal": "paid"}}, "correlate": {"order": {"from": ".data.order", "expect": 7}, "who": {"from": ".source", "expect": 1}}}`:          {false, "7\n1\n"},
	} {
		other, values, err := event.ShapeOf(decodeFilter(t, text))
		require.NoError(t, err)
		require.Equal(t, want.shape, other.Hash == s.Hash, text)
		require.Equal(t, want.values, values, text)
	}
}

func TestEntries(t *testing.T) {
	t.Parallel()
	require.Equal(t, []event.Entry{{Shape: event.EveryEvent}}, event.EntriesOf(event.Spec{Mode: event.Any}))
	require.Empty(t, event.EntriesOf(event.Spec{}))
	invalid := decodeFilter(t, `{"with": {"type": {"literal": "paid"}}, "correlate": {"order": {"from": ".data.order"}}}`)
	invalid.Correlate["order"] = event.Key{From: ".data.order", Expect: json.RawMessage(`{`)}
	entries := event.EntriesOf(
		event.Spec{Mode: event.Any, Filters: []event.Filter{decodeFilter(t, `{"with": {"source": {"literal": "/s"}}}`), invalid}})
	require.Len(t, entries, 2)
	require.Empty(t, entries[0].Type)
	require.NotEmpty(t, entries[0].Shape)
	require.Equal(t, event.Entry{Type: "paid"}, entries[1], "it is read for each event of the type")
}
