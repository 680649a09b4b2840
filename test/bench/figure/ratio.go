package figure

import (
	"fmt"
	"slices"
)

// Spread is the median of a figure that is computed once per round, with its smallest and largest value.
type Spread struct{ Mid, Low, High float64 }

// Ratio divides the values of two sides round by round, so that what disturbs a whole round disturbs both. It is NaN
// without rounds.
func Ratio(a, b []float64) Spread {
	return spread(a, b, func(a, b float64) float64 { return a / b })
}

// Difference subtracts the values of two sides round by round.
func Difference(a, b []float64) Spread {
	return spread(a, b, func(a, b float64) float64 { return a - b })
}

func spread(a, b []float64, f func(a, b float64) float64) Spread {
	values := make([]float64, min(len(a), len(b)))
	for i := range values {
		values[i] = f(a[i], b[i])
	}
	s := Spread{Mid: Median(values), Low: Median(values), High: Median(values)}
	if len(values) > 0 {
		s.Low, s.High = slices.Min(values), slices.Max(values)
	}
	return s
}

// Times writes the spread of a ratio, such as "0.86 × (0.81–0.90)".
func (s Spread) Times() string { return fmt.Sprintf("%.2f × (%.2f–%.2f)", s.Mid, s.Low, s.High) }

// Milliseconds writes the spread of a difference, such as "+5.3 ms (+4.9 to +6.0)".
func (s Spread) Milliseconds() string {
	return fmt.Sprintf("%+.1f ms (%+.1f to %+.1f)", s.Mid, s.Low, s.High)
}

// Four writes the median, the 95th and the 99th percentile and the maximum of milliseconds, such as "1.2, 3.4, 5.6, 7.8
// ms".
func Four(ms []float64) string {
	format := "%.1f, %.1f, %.1f, %.1f ms"
	if Median(ms) >= 100 {
		format = "%.0f, %.0f, %.0f, %.0f ms"
	}
	return fmt.Sprintf(format, Median(ms), Quantile(ms, .95), Quantile(ms, .99), Quantile(ms, 1))
}

// Aim is a figure that has a limit of its own on the page, with what was seen.
type Aim struct {
	What, Aim, Seen string
	Met             bool
}
