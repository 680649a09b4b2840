package feed

import (
	"testing"

	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
)

func accepted() []Event {
	return []Event{{ID: "a", Position: 1}, {ID: "b", Position: 2}, {ID: "c", Position: 4}}
}

func started(ids ...string) ([]*signalboxv1.Run, map[string][]given) {
	var runs []*signalboxv1.Run
	inputs := map[string][]given{}
	for i, id := range ids {
		run := "run-" + string(rune('0'+i))
		runs = append(runs, &signalboxv1.Run{Id: run})
		inputs[run] = []given{{ID: id, Source: "/s"}}
	}
	return runs, inputs
}

func TestMissingAndExtraRunsAreFound(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		ids  []string
		want string
	}{
		"sound":        {[]string{"c", "a", "b"}, ""},
		"lost":         {[]string{"a", "b"}, "event c at position 4 has started no run"},
		"twice":        {[]string{"a", "b", "c", "b"}, "event b has started two runs: run-1 and run-3"},
		"not accepted": {[]string{"a", "b", "c", "d"}, "run run-3 was started by event /s d, which was not accepted"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs, inputs := started(c.ids...)
			require.Equal(t, c.want, firstOf(compare(accepted(), runs, inputs)))
		})
	}
}

func TestMissingAndRepeatedWakesAreFound(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		ids  []string
		want string
	}{
		"sound":        {[]string{"a", "b", "c"}, ""},
		"lost":         {[]string{"a", "c"}, "event b at position 2 did not come"},
		"twice":        {[]string{"a", "b", "b", "c"}, "event b came twice"},
		"out of order": {[]string{"b", "a", "c"}, "event a at position 1 came after that of position 2"},
		"not accepted": {[]string{"a", "b", "c", "d"}, "event d was not accepted"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, firstOf(order(accepted(), c.ids)))
		})
	}
}

func TestSharedPositionsAreFound(t *testing.T) {
	t.Parallel()
	require.Empty(t, positions(accepted()))
	require.Len(t, positions(append(accepted(), Event{ID: "d", Position: 4})), 1)
}
