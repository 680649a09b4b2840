package jq_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// Watching an evaluation must not change its result: a run's behaviour must not depend on whether it is watched.
func TestWatchIsCalledAllAlongAndCostsNothing(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		`[range(20000) | tostring] | join(",") | length`, `reduce range(1e9) as $i (0; . + 1)`,
		`[("a" * 3000) | match("a?"; "g")] | length`} {
		program, err := jq.Compile(source, nil)
		require.NoError(t, err)
		plain := jq.NewFuel(1_000_000)
		want, wantErr := program.Run(nil, nil, plain)

		watched, calls, last, longest := jq.NewFuel(1_000_000), 0, int64(0), int64(0)
		watched.Watch = func() {
			longest, last = max(longest, watched.Used()-last), watched.Used()
			calls++
		}
		got, err := program.Run(nil, nil, watched)
		require.Equal(t, want, got, source)
		require.Equal(t, wantErr, err, source)
		require.Equal(t, plain.Used(), watched.Used(), source)
		require.Greater(t, calls, int(plain.Used()/20_000), source)
		require.Less(t, longest, int64(50_000), "a function that pays at once, of units between two calls of %s", source)
	}
}

func TestWatchStopsAnEvaluationByAPanic(t *testing.T) {
	t.Parallel()
	program, err := jq.Compile(`try reduce range(1e9) as $i (0; . + 1) catch "caught"`, nil)
	require.NoError(t, err)
	fuel := jq.NewFuel(1 << 40)
	fuel.Watch = func() {
		if fuel.Used() > 100_000 {
			panic("too long")
		}
	}
	require.PanicsWithValue(t, "too long", func() { _, _ = program.Run(nil, nil, fuel) })
	require.Less(t, fuel.Used(), int64(120_000))
}
