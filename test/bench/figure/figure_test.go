package figure_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/bench/figure"
)

func TestQuantilesAreOfTheValues(t *testing.T) {
	t.Parallel()
	values := make([]float64, 100)
	for i := range values {
		values[i] = float64(100 - i)
	}
	require.InDelta(t, 51, figure.Median(values), 0)
	require.InDelta(t, 96, figure.Quantile(values, .95), 0)
	require.InDelta(t, 100, figure.Quantile(values, 1), 0)
	require.True(t, math.IsNaN(figure.Median(nil)), "without values there is no figure")
	require.Equal(t, "51.0, 96.0, 100.0, 100.0 ms", figure.Four(values))
	require.Equal(t, "100, 200, 200, 200 ms", figure.Four([]float64{200, 100, 100}))
}

// A disturbance of one round of both sides changes the spread, and not the ratio of the other rounds.
func TestRatiosAreOfRounds(t *testing.T) {
	t.Parallel()
	r := figure.Ratio([]float64{10, 40, 12}, []float64{5, 20, 8})
	require.Equal(t, figure.Spread{Mid: 2, Low: 1.5, High: 2}, r)
	require.Equal(t, "2.00 × (1.50–2.00)", r.Times())
	d := figure.Difference([]float64{10, 40, 12}, []float64{5, 20, 18})
	require.Equal(t, "+5.0 ms (-6.0 to +20.0)", d.Milliseconds())
	require.True(t, math.IsNaN(figure.Ratio(nil, nil).Mid))
	require.Equal(t, []string{"met", "missed"}, []string{figure.Verdict(true), figure.Verdict(false)})
}
