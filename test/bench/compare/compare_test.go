package compare_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/bench/compare"
	"github.com/signalbox-dev/signalbox/test/bench/figure"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// counted is a side that records its calls, with programs that use so much processor time for each.
func counted(name string, calls *[]string, own, temporal time.Duration) compare.Side {
	var used, shared time.Duration
	return compare.Side{
		Name:     name,
		Begin:    func(platform.T) { *calls = append(*calls, name) },
		Run:      func(context.Context) error { used, shared = used+own, shared+temporal; return nil },
		CPU:      func(platform.T) time.Duration { return time.Hour + used },
		Temporal: func(platform.T) time.Duration { return time.Minute + shared },
	}
}

// Each round begins with another side, and processor time is that of the measured runs alone.
func TestRoundsAlternateAndProcessorTimeIsPerRun(t *testing.T) {
	t.Parallel()
	var calls []string
	series := compare.Measure(t, compare.Work{Rounds: 3, Runs: 4, Callers: 1, WarmUp: 2},
		counted("a", &calls, 3*time.Millisecond, 5*time.Millisecond), counted("b", &calls, time.Millisecond, 0))
	require.Equal(t, "a b  a b  b a  a b",
		strings.Join(calls[:2], " ")+"  "+strings.Join(calls[2:4], " ")+"  "+strings.Join(calls[4:6], " ")+
			"  "+strings.Join(calls[6:], " "))
	require.Equal(t, "3.0 + 5.0 ms", series[0].CPUs())
	require.Equal(t, "1.0 + 0.0 ms", series[1].CPUs())
	require.Len(t, series[0].Times(), 12)
	require.Len(t, series[0].Rates(), 3)
	require.InDelta(t, .75, series[0].Of(4).CPU(), 1e-9)
	require.InDelta(t, 4*series[0].Rates()[0], series[0].Of(4).Rates()[0], 1e-9)
}

func TestErrorsNameTheSide(t *testing.T) {
	t.Parallel()
	err := platform.Try(func() {
		scope := platform.NewScope(t.Context(), "compare")
		defer scope.Close()
		side := counted("a", new([]string), 0, 0)
		side.Run = func(context.Context) error { return errors.New("no answer") }
		compare.Measure(scope, compare.Work{Rounds: 1, Runs: 1, Callers: 1}, side)
	})
	require.ErrorContains(t, err, "a: no answer")
}

func TestRowsHaveBothSides(t *testing.T) {
	t.Parallel()
	round := func(ms, rate float64) compare.Sample {
		return compare.Sample{Times: []float64{ms, ms, 2 * ms}, Rate: rate, CPU: ms / 2, Temporal: ms / 4}
	}
	p := compare.Pair{Signalbox: compare.Series{round(10, 50), round(30, 25)},
		Bare: compare.Series{round(5, 100), round(10, 75)}}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p.LatencyRow(line, "runs")
	p.RateRow(line, "runs")
	require.Equal(t, "| runs | 30.0, 60.0, 60.0, 60.0 ms | 10.0, 20.0, 20.0, 20.0 ms | 3.00 × (2.00–3.00) | 15.0 + 7.5 "+
		"ms | 5.0 + 2.5 ms |\n"+
		"| runs | 50/s | 100/s | 0.50 × (0.33–0.50) | 15.0 + 7.5 ms | 5.0 + 2.5 ms |\n", b.String())
}

func TestLeadsNameTheBetterSide(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	compare.Leads(func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }, []compare.Compared{
		{What: "runs", By: figure.Spread{Mid: .86}, Rate: true},
		{What: "starts", By: figure.Spread{Mid: 1.2}, Rate: true},
		{What: "steps", By: figure.Spread{Mid: 2.4}},
		{What: "rows", By: figure.Spread{Mid: .66}},
		{What: "equal", By: figure.Spread{Mid: 1}},
	})
	require.Equal(t, "The bare SDK was better at: runs (0.86 ×); steps (2.40 ×).\nSignalbox was better at: starts (1.20 "+
		"×); rows (0.66 ×).\n", b.String())
}
