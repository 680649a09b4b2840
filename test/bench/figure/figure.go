// Package figure computes statistics of values, and compares a figure with its aim. The sections of the page of
// benchmarks use it; durations are [github.com/signalbox-dev/signalbox/test/promise.Times].
package figure

import (
	"math"
	"slices"
)

// Quantile returns a quantile of values, by nearest rank, or NaN without values.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// Median returns the median of values.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Verdict returns the mark for a met or missed aim.
func Verdict(met bool) string {
	if met {
		return "met"
	}
	return "missed"
}
